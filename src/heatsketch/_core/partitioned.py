"""Row-partitioned matrices, with operations for :mod:`heatsketch.diffusion`.

Vectors and blocks of columns are numpy arrays, or lazy arrays partitioned by rows, such as dask
arrays. This module does not import dask: a lazy array is one with a method ``map_blocks``.

Sums over rows are computed for fixed chunks of rows and then added in order. Blocks of a matrix
begin at multiples of :data:`PIECE` rows, so that sums are bit-identical for any partition.
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
CHUNK_BYTES = 2**26  # points that a task reads at a time
SHARE = 0.4  # of a worker's memory, for the rows of a block
ROW_BYTES = 1200  # per row, to symmetrize a graph of 15 neighbours or multiply 64 columns
COPIES = 3  # of each point in memory during the neighbour search
NORMALS_AT_A_TIME = 1_000_000


class RowBlocks(ABC):
    """Interface of a symmetric sparse matrix in blocks of rows.

    Its vectors are lazy arrays in the same blocks.
    """

    dtype: np.dtype
    copies: Any = None  # number of points that share each row of the blocks, if any do

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @abstractmethod
    def __matmul__(self, vector: Any) -> Any:
        """Multiply a vector, summed in float64."""

    @abstractmethod
    def product(self, block: Any) -> Any:
        """Multiply a block of columns, in the dtype of the entries."""

    @abstractmethod
    def keep(self, vector: Any) -> Any:
        """Compute a lazy vector once and keep it."""

    @abstractmethod
    def ones(self) -> Any:
        """Return a vector of ones."""

    @abstractmethod
    def map_blocks(self, function: Callable[[Any], Any], dtype: Any = None) -> RowBlocks:
        """Apply a function to each block, and return the new matrix.

        A block is a CSR array, whose first columns are its own rows.
        """

    @abstractmethod
    def map_rows(self, function: Callable[[Any], np.ndarray], dtype: Any = None) -> Any:
        """Apply a function that returns one value for each row of a block."""

    @abstractmethod
    def scaled(self, left: Any, right: Any) -> RowBlocks:
        """Return ``diag(left) K diag(right)``."""

    @abstractmethod
    def heat_operator(self, left: Any, right: Any, stationary: Any) -> Any:
        """Return a heat operator with these weights."""

    @abstractmethod
    def label_components(self, eps: float) -> tuple[int, Any]:
        """Label components; ignore links below ``eps`` times the largest of their row."""


def rows_of_blocks(
    n_rows: int, n_workers: int, memory: float | None = None, point_bytes: int = 0
) -> int:
    """Return the rows of a block, so that each worker has equally many blocks.

    ``memory`` is that of a worker, and ``point_bytes`` the size of a point, 0 for a graph.
    """
    row = ROW_BYTES + COPIES * point_bytes
    most = n_rows if memory is None else max(1, int(SHARE * memory / row))
    blocks_of_worker = -(-n_rows // (n_workers * most))
    return -(-n_rows // (n_workers * blocks_of_worker))


def is_lazy(array: Any) -> bool:
    """Return True if an array is computed later, block by block."""
    return callable(getattr(type(array), "map_blocks", None))


def as_block(A: Any, block: Any) -> Any:
    """Return a block of columns ready for products with ``A``, or raise.

    It has the dtype of the products, and C order.
    """
    if not hasattr(A, "stationary_coefficients"):
        raise DtypeError(
            f"A must be a HeatOperator, got {type(A).__name__}; use heat_operator(K, scaling)."
        )
    block = block if is_lazy(block) else np.asarray(block)
    if block.dtype.kind not in "biuf":
        raise DtypeError(f"G must hold real numbers, got dtype {block.dtype}.")
    if block.ndim != 2 or block.shape[0] != A.shape[1]:
        raise HeatSketchError(
            f"G must have {A.shape[1]} rows, one for each column of A, got shape {block.shape}; "
            f"use gaussian_matrix({A.shape[1]}, n_columns, seed=0)."
        )
    dtype = min(np.result_type(A.dtype, block.dtype), np.dtype(np.float64))  # no long doubles
    if is_lazy(block):
        return block.astype(dtype, copy=False)
    block = np.ascontiguousarray(block, dtype)
    if not np.isfinite(block.sum()) and not np.isfinite(block).all():  # the sum may overflow
        row = int(np.argmin(np.isfinite(block).all(axis=1)))
        raise MissingValueError(f"G contains NaN or infinity in row {row}; replace them.")
    return block


def ones_for(K: Any) -> Any:
    """Return a vector of ones that can be multiplied by ``K``."""
    return K.ones() if isinstance(K, RowBlocks) else np.ones(K.shape[1])


def computed(K: Any, vector: Any) -> Any:
    """Compute a vector of ``K`` once and keep it."""
    return K.keep(vector) if isinstance(K, RowBlocks) else vector


def from_each_block(function: Callable[..., Any], array: Any, *others: Any) -> list[Any]:
    """Apply a function to each block of rows, eagerly, and return a list.

    Other arrays have the same blocks of rows and the same number of dimensions.
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

    The tasks of a lazy array are not fused, since the cluster may already have tasks of the same
    names.
    """
    return array.compute(optimize_graph=False) if is_lazy(array) else np.asarray(array)


def of_pieces(function: Callable[[Any], Any], block: np.ndarray) -> list[Any]:
    """Apply a function to every ``PIECE`` rows of an array in memory, in order."""
    return in_threads(lambda i: function(block[i : i + PIECE]), range(0, len(block), PIECE))


def from_each_piece(function: Callable[[Any], Any], array: Any) -> list[Any]:
    """Apply a function to every ``PIECE`` rows, eagerly, and return a list."""
    blocks = from_each_block(partial(of_pieces, function), array)
    return [result for results in blocks for result in results]


def piece_sums(function: Callable[..., Any], block: Any, *others: Any) -> np.ndarray:
    """Return the sum of a function of every ``PIECE`` rows, added in order."""
    pieces = from_each_block(partial(_of_corresponding_pieces, function), block, *others)
    return np.cumsum(np.concatenate(pieces), axis=0)[-1]


def _of_corresponding_pieces(function: Callable[..., Any], *blocks: np.ndarray) -> np.ndarray:
    starts = range(0, len(blocks[0]), PIECE)
    return np.array([function(*(block[i : i + PIECE] for block in blocks)) for i in starts])


def by_rows(function: Callable[..., Any], block: Any, *others: Any, **arrays: Any) -> Any:
    """Apply a function to the rows of blocks, block by block, to make a block of their shape."""
    if isinstance(block, np.ndarray):
        return function(block, *others, **arrays)
    return block.map_blocks(function, *others, **arrays, dtype=block.dtype)


def over_rows(function: Callable[[Any], np.ndarray], vector: Any, n_columns: int) -> Any:
    """Apply a function to a vector, block by block, to make a block of columns."""
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
    """Return standard normals from numpy's generator with seed 0, partitioned like a vector."""
    if isinstance(like, np.ndarray):
        return np.random.default_rng(0).standard_normal(len(like)).astype(like.dtype)
    return like.map_blocks(_normals, meta=np.empty(0, like.dtype))


def _normals(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    # The generator cannot jump to a row, but drawing the rows before it is fast.
    start, stop = block_info[0]["array-location"][0]
    generator = np.random.default_rng(0)
    for skipped in range(0, start, NORMALS_AT_A_TIME):
        generator.standard_normal(min(NORMALS_AT_A_TIME, start - skipped))
    return generator.standard_normal(stop - start).astype(block.dtype)
