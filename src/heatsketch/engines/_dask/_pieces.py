"""Pieces of a graph in blocks: those of each block, joined by links across blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch.engines._dask._halo import with_halo

__all__ = ["count_pieces"]


def count_pieces(K: Any, eps: float) -> int:
    """Count the pieces that links hold together which exceed ``eps`` times a row's largest.

    The row is that of either end. A piece of a block is named by its first row.
    """
    least = K.map_rows(partial(_least, eps))
    labels = K.with_rows(_labels, [least], np.int64)
    (labels,) = K.cluster.keep(labels)
    found = K.results_with_rows(_joints, [least, labels])
    names = np.unique(np.concatenate([own for own, _ in found]))
    joints = np.searchsorted(names, np.concatenate([pairs for _, pairs in found]))
    graph = sparse.coo_array((np.ones(len(joints)), joints.T), shape=(len(names), len(names)))
    return int(connected_components(graph, directed=False, return_labels=False))


def _least(eps: float, matrix: sparse.csr_array) -> np.ndarray:
    largest = np.zeros(matrix.shape[0], matrix.dtype)
    filled = np.diff(matrix.indptr) > 0
    largest[filled] = np.maximum.reduceat(matrix.data, matrix.indptr[:-1][filled])
    return np.maximum(eps * largest, 0).astype(matrix.dtype)


def _strong(matrix: sparse.csr_array, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the links that count."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    strong = matrix.data > np.minimum(least[rows], least[matrix.indices])
    return rows[strong], matrix.indices[strong]


def _labels(matrix: sparse.csr_array, start: int, least: list[np.ndarray]) -> np.ndarray:
    """Return for each row of a block the first row of its piece of the block."""
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
    matrix: sparse.csr_array, start: int, least: list[np.ndarray], labels: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the pieces of a block, and pairs of names that links join."""
    rows, columns = _strong(matrix, with_halo(least))
    across = columns >= matrix.shape[0]
    names = with_halo(labels)
    pairs = np.column_stack([names[rows[across]], names[columns[across]]])
    return np.unique(labels[0]), np.unique(pairs, axis=0)
