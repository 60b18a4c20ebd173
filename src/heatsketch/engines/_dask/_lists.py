"""Partition of points by inverted lists into blocks on storage.

In the first pass, the points of each chunk are assigned to lists and written to files, sorted by
list. In the second pass, each block collects its rows from all these files. They are memory-mapped,
so that only these rows are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from heatsketch._core.partitioned import in_memory
from heatsketch.engines._dask._cluster import Chunk, Cluster, lazy_array
from heatsketch.engines._dask._storage import Storage, map_block, read_block, write_block
from heatsketch.engines._recall import N_PARTS, PART, centers_of_parts, probes_for_parts
from heatsketch.graph._ivf import (
    Level,
    ListTree,
    by_centroid,
    centroids_of,
    grown_levels,
    joined_level,
    places_of_sample,
    places_seen,
    tree_height,
)
from heatsketch.graph._metrics import LIST_METRICS, squared_distances_to

PARTS = ("points", "probes", "rows")


@dataclass(frozen=True)
class BlockLists:
    """Points in list order on storage.

    Attributes
    ----------
    name : str
        Name of the files.
    n_levels : int
        Number of levels of the tree, which is also on storage.
    starts : tuple of int
        First row of each block, and the end of the last one.
    """

    storage: Storage
    name: str
    n_levels: int
    starts: tuple[int, ...]

    def part(self, part: str, b: int) -> np.ndarray:
        """Return points, probes or row numbers of a block from a file."""
        return map_block(self.storage.block(f"{self.name}-{part}", b))

    @property
    def list_starts(self) -> np.ndarray:
        """First row of each list, and the end of the last one."""
        return map_block(self.storage.file(self.name, "starts.npy"))

    def rows_between(self, part: str, start: int, stop: int) -> np.ndarray:
        """Return the rows from ``start`` to ``stop``, across blocks."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        parts = [self.part(part, 0)[:0]]
        for b in range(first, len(self.starts) - 1):
            if self.starts[b] >= stop:
                break
            rows = slice(max(start - self.starts[b], 0), stop - self.starts[b])
            parts.append(self.part(part, b)[rows])
        return np.concatenate(parts)

    def vector(self, part: str, dtype: Any) -> da.Array:
        """Return a vector on storage as a dask array."""
        name = f"{self.name}-{part}"
        n_blocks = len(self.starts) - 1
        tasks = {(name, b): (read_block, self.storage.block(name, b)) for b in range(n_blocks)}
        return lazy_array(name, tasks, [], (tuple(np.diff(self.starts).tolist()),), dtype)


def arrange(
    cluster: Cluster, X: da.Array, *, metric: str, n_neighbors: int, tolerance: float, starts: Any
) -> BlockLists:
    """Assign the rows of ``X`` to lists, and the lists to blocks.

    Blocks begin at ``starts``. With a ``tolerance`` of 0 all points are in one list.
    """
    name = f"lists-{tokenize(X.name, metric, n_neighbors, tolerance, starts)}"
    height = tree_height(X.shape[0]) if tolerance else 0
    lists, n_probes = BlockLists(cluster.storage, name, height, starts), 1
    if height:
        _grow(cluster, X, lists, metric)
        centers = in_memory(X[centers_of_parts(X.shape[0])])
        cluster.over_chunks(f"parts-{name}", X, _near_centers, lists, metric, centers)
        choose = partial(probes_for_parts, n_neighbors=n_neighbors, tolerance=tolerance)
        n_chunks = X.numblocks[0]
        (n_probes,) = cluster.over_blocks(f"probes-{name}", 1, _choose, lists, n_chunks, choose)
    cluster.over_chunks(f"assign-{name}", X, _assign, lists, metric, n_probes)
    cluster.over_blocks(f"count-{name}", 1, _count, lists, X.numblocks[0])
    cluster.over_blocks(f"gather-{name}", len(starts) - 1, _gather, lists, X.numblocks[0])
    return lists


def _grow(cluster: Cluster, X: da.Array, lists: BlockLists, metric: str) -> None:
    """Grow the tree: the root from a small sample, then all branches in parallel."""
    name = lists.name
    sizes = cluster.over_chunks(f"sample-{name}", X, _sample, lists, metric)
    (n_branches,) = cluster.over_blocks(f"root-{name}", 1, _root, lists, sizes)
    cluster.over_blocks(f"deal-{name}", len(sizes), _deal, lists)
    cluster.over_blocks(f"branch-{name}", n_branches, _branch, lists, len(sizes))
    cluster.over_blocks(f"tree-{name}", 1, _join_branches, lists, n_branches)


def read_tree(lists: BlockLists) -> ListTree:
    """Return the tree of the lists."""
    return ListTree(tuple(_read_level(_level_files(lists, i)) for i in range(lists.n_levels)))


# --- functions of tasks -----------------------------------------------------------------------


def _file(lists: BlockLists, part: str, i: int) -> Path:
    return lists.storage.block(f"{lists.name}-{part}", i)


def _level_files(lists: BlockLists, i: int) -> list[Path]:
    return [lists.storage.file(lists.name, f"{i}.{part}.npy") for part in Level._fields]


def _branch_files(lists: BlockLists, i: int, b: int) -> list[Path]:
    return [_file(lists, f"branch-{i}-{part}", b) for part in Level._fields]


def _read_level(files: list[Path]) -> Level:
    return Level(*map(map_block, files))


def _write_level(level: Level, files: list[Path]) -> None:
    for array, file in zip(level, files, strict=True):
        write_block(array, file)


def _sample(X: np.ndarray, chunk: Chunk, lists: BlockLists, metric: str) -> int:
    """Write the sample of a chunk for k-means; return its size."""
    places = places_of_sample(chunk.n_rows, chunk.first_row, chunk.first_row + len(X))
    some = X[places - chunk.first_row]
    write_block(LIST_METRICS[metric][0](some), _file(lists, "sample", chunk.number))
    return len(places)


def _root(b: int, lists: BlockLists, sizes: list[int]) -> int:
    """Write the first level of the tree; return the number of branches."""
    n_sample = sum(sizes)
    seen = _taken(lists, "sample", sizes, places_seen(n_sample, lists.n_levels))
    centroids = centroids_of(seen, n_sample, lists.n_levels)
    _write_level(Level(centroids, np.array([0, len(centroids)])), _level_files(lists, 0))
    return len(centroids)


def _taken(lists: BlockLists, part: str, sizes: list[int], places: np.ndarray) -> np.ndarray:
    """Return rows of the concatenated files, by sorted indices."""
    ends = np.cumsum(sizes)
    parts = np.split(places, np.searchsorted(places, ends[:-1]))
    return np.concatenate(
        [
            lists.part(part, i)[some - (end - size)]
            for i, (some, end, size) in enumerate(zip(parts, ends, sizes, strict=True))
        ]
    )


def _deal(i: int, lists: BlockLists) -> None:
    """Write the sample of a chunk, sorted by branch, and the starts of branches."""
    centroids = _read_level(_level_files(lists, 0)).centroids
    parts = by_centroid(read_block(_file(lists, "sample", i)), centroids)
    write_block(np.concatenate(parts), _file(lists, "dealt", i))
    write_block(np.cumsum([0, *map(len, parts)]), _file(lists, "dealt-starts", i))


def _branch(b: int, lists: BlockLists, n_chunks: int) -> None:
    """Write all levels of a branch."""
    parts = []
    for i in range(n_chunks):
        start, stop = lists.part("dealt-starts", i)[b : b + 2]
        parts.append(lists.part("dealt", i)[start:stop])
    for i, level in enumerate(grown_levels(np.concatenate(parts), lists.n_levels - 1), start=1):
        _write_level(level, _branch_files(lists, i, b))


def _join_branches(b: int, lists: BlockLists, n_branches: int) -> None:
    """Write the other levels of the tree."""
    for i in range(1, lists.n_levels):
        parts = [_read_level(_branch_files(lists, i, b)) for b in range(n_branches)]
        _write_level(joined_level(parts), _level_files(lists, i))


def _near_centers(
    X: np.ndarray, chunk: Chunk, lists: BlockLists, metric: str, centers: Any
) -> None:
    """Write the points of a chunk that are nearest to the centres of the parts."""
    points = LIST_METRICS[metric][0](X)
    size = min(PART, len(points))
    for place, center in enumerate(LIST_METRICS[metric][0](centers)):
        squares = squared_distances_to(points, "euclidean")(center[np.newaxis])[0]
        nearest = np.sort(np.argpartition(squares, size - 1)[:size])
        write_block(squares[nearest], _file(lists, f"squares{place}", chunk.number))
        write_block(points[nearest], _file(lists, f"near{place}", chunk.number))


def _choose(b: int, lists: BlockLists, n_chunks: int, choose: Any) -> int:
    """Return the number of lists to probe."""
    parts = [_part(lists, place, n_chunks) for place in range(N_PARTS)]
    return int(choose(parts, read_tree(lists)))


def _part(lists: BlockLists, place: int, n_chunks: int) -> np.ndarray:
    """Return the points of all chunks that are nearest to a centre."""
    squares = [lists.part(f"squares{place}", i) for i in range(n_chunks)]
    sizes, all_squares = list(map(len, squares)), np.concatenate(squares)
    size = min(PART, len(all_squares))
    nearest = np.sort(np.argpartition(all_squares, size - 1)[:size])
    return _taken(lists, f"near{place}", sizes, nearest)


def _assign(X: np.ndarray, chunk: Chunk, lists: BlockLists, metric: str, n_probes: int) -> None:
    """Write a chunk, sorted by list, and the number of its points in each list."""
    points, tree = LIST_METRICS[metric][0](X), read_tree(lists)
    probes = tree.nearest_lists(points, n_probes)
    order = np.argsort(probes[:, 0], kind="stable")
    rows = chunk.first_row + np.arange(len(X))
    for part, array in zip(PARTS, (points, probes, rows), strict=True):
        write_block(array[order], _file(lists, f"sorted-{part}", chunk.number))
    counts = np.bincount(probes[:, 0], minlength=tree.n_lists)
    write_block(counts.astype(np.int32), _file(lists, "sorted-counts", chunk.number))


def _count(b: int, lists: BlockLists, n_chunks: int) -> None:
    """Write the first row of each list, and the end of the last one."""
    sizes = np.zeros(len(lists.part("sorted-counts", 0)), np.int64)
    for i in range(n_chunks):
        sizes += lists.part("sorted-counts", i)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    write_block(starts, lists.storage.file(lists.name, "starts.npy"))


def _gather(b: int, lists: BlockLists, n_chunks: int) -> None:
    """Write a block: a range of points in list order."""
    list_starts, (start, stop) = lists.list_starts, lists.starts[b : b + 2]
    # A list may begin in the previous block, or end in the next one.
    first = int(np.searchsorted(list_starts, start, side="right")) - 1
    last = int(np.searchsorted(list_starts, stop, side="left"))
    chunks: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    for i in range(n_chunks):
        files = {part: lists.part(f"sorted-{part}", i) for part in PARTS}
        rows = slice(*np.searchsorted(files["probes"][:, 0], [first, last]))
        for part in PARTS:
            chunks[part].append(files[part][rows])
    arrays = {part: np.concatenate(parts) for part, parts in chunks.items()}
    order = np.argsort(arrays["probes"][:, 0], kind="stable")
    order = order[start - list_starts[first] : stop - list_starts[first]]
    for part, array in arrays.items():
        write_block(array[order], _file(lists, part, b))
