"""Reordering of the rows of a block, in two passes over files."""

from __future__ import annotations

import dask.array as da
import numpy as np
from dask.base import tokenize

from heatsketch.engines._dask._cluster import Cluster, delayed, lazy_array
from heatsketch.engines._dask._storage import Storage, map_block, read_block, write_block


def in_order(cluster: Cluster, block: da.Array, order: da.Array) -> da.Array:
    """Return a stored block whose row ``order[i]`` is row ``i`` of ``block``."""
    name = f"given-{tokenize(block.name, order.name)}"
    storage, chunks, n_blocks = cluster.storage, block.chunks, block.numblocks[0]
    rest = (0,) * (block.ndim - 1)
    if not storage.is_complete(name, n_blocks):
        sorting = f"sorted-{name}"
        tasks = {
            (sorting, b): (_sort, (block.name, b, *rest), (order.name, b), b, storage, sorting)
            for b in range(n_blocks)
        }
        cluster.run(delayed(sorting, tasks, [block, order]), stage="output")
        starts = [0, *np.cumsum(chunks[0]).tolist()]
        cluster.over_blocks(f"take-{name}", n_blocks, _take, storage, sorting, name, starts)
        for b in range(n_blocks):  # no longer needed, and as large as the block itself
            for part in ("block", "rows"):
                storage.file(sorting, f"{b:06d}.{part}.npy").unlink(missing_ok=True)
    reading = {(name, b, *rest): (read_block, storage.block(name, b)) for b in range(n_blocks)}
    return lazy_array(name, reading, [], chunks, block.dtype)


def _sort(block: np.ndarray, rows: np.ndarray, b: int, storage: Storage, name: str) -> None:
    places = np.argsort(rows)
    write_block(block[places], storage.file(name, f"{b:06d}.block.npy"))
    write_block(rows[places], storage.file(name, f"{b:06d}.rows.npy"))


def _take(b: int, storage: Storage, source: str, name: str, starts: list[int]) -> None:
    start, stop = starts[b : b + 2]
    like = map_block(storage.file(source, f"{b:06d}.block.npy"))
    given = np.empty((stop - start, *like.shape[1:]), like.dtype)
    for c in range(len(starts) - 1):
        rows = map_block(storage.file(source, f"{c:06d}.rows.npy"))
        some = slice(*np.searchsorted(rows, [start, stop]))
        block = map_block(storage.file(source, f"{c:06d}.block.npy"))
        given[rows[some] - start] = block[some]
    write_block(given, storage.block(name, b))
