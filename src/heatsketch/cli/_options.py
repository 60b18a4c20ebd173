"""Options that several commands share, and parsers of their values."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(I?)B?", re.IGNORECASE)


def number_of_bytes(text: str) -> int:
    """Parse a size like 2GiB or 500MB, and return bytes.

    Examples
    --------
    >>> from heatsketch.cli._options import number_of_bytes
    >>> number_of_bytes("2GiB"), number_of_bytes("1.5M")
    (2147483648, 1500000)
    """
    match = SIZE.fullmatch(text.strip())
    if not match:
        raise typer.BadParameter(f"must be a size like 2GiB or 500MB, got {text!r}.")
    number, unit, binary = match.groups()
    size = int(float(number) * (1024 if binary else 1000) ** UNITS[unit.upper()])
    if size < 2**20:  # the unit is probably missing
        raise typer.BadParameter(f"must have a unit, like 2GiB or 500MB, got {text!r}.")
    return size


def words_or(*words: str, kind: Callable[[str], Any], least: float) -> Callable[[Any], Any]:
    """Return a parser of some words, or of a number."""

    def value(text: Any) -> Any:
        if text in words:
            return text
        with suppress(ValueError):
            number = kind(text)
            if least <= number < float("inf"):
                return number
        raise typer.BadParameter(
            f"must be {', '.join(words)} or a number of at least {least:g}, got {text!r}."
        )

    return value


def _names(text: str) -> list[str]:
    names = next(csv.reader([text], skipinitialspace=True), [])
    if not all(names) or not names:
        raise typer.BadParameter(f"must be names with commas between them, got {text!r}.")
    return names


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")]
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
Confidence = Annotated[float, typer.Option(min=0, max=1, help="Confidence level of the intervals.")]
Components = Annotated[
    int,
    typer.Option(
        "--components",
        "-k",
        min=1,
        metavar="K",
        help="Number of components. Half of them are exact, and the others estimate the rest.",
    ),
]
Power = Annotated[
    Any,
    typer.Option(
        parser=words_or("all", kind=int, least=1),
        metavar="P|all",
        help="Diffusion time: a number of steps, or the sum over all times.",
    ),
]
Weighting = Annotated[
    Literal["random_walk", "symmetric"], typer.Option(help="Type of diffusion distance.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed.")]
Neighbors = Annotated[
    Any,
    typer.Option(
        parser=words_or("all", kind=int, least=2),
        metavar="N|all",
        help="Number of nearest neighbours, or all pairs.",
    ),
]
Ids = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of row ids.")]
Key = Annotated[str | None, typer.Option(metavar="NAME", help="Array of .npz, .zarr or .h5ad.")]
Header = Annotated[
    bool | None, typer.Option(help="Whether the first line of .csv or .tsv holds names.")
]
Metric = Literal[
    "euclidean", "cosine", "manhattan", "chebyshev", "hamming", "jaccard", "precomputed"
]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which columns of a table are used, and for what."""

    columns: Annotated[
        Any,
        typer.Option(
            parser=_names,
            metavar="A,B,...",
            help="Columns of numbers; by default all that are neither labels nor ids.",
        ),
    ] = None
    labels: Annotated[
        Any,
        typer.Option(
            parser=_names, metavar="A,B,...", help="Columns to pass through to the output."
        ),
    ] = None
    ids: Ids = None
    key: Key = None
    header: Header = None


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """How the neighbour graph of points is made: parameters of ``HeatGraph.from_points``."""

    neighbors: Neighbors = 15
    metric: Annotated[
        Metric,
        typer.Option(help="Distance between rows; precomputed if the table holds distances."),
    ] = "euclidean"
    weights: Annotated[
        Any,
        typer.Option(
            parser=words_or("local", "gaussian", kind=float, least=0),
            metavar="local|gaussian|NUMBER",
            help="Weights of links: with a bandwidth for each point, with one for all, or with "
            "this bandwidth of squared distances.",
        ),
    ] = "local"
    normalization: Annotated[
        Literal["symmetric", "degree", "bistochastic"] | None,
        typer.Option(help="Normalization; by default symmetric for points and degree for graphs."),
    ] = None


# Options of a group have a panel of their own in --help.
PANELS = {TableOptions: "Input", GraphOptions: "Neighbour graph"}
