"""The heat operator in blocks of rows, with the interface of a HeatOperator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from scipy import sparse

from heatsketch._core.partitioned import from_each_block, in_memory
from heatsketch.diffusion._operator import HeatOperator, chunk_sums, stationary_ratio
from heatsketch.engines._dask._cluster import graph_of, in_blocks, within_threads
from heatsketch.engines._dask._halo import Halos, with_halo

STEP = "heat-step"


def heat_operator_of(K: Any, s: da.Array, stationary: da.Array) -> BlockHeatOperator:
    """Return ``A = diag(s) K diag(s)``; the vectors are kept on storage."""
    s, stationary = K.cluster.keep(s, stationary)
    sums = np.concatenate(from_each_block(_squared_lengths, stationary))
    squared_length = stationary_ratio(sums, 1.0, np.float64)[0]
    return BlockHeatOperator(K.scaled(s, s), s, stationary, squared_length)


def _squared_lengths(v: np.ndarray) -> np.ndarray:
    return chunk_sums(v, v[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class BlockHeatOperator:
    """The operator ``A`` for dask arrays that are chunked in its blocks of rows.

    A step is started without waiting for the result of the previous one. But every
    ``checkpoint_every`` steps the results are written to storage, from which later steps can be
    computed again.
    """

    matrix: Any
    s: Any
    stationary: da.Array
    squared_length: float
    # Number of steps since the last checkpoint, for each block of columns.
    depths: dict[str, int] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the products."""
        return self.matrix.dtype

    def __matmul__(self, block: da.Array) -> da.Array:
        """Multiply by a vector or a block of column vectors, and store the product."""
        if block.ndim > 1:
            return self.matrix.product(block)
        matrix = self.matrix.resident
        product = matrix.with_rows(_vector_product, [block], self.dtype)
        return matrix.cluster.keep(product)[0]

    @property
    def starts(self) -> tuple[int, ...]:
        """First row of each block, and the end of the last one."""
        return self.matrix.starts

    def local(self) -> HeatOperator:
        """Return the operator for blocks in memory, whose products are computed on the cluster."""
        return LocalBlocks(ClusterMatrix(self), None, in_memory(self.stationary))

    def at_columns_of(self, rows: Any) -> tuple[BlockHeatOperator, Any, np.ndarray]:
        """Return the operator and rows with the columns that these rows use, and the columns.

        The arrays of the graph are on storage, and only a few rows of them are loaded.
        """
        columns, places = np.unique(rows.indices, return_inverse=True)
        shape = rows.shape[0], len(columns)
        rows = sparse.csr_array((rows.data, places, rows.indptr), shape=shape)
        return replace(self, s=np.asarray(self.s[columns])), rows, columns

    def stationary_coefficients(self, block: da.Array) -> da.Array:
        """Return the coefficient of the stationary direction in each column."""
        name = f"chunk-sums-{tokenize(self.stationary.name, block.name)}"
        tasks = {
            (name, b, 0): (chunk_sums, (self.stationary.name, b), (block.name, b, 0))
            for b in range(self.matrix.halo.n_blocks)
        }
        return self._coefficients(name, tasks, [self.stationary, block], block)

    def stationary_part(self, coefficients: Any) -> da.Array:
        """Return the multiples of the stationary direction with these coefficients."""
        return self.stationary[:, np.newaxis] * coefficients

    def deflate(self, block: da.Array, *, out: Any = None) -> da.Array:
        """Return a new block without the stationary direction; ``out`` is ignored."""
        return block - self.stationary_part(self.stationary_coefficients(block))

    def step(
        self,
        block: da.Array,
        coefficients: da.Array,
        *,
        factors: tuple[float, float, float] = (1.0, 0.0, 0.0),
        out: Any = None,
        totals: Any = (),
        terms: Sequence[float] = (),
    ) -> tuple[da.Array, da.Array]:
        """Compute a step of a recurrence; see :meth:`heatsketch.HeatOperator.step`."""
        before = [block, coefficients, *([out] if factors[2] else []), *totals]
        names = [array.name for array in before]
        token = tokenize(self.matrix.name, names, factors, list(terms))
        y, w, *sums = self._lazy_step(f"{STEP}-{token}", before, factors, terms)
        y, w, *sums = self._begun(y, w, sums, block)
        if len(terms):
            totals[:] = sums
        return y, w

    def _begun(self, y: da.Array, w: da.Array, sums: list, block: da.Array) -> list[da.Array]:
        """Start a step, or read it from storage, or skip it if later results are stored."""
        cluster = self.matrix.cluster
        depth = self.depths[y.name] = self.depths.get(block.name, 0) + 1
        if cluster.journal.has_passed(y.name):
            arrays = [y, w, *sums]
            formerly = cluster.journal.was_checkpoint(y.name)
            return [cluster.as_if_kept(array) for array in arrays] if formerly else arrays
        if depth >= cluster.checkpoint_every or cluster.has(y):
            kept = cluster.keep(y, w, *sums)
            cluster.journal.note_checkpoint(y.name)
            return kept
        cluster.journal.note(step=y.name)
        return cluster.hold(y, w, *sums)

    def _lazy_step(
        self, name: str, before: list[da.Array], factors: Any, terms: Sequence[float]
    ) -> list[da.Array]:
        """Return ``y``, its coefficients, and the totals."""
        matrix, (block, w) = self.matrix.resident, before[:2]
        exchange, parts = matrix.halo.exchange(block)
        work = within_threads, matrix.n_threads, _step
        n_blocks, rest = matrix.halo.n_blocks, before[2:]
        numbers = tuple(map(float, factors)), tuple(map(float, terms))
        tasks: dict[Any, Any] = {
            (f"{name}-all", b): (
                *work,
                (matrix.name, b),
                (self.stationary.name, b),
                parts[b],
                (w.name, 0),
                [(array.name, b, 0) for array in rest],
                numbers,
            )
            for b in range(n_blocks)
        }
        inputs = [matrix, self.stationary, *before, Halos(exchange)]
        whole = graph_of(f"{name}-all", tasks, inputs)
        y, sums, *totals = (
            _picked(whole, name, place, n_blocks) for place in range(2 + len(terms))
        )
        arrays = [
            da.Array(graph, layer, block.chunks, dtype=block.dtype) for layer, graph in (y, *totals)
        ]
        layer, graph = sums
        dtype = np.result_type(block.dtype)
        coefficients = self._combined(f"{layer}-w", layer, graph, block.shape[1], dtype)
        return [arrays[0], coefficients, *arrays[1:]]

    def _coefficients(self, name: str, tasks: dict, inputs: list, block: da.Array) -> da.Array:
        graph = graph_of(name, tasks, inputs)
        return self._combined(f"{name}-w", name, graph, block.shape[1], block.dtype)

    def _combined(self, name: str, layer: str, graph: Any, n_columns: int, dtype: Any) -> da.Array:
        """Return coefficients, from the sums over chunks of all blocks."""
        sums = [(layer, b, 0) for b in range(self.matrix.halo.n_blocks)]
        task = (_ratio, sums, float(self.squared_length), dtype)
        graph = HighLevelGraph(
            {**graph.layers, name: {(name, 0): task}}, {**graph.dependencies, name: {layer}}
        )
        return da.Array(graph, name, ((n_columns,),), dtype=dtype)


@dataclass(frozen=True)
class ClusterMatrix:
    """A matrix on a cluster, for blocks in memory."""

    A: BlockHeatOperator

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.A.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the products."""
        return self.A.dtype

    def hold(self, block: np.ndarray) -> da.Array:
        """Write a block to storage, for the workers."""
        return in_blocks(self.A.matrix.cluster, block, self.A.starts)

    def __matmul__(self, block: np.ndarray) -> np.ndarray:
        """Multiply by a vector or a block of column vectors."""
        return in_memory(self.A @ self.hold(block))


class LocalBlocks(HeatOperator):
    """The operator for blocks in memory, whose steps are computed on a cluster."""

    def step(self, block: Any, coefficients: Any, *, out: Any = None, **recurrence: Any) -> Any:
        """Take a step of a recurrence; see :meth:`heatsketch.HeatOperator.step`."""
        hold, A = self.matrix.hold, self.matrix.A
        before = None if out is None else hold(out)
        w = da.from_array(coefficients, chunks=-1)
        return tuple(map(in_memory, A.step(hold(block), w, out=before, **recurrence)))


def _picked(whole: HighLevelGraph, name: str, place: int, n_blocks: int) -> tuple[str, Any]:
    """Return one result of tasks: the name of its layer, and the graph with it."""
    layer = name if place == 0 else f"{name}-{place}"
    tasks: Any = {(layer, b, 0): (_pick, (f"{name}-all", b), place) for b in range(n_blocks)}
    layers, dependencies = whole.layers, whole.dependencies
    graph = HighLevelGraph({**layers, layer: tasks}, {**dependencies, layer: {f"{name}-all"}})
    return layer, graph


# --- functions of tasks -----------------------------------------------------------------------


def _pick(results: tuple, place: int) -> Any:
    return results[place]


def _ratio(sums: list[np.ndarray], squared_length: float, dtype: Any) -> np.ndarray:
    return stationary_ratio(np.concatenate(sums), squared_length, dtype)


def _vector_product(matrix: Any, start: int, vector: list[np.ndarray]) -> np.ndarray:
    return matrix @ with_halo(vector)


def _step(
    matrix: Any,
    stationary: np.ndarray,
    parts: list[np.ndarray],
    w: np.ndarray,
    rest: list[np.ndarray],
    numbers: tuple[Any, Any],
) -> tuple[np.ndarray, ...]:
    """Return the rows of ``y``, their sums over chunks, and rows of the totals.

    The inputs are not modified, since a task may run again.
    """
    factors, terms = numbers
    out = rest[0].copy() if factors[2] else None
    totals = np.array(rest[1:] if factors[2] else rest)
    rows = HeatOperator(matrix, None, _writable(stationary))
    # Not concatenated with its halo, since the copy would take half as long as the product.
    block, halo = _writable(parts[0]), with_halo([parts[0][:0], *parts[1:]])
    recurrence = {"halo": halo, "factors": factors, "out": out, "totals": totals, "terms": terms}
    y, sums = rows.step_of_rows(block, _writable(w), **recurrence)
    return y, sums, *totals


def _writable(array: np.ndarray) -> np.ndarray:
    """Return an array in the memory layout of the compiled loops."""
    return np.require(array, requirements=["C", "W"])
