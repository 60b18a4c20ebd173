"""Computation on the cluster, with results on storage or in the memory of workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import pairwise
from threading import RLock
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, as_completed
from threadpoolctl import ThreadpoolController

from heatsketch._core.parallel import at_most
from heatsketch._core.progress import has_callback, steps
from heatsketch.engines._dask._storage import Journal, Storage, read_block, write_block
from heatsketch.exceptions import HeatSketchError, NotStorableError

RETRIES = 3  # of a task that fails, since storage may be temporarily unavailable
# Stages that are reported as progress, by prefixes of names of tasks. All other tasks are products.
STAGES = {
    "reading": ("digest-",),
    "lists": ("sample-", "root-", "deal-", "branch-", "tree-", "parts-", "probes-"),
    "partition": ("assign-", "count-", "gather-"),
    "search": ("search-",),
    "symmetrising": ("join-",),
    "normalization": ("rows-", "of-rows-", "result-"),
    "output": ("sorted-", "take-"),
}
# A second fit in this process waits for the first, since the configuration of dask is global.
_ONE_AT_A_TIME = RLock()


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # cached, since finding the libraries takes milliseconds


def within_threads(n_threads: int, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function with a limited number of threads, also in libraries."""
    with at_most(n_threads), _libraries().limit(limits=n_threads):
        return function(*args)


def graph_of(name: str, tasks: Any, inputs: Any = ()) -> HighLevelGraph:
    """Return the graph of some tasks and of their inputs."""
    return HighLevelGraph.from_collections(name, tasks, dependencies=inputs)


def lazy_array(name: str, tasks: Any, inputs: Any, chunks: Any, dtype: Any) -> da.Array:
    """Return the array whose blocks are the results of some tasks."""
    return da.Array(graph_of(name, tasks, inputs), name, chunks, dtype=dtype)


def in_blocks(cluster: Cluster, block: np.ndarray, starts: tuple[int, ...]) -> da.Array:
    """Write an array to storage in blocks of rows."""
    name = cluster.storage.name("vector", starts, block.dtype.str, block)
    tasks: dict[Any, Any] = {}
    for b, (start, stop) in enumerate(pairwise(starts)):
        path = cluster.storage.block(name, b)
        write_block(block[start:stop], path)
        tasks[(name, b, 0)[: 1 + block.ndim]] = (read_block, path)
    chunks = (tuple(np.diff(starts).tolist()), block.shape[1:])[: block.ndim]
    return lazy_array(name, tasks, [], chunks, block.dtype)


def delayed(name: str, tasks: Any, inputs: Any = ()) -> list[Delayed]:
    """Return each task as a Delayed."""
    graph = graph_of(name, tasks, inputs)
    return [Delayed(key, graph, layer=name) for key in tasks]


class Chunk(NamedTuple):
    """Index and first row of a chunk, and the total number of rows."""

    number: int
    first_row: int
    n_rows: int


@dataclass(frozen=True, eq=False)
class Cluster:
    """A client, the storage, the journal and the interval of checkpoints."""

    client: Client
    storage: Storage
    journal: Journal
    checkpoint_every: int

    @cached_property
    def n_threads(self) -> int:
        """Threads of all workers at the start; some may be temporarily missing later."""
        return max(1, sum(self.client.nthreads().values()))

    @property
    def connection(self) -> Client:
        """The client; raises if it is no longer connected."""
        if self.client.status != "running":
            raise HeatSketchError(
                f"client={self.client!r} is no longer connected to the cluster on which this model "
                "was fitted; fit with your own client, DaskEngine(client), and leave it open."
            )
        return self.client

    def keep(self, *arrays: da.Array) -> list[da.Array]:
        """Compute arrays and write them to storage; return arrays that read them."""
        missing = {a.name: a for a in arrays if not self.has(a)}
        if missing:
            stages = {_stage_of(name) for name in missing}
            tasks = [task for array in missing.values() for task in self._write_tasks(array)]
            self.run(tasks, stage=stages.pop() if len(stages) == 1 else "products")
        return [a if a.name.startswith("kept-") else self.kept(a) for a in arrays]

    def kept(self, array: da.Array) -> da.Array:
        """Return an array that reads this one from storage."""
        name = f"kept-{array.name}"
        tasks = {
            (name, *key[1:]): (read_block, self.storage.block(array.name, b))
            for b, key in enumerate(_keys(array))
        }
        return lazy_array(name, tasks, [], array.chunks, array.dtype)

    def as_if_kept(self, array: da.Array) -> da.Array:
        """Return an array under the name that it had on storage.

        The names of all arrays computed from it are derived from that name.
        """
        name = f"kept-{array.name}"
        tasks = {(name, *key[1:]): (_itself, key) for key in _keys(array)}
        return lazy_array(name, tasks, [array], array.chunks, array.dtype)

    def has(self, array: da.Array) -> bool:
        """Return True if an array is on storage."""
        name = array.name
        return name.startswith("kept-") or self.storage.is_complete(name, array.numblocks[0])

    def _write_tasks(self, array: da.Array) -> list[Delayed]:
        name = f"write-{array.name}"
        paths = {key: self.storage.block(array.name, b) for b, key in enumerate(_keys(array))}
        tasks = {
            (name, *key[1:]): (write_block, key, path)
            for key, path in paths.items()
            if not path.exists()
        }
        return delayed(name, tasks, [array])

    def run(self, tasks: list[Delayed], *, stage: str) -> list[Any]:
        """Run the tasks of a stage, wait for them, and return their results."""
        done = steps(stage, len(tasks))
        futures = self.connection.compute(tasks, retries=RETRIES, optimize_graph=False)
        try:
            if has_callback():
                for _ in as_completed(futures, loop=self.client.loop):
                    done()
            return self.client.gather(futures)
        except BaseException:
            # Release the tasks, so that they stop and a second attempt does not get this error. Not
            # cancelled: that takes time, and would also cancel an immediate second attempt.
            for future in futures:
                future.release()
            if self.client.status == "running":
                self.client.sync(asyncio.sleep, 0)  # wait until the client has released them
            raise

    def over_chunks(
        self, name: str, X: da.Array, function: Callable[..., Any], *args: Any
    ) -> list[Any]:
        """Return ``function(rows, Chunk, *args)`` for each chunk."""
        starts = [0, *np.cumsum(X.chunks[0]).tolist()]
        return self._stage(
            name,
            [
                (function, (X.name, i, 0), Chunk(i, starts[i], X.shape[0]), *args)
                for i in range(X.numblocks[0])
            ],
            [X],
        )

    def over_blocks(
        self, name: str, n_blocks: int, function: Callable[..., Any], *args: Any
    ) -> list[Any]:
        """Return ``function(number, *args)`` for each block."""
        return self._stage(name, [(function, b, *args) for b in range(n_blocks)], [])

    def _stage(self, name: str, calls: list[tuple], inputs: list[Any]) -> list[Any]:
        """Run tasks, or return their results from the journal."""

        def compute() -> list[Any]:
            n_threads = max(1, self.n_threads // len(calls))
            tasks = {(name, i): (within_threads, n_threads, *call) for i, call in enumerate(calls)}
            return self.run(delayed(name, tasks, inputs), stage=_stage_of(name))

        return self.journal.answer(name, compute)

    def hold(self, *arrays: da.Array) -> list[da.Array]:
        """Start to compute arrays in the memory of workers; return immediately."""
        return list(self.connection.persist(arrays, retries=RETRIES, optimize_graph=False))

    def __reduce__(self) -> Any:
        """Raise: models whose arrays are on storage cannot be pickled."""
        raise NotStorableError(
            f"A model fitted on {self.client!r} cannot be pickled; save the embedding with "
            "model.embedding_.to_zarr(path), and keep the folder of the engine: a fit of the same "
            "points with the same options uses the graph that is stored there."
        )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Compute all dask arrays of this block here, and record small results."""
        # Fused tasks would have a new name each time.
        options = {"scheduler": _Scheduler(self), "optimization.fuse.active": False}
        with _ONE_AT_A_TIME, dask.config.set(options):
            yield


class _Scheduler:
    """Scheduler function that dask calls to compute something."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        name = sha256(repr(_lasting_names(graph, keys)).encode()).hexdigest()[:32]

        def compute() -> Any:
            return self.cluster.connection.get(graph, keys, retries=RETRIES, **options)

        return self.cluster.journal.answer(name, compute)

    def __reduce__(self) -> Any:
        """Pickle as an empty string, which means no scheduler, in the settings of new workers."""
        return str, ()


def _lasting_names(graph: Any, keys: Any) -> list[str]:
    """Return the names of the requested results, which are the same in every run.

    Dask combines the results in a final task, which has a new name each time.
    """
    names: list[str] = []
    for key in flatten([keys]):
        is_last = str(key).startswith("finalize-")
        names += map(repr, graph.__dask_graph__()[key].dependencies if is_last else [key])
    return sorted(names)


def _stage_of(name: str) -> str:
    """Return the stage of a fit to which tasks of this name belong."""
    return next((stage for stage, names in STAGES.items() if name.startswith(names)), "products")


def _itself(block: np.ndarray) -> np.ndarray:
    return block


def _keys(array: da.Array) -> list[tuple]:
    """Return the keys of the blocks of rows."""
    rest = (0,) * (array.ndim - 1)
    return [(array.name, b, *rest) for b in range(array.numblocks[0])]
