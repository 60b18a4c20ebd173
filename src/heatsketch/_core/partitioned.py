"""Row-partitioned matrices, with operations for :mod:`heatsketch.diffusion`.

Vectors and blocks of columns are numpy arrays, or lazy arrays partitioned by rows, such as those of
dask. This module does not depend on dask; a lazy array is one with a method ``map_blocks``.

Sums over rows are taken over fixed chunks of rows, and added in order. Blocks of a matrix begin at
multiples of :data:`PIECE` rows, so that the sums are bit-identical for any partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from heatsketch._core.parallel import in_threads
from heatsketch.exceptions import DtypeError, HeatSketchError, MissingValueError

PIECE = 4096  # rows; results depend on this value
CHUNK_BYTES = 2**26  # of the points that a task reads at a time
# Share of a worker's memory for the rows of a block; bytes of one row while a graph of 15
# neighbours is symmetrized, or a step is taken with 64 columns; and copies of a point during the
# neighbour search.
SHARE, ROW_BYTES, COPIES = 0.4, 1200, 3
NORMALS_AT_A_TIME = 1_000_000


class RowBlocks(ABC):
    """Interface of a symmetric sparse matrix in blocks of rows.

    Its vectors are lazy arrays in the same blocks.
    """

    dtype: np.dtype

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @abstractmethod
    def __matmul__(self, vector: Any) -> Any:
        """Multiply a vector, summed in float64."""

    @abstractmethod
    def keep(self, vector: Any) -> Any:
        """Compute a lazy vector once and keep it."""

    @abstractmethod
    def ones(self) -> Any:
        """Return a vector of ones."""

    @abstractmethod
    def map_blocks(self, function: Callable[[Any], Any]) -> RowBlocks:
        """Apply a function to each block, a CSR array, and return the new matrix."""

    @abstractmethod
    def map_rows(self, function: Callable[[Any], np.ndarray]) -> Any:
        """Apply a function that returns one value for each row of a block."""

    @abstractmethod
    def scaled(self, left: Any, right: Any) -> RowBlocks:
        """Return ``diag(left) K diag(right)``."""

    @abstractmethod
    def heat_operator(self, left: Any, right: Any, stationary: Any) -> Any:
        """Return an object with the methods of HeatOperator, with these weights."""

    @abstractmethod
    def label_components(self, eps: float) -> tuple[int, Any]:
        """Label components by links above ``eps`` times the largest of a row."""


def rows_of_blocks(
    n_rows: int, n_workers: int, memory: float | None = None, point_bytes: int = 0
) -> int:
    """Return the rows of a block, so that each worker has equally many blocks.

    ``memory`` is that of a worker, and ``point_bytes`` the size of a point, 0 for a graph.

    Examples
    --------
    >>> from heatsketch._core.partitioned import rows_of_blocks
    >>> rows_of_blocks(3_000_000, 2), rows_of_blocks(3_000_000, 2, memory=3 * 2**30)
    (1500000, 750000)
    >>> rows_of_blocks(3_000_000, 2, memory=3 * 2**30, point_bytes=512 * 4)
    166667
    """
    row = ROW_BYTES + COPIES * point_bytes
    most = n_rows if memory is None else max(1, int(SHARE * memory / row))
    blocks_of_worker = -(-n_rows // (n_workers * most))
    return -(-n_rows // (n_workers * blocks_of_worker))


def is_lazy(array: Any) -> bool:
    """Return True if an array is computed later, block by block.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.partitioned import is_lazy
    >>> is_lazy(np.ones(3))
    False
    """
    return callable(getattr(type(array), "map_blocks", None))


def check_not_lazy(what: str, block: Any) -> None:
    """Raise for lazy arrays, where only arrays in memory are supported.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.partitioned import check_not_lazy
    >>> check_not_lazy("eigenvectors", np.ones((3, 2)))
    """
    if is_lazy(block):
        raise HeatSketchError(
            f"G is a {type(block).__name__}, and {what} cannot be found on a cluster; use a model "
            "with engine=None, or fewer points."
        )


def as_block(A: Any, block: Any) -> Any:
    """Return a block of columns ready for products with ``A``, or raise.

    It has the dtype of the products, and C order.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch._core.partitioned import as_block
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> as_block(heat_operator(K, symmetric_scaling(K)), [[1], [-1]])
    array([[ 1.],
           [-1.]])
    """
    if not hasattr(A, "stationary_coefficients"):
        raise DtypeError(
            f"A is a {type(A).__name__}, not a heat operator; use heat_operator(K, scaling)."
        )
    block = block if is_lazy(block) else np.asarray(block)
    if block.dtype.kind not in "biuf":
        raise DtypeError(f"G has dtype {block.dtype}; give a block of real numbers.")
    if block.ndim != 2 or block.shape[0] != A.shape[1]:
        raise HeatSketchError(
            f"G has shape {block.shape}, but A is applied to blocks of {A.shape[1]} rows; make one "
            f"with gaussian_matrix({A.shape[1]}, n_columns, seed=0)."
        )
    dtype = min(np.result_type(A.dtype, block.dtype), np.dtype(np.float64))  # no long doubles
    if is_lazy(block):
        return block.astype(dtype, copy=False)
    block = np.ascontiguousarray(block, dtype)
    if not np.isfinite(block.sum()) and not np.isfinite(block).all():  # since the sum may overflow
        row = int(np.argmin(np.isfinite(block).all(axis=1)))
        raise MissingValueError(f"G holds NaN or infinity in row {row}; make another block.")
    return block


def ones_for(K: Any) -> Any:
    """Return a vector of ones that can be multiplied by ``K``."""
    return K.ones() if isinstance(K, RowBlocks) else np.ones(K.shape[1])


def computed(K: Any, vector: Any) -> Any:
    """Compute a vector of ``K`` once and keep it."""
    return K.keep(vector) if isinstance(K, RowBlocks) else vector


def from_each_block(function: Callable[..., Any], array: Any, *others: Any) -> list[Any]:
    """Apply a function to each block of rows, eagerly, and return a list.

    Other arrays have the same blocks and the same number of dimensions.

    Examples
    --------
    An array in memory is one block:

    >>> import numpy as np
    >>> from heatsketch._core.partitioned import from_each_block
    >>> from_each_block(np.sum, np.ones((3, 2)))
    [np.float64(6.0)]
    """
    if isinstance(array, np.ndarray):
        return [function(array, *others)]
    if array.ndim > 1:
        array = array.rechunk({1: -1})
    results = array.map_blocks(
        partial(_as_entry, function),
        *others,
        dtype=object,
        chunks=((1,) * array.numblocks[0], (1,))[: array.ndim],
        meta=np.empty((0,) * array.ndim, object),
    )
    return in_memory(results).ravel().tolist()


def _as_entry(function: Callable[..., Any], block: np.ndarray, *others: Any) -> np.ndarray:
    entry = np.empty((1,) * block.ndim, object)
    entry[(0,) * block.ndim] = function(block, *others)
    return entry


def in_memory(array: Any) -> np.ndarray:
    """Load a small array into memory.

    The tasks of a lazy array are not fused: fused tasks would differ from tasks of the same name
    that the cluster may already have.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.partitioned import in_memory
    >>> in_memory(np.ones(2))
    array([1., 1.])
    """
    return array.compute(optimize_graph=False) if is_lazy(array) else np.asarray(array)


def of_pieces(function: Callable[[Any], Any], block: np.ndarray) -> list[Any]:
    """Apply a function to every ``PIECE`` rows of an array in memory, in order."""
    return in_threads(lambda i: function(block[i : i + PIECE]), range(0, len(block), PIECE))


def from_each_piece(function: Callable[[Any], Any], array: Any) -> list[Any]:
    """Apply a function to every ``PIECE`` rows, eagerly, and return a list.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.partitioned import from_each_piece
    >>> from_each_piece(len, np.ones((5000, 2)))
    [4096, 904]
    """
    found = from_each_block(partial(of_pieces, function), array)
    return [result for results in found for result in results]


def over_rows(function: Callable[[Any], np.ndarray], vector: Any, n_columns: int) -> Any:
    """Apply a function to a vector, block by block, to make a block of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.partitioned import over_rows
    >>> over_rows(lambda ids: np.multiply.outer(ids, [1, 10]), np.arange(3), 2)[2]
    array([ 2, 20])
    """
    if isinstance(vector, np.ndarray):
        return function(vector)
    dtype = function(np.zeros(0, vector.dtype)).dtype
    return vector[:, np.newaxis].map_blocks(
        partial(_of_column, function),
        chunks=(vector.chunks[0], (n_columns,)),
        meta=np.empty((0, 0), dtype),
    )


def _of_column(function: Callable[[Any], np.ndarray], column: np.ndarray) -> np.ndarray:
    return function(np.ascontiguousarray(column[:, 0]))


def normal_vector(like: Any) -> Any:
    """Return standard normals of numpy's seed 0, partitioned like a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.partitioned import normal_vector
    >>> normal_vector(np.ones(2)) == np.random.default_rng(0).standard_normal(2)
    array([ True,  True])
    """
    if isinstance(like, np.ndarray):
        return np.random.default_rng(0).standard_normal(len(like)).astype(like.dtype)
    return like.map_blocks(_normals, meta=np.empty(0, like.dtype))


def _normals(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    # The stream has no random access, but is fast enough to skip the rows before.
    start, stop = block_info[0]["array-location"][0]
    generator = np.random.default_rng(0)
    for skipped in range(0, start, NORMALS_AT_A_TIME):
        generator.standard_normal(min(NORMALS_AT_A_TIME, start - skipped))
    return generator.standard_normal(stop - start).astype(block.dtype)
