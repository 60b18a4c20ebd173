"""A connected engine, for one fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_integer
from heatsketch._core.partitioned import in_memory, rows_of_blocks
from heatsketch.engines._base import Engine
from heatsketch.engines._dask._cluster import Cluster, in_blocks
from heatsketch.engines._dask._connection import connected
from heatsketch.engines._dask._given import matrix_in_blocks
from heatsketch.engines._dask._graph import BlockNeighbors, neighbor_blocks
from heatsketch.engines._dask._halo import cut_rows
from heatsketch.engines._dask._lists import arrange
from heatsketch.engines._dask._order import in_order
from heatsketch.engines._dask._points import points_in_files, read_points
from heatsketch.engines._dask._storage import Journal, Storage
from heatsketch.engines._local import EXACT_COMPARISONS, SELECTION
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph._metrics import LIST_METRICS
from heatsketch.graph._neighbors import find_neighbors


@contextmanager
def session(engine: Any, folder: Path) -> Iterator[Engine]:
    """Connect to the cluster, and yield an engine that works in a folder."""
    open_session = _open.get()
    if open_session is not None and open_session.engine is engine:
        yield open_session
        return
    storage = Storage.at(folder)
    with connected(engine.client, allow_unencrypted=engine.allow_unencrypted) as client:
        journal = Journal(folder / "journal.jsonl")
        cluster = Cluster(client, storage, journal, engine.checkpoint_every)
        with cluster.working():
            opened = Session(engine, cluster, engine.rows_per_block, engine.graph_tolerance)
            token = _open.set(opened)
            try:
                yield opened
            finally:
                _open.reset(token)
            opened.finish()


_open: ContextVar[Session | None] = ContextVar("open", default=None)


@dataclass(frozen=True, eq=False)
class Session(Engine):
    """A connected DaskEngine."""

    engine: Engine
    cluster: Cluster
    rows_per_block: Any
    graph_tolerance: float
    needed: set[str] = field(default_factory=set)

    def neighbors(self, X: Any, *, metric: Any, n_neighbors: int | None) -> tuple[Any, Any]:
        """Find the neighbours of each row of ``X``."""
        if metric == "precomputed" and sparse.issparse(X):
            neighbors, d2 = find_neighbors(X, metric=metric)
            return neighbors, self.hold(d2)
        if n_neighbors is None or metric not in LIST_METRICS:
            raise HeatSketchError(
                f"n_neighbors={n_neighbors} and metric={metric!r} are not supported on a cluster; "
                "use n_neighbors=15, for instance, with metric='euclidean' or 'cosine', or "
                "engine=None."
            )
        return self._neighbors(points_in_files(self.cluster, X), metric, n_neighbors)

    def _neighbors(self, X: da.Array, metric: str, n_neighbors: int) -> tuple[BlockNeighbors, Any]:
        n_neighbors = check_integer("n_neighbors", n_neighbors, most=X.shape[0])
        is_long = X.shape[0] ** 2 * (X.shape[1] + SELECTION) > EXACT_COMPARISONS
        lists = arrange(
            self.cluster,
            X,
            metric=metric,
            n_neighbors=n_neighbors,
            tolerance=self.graph_tolerance if is_long else 0,
            starts=cut_rows(X.shape[0], self.rows(X.shape[0], X.shape[1] * X.dtype.itemsize)),
        )
        options: dict[str, Any] = {"metric": metric, "n_neighbors": n_neighbors}
        d2 = neighbor_blocks(self.cluster, lists, **options, dtype=X.dtype)
        order = lists.vector("rows", np.int64)
        return BlockNeighbors(lists, **options, n_features=X.shape[1], order=order), d2

    def read(self, X: Any) -> Any:
        """Return a file or a dask array as a dask array in chunks of whole rows."""
        return read_points(self.cluster, X)

    def rows(self, n_rows: int, point_bytes: int = 0) -> int:
        """Return the number of rows of a block."""
        if self.rows_per_block != "auto":
            return self.rows_per_block
        workers = self.cluster.client.scheduler_info()["workers"].values()
        limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
        memory = min(limits, default=None)
        return rows_of_blocks(n_rows, max(1, len(workers)), memory, point_bytes)

    def hold(self, matrix: Any) -> Any:
        """Write a sparse matrix to storage in blocks."""
        if not sparse.issparse(matrix):
            raise HeatSketchError(
                f"X of shape {matrix.shape} is a dense matrix over all pairs of points, which is "
                "not supported on a cluster; pass a sparse matrix, or use engine=None."
            )
        return matrix_in_blocks(self.cluster, matrix, self.rows(matrix.shape[0]))

    def hold_vector(self, vector: np.ndarray, K: Any) -> da.Array:
        """Write a vector or a block of columns to storage in the blocks of a matrix."""
        return in_blocks(self.cluster, vector, K.starts)

    def keep(self, block: da.Array) -> da.Array:
        """Return a block that reads from storage."""
        return self.cluster.keep(block)[0]

    def needs(self, *arrays: da.Array) -> None:
        """Keep these intermediate results when the work is done."""
        self.needed.update(array.name.removeprefix("kept-") for array in arrays)

    def finish(self) -> None:
        """Delete checkpoints and intermediate files that are no longer needed."""
        journal = self.cluster.journal
        journal.note_end(self.needed)
        self.cluster.storage.tidy(journal.needed)

    def in_given_order(self, block: da.Array, order: Any) -> da.Array:
        """Return the block whose row ``order[i]`` is row ``i`` of ``block``."""
        if isinstance(block, np.ndarray):
            given = np.empty_like(block)
            given[in_memory(order)] = block
            return given
        if isinstance(order, np.ndarray):
            if (order == np.arange(len(order))).all():
                return block
            order = in_blocks(self.cluster, order, (0, *np.cumsum(block.chunks[0]).tolist()))
        return in_order(self.cluster, block, order)
