"""Options shared by several commands, and parsers of their values."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.graph._metrics import ALIASES, METRICS

UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(I?)B?", re.IGNORECASE)


def whole_number(text: str) -> int:
    """Parse a positive integer, also one like 1e7.

    Examples
    --------
    >>> from heatsketch.cli._options import whole_number
    >>> whole_number("1e7")
    10000000
    """
    try:
        number = float(text)
        if number != int(number) or number < 1:
            raise ValueError
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is no integer of at least 1; use one like 64 or 1e6."
        ) from error
    return int(number)


def number_of_bytes(text: str) -> int:
    """Parse a size like 2GiB or 500MB, and return bytes.

    Examples
    --------
    >>> from heatsketch.cli._options import number_of_bytes
    >>> number_of_bytes("2GiB"), number_of_bytes("1.5M")
    (2147483648, 1500000)
    """
    found = SIZE.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"{text!r} is no size; use one like 2GiB or 500MB.")
    number, unit, binary = found.groups()
    size = int(float(number) * (1024 if binary else 1000) ** UNITS[unit.upper()])
    if size < 2**20:  # surely a missing unit
        raise typer.BadParameter(f"{text!r} is {size} bytes; give a unit, like 2GiB or 500MB.")
    return size


def words_or(
    *words: str, number: Callable[[str], Any], fits: Callable[[Any], bool], kind: str
) -> Callable[[str], Any]:
    """Return a parser of some words or a number."""

    def value(text: Any) -> Any:
        if text in words:
            return text
        try:
            found = number(text)
            if not fits(found):
                raise ValueError
        except ValueError as error:
            known = f"{', '.join(words)} or {kind}"
            raise typer.BadParameter(f"{text!r} is unknown; use {known}.") from error
        return found

    return value


def one_of(*words: str, about: str, panel: str | None = None) -> Any:
    """Return an option that is one of these words, with shell completion."""
    known = f"{', '.join(words[:-1])} or {words[-1]}"

    def value(text: str) -> str:
        if text not in words:
            raise typer.BadParameter(f"{text!r} is unknown; use {known}.")
        return text

    return typer.Option(
        parser=value,
        autocompletion=lambda: list(words),
        metavar="NAME",
        help=f"{about}: {known}.",
        rich_help_panel=panel,
    )


def _power(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _names(text: str) -> list[str]:
    names = next(csv.reader([text], skipinitialspace=True), [])
    if not all(names) or not names:
        raise typer.BadParameter(f"{text!r} must be names with commas between them, like a,b,c.")
    return names


def fraction(usual: float) -> Callable[[Any], float]:
    """Return a parser of numbers between zero and one."""

    def value(text: Any) -> float:
        try:
            found = float(text)
            if not 0 < found < 1:
                raise ValueError
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} must be between 0 and 1; use {usual}.") from error
        return found

    return value


# Panels of --help; options without a panel are in the first one.
INPUT, GRAPH, SKETCH = "Input", "Neighbour graph", "Sketch"

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Table to write; its extension (.csv, .parquet, .npy, ...) is the format.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace outputs that exist.")]
ColumnNames = Annotated[
    Any,
    typer.Option(
        "--columns",
        parser=_names,
        metavar="A,B,...",
        help="Columns of numbers; by default all that are neither labels nor ids.",
        rich_help_panel=INPUT,
    ),
]
LabelNames = Annotated[
    Any,
    typer.Option(
        "--labels",
        parser=_names,
        metavar="A,B,...",
        help="Columns to pass through to the output.",
        rich_help_panel=INPUT,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--ids", metavar="COLUMN", help="Column with the ids of the rows.", rich_help_panel=INPUT
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Array of .npz or .zarr, or layer of .h5ad.", rich_help_panel=INPUT
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(help="Whether the first line of .csv or .tsv holds names.", rich_help_panel=INPUT),
]
Confidence = Annotated[
    Any,
    typer.Option(parser=fraction(0.95), metavar="FLOAT", help="Confidence level of intervals."),
]
Level = Annotated[
    Any,
    typer.Option(
        parser=fraction(0.05), metavar="FLOAT", help="Family-wise error of the flagged rows."
    ),
]
MemoryLimit = Annotated[
    Any,
    typer.Option(
        parser=number_of_bytes, metavar="SIZE", help="Most memory to use, for instance 2GiB."
    ),
]
Components = Annotated[
    Any,
    typer.Option(
        "--components",
        "--k",
        "-k",
        parser=whole_number,
        metavar="K",
        help="Number of components; distances have a relative error of 1 / sqrt(2 K).",
        rich_help_panel=SKETCH,
    ),
]
Power = Annotated[
    Any,
    typer.Option(
        parser=words_or(
            "all", number=_power, fits=lambda p: 1 <= p < inf, kind="a number of at least 1"
        ),
        metavar="P|all",
        help="Diffusion time: a number of steps, or the sum over all times.",
        rich_help_panel=SKETCH,
    ),
]
Weighting = Annotated[
    Any, one_of("random_walk", "symmetric", about="Diffusion distance", panel=SKETCH)
]
RandomMatrix = Annotated[
    Any, one_of("gaussian", "rademacher", about="Entries of the random matrix", panel=SKETCH)
]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=2**32 - 1,
        metavar="N",
        help="Seed of the random matrix.",
        rich_help_panel=SKETCH,
    ),
]
Neighbors = Annotated[
    Any,
    typer.Option(
        parser=words_or("all", number=int, fits=lambda n: n >= 2, kind="an integer of at least 2"),
        metavar="N|all",
        help="Number of nearest neighbours, or all pairs.",
        rich_help_panel=GRAPH,
    ),
]
Metric = Annotated[
    Any, one_of(*METRICS, *ALIASES, "precomputed", about="Distance between rows", panel=GRAPH)
]
Affinity = Annotated[
    Any,
    one_of(
        "gaussian",
        "precomputed",
        about="Affinity; precomputed if the table is a square matrix of affinities",
        panel=GRAPH,
    ),
]
Bandwidth = Annotated[
    Any,
    typer.Option(
        parser=words_or(
            "auto", "local", number=float, fits=lambda e: 0 < e < inf, kind="a positive number"
        ),
        metavar="E|auto|local",
        help="Bandwidth of the affinity: one for all points, or one for each point (local).",
        rich_help_panel=GRAPH,
    ),
]
Normalization = Annotated[
    Any,
    one_of(
        "auto",
        *SCALINGS,
        about="Normalization; auto is degree for graphs and symmetric for points",
        panel=GRAPH,
    ),
]


def readable_bytes(size: float) -> str:
    """Format a size for display.

    Examples
    --------
    >>> from heatsketch.cli._options import readable_bytes
    >>> readable_bytes(3 * 2**29), readable_bytes(5 * 2**50)
    ('1.5 GiB', '5,120 TiB')
    """
    if size >= 2**43:
        return f"{size / 2**40:,.0f} TiB"
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{max(size / 2**20, 1):.0f} MiB"


def readable_seconds(seconds: float) -> str:
    """Format a duration for display.

    Examples
    --------
    >>> from heatsketch.cli._options import readable_seconds
    >>> readable_seconds(0.2), readable_seconds(300), readable_seconds(90000)
    ('1 s', '5 min', '25 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
