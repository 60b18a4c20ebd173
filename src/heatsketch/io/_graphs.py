"""Graph files: Matrix Market and edge lists (``.edges``, ``.edgelist``).

In both formats the graph is undirected: an edge may be listed once or in both directions, but not
with two different weights.
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.graph._graph_affinity import Graph, undirected
from heatsketch.io._csv import LONGEST_LINE, opened_binary

SEPARATORS = re.compile(r"[\s,;]+")
LAYOUTS = {
    "coordinate": ("real", "double", "integer", "pattern"),
    "array": ("real", "double", "integer"),
}
LINES_AT_ONCE = 2**16
INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


@contextmanager
def _text_lines(path: Path) -> Iterator[Iterator[str]]:
    """Yield the lines of a text file; raise if a line is too long."""

    def lines() -> Iterator[str]:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise FileFormatError(
                    path, f"it has a line of over {LONGEST_LINE} characters", "check what it is"
                )
            yield line

    with io.TextIOWrapper(opened_binary(path), encoding="utf-8-sig") as file:
        yield lines()


def _plain(text: str) -> str:
    """Return text of numbers, and raise for syntax that only Python accepts.

    ``float`` and ``int`` accept underscores and the digits of all scripts, but ``1_2`` is an id,
    not twelve.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text[:60]!r} is no number")
    return text


class _Claims(NamedTuple):
    """Header of a Matrix Market file, checked for plausibility."""

    layout: str
    field: str
    symmetry: str
    n_nodes: int
    n_stored: int


def read_matrix_market(path: Path) -> Graph:
    """Read a square matrix; its nodes are numbered from 0.

    ``scipy.io.mmread`` is not used: some damaged files crash it with a segmentation fault.
    """
    with _text_lines(path) as lines:
        claims = _claims(path, lines)
        n_fields = 1 if claims.layout == "array" else 2 if claims.field == "pattern" else 3
        numbers = _numbers(path, lines, n_fields)
    n_nodes = claims.n_nodes
    if len(numbers) != claims.n_stored:
        raise FileFormatError(
            path,
            f"it claims {claims.n_stored} entries, and has {len(numbers)}",
            "check that the file is whole",
        )
    if claims.layout == "array":
        # In column order; if symmetric, from the diagonal down.
        columns, rows = np.divmod(np.arange(n_nodes**2), max(n_nodes, 1))
        pairs = np.stack([rows, columns], axis=1)
        pairs = pairs if claims.symmetry == "general" else pairs[rows >= columns]
    else:
        pairs = _indices(path, numbers[:, :2], n_nodes)
    weights = np.ones(len(numbers)) if claims.field == "pattern" else numbers[:, -1]
    return Graph(_undirected(path, pairs, weights, n_nodes), np.arange(n_nodes))


def _claims(path: Path, lines: Iterator[str]) -> _Claims:
    """Check the sizes in the header against the file size, before any allocation."""
    banner = next(lines, "").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise FileFormatError(path, "it has no banner of Matrix Market", "check what it is")
    layout, field, symmetry = banner[2:]
    known = LAYOUTS.get(layout, ())
    if field not in known or symmetry not in ("general", "symmetric"):
        raise FileFormatError(
            path, f"it is {layout}, {field} and {symmetry}", "write real numbers, symmetric or not"
        )
    sizes = next((line for line in lines if line.strip() and not line.startswith("%")), "")
    n_rows, n_columns, *rest = (int(number) for number in _plain(sizes).split())
    if n_rows != n_columns:
        raise _not_square(path, n_rows, n_columns)
    whole = n_rows**2 if symmetry == "general" else n_rows * (n_rows + 1) // 2
    n_stored = whole if layout == "array" else rest[0]
    size = path.stat().st_size
    # An entry takes at least two characters; a node without entries cannot be embedded.
    if min(n_rows, n_stored) < 0 or 2 * n_stored > size or n_rows > 2 * n_stored:
        raise FileFormatError(
            path,
            f"it claims {n_rows} nodes and {n_stored} entries in {size} bytes",
            "check that the file is whole, and leave out nodes without edges",
        )
    return _Claims(layout, field, symmetry, n_rows, n_stored)


def _numbers(path: Path, lines: Iterator[str], n_fields: int) -> np.ndarray:
    """Return the numbers of all lines; raise unless each has ``n_fields``."""
    parts = [np.empty((0, n_fields))]
    while some := list(islice(lines, LINES_AT_ONCE)):
        rows = [line.split() for line in some if line.strip() and not line.startswith("%")]
        for fields in rows:
            _plain("".join(fields))
            if len(fields) != n_fields:
                raise FileFormatError(
                    path,
                    f"one of its lines is {' '.join(fields)[:60]!r}, which has {len(fields)} "
                    f"numbers, not {n_fields}",
                    "check that the file is whole",
                )
        if rows:
            parts.append(np.array(rows, dtype=np.float64))
    return np.concatenate(parts)


def _indices(path: Path, numbers: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return pairs of nodes, counted from 0."""
    good = (numbers >= 1) & (numbers <= n_nodes) & (numbers == np.floor(numbers))
    if not good.all():
        value = numbers[~good][0]
        raise FileFormatError(
            path,
            f"{value:.16g} is none of its nodes, which are 1 to {n_nodes}",
            "check that the file is whole",
        )
    return numbers.astype(np.int64) - 1


def read_edge_list(path: Path) -> Graph:
    """Read lines ``i j`` or ``i j weight``; # or % at the start marks a comment."""
    number_of: dict[str, int] = {}
    ends, weights = array("q"), array("d")
    n_fields = None
    with _text_lines(path) as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text[0] in "#%":
                continue
            fields = SEPARATORS.split(text)
            n_fields = n_fields or len(fields)
            if len(fields) != n_fields or n_fields not in (2, 3):
                raise FileFormatError(
                    path,
                    f"line {number} is {text[:60]!r}, which has {len(fields)} fields",
                    "write 'i j' or 'i j weight' on all lines",
                )
            ends.extend(number_of.setdefault(name, len(number_of)) for name in fields[:2])
            weights.append(_weight(path, number, fields))
    if not number_of:
        raise FileFormatError(path, "it has no edges", "write 'i j' or 'i j weight' on its lines")
    return graph_of_edges(path, number_of, ends, np.frombuffer(weights, dtype=np.float64))


def graph_of_edges(
    path: Path, number_of: dict[str, int], ends: array, weights: np.ndarray
) -> Graph:
    """Return a graph with sorted nodes; ``ends`` holds two node numbers per edge."""
    ids = _node_ids(list(number_of))
    place = np.argsort(np.argsort(ids, kind="stable"), kind="stable")
    pairs = place[np.frombuffer(ends, dtype=np.int64)].reshape(-1, 2)
    affinity = _undirected(path, pairs, weights, len(ids))
    ids = np.sort(ids)
    return Graph(affinity, ids if ids.dtype.kind == "i" else ids.astype(object))


def graph_of_matrix(path: Path, matrix: Any) -> Graph:
    """Return a graph whose edges are the entries of a square sparse matrix."""
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise _not_square(path, n_rows, n_columns)
    entries = matrix.tocoo()
    pairs = np.stack([entries.row, entries.col], axis=1).astype(np.int64)
    return Graph(_undirected(path, pairs, entries.data, n_rows), np.arange(n_rows))


def _not_square(path: Path, n_rows: int, n_columns: int) -> FileFormatError:
    return FileFormatError(
        path,
        f"it has {n_rows} rows and {n_columns} columns, and a graph has as many of each",
        "save points as .npy or .parquet",
    )


def _weight(path: Path, number: int, fields: list[str]) -> float:
    try:
        return float(_plain(fields[2])) if len(fields) == 3 else 1.0
    except ValueError as error:
        raise FileFormatError(
            path, f"line {number}: weight {fields[2][:60]!r} is no number", "correct it"
        ) from error


def _node_ids(names: list[str]) -> np.ndarray:
    """Return integers if all names are integers without leading zeros, else text."""
    if all(INTEGER.fullmatch(name) for name in names):
        return np.array([int(name) for name in names], dtype=np.int64)
    return np.array(names, dtype=np.str_)


def _undirected(path: Path, pairs: np.ndarray, weights: np.ndarray, n_nodes: int) -> Any:
    """Return a symmetric matrix of edges listed in one direction or in both."""
    try:
        return undirected(pairs, weights, n_nodes, names=np.arange(n_nodes))
    except HeatSketchError as error:
        problem, _, remedy = str(error).rstrip(".").partition("; ")
        raise FileFormatError(path, f"{problem} (counted from 0)", remedy) from error
