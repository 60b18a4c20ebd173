"""Points in the order of their lists, in blocks on storage: a partition in two passes.

In the first pass each chunk of points finds its lists and goes to files, sorted by list. In the
second each block of rows takes from all those files what belongs to it. Whoever reads maps a file
and touches only that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from heatsketch.engines._dask._cluster import Chunk, Cluster, lazy_array
from heatsketch.engines._dask._storage import Storage, read_block, write_block
from heatsketch.engines._probes import N_PARTS, PART, centers_of_parts, probes_for_parts
from heatsketch.metrics import LIST_METRICS, squared_distances_to
from heatsketch.neighbor_lists import Level, ListTree, places_of_sample, tree_of_sample

__all__ = ["BlockLists", "arrange", "read_tree"]

PARTS = ("points", "probes", "rows")


@dataclass(frozen=True)
class BlockLists:
    """Points in list order on storage.

    Attributes
    ----------
    name : str
        What the files are called.
    n_levels : int
        Of the tree, which is on storage, too.
    starts : tuple of int
        Where blocks begin, and where the last one ends.
    """

    storage: Storage
    name: str
    n_levels: int
    starts: tuple[int, ...]

    def part(self, part: str, b: int) -> np.ndarray:
        """Return the points of a block, their probes, or which rows they were, from a file."""
        path = self.storage.block(f"{self.name}-{part}", b)
        return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)

    @property
    def list_starts(self) -> np.ndarray:
        """Where each list begins, and where the last one ends."""
        return np.load(self.storage.file(self.name, "starts.npy"), mmap_mode="r")

    def rows_between(self, part: str, start: int, stop: int) -> np.ndarray:
        """Return rows from one place to another, of whatever blocks they are in."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        pieces = [self.part(part, 0)[:0]]
        for b in range(first, len(self.starts) - 1):
            if self.starts[b] >= stop:
                break
            rows = slice(max(start - self.starts[b], 0), stop - self.starts[b])
            pieces.append(self.part(part, b)[rows])
        return np.concatenate(pieces)

    def vector(self, part: str, dtype: Any) -> da.Array:
        """Return a vector on storage as a dask array."""
        name = f"{self.name}-{part}"
        n_blocks = len(self.starts) - 1
        tasks = {(name, b): (read_block, self.storage.block(name, b)) for b in range(n_blocks)}
        return lazy_array(name, tasks, [], (tuple(np.diff(self.starts).tolist()),), dtype)


def arrange(
    cluster: Cluster, X: da.Array, *, metric: str, n_neighbors: int, tolerance: float, starts: Any
) -> BlockLists:
    """Put each row of ``X`` into its list, and the lists into blocks that begin at ``starts``.

    A ``tolerance`` of 0 leaves all points in one list.
    """
    name = f"lists-{tokenize(X.name, metric, n_neighbors, tolerance, starts)}"
    lists, n_probes = BlockLists(cluster.storage, name, 0, starts), 1
    if tolerance:
        sizes = cluster.over_chunks(f"sample-{name}", X, _sample, lists, metric)
        (n_levels,) = cluster.over_blocks(f"grow-{name}", 1, _grow, lists, len(sizes), X.shape[0])
        lists = replace(lists, n_levels=n_levels)
        centers = np.asarray(X[centers_of_parts(X.shape[0])])
        cluster.over_chunks(f"parts-{name}", X, _near_centers, lists, metric, centers)
        choose = partial(probes_for_parts, n_neighbors=n_neighbors, tolerance=tolerance)
        chosen = cluster.over_blocks(f"probes-{name}", 1, _choose, lists, len(sizes), choose)
        n_probes = chosen[0]
    counts = cluster.over_chunks(f"assign-{name}", X, _assign, lists, metric, n_probes)
    write_block(np.cumsum([0, *np.sum(counts, axis=0)]), cluster.storage.file(name, "starts.npy"))
    cluster.over_blocks(f"gather-{name}", len(starts) - 1, _gather, lists, len(counts))
    return lists


def read_tree(lists: BlockLists) -> ListTree:
    """Return the tree of the lists."""
    paths = [
        [lists.storage.file(lists.name, f"{i}.{part}.npy") for part in Level._fields]
        for i in range(lists.n_levels)
    ]
    return ListTree(tuple(Level(*map(read_block, level)) for level in paths))


# --- what tasks do ----------------------------------------------------------------------------


def _file(lists: BlockLists, part: str, i: int) -> Path:
    return lists.storage.block(f"{lists.name}-{part}", i)


def _sample(X: np.ndarray, chunk: Chunk, lists: BlockLists, metric: str) -> int:
    """Write what k-means sees of a chunk."""
    places = places_of_sample(chunk.n_rows) - chunk.first_row
    places = places[(places >= 0) & (places < len(X))]
    write_block(LIST_METRICS[metric][0](X[places]), _file(lists, "sample", chunk.number))
    return len(places)


def _grow(b: int, lists: BlockLists, n_chunks: int, n_points: int) -> int:
    """Grow the tree, and return the number of its levels."""
    sample = np.concatenate([read_block(_file(lists, "sample", i)) for i in range(n_chunks)])
    tree = tree_of_sample(sample, n_points)
    for place, level in enumerate(tree.levels):
        for part, array in zip(Level._fields, level, strict=True):
            write_block(array, lists.storage.file(lists.name, f"{place}.{part}.npy"))
    return len(tree.levels)


def _near_centers(
    X: np.ndarray, chunk: Chunk, lists: BlockLists, metric: str, centers: Any
) -> None:
    """Write which points of a chunk are nearest to the centers of the parts."""
    points = LIST_METRICS[metric][0](X)
    size = min(PART, len(points))
    for place, center in enumerate(LIST_METRICS[metric][0](centers)):
        squares = squared_distances_to(points, "euclidean")(center[np.newaxis])[0]
        nearest = np.sort(np.argpartition(squares, size - 1)[:size])
        write_block(squares[nearest], _file(lists, f"squares{place}", chunk.number))
        write_block(points[nearest], _file(lists, f"near{place}", chunk.number))


def _choose(b: int, lists: BlockLists, n_chunks: int, choose: Any) -> int:
    """Return how many lists to probe."""
    parts = []
    for place in range(N_PARTS):
        squares, points = (
            np.concatenate([read_block(_file(lists, f"{part}{place}", i)) for i in range(n_chunks)])
            for part in ("squares", "near")
        )
        size = min(PART, len(points))
        parts.append(points[np.sort(np.argpartition(squares, size - 1)[:size])])
    return int(choose(parts, read_tree(lists)))


def _assign(
    X: np.ndarray, chunk: Chunk, lists: BlockLists, metric: str, n_probes: int
) -> np.ndarray:
    """Write a chunk, sorted by list; return how many points each list got."""
    points, tree = LIST_METRICS[metric][0](X), read_tree(lists)
    probes = tree.nearest_lists(points, n_probes)
    order = np.argsort(probes[:, 0], kind="stable")
    rows = chunk.first_row + np.arange(len(X))
    for part, array in zip(PARTS, (points, probes, rows), strict=True):
        write_block(array[order], _file(lists, f"sorted-{part}", chunk.number))
    return np.bincount(probes[:, 0], minlength=tree.n_lists)


def _gather(b: int, lists: BlockLists, n_chunks: int) -> None:
    """Write a block: the points from one place of the list order to another."""
    list_starts, (start, stop) = lists.list_starts, lists.starts[b : b + 2]
    # A list may begin in the block before, or end in the next.
    first = int(np.searchsorted(list_starts, start, side="right")) - 1
    last = int(np.searchsorted(list_starts, stop, side="left"))
    found: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    for i in range(n_chunks):
        files = {part: np.load(_file(lists, f"sorted-{part}", i), mmap_mode="r") for part in PARTS}
        rows = slice(*np.searchsorted(files["probes"][:, 0], [first, last]))
        for part in PARTS:
            found[part].append(files[part][rows])
    arrays = {part: np.concatenate(pieces) for part, pieces in found.items()}
    order = np.argsort(arrays["probes"][:, 0], kind="stable")
    order = order[start - list_starts[first] : stop - list_starts[first]]
    for part, array in arrays.items():
        write_block(array[order], _file(lists, part, b))
