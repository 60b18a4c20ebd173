"""Graphs: Matrix Market, ``.mtx``, and lists of edges, ``.edges`` or ``.edgelist``.

Either way the graph is undirected: an edge may be listed once or in both directions, but not with
two different weights.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import io, sparse

from heatsketch.exceptions import FileFormatError
from heatsketch.files._csv import text_lines

__all__ = ["Graph", "read_edge_list", "read_matrix_market"]

SEPARATORS = re.compile(r"[\s,;]+")
INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


class Graph(NamedTuple):
    """An undirected graph.

    Attributes
    ----------
    affinity : scipy.sparse.csr_array of shape (n_nodes, n_nodes)
        Symmetric; for ``HeatSketch(affinity="precomputed")``. The diagonal is what the file says,
        and nothing is added to it.
    ids : array of shape (n_nodes,)
        Of the nodes: int64 where all are integers, otherwise str.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.files import read_graph
    >>> with TemporaryDirectory() as folder:
    ...     length = Path(folder, "a.edges").write_text("anna bert 2.0")
    ...     graph = read_graph(Path(folder, "a.edges"))
    >>> graph.ids.tolist(), graph.affinity.toarray().tolist()
    (['anna', 'bert'], [[0.0, 2.0], [2.0, 0.0]])
    """

    affinity: Any
    ids: Any


def read_matrix_market(path: Path) -> Graph:
    """Read a square matrix; its nodes are numbered from 0."""
    _check_claims(path)
    entries = sparse.coo_array(io.mmread(path))
    pairs = np.stack([entries.row, entries.col], axis=1).astype(np.int64)
    n_nodes = entries.shape[0]
    return Graph(_undirected(path, pairs, entries.data, n_nodes), np.arange(n_nodes))


def _check_claims(path: Path) -> None:
    """Hold the sizes in the first lines against the size of the file, before any is allocated."""
    size = path.stat().st_size
    with text_lines(path) as lines:
        banner = next(lines, "").lower().split()
        if len(banner) != 5 or banner[0] != "%%matrixmarket" or banner[1] != "matrix":
            raise FileFormatError(path, "it has no banner of Matrix Market", "check what it is")
        _, _, layout, field, symmetry = banner
        if field == "complex" or symmetry not in ("general", "symmetric"):
            raise FileFormatError(
                path, f"it is {field} and {symmetry}", "write real numbers, symmetric or general"
            )
        claims = next(line for line in lines if line.strip() and not line.startswith("%"))
    n_rows, n_columns, *rest = (int(number) for number in claims.split())
    if n_rows != n_columns:
        raise FileFormatError(
            path,
            f"it has {n_rows} rows and {n_columns} columns, and a graph has as many of each",
            "save points as .npy or .parquet",
        )
    n_stored = rest[0] if layout == "coordinate" else n_rows * (n_rows + 1) // 2
    # An entry takes two characters at least; a node without any entry cannot be embedded.
    if min(n_rows, n_stored) < 0 or 2 * n_stored > size or n_rows > 2 * n_stored:
        raise FileFormatError(
            path,
            f"it claims {n_rows} nodes and {n_stored} entries in {size} bytes",
            "check that the file is whole, and leave out nodes without edges",
        )


def read_edge_list(path: Path) -> Graph:
    """Read lines ``i j`` or ``i j weight``; lines that start with # or % are left out."""
    number_of: dict[str, int] = {}
    ends, weights = array("q"), array("d")
    n_fields = None
    with text_lines(path) as lines:
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
    ids = _node_ids(list(number_of))
    place = np.argsort(np.argsort(ids, kind="stable"), kind="stable")
    pairs = place[np.frombuffer(ends, dtype=np.int64)].reshape(-1, 2)
    affinity = _undirected(path, pairs, np.frombuffer(weights, dtype=np.float64), len(ids))
    ids = np.sort(ids)
    return Graph(affinity, ids if ids.dtype.kind == "i" else ids.astype(object))


def _weight(path: Path, number: int, fields: list[str]) -> float:
    try:
        return float(fields[2]) if len(fields) == 3 else 1.0
    except ValueError as error:
        raise FileFormatError(
            path, f"line {number}: weight {fields[2][:60]!r} is no number", "correct it"
        ) from error


def _node_ids(names: list[str]) -> np.ndarray:
    """Return integers if the names are just that, without leading zeros, and text otherwise."""
    if all(INTEGER.fullmatch(name) for name in names):
        return np.array([int(name) for name in names], dtype=np.int64)
    return np.array(names, dtype=np.str_)


def _undirected(path: Path, pairs: np.ndarray, weights: np.ndarray, n_nodes: int) -> Any:
    """Return a symmetric matrix with each edge once, whichever way it was listed."""
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, weights = pairs[order], np.asarray(weights, dtype=np.float64)[order]
    again = (np.diff(pairs, axis=0) == 0).all(axis=1)
    differ = again & (weights[1:] != weights[:-1])
    if differ.any():
        place = int(np.argmax(differ))
        raise FileFormatError(
            path,
            f"the edge between nodes {pairs[place, 0]} and {pairs[place, 1]} (counted from 0) has "
            f"the weights {weights[place]:.6g} and {weights[place + 1]:.6g}",
            "list each edge once, or with the same weight in both directions",
        )
    first = np.concatenate([[True], ~again]) if len(pairs) else np.zeros(0, dtype=bool)
    (low, high), weights = pairs[first].T, weights[first]
    upper = sparse.csr_array((weights, (low, high)), shape=(n_nodes, n_nodes))
    affinity = sparse.csr_array(upper + sparse.triu(upper, k=1).T)
    affinity.eliminate_zeros()
    affinity.sort_indices()
    return affinity
