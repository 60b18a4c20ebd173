"""The cluster at work: what is computed there, kept on storage, or held in its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
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

RETRIES = 3  # of a task that raised, for storage may be away for a moment
# Stages for callbacks, by the beginnings of the names of tasks; all others are products.
STAGES = {
    "reading": ("digest-",),
    "lists": ("sample-", "root-", "deal-", "branch-", "tree-", "parts-", "probes-"),
    "partition": ("assign-", "count-", "gather-"),
    "search": ("search-",),
    "symmetrising": ("join-",),
    "normalization": ("rows-", "of-rows-", "result-"),
    "output": ("sorted-", "take-"),
}
# Settings of dask are those of all threads: a second fit in this process waits for the first.
_ONE_AT_A_TIME = RLock()


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # which takes milliseconds to find them


def within_threads(n_threads: int, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that may use so many threads, in our loops and in libraries."""
    with at_most(n_threads), _libraries().limit(limits=n_threads):
        return function(*args)


def graph_of(name: str, tasks: Any, inputs: Any = ()) -> HighLevelGraph:
    """Return the graph of some tasks, with all that makes their inputs."""
    return HighLevelGraph.from_collections(name, tasks, dependencies=inputs)


def lazy_array(name: str, tasks: Any, inputs: Any, chunks: Any, dtype: Any) -> da.Array:
    """Return the array whose blocks are the results of some tasks."""
    return da.Array(graph_of(name, tasks, inputs), name, chunks, dtype=dtype)


def delayed(name: str, tasks: Any, inputs: Any = ()) -> list[Delayed]:
    """Return tasks, each on its own."""
    graph = graph_of(name, tasks, inputs)
    return [Delayed(key, graph, layer=name) for key in tasks]


class Chunk(NamedTuple):
    """Which chunk of how many rows in all."""

    number: int
    first_row: int
    n_rows: int


@dataclass(frozen=True, eq=False)
class Cluster:
    """A client, the storage, and how often to write to it."""

    client: Client
    storage: Storage
    journal: Journal
    checkpoint_every: int

    @cached_property
    def n_threads(self) -> int:
        """Threads of all workers, as many as there were at first: some may be away."""
        return max(1, sum(self.client.nthreads().values()))

    @property
    def connection(self) -> Client:
        """The client, while it is connected."""
        if self.client.status != "running":
            raise HeatSketchError(
                f"client={self.client!r} is not connected any more, and with it the cluster that "
                "this model was fitted on; fit with a client of your own, DaskEngine(client), and "
                "leave it open."
            )
        return self.client

    def keep(self, *arrays: da.Array) -> list[da.Array]:
        """Compute arrays and write them to storage; return arrays that read from there."""
        wanted = list({a.name: a for a in arrays if not self.has(a)}.values())
        if wanted:
            names = {_stage_of(array.name) for array in wanted}
            tasks = [task for array in wanted for task in self._write_tasks(array)]
            self.run(tasks, stage=names.pop() if len(names) == 1 else "products")
        return [a if a.name.startswith("kept-") else self.kept(a) for a in arrays]

    def kept(self, array: da.Array) -> da.Array:
        """Return the array on storage that holds what this one is."""
        name = f"kept-{array.name}"
        tasks = {
            (name, *key[1:]): (read_block, self.storage.block(array.name, b))
            for b, key in enumerate(_keys(array))
        }
        return lazy_array(name, tasks, [], array.chunks, array.dtype)

    def as_if_kept(self, array: da.Array) -> da.Array:
        """Return an array under the name that it had when it was on storage.

        All that was computed from it has its name from that.
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
        """Run tasks of a stage to the end, and return what they return."""
        done = steps(stage, len(tasks))
        futures = self.connection.compute(tasks, retries=RETRIES, optimize_graph=False)
        try:
            if has_callback():
                for _ in as_completed(futures, loop=self.client.loop):
                    done()
            return self.client.gather(futures)
        except BaseException:
            # Else they would run on; and the next attempt would get this error. Not
            # cancelled: that takes its time, and would hit those who try again at once.
            for future in futures:
                future.release()
            if self.client.status == "running":
                self.client.sync(asyncio.sleep, 0)  # until it has done so, in its own thread
            raise

    def over_chunks(
        self, name: str, X: da.Array, function: Callable[..., Any], *args: Any
    ) -> list[Any]:
        """Return what ``function(rows, Chunk, *args)`` makes of each chunk."""
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
        """Return what ``function(number, *args)`` makes for each block."""
        return self._stage(name, [(function, b, *args) for b in range(n_blocks)], [])

    def _stage(self, name: str, calls: list[tuple], inputs: list[Any]) -> list[Any]:
        """Run tasks, or remember what they returned when they ran."""

        def ask() -> list[Any]:
            n_threads = max(1, self.n_threads // len(calls))
            tasks = {(name, i): (within_threads, n_threads, *call) for i, call in enumerate(calls)}
            return self.run(delayed(name, tasks, inputs), stage=_stage_of(name))

        return self.journal.answer(name, ask)

    def hold(self, *arrays: da.Array) -> list[da.Array]:
        """Have arrays computed and held in the memory of workers; return at once."""
        return list(self.connection.persist(arrays, retries=RETRIES, optimize_graph=False))

    def __reduce__(self) -> Any:
        """Raise where it would be pickled, and with it a model whose arrays are on storage."""
        raise NotStorableError(
            f"{self.client!r} cannot be pickled, nor can what was fitted there; write the "
            "embedding with model.embedding_.to_zarr(path), and keep the folder of the engine: a "
            "fit of the same points with the same options finds its graph there."
        )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Answer here whatever is computed in this block, and remember small answers."""
        # Fused, the last tasks would have names that are new each time.
        plain = {"optimization.fuse.active": False}
        with _ONE_AT_A_TIME, dask.config.set({"scheduler": _Answers(self), **plain}):
            yield


class _Answers:
    """What dask calls to compute something."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __call__(self, graph: Any, keys: Any, **options: Any) -> Any:
        name = sha256(repr(_lasting_names(graph, keys)).encode()).hexdigest()[:32]

        def ask() -> Any:
            return self.cluster.connection.get(graph, keys, retries=RETRIES, **options)

        return self.cluster.journal.answer(name, ask)

    def __reduce__(self) -> Any:
        """Stay here: a worker that is restarted takes the settings of this process."""
        return str, ()  # which names no scheduler


def _lasting_names(graph: Any, keys: Any) -> list[str]:
    """Return the names of what is asked for, which another driver would give it, too.

    Dask puts it together in one last task, under a name that is new each time.
    """
    names: list[str] = []
    for key in flatten([keys]):
        is_last = str(key).startswith("finalize-")
        names += map(repr, graph.__dask_graph__()[key].dependencies if is_last else [key])
    return sorted(names)


def _stage_of(name: str) -> str:
    """Return the stage of a fit in which something of such a name is made."""
    return next((stage for stage, names in STAGES.items() if name.startswith(names)), "products")


def _itself(block: np.ndarray) -> np.ndarray:
    return block


def _keys(array: da.Array) -> list[tuple]:
    """Return the keys of the blocks of rows."""
    rest = (0,) * (array.ndim - 1)
    return [(array.name, b, *rest) for b in range(array.numblocks[0])]
