"""``heatsketch distances``: diffusion distances of pairs, with intervals."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.atomic_file import file_errors
from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode, as_exit_code
from heatsketch.cli._models import load_sketch, positions
from heatsketch.cli._options import Confidence, Overwrite
from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io import Block, check_different_files, table_writer

COLUMNS = ["distance", "low", "high"]


def distances(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")],
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="I J", help="Pairs of rows: their ids, or positions from 0."),
    ] = None,
    *,
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Text file of pairs, one a line; - is the standard input."
        ),
    ] = None,
    confidence: Confidence = 0.95,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Table to write, instead of lines."),
    ] = None,
    overwrite: Overwrite = False,
) -> Reply:
    """Print how far rows of a model are from each other, with intervals.

    An interval covers the error of the sketch only: not that of the sample, nor that of an
    approximate graph. It holds for pairs that were chosen without looking at the sketch.

    A row is named by its id in the table that was embedded; by its position, counted from 0, if
    that had no ids.
    """
    if (pairs is None) == (not rows):
        raise typer.BadParameter("give either pairs of rows, I J ..., or a file with --pairs.")
    if output is not None:
        check_different_files([model, *([pairs] if pairs else [])], output)
    names = _pairs_of_file(pairs) if pairs is not None else _pairs_of_words(rows or [])
    fitted = load_sketch(model)
    ends = positions(fitted, model, [name for pair in names for name in pair]).reshape(-1, 2)
    estimate = fitted.diffusion_distances(ends, confidence=confidence)
    found = {"row": [one for one, _ in names], "other": [other for _, other in names]}
    numbers = dict(zip(COLUMNS, estimate, strict=True))
    result = {
        "model": model,
        "confidence": confidence,
        "power": fitted.power,
        "first_power": fitted.power_,
        "n_pairs": len(names),
    }
    if output is not None:
        _write(output, found, numbers, overwrite)
        return Reply({**result, "output": output}, f"Written: {output}\n{len(names)} distances")
    lines = ["\t".join([*found, *COLUMNS])]
    for *ends_of_line, distance, low, high in zip(*found.values(), *numbers.values(), strict=True):
        lines.append("\t".join([*ends_of_line, f"{distance:.6g}", f"{low:.6g}", f"{high:.6g}"]))
    return Reply({**result, **found, **numbers}, "\n".join(lines))


def _write(path: Path, names: dict[str, list[str]], numbers: dict[str, Any], over: bool) -> None:
    writing = table_writer(path, COLUMNS, labels=list(names), overwrite=over)
    with as_exit_code(ExitCode.OUTPUT, HeatSketchError, ImportError), writing as writer:
        writer.append(Block(np.column_stack([*numbers.values()]), None, names))


def _pairs_of_words(words: list[str]) -> list[tuple[str, str]]:
    if len(words) % 2:
        message = f"{len(words)} rows are no pairs; give an even number of them."
        raise CommandError(message, ExitCode.ARGUMENTS)
    return list(zip(words[::2], words[1::2], strict=True))


def _pairs_of_file(path: Path) -> list[tuple[str, str]]:
    if str(path) == "-":
        return _pairs_of_lines(path, sys.stdin)
    with file_errors(path, doing="read"):
        text = path.read_bytes()
    try:
        return _pairs_of_lines(path, text.decode("utf-8-sig").splitlines())
    except UnicodeDecodeError as error:
        remedy = "write two rows on each line"
        raise FileFormatError(path, f"it is no text ({error})", remedy) from error


def _pairs_of_lines(path: Path, lines: Iterable[str]) -> list[tuple[str, str]]:
    """Read two names per line, separated by a tab, else a comma, else blanks."""
    found: list[tuple[str, str]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip("\r\n ")
        if not text or text.startswith("#"):
            continue
        separator = "\t" if "\t" in text else "," if "," in text else r"\s+"
        fields = [field.strip() for field in re.split(separator, text)]
        if len(fields) != 2:
            raise FileFormatError(
                path, f"line {number} is {text[:60]!r}, which is no pair", "write two rows on each"
            )
        found.append((fields[0], fields[1]))
    if not found:
        raise FileFormatError(path, "it has no pairs", "write two rows on each line")
    return found
