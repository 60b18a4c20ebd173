r"""Points with many duplicates: copies of a point share one row of the graph.

If points repeat, as integer data often do, the nearest neighbours of a point are its copies, and
the graph has one connected component for each distinct point, with ``m**2`` entries for ``m``
copies. In that case the graph is one of distinct points, ``n_neighbors`` counts distinct points,
and all copies of two points share the affinity of these. With the affinity :math:`K_u` of distinct
points, and :math:`P_{iu} = 1` where point :math:`i` is a copy of the distinct point :math:`u`,

.. math:: K = P K_u P^T, \qquad K x = P \, (K_u \, (P^T x)),

is the matrix over all points, with the memory of one over distinct points. A row depends on the
coordinates of its point alone, so that a training point passed as a new one has the same row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.partitioned import RowBlocks
from heatsketch._core.pickling import from_plain, plain
from heatsketch._core.row_chunks import by_chunks, check_length, multiply_vector, scaled_values
from heatsketch.diffusion._operator import HeatOperator
from heatsketch.graph._neighbors import Neighbors, label_components

# Largest mean share of copies among the neighbours of a point; above it, copies share rows.
MOST_COPIES = 1 / 4


@dataclass(frozen=True)
class SharedRows(RowBlocks):
    """Matrix over points with duplicates, where copies of a point are adjacent.

    Attributes
    ----------
    matrix : CSR array of shape (n_distinct, n_distinct) or (n_rows, n_distinct)
        Entries of distinct points, or of other rows, which are not shared.
    starts : array of shape (n_distinct + 1,)
        Index of the first copy of each distinct point, and the number of points.
    is_square : bool, default=True
        Whether the rows are those of the points, too.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch.diffusion._duplicates import SharedRows
    >>> K = SharedRows(sparse.csr_array([[1.0, 0.5], [0.5, 1.0]]), np.array([0, 2, 3]))
    >>> K @ np.eye(3)
    array([[1. , 1. , 0.5],
           [1. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """

    matrix: sparse.csr_array
    starts: np.ndarray
    is_square: bool = True

    def __getstate__(self) -> dict[str, Any]:
        """Return plain arrays, without cached values."""
        kept = ("matrix", "starts", "is_square")
        return plain({name: getattr(self, name) for name in kept})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take plain arrays."""
        vars(self).update(from_plain(state))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        n_points = int(self.starts[-1])
        return n_points if self.is_square else self.matrix.shape[0], n_points

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """The precision of the entries."""
        return self.matrix.dtype

    @cached_property
    def _places(self) -> np.ndarray:
        """Index of each row in the matrix of distinct points."""
        numbers = np.arange(self.matrix.shape[0], dtype=np.int32)
        return np.repeat(numbers, np.diff(self.starts)) if self.is_square else numbers

    def __matmul__(self, block: Any) -> Any:
        """Multiply a vector, or a block of column vectors."""
        sums = self._sums_of_copies(block)
        if block.ndim == 1:
            product = multiply_vector(self.matrix, sums)
            return product.astype(np.result_type(self.dtype, block))[self._places]
        return (_operator(self.matrix, sums.dtype) @ sums)[self._places]

    def step(
        self, v: Any, block: Any, w: Any, *, factors: Any, out: Any, totals: Any, terms: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``y = a (A x - v w) + b x - g z`` and its sums ``v @ y``.

        Like :meth:`HeatOperator.step_of_rows` for rows that are not shared.
        """
        dtype = block.dtype
        a, b, g = (dtype.type(factor) for factor in factors)
        operator = HeatOperator(self.matrix, None, v[self.starts[:-1]])
        product, _ = operator.step_of_rows(self._sums_of_copies(block), w, factors=(a, 0, 0))
        out = np.empty_like(block) if out is None else out
        totals = totals if len(terms) else np.empty((0, *block.shape), dtype)
        sums = np.zeros((-(-len(block) // kernels.CHUNK), block.shape[1]), dtype)
        recurrence = block, b, g, out, totals, np.array(terms, dtype), v, sums
        by_chunks(partial(kernels.spread_step, product, self._places, *recurrence), len(block))
        return out, sums

    def _sums_of_copies(self, block: np.ndarray) -> np.ndarray:
        """Add up the rows of all copies of each point, in order."""
        check_length("block", block, int(self.starts[-1]))
        columns = np.ascontiguousarray(block).reshape(len(block), -1)
        sums = np.empty((len(self.starts) - 1, columns.shape[1]), columns.dtype)
        by_chunks(partial(kernels.segment_sums, columns, self.starts, sums), len(sums))
        return sums.reshape(len(sums), *block.shape[1:])

    # --- the interface of RowBlocks -----------------------------------------------------------

    def keep(self, vector: Any) -> Any:
        """Return the vector unchanged, since it is in memory."""
        return vector

    def ones(self) -> np.ndarray:
        """Return a vector of ones."""
        return np.ones(self.shape[1])

    def map_blocks(self, function: Callable[[Any], Any]) -> SharedRows:
        """Apply a function to the matrix of distinct points."""
        return replace(self, matrix=function(self.matrix))

    def map_rows(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Apply a function that returns one value for each row."""
        return function(self.matrix)[self._places]

    def scaled(self, left: np.ndarray, right: np.ndarray) -> SharedRows:
        """Return ``diag(left) K diag(right)``; copies of a point have equal weights."""
        firsts = self.starts[:-1]
        left = left[firsts] if self.is_square else left
        values = scaled_values(self.matrix, left, right[firsts])
        arrays = values, self.matrix.indices, self.matrix.indptr
        return replace(self, matrix=sparse.csr_array(arrays, shape=self.matrix.shape))

    def heat_operator(self, left: Any, right: Any, stationary: Any) -> HeatOperator:
        """Return the heat operator with these weights."""
        return HeatOperator(self.scaled(left, right), right, stationary)

    def label_components(self, eps: float) -> tuple[int, np.ndarray]:
        """Label components by links above ``eps`` times the largest of a row."""
        n_components, labels = label_components(self.matrix)
        return n_components, labels[self._places]


def _operator(matrix: sparse.csr_array, dtype: Any) -> HeatOperator:
    return HeatOperator(matrix, None, np.zeros(matrix.shape[0], dtype))


# --- from points to their copies ----------------------------------------------------------------


def find_with_shared_rows(
    find: Callable[[Any, int], tuple[Neighbors, Any]],
    X: Any,
    n_neighbors: int,
    *,
    are_distances: bool = False,
) -> tuple[Neighbors, Any]:
    """Find nearest neighbours, among distinct points if many are duplicates.

    Parameters
    ----------
    find : callable
        Takes points and a number of neighbours, and returns the same as :func:`find_neighbors`.
    X : array or CSR array of shape (n_points, n_features)
    n_neighbors : int
    are_distances : bool, default=False
        Whether ``X`` holds distances; equal rows are then taken for copies.

    Returns
    -------
    neighbors : Neighbors
        Has ``starts`` if rows are shared.
    d2 : CSR array or SharedRows of shape (n_points, n_points)

    Examples
    --------
    Four points with five copies each; neighbours are found among distinct points:

    >>> import numpy as np
    >>> from heatsketch.graph._neighbors import find_neighbors
    >>> from heatsketch.diffusion._duplicates import find_with_shared_rows
    >>> X = np.repeat([[0.0], [1.0], [2.0], [3.0]], 5, axis=0)
    >>> def find(X, n_neighbors):
    ...     return find_neighbors(X, n_neighbors=n_neighbors)
    >>> neighbors, d2 = find_with_shared_rows(find, X, 2)
    >>> d2.matrix.toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 1., 0.],
           [0., 1., 0., 1.],
           [0., 0., 1., 0.]])
    >>> d2.shape
    (20, 20)
    """
    places, n_distinct = copies_of_points(X)
    counts = np.bincount(places, minlength=n_distinct)
    # A point with as many copies as neighbours would have no other neighbours.
    few = MOST_COPIES * n_neighbors * len(places)
    if counts.max() < n_neighbors and (counts**2).sum() <= max(few, len(places)):
        return find(X, n_neighbors)
    by_point = np.argsort(places, kind="stable")  # copies together, in the order of X
    starts = np.concatenate([[0], np.cumsum(counts)])
    firsts = by_point[starts[:-1]]
    distinct = X[firsts]
    given = distinct[:, firsts] if are_distances else distinct
    neighbors, d2 = find(given, min(n_neighbors, n_distinct))
    if are_distances:
        neighbors = replace(neighbors, points=distinct)
    moved = np.concatenate([[0], np.cumsum(counts[neighbors.order])])
    # Copies of the first point, then of the second, ...
    shifts = np.repeat(starts[neighbors.order] - moved[:-1], counts[neighbors.order])
    order = by_point[np.arange(len(places)) + shifts]
    return replace(neighbors, order=order, starts=moved), SharedRows(d2, moved)


def copies_of_points(X: Any) -> tuple[np.ndarray, int]:
    """Number distinct points by first occurrence; return indices and their count.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._duplicates import copies_of_points
    >>> copies_of_points(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    (array([0, 1, 0]), 2)
    """
    if sparse.issparse(X):
        return _copies_of_sparse_points(X)
    points = np.ascontiguousarray(X)
    places = np.empty(len(points), np.int64)
    # The hash table is at most half full, so that probe sequences are short.
    table = np.full(2 ** (2 * len(points)).bit_length(), -1, np.int64)
    bits = points.view(np.uint32 if points.dtype == np.float32 else np.uint64)
    return places, int(kernels.distinct_rows(points, bits, table, places))


def _copies_of_sparse_points(X: sparse.csr_array) -> tuple[np.ndarray, int]:
    X = X.sorted_indices()
    numbers: dict[bytes, int] = {}
    places = np.empty(X.shape[0], np.int64)
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        key = X.indices[row].tobytes() + X.data[row].tobytes()
        places[i] = numbers.setdefault(key, len(numbers))
    return places, len(numbers)
