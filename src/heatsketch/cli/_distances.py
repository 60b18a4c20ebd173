"""``heatsketch distances``: diffusion distances of pairs, with intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.row_names import row_number
from heatsketch.cli._models import load_sketch, places
from heatsketch.cli._options import Confidence, Model, Overwrite
from heatsketch.cli._tables import check_outputs
from heatsketch.exceptions import FileFormatError
from heatsketch.io import Block, table_writer

COLUMNS = ["distance", "low", "high"]


def distances(
    model: Model,
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="I J", help="Pairs of rows: their ids, or positions from 0."),
    ] = None,
    *,
    pairs: Annotated[
        typer.FileText | None,
        typer.Option(
            metavar="FILE",
            encoding="utf-8-sig",
            errors="replace",
            help="Text file of pairs, one a line; - is the standard input.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Table to write, instead of lines."),
    ] = None,
    overwrite: Overwrite = False,
) -> dict[str, Any]:
    """Print diffusion distances between rows of a model, with intervals.

    An interval covers the error of the sketch only, not that of the sample or of an approximate
    graph. It is valid for pairs that were chosen without looking at the sketch.

    Rows are given by their ids in the table that was embedded, or by their positions, counted from
    0, if the table had no ids.

    Example: `heatsketch distances cells.heatsketch 0 1 0 2 --confidence 0.99`
    """
    if (pairs is None) == (not rows):
        raise typer.BadParameter("pass either rows, or --pairs.")
    source = getattr(pairs, "name", "-")
    check_outputs([model, source], output)
    names = _pairs_of_names(rows or []) if pairs is None else _pairs_of_lines(source, pairs)
    sketch = load_sketch(model)
    ends = _positions(sketch, model, [name for pair in names for name in pair]).reshape(-1, 2)
    estimate = dict(zip(COLUMNS, sketch.distances(ends, confidence=confidence), strict=True))
    ids = {"row": [one for one, _ in names], "other": [other for _, other in names]}
    if output is None:
        return {**ids, **estimate}
    with table_writer(output, COLUMNS, labels=list(ids), overwrite=overwrite) as writer:
        writer.append(Block(np.column_stack([*estimate.values()]), labels=ids))
    return {"model": model, "pairs": len(names), "confidence": confidence, "output": output}


def _positions(sketch: Any, model: Path, names: list[str]) -> np.ndarray:
    positions = places(sketch.numbers, np.array([row_number(name) for name in names]))
    if (positions < 0).any():
        some = ", ".join(map(str, sketch.ids[:3]))
        raise typer.BadParameter(
            f"row {names[int(np.argmin(positions))]!r} is not in {model}, whose ids are {some}, ..."
        )
    return positions


def _pairs_of_names(names: list[str]) -> list[tuple[str, str]]:
    if len(names) % 2:
        raise typer.BadParameter(f"pass two row ids for each pair, got {len(names)}.")
    return list(zip(names[::2], names[1::2], strict=True))


def _pairs_of_lines(path: str, lines: Iterable[str]) -> list[tuple[str, str]]:
    """Read two names per line, separated by a tab, else a comma, else blanks."""
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip("\r\n ")
        if not text or text.startswith("#"):
            continue
        separator = "\t" if "\t" in text else "," if "," in text else r"\s+"
        fields = [field.strip() for field in re.split(separator, text)]
        if len(fields) != 2:
            cause = f"line {number} must be two row ids, got {text[:60]!r}"
            raise FileFormatError(path, cause, "write one pair on each line")
        pairs.append((fields[0], fields[1]))
    if not pairs:
        raise FileFormatError(path, "it has no pairs", "write two row ids on each line")
    return pairs
