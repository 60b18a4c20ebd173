"""A sparse symmetric matrix in blocks of rows, on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import futures_of
from scipy import sparse

from heatsketch._core.partitioned import RowBlocks
from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion._operator import multiply_block, scaled_matrix
from heatsketch.engines._dask._cluster import (
    RETRIES,
    Cluster,
    delayed,
    graph_of,
    lazy_array,
    within_threads,
)
from heatsketch.engines._dask._components import label_components
from heatsketch.engines._dask._halo import Halo, Halos, read_matrix, with_halo
from heatsketch.engines._dask._operator import heat_operator_of


@dataclass(frozen=True, eq=False)
class BlockMatrix(RowBlocks):
    """A matrix whose blocks are results of tasks: CSR arrays with their halos."""

    cluster: Cluster
    halo: Halo
    dtype: np.dtype
    name: str
    graph: HighLevelGraph

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.halo.starts[-1], self.halo.starts[-1]

    @property
    def starts(self) -> tuple[int, ...]:
        """First row of each block, and the end of the last one."""
        return self.halo.starts

    @property
    def n_threads(self) -> int:
        """Threads per block: those of all workers, divided by the number of blocks."""
        return max(1, self.cluster.n_threads // self.halo.n_blocks)

    # Methods of a dask collection, on which tasks may depend.
    def __dask_graph__(self) -> HighLevelGraph:
        """Return the tasks that make the blocks."""
        return self.graph

    def __dask_keys__(self) -> list[tuple[str, int]]:
        """Return the keys of the blocks."""
        return [(self.name, b) for b in range(self.halo.n_blocks)]

    def __dask_layers__(self) -> tuple[str]:
        """Return the layer of the blocks."""
        return (self.name,)

    @cached_property
    def resident(self) -> BlockMatrix:
        """The same matrix, in the memory of workers."""
        # Not bound to workers: if one dies, another must run its tasks.
        blocks = [Delayed(key, self.graph, layer=self.name) for key in self.__dask_keys__()]
        held = self.cluster.connection.persist(blocks, retries=RETRIES, optimize_graph=False)
        futures = {block.key: futures_of(block)[0] for block in held}
        graph = graph_of(self.name, futures)
        return BlockMatrix(self.cluster, self.halo, self.dtype, self.name, graph)

    # --- operations ---------------------------------------------------------------------------

    def __matmul__(self, vector: da.Array) -> da.Array:
        """Multiply by a vector, summing in float64, and store the product."""
        product = self.resident.with_rows(_row_products, [vector], np.float64)
        return self.cluster.keep(product)[0]

    def with_rows(self, function: Callable[..., Any], arrays: list[da.Array], dtype: Any) -> Any:
        """Return the array of the results of a function for each block.

        Its arguments are the block, its first row, and for each array a list: the rows of the
        block, followed by the rows of its halo from each other block.
        """
        x = arrays[0]
        name = f"of-rows-{self._token(function, arrays)}"
        tasks, inputs = self._tasks(function, arrays)
        layer = {(name, b, *(0,) * (x.ndim - 1)): task for b, task in enumerate(tasks)}
        return lazy_array(name, layer, inputs, (self.halo.chunks, *x.chunks[1:]), dtype)

    def results_with_rows(self, function: Callable[..., Any], arrays: list[da.Array]) -> list[Any]:
        """Return the results of a function as for :meth:`with_rows`, computed now."""
        name = f"result-{self._token(function, arrays)}"
        tasks, inputs = self._tasks(function, arrays)
        layer = {(name, b): task for b, task in enumerate(tasks)}
        results, stage = delayed(name, layer, inputs), "normalization"
        return self.cluster.journal.answer(name, lambda: self.cluster.run(results, stage=stage))

    def _token(self, function: Callable[..., Any], arrays: list[da.Array]) -> str:
        return tokenize(self.name, function, [array.name for array in arrays])

    def _tasks(self, function: Any, arrays: list[da.Array]) -> tuple[list[tuple], list[Any]]:
        exchanges, parts = zip(*(self.halo.exchange(array) for array in arrays), strict=True)
        tasks = [
            (
                within_threads,
                self.n_threads,
                function,
                (self.name, b),
                self.halo.starts[b],
                *(part[b] for part in parts),
            )
            for b in range(self.halo.n_blocks)
        ]
        return tasks, [self, *arrays, *map(Halos, exchanges)]

    def keep(self, vector: da.Array) -> da.Array:
        """Return a vector in the memory of workers; its inputs are on storage."""
        return self.cluster.hold(vector)[0]

    def ones(self) -> da.Array:
        """Return a vector of ones."""
        return da.ones(self.shape[0], chunks=(self.halo.chunks,))

    def product(self, block: da.Array) -> da.Array:
        """Multiply a block of columns in the dtype of the entries, and store the product."""
        product = self.resident.with_rows(_block_product, [block], self.dtype)
        return self.cluster.keep(product)[0]

    def map_blocks(self, function: Callable[[Any], Any], dtype: Any = None) -> BlockMatrix:
        """Return the matrix whose blocks are a function of these."""
        name = f"matrix-{tokenize(self.name, function, dtype)}"
        work = within_threads, self.n_threads, function
        tasks = {(name, b): (*work, (self.name, b)) for b in range(self.halo.n_blocks)}
        return self._another(name, tasks, [self], dtype)

    def map_rows(self, function: Callable[[Any], np.ndarray], dtype: Any = None) -> da.Array:
        """Return the vector of the results of a function for the rows of each block."""
        name = f"rows-{tokenize(self.name, function)}"
        work = within_threads, self.n_threads, function
        tasks = {(name, b): (*work, (self.name, b)) for b in range(self.halo.n_blocks)}
        vector = lazy_array(name, tasks, [self], (self.halo.chunks,), dtype or self.dtype)
        return self.cluster.keep(vector)[0]

    def scaled(self, left: da.Array, right: da.Array) -> BlockMatrix:
        """Return ``diag(left) K diag(right)``; the factors are kept on storage."""
        left, right = self.cluster.keep(left, right)
        name = f"matrix-{self._token(_scaled, [left, right])}"
        tasks, inputs = self._tasks(_scaled, [left, right])
        return self._another(name, {(name, b): task for b, task in enumerate(tasks)}, inputs)

    def heat_operator(self, left: da.Array, right: da.Array, stationary: da.Array) -> Any:
        """Return the heat operator with these weights, those of training points."""
        return heat_operator_of(self, right, stationary)

    def label_components(self, eps: float) -> tuple[int, da.Array]:
        """Label components of each block, then join them by links across blocks."""
        return label_components(self, eps)

    def _another(self, name: str, tasks: dict, inputs: list[Any], dtype: Any = None) -> BlockMatrix:
        graph = graph_of(name, tasks, inputs)
        return BlockMatrix(self.cluster, self.halo, np.dtype(dtype or self.dtype), name, graph)


def stored_matrix(cluster: Cluster, halo: Halo, dtype: Any) -> BlockMatrix:
    """Return the matrix stored under the name of its halo."""
    tasks = {
        (halo.name, b): (read_matrix, halo.storage, halo.name, b) for b in range(halo.n_blocks)
    }
    graph = graph_of(halo.name, tasks)
    return BlockMatrix(cluster, halo, np.dtype(dtype), halo.name, graph)


def _block_product(matrix: Any, start: int, block: list[np.ndarray]) -> np.ndarray:
    return multiply_block(matrix, with_halo(block))


def _row_products(matrix: Any, start: int, vector: list[np.ndarray]) -> np.ndarray:
    return multiply_vector(matrix, with_halo(vector))


def _scaled(
    matrix: Any, start: int, left: list[np.ndarray], right: list[np.ndarray]
) -> sparse.csr_array:
    return scaled_matrix(matrix, left[0], with_halo(right))
