"""Graphs: Matrix Market, lines of edges, tables of edges, and sparse matrices.

A graph is undirected: an edge may be listed once or in both directions, but not with two different
weights.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import mminfo

from heatsketch._core.checks import is_missing
from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.graph._graph_affinity import Graph, undirected
from heatsketch.io._table import Table

SEPARATORS = re.compile(r"[\s,;]+")
INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
# Names of the ends of an edge in networkx, igraph, Gephi, pandas and other tools.
ENDS = ("source target", "src dst", "from to", "node1 node2", "node_1 node_2")
EXAMPLE = ["source", "target", "weight"]


def read_matrix_market(path: Path) -> Graph:
    """Read a square matrix of coordinates; its nodes are numbered from 0.

    ``scipy.io.mmread`` is not used: damaged files crash it with a segmentation fault.
    """
    n_rows, n_columns, n_stored, layout, field, symmetry = mminfo(path)
    n_fields = {"pattern": 2, "real": 3, "integer": 3}.get(field)
    if layout != "coordinate" or symmetry not in ("general", "symmetric") or n_fields is None:
        cause = f"it must hold coordinates of real numbers, got {layout} {field} {symmetry}"
        raise FileFormatError(path, cause, "write it in this format")
    with path.open(encoding="ascii") as lines:
        next(line for line in lines if line.strip() and line[0] != "%")  # the sizes
        fields = [("row", np.int64), ("column", np.int64), ("weight", np.float64)][:n_fields]
        entries = np.loadtxt(lines, fields, comments="%", ndmin=1)
    # A matrix with few entries must not take the memory of many rows.
    if len(entries) != n_stored or n_rows > 2 * n_stored:
        cause = f"it has {len(entries)} entries, but {n_stored} of {n_rows} nodes in its header"
        raise FileFormatError(path, cause, "check that it is complete; leave out isolated nodes")
    weights = np.ones(n_stored) if n_fields == 2 else entries["weight"]
    places = entries["row"] - 1, entries["column"] - 1
    return graph_of_matrix(path, sparse.coo_array((weights, places), (n_rows, n_columns)))


def graph_of_matrix(path: Path, matrix: Any) -> Graph:
    """Return a graph whose edges are the entries of a square sparse matrix."""
    if matrix.shape[0] != matrix.shape[1]:
        cause = f"the matrix of a graph must be square, got shape {matrix.shape}"
        raise FileFormatError(path, cause, "save points as .npy or .parquet")
    entries = matrix.tocoo()
    pairs = np.stack(entries.coords, axis=1).astype(np.int64)
    return _graph(path, pairs, entries.data.astype(np.float64), np.arange(matrix.shape[0]))


def _graph(path: Any, pairs: np.ndarray, weights: np.ndarray, ids: np.ndarray) -> Graph:
    try:
        return Graph(undirected(pairs, weights, len(ids), names=ids), ids)
    except HeatSketchError as error:
        raise FileFormatError(path, *str(error).rstrip(".").split("; ", 1)) from error


# --- lists of edges ----------------------------------------------------------------------------


def _graph_of_edges(path: Any, ends: Iterable[str], weights: np.ndarray | array) -> Graph:
    """Return a graph of named nodes, in their order; they are integers if all names are.

    ``ends`` has two names for each edge, and is iterated before the weights are used.
    """
    numbers: dict[str, int] = {}
    places = np.fromiter((numbers.setdefault(name, len(numbers)) for name in ends), np.int64)
    if not numbers:
        raise FileFormatError(path, "it has no edges", "check that it was written")
    ids = np.array([None, *numbers], dtype=object)[1:]
    if all(map(INTEGER.fullmatch, numbers)):
        ids = ids.astype(np.int64)
    order = np.argsort(ids, kind="stable")
    pairs = np.argsort(order)[places].reshape(-1, 2)
    return _graph(path, pairs, np.asarray(weights, dtype=np.float64), ids[order])


def read_edge_lines(path: Path) -> Graph:
    """Read lines ``i j`` or ``i j weight``; # or % at the start marks a comment."""
    weights = array("d")

    def ends() -> Iterator[str]:
        n_fields = 0
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                fields = SEPARATORS.split(line.strip())
                if fields[0][:1] in ("", "#", "%"):
                    continue
                n_fields = n_fields or len(fields)
                if len(fields) != n_fields or n_fields not in (2, 3):
                    cause = (
                        f"line {number} must be 'i j' or 'i j weight', got {line[:60].strip()!r}"
                    )
                    raise FileFormatError(path, cause, "write all lines in the same way")
                weights.append(float(fields[2]) if n_fields == 3 else 1.0)
                yield from fields[:2]

    return _graph_of_edges(path, ends(), weights)


def edge_columns(names: Sequence[str], beside: Collection[str | None] = ()) -> tuple[str, ...]:
    """Return the columns of an edge list by their names; none if it is not one."""
    names = [name for name in names if name and name not in beside]  # an index has no name
    if {name.strip().lower() for name in names[:2]} not in [set(pair.split()) for pair in ENDS]:
        return ()
    weights = [name for name in names[2:] if name.strip().lower() in ("weight", "weights")]
    return (*names[:2], *weights[:1])


def select_edge_columns(path: Any, names: Sequence[str], columns: Any) -> tuple[str, ...]:
    """Return the columns of ends and weight: those given, by their names, or all."""
    selected = edge_columns(names) if columns is None else columns
    if not selected and len(names) in (2, 3) and "" not in names:
        selected = tuple(names)
    if len(selected) not in (2, 3) or len(set(selected)) < len(selected):
        cause = f"the ends of edges are not clear from its columns {list(names)[:8]}"
        raise FileFormatError(path, cause, f"name them, as in columns={EXAMPLE}")
    return selected


def read_edge_table(table: Table, ends: Sequence[str]) -> Graph:
    """Read an edge list from a table with weights as features, ends as labels."""
    X, _, labels = table.read()
    nodes = zip(*(_node_names(table.path, name, labels[name]) for name in ends), strict=True)
    weights = X[:, 0] if X.shape[1] else np.ones(X.shape[0])
    return _graph_of_edges(table.path, chain.from_iterable(nodes), weights)


def _node_names(path: Any, column: str, values: np.ndarray) -> Iterator[str]:
    """Yield node names: text without outer blanks, integers without a point."""
    for row, value in enumerate(values.tolist()):
        name = f"{value:.17g}" if isinstance(value, float) else str(value).strip()
        if is_missing(value) or not name:
            cause = f"row {row} of column {column!r} has no node"
            raise FileFormatError(path, cause, "fill it in, or drop the row")
        yield name
