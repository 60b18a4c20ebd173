"""Connected components of a graph in blocks, joined by links across blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch.engines._dask._halo import with_halo


def label_components(K: Any, eps: float) -> tuple[int, Any]:
    """Label the components connected by links of sufficient weight.

    The weight must exceed ``eps`` times the largest entry in the row of one of its ends. The name
    of a component of a block is its first row.
    """
    least = K.map_rows(partial(_least, eps))
    names = K.with_rows(_names, [least], np.int64)
    (names,) = K.cluster.keep(names)
    blocks = K.results_with_rows(_joints, [least, names])
    known = np.unique(np.concatenate([own for own, _ in blocks]))
    joints = np.searchsorted(known, np.concatenate([pairs for _, pairs in blocks]))
    graph = sparse.coo_array((np.ones(len(joints)), joints.T), shape=(len(known), len(known)))
    n_components, components = connected_components(graph, directed=False)
    labels = names.map_blocks(_numbered, known=known, components=components, dtype=np.int32)
    return int(n_components), K.cluster.keep(labels)[0] if n_components > 1 else labels


def _numbered(names: np.ndarray, known: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Return the component of each row, numbered in the order of first rows."""
    return components[np.searchsorted(known, names)].astype(np.int32)


def _least(eps: float, matrix: sparse.csr_array) -> np.ndarray:
    largest = np.zeros(matrix.shape[0], matrix.dtype)
    filled = np.diff(matrix.indptr) > 0
    largest[filled] = np.maximum.reduceat(matrix.data, matrix.indptr[:-1][filled])
    return np.maximum(eps * largest, 0).astype(matrix.dtype)


def _strong(matrix: sparse.csr_array, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of links of sufficient weight."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    strong = matrix.data > np.minimum(least[rows], least[matrix.indices])
    return rows[strong], matrix.indices[strong]


def _names(matrix: sparse.csr_array, start: int, least: list[np.ndarray]) -> np.ndarray:
    """Return for each row of a block the first row of its component in the block."""
    n_rows = matrix.shape[0]
    rows, columns = _strong(matrix, with_halo(least))
    own = columns < n_rows
    links = sparse.coo_array(
        (np.ones(own.sum(), bool), (rows[own], columns[own])), shape=(n_rows, n_rows)
    )
    _, labels = connected_components(links, directed=False)
    _, first = np.unique(labels, return_index=True)
    return start + first[labels]


def _joints(
    matrix: sparse.csr_array, start: int, least: list[np.ndarray], names: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of components of a block, and pairs joined by links."""
    rows, columns = _strong(matrix, with_halo(least))
    across = columns >= matrix.shape[0]
    all_names = with_halo(names)
    pairs = np.column_stack([all_names[rows[across]], all_names[columns[across]]])
    return np.unique(names[0]), np.unique(pairs, axis=0)
