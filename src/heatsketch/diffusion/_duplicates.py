r"""Points with many duplicates: copies of a point share one row of the graph.

In integer data, for instance, the nearest neighbours of a point are often its copies. The graph
would have one connected component for each distinct point, with ``m**2`` entries for ``m`` copies.
In that case a graph of distinct points is used, and ``n_neighbors`` counts distinct points. With
the affinity :math:`K_u` of distinct
points, and :math:`P_{iu} = 1` where point :math:`i` is a copy of the distinct point :math:`u`,

.. math:: K = P K_u P^T, \qquad K x = P \, (K_u \, (P^T x)),

is the matrix over all points, in the memory of a matrix over distinct points. A row depends only on
the coordinates of its point, so a training point passed as a new point gets the same row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.partitioned import RowBlocks
from heatsketch._core.row_chunks import by_chunks, check_length, multiply_vector
from heatsketch.diffusion._operator import HeatOperator, multiply_block, scaled_matrix
from heatsketch.graph._neighbors import Neighbors, label_components

# Copies share rows if their mean share among the neighbours of a point is above this.
MOST_COPIES = 1 / 4


@dataclass(frozen=True, eq=False)
class SharedRows(RowBlocks):
    """A CSR array in memory; copies of a point, which are adjacent, share a row and a column.

    Attributes
    ----------
    matrix : CSR array of shape (n_distinct, n_distinct) or (n_rows, n_distinct)
        Entries of distinct points, or of other rows if ``is_square`` is False.
    starts : array of shape (n_distinct + 1,) or None, default=None
        Index of the first copy of each distinct point, and the number of points; None if no point
        has copies.
    is_square : bool, default=True
        Whether rows are shared like columns.

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
    starts: Any = None
    is_square: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        if self.starts is None:
            return self.matrix.shape
        n_points = int(self.starts[-1])
        return n_points if self.is_square else self.matrix.shape[0], n_points

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """The precision of the entries."""
        return self.matrix.dtype

    @property
    def _places(self) -> Any:
        """Index of each row in the matrix of distinct points."""
        if self.starts is None or not self.is_square:
            return slice(None)
        return np.repeat(np.arange(self.matrix.shape[0], dtype=np.int32), self.copies)

    def __matmul__(self, block: Any) -> Any:
        """Multiply a vector, or a block of column vectors."""
        sums = self._sums_of_copies(block)
        if block.ndim == 1:
            product = multiply_vector(self.matrix, sums)
            return product.astype(np.result_type(self.dtype, block))[self._places]
        return multiply_block(self.matrix, sums)[self._places]

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
        if self.starts is None:
            return block
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

    @property
    def copies(self) -> Any:
        """Number of copies of each distinct point, or None if no point has copies."""
        return None if self.starts is None else np.diff(self.starts)

    def product(self, block: np.ndarray) -> np.ndarray:
        """Multiply a block of columns, in the dtype of the entries."""
        return self @ block

    def map_blocks(self, function: Callable[[Any], Any], dtype: Any = None) -> SharedRows:
        """Apply a function to the matrix."""
        return replace(self, matrix=function(self.matrix))

    def map_rows(self, function: Callable[[Any], np.ndarray], dtype: Any = None) -> np.ndarray:
        """Apply a function that returns one value for each row."""
        return function(self.matrix)[self._places]

    def scaled(self, left: np.ndarray, right: np.ndarray) -> SharedRows:
        """Return ``diag(left) K diag(right)``; copies of a point have equal weights."""
        firsts = slice(None) if self.starts is None else self.starts[:-1]
        left = left[firsts] if self.is_square else left
        return replace(self, matrix=scaled_matrix(self.matrix, left, right[firsts]))

    def heat_operator(self, left: Any, right: Any, stationary: Any) -> HeatOperator:
        """Return the heat operator with these weights."""
        rows = self.scaled(left, right)
        return HeatOperator(rows.matrix if self.starts is None else rows, right, stationary)

    def label_components(self, eps: float) -> tuple[int, np.ndarray]:
        """Label components; ignore links below ``eps`` times the largest of their row."""
        n_components, labels = label_components(self.matrix)
        return n_components, labels[self._places]


# --- from points to their copies ----------------------------------------------------------------


class Distinct(NamedTuple):
    """Distinct points, if many points have copies.

    Attributes
    ----------
    points : array or CSR array of shape (n_distinct, n_features)
    n_neighbors : int
        Number of neighbours to search among them.
    by_point : array of int of shape (n_points,)
        Rows of the given points, copies together.
    starts : array of int of shape (n_distinct + 1,)
        Start of the copies of each distinct point in ``by_point``.
    """

    points: Any
    n_neighbors: int
    by_point: np.ndarray
    starts: np.ndarray


def distinct_points(X: Any, n_neighbors: int) -> Distinct | None:
    """Return distinct points if many have copies, or else None."""
    places, n_distinct = copies_of_points(X)
    counts = np.bincount(places, minlength=n_distinct)
    # A point with n_neighbors copies would have no other neighbours.
    few = MOST_COPIES * n_neighbors * len(places)
    if counts.max() < n_neighbors and (counts**2).sum() <= max(few, len(places)):
        return None
    by_point = np.argsort(places, kind="stable")  # copies together, in the order of X
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Distinct(X[by_point[starts[:-1]]], min(n_neighbors, n_distinct), by_point, starts)


def share_rows(distinct: Distinct, neighbors: Neighbors, d2: Any) -> tuple[Neighbors, SharedRows]:
    """Return the neighbours of all points from those of distinct points."""
    counts = np.diff(distinct.starts)[neighbors.order]
    moved = np.concatenate([[0], np.cumsum(counts)])
    # Copies of the first point, then of the second, ...
    shifts = np.repeat(distinct.starts[neighbors.order] - moved[:-1], counts)
    order = distinct.by_point[np.arange(len(distinct.by_point)) + shifts]
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
    # The hash table is at most half full, so that searches in it are short.
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
