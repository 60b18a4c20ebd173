"""``heatsketch drift``: change of geometry between models, and moved rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.row_names import FIRST_OF_TEXT, row_numbers
from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode
from heatsketch.cli._models import load_sketch
from heatsketch.cli._options import Confidence, IdColumn

MOST_SHOWN = 20


def drift(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The earlier model.")],
    other: Annotated[
        Path,
        typer.Argument(metavar="OTHER", help="The later model, embedded with the same options."),
    ],
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table of either model, to print ids that are text."),
    ] = None,
    ids: IdColumn = None,
    confidence: Confidence = 0.95,
) -> Reply:
    """Print how far the geometry moved between two models, and which rows moved more.

    Both must have the same options and seed. Rows are the same if their ids are; their
    positions, if the tables had no ids. The interval covers the error of the sketch only: not
    that of the samples, nor that of approximate graphs.
    """
    if (names is None) != (ids is None):
        raise typer.BadParameter("--names and --ids go together: a table, and its column of ids.")
    earlier, later = load_sketch(model), load_sketch(other)
    if not np.isin(earlier.row_ids_, later.row_ids_).any():
        message = f"{model} and {other} have no row in common; give embed the --ids of both tables."
        raise CommandError(message, ExitCode.DATA)
    found = earlier.drift(later, confidence=confidence)
    known = {} if names is None else _names(names, ids)
    farthest = np.argsort(found.p_values, kind="stable")
    moved = found.ids[farthest][found.moved[farthest]]
    result = {
        "model": model,
        "other": other,
        "confidence": confidence,
        **{name: getattr(found, name) for name in ("total", "standard_error", "low", "high")},
        "relative": found.relative,
        "n_common": len(found.ids),
        **{name: _named(rows, known) for name, rows in _parts(found, moved).items()},
    }
    return Reply(result, _text(result, found, confidence))


def _parts(found: Any, moved: np.ndarray) -> dict[str, np.ndarray]:
    return {"moved": moved, "came": found.came, "went": found.went}


def _names(path: Path, ids: str | None) -> dict[int, Any]:
    from heatsketch.io import open_table

    kept: dict[int, Any] = {}
    for block in open_table(path, columns=(), ids=ids).blocks():
        kept.update(zip(row_numbers(block.ids).tolist(), block.ids.tolist(), strict=True))
    return kept


def _named(rows: np.ndarray, known: dict[int, Any]) -> list[Any]:
    return [known.get(row, row) for row in rows.tolist()]


def _text(result: dict[str, Any], found: Any, confidence: float) -> str:
    lines = [
        f"{100 * found.relative:.3g} % of the heat kernel moved: {found.total:.4g}, between "
        f"{found.low:.4g} and {found.high:.4g} at {confidence:g}",
        f"{len(found.ids)} rows in both, {len(found.came)} came, {len(found.went)} went",
    ]
    moved = result["moved"]
    shown = ", ".join(map(str, moved[:MOST_SHOWN]))
    more = f" and {len(moved) - MOST_SHOWN} more" if len(moved) > MOST_SHOWN else ""
    lines.append(f"Moved more than the others: {shown}{more}" if moved else "No row stands out.")
    if any(isinstance(row, int) and row >= FIRST_OF_TEXT for row in moved):
        lines.append("(Numbers that stand for text: give its table with --names and --ids.)")
    return "\n".join(lines)
