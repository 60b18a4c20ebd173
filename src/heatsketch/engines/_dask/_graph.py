"""Neighbour graph on a cluster: search in blocks, symmetrize across blocks.

The rule is that of :mod:`heatsketch.graph._ivf`. With the same tree, probes and order, every entry
of the graph is the same for any blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.engines._dask._cluster import Cluster
from heatsketch.engines._dask._halo import Halo, write_matrix
from heatsketch.engines._dask._lists import BlockLists, read_tree
from heatsketch.engines._dask._matrix import BlockMatrix, stored_matrix
from heatsketch.engines._dask._storage import read_block, write_block
from heatsketch.exceptions import ScaleError
from heatsketch.graph._ivf import (
    ListTree,
    NeighborRows,
    index_dtype,
    last_distances,
    points_in_reach,
    reversed_rows,
    search_lists,
    sort_rows,
    union_of,
)
from heatsketch.graph._metrics import LIST_METRICS, check_nonzero_rows


def neighbor_blocks(
    cluster: Cluster, lists: BlockLists, *, metric: str, n_neighbors: int, dtype: Any
) -> BlockMatrix:
    """Return the symmetric graph of squared distances between neighbours."""
    n_blocks = len(lists.starts) - 1
    cluster.over_blocks(f"search-{lists.name}", n_blocks, _search, lists, n_neighbors)
    needs = cluster.over_blocks(f"join-{lists.name}", n_blocks, _join, lists, metric)
    owners = tuple({int(c): (int(i), int(j)) for c, i, j in need} for need in needs)
    halo = Halo(cluster.storage, f"graph-{lists.name}", lists.starts, owners)
    return stored_matrix(cluster, halo, dtype)


def _file(lists: BlockLists, part: str, b: int) -> Path:
    return lists.storage.block(f"{lists.name}-{part}", b)


def _probed(lists: BlockLists, probes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the points of all probed lists, their indices, starts and probes.

    Lists keep their order when they are renumbered, so that ties are broken in the same way.
    """
    starts = lists.list_starts
    probed = np.unique(probes)
    probed = probed[probed >= 0]
    sizes = starts[probed + 1] - starts[probed]
    # Read adjacent lists together.
    breaks = np.flatnonzero(np.diff(probed) > 1) + 1
    runs = np.split(probed, breaks)
    parts = [(int(starts[run[0]]), int(starts[run[-1] + 1])) for run in runs]
    points = np.concatenate([lists.rows_between("points", *part) for part in parts])
    places = np.concatenate([np.arange(*part) for part in parts])
    numbers = np.full(len(starts), -1, np.int32)  # the last entry is for the padding -1
    numbers[probed] = np.arange(len(probed))
    return points, places, np.cumsum([0, *sizes]), numbers[probes]


def _search(b: int, lists: BlockLists, n_neighbors: int) -> None:
    """Write the neighbours of the points of a block, by point and by neighbour."""
    queries, probes = (np.array(lists.part(part, b)) for part in ("points", "probes"))
    points, places, starts, probes = _probed(lists, probes)
    nearest = search_lists(queries, probes, points, starts, n_neighbors)
    radii, ties = last_distances(nearest, n_neighbors, queries, points)
    sort_rows(nearest)
    back = reversed_rows(nearest, len(points))
    dtype = index_dtype(lists.starts[-1], 0)
    sources = back.ids.astype(dtype) + dtype(lists.starts[b])  # not in int32, which may overflow
    for part, array in (
        ("radii", radii),
        ("ties", ties),
        ("found-indptr", nearest.indptr),
        ("found-ids", places.astype(dtype)[nearest.ids]),
        ("found-squares", nearest.squares),
        ("back-places", places),
        ("back-indptr", back.indptr),
        ("back-ids", sources),
        ("back-squares", back.squares),
    ):
        write_block(array, _file(lists, part, b))


def _join(b: int, lists: BlockLists, metric: str) -> list[tuple[int, int, int]]:
    """Write the symmetric rows of a block; return the rows of other blocks that it needs."""
    parts = ("found-indptr", "found-ids", "found-squares")
    nearest = NeighborRows(*(read_block(_file(lists, part, b)) for part in parts))
    graph = union_of(nearest, _reversed_neighbors(b, lists), lists.starts[-1])
    graph.data = LIST_METRICS[metric][1](graph.data)
    if not np.isfinite(graph.data).all():
        raise ScaleError(
            f"metric={metric!r} gives squared distances that overflow {graph.dtype}; rescale X."
        )
    needs = write_matrix(lists.storage, f"graph-{lists.name}", b, graph, lists.starts)
    return [(owner, *rows) for owner, rows in needs.items()]


def _reversed_neighbors(b: int, lists: BlockLists) -> NeighborRows:
    """Return, for each point of a block, the points whose neighbour it is, in order."""
    start, stop = lists.starts[b : b + 2]
    targets, sources, squares = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    for c in range(len(lists.starts) - 1):
        places, indptr = lists.part("back-places", c), lists.part("back-indptr", c)
        first, last = np.searchsorted(places, [start, stop])
        entries = slice(indptr[first], indptr[last])
        sizes = np.diff(indptr[first : last + 1])
        targets.append(np.repeat(places[first:last] - start, sizes))
        sources.append(lists.part("back-ids", c)[entries])
        squares.append(lists.part("back-squares", c)[entries])
    return _by_target(targets, sources, squares, stop - start)


def _by_target(targets: list, sources: list, squares: list, n_targets: int) -> NeighborRows:
    """Group links by target, and keep the order of their sources."""
    target = np.concatenate(targets)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=n_targets)
    return NeighborRows(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate(sources)[order],
        np.concatenate(squares)[order],
    )


# --- new points -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockNeighbors:
    """Training points on storage, and the rule that selects neighbours of new points.

    No cluster is needed to use them, only access to the storage.
    """

    block_lists: BlockLists
    metric: str
    n_neighbors: int
    n_features: int
    order: Any
    points = None
    is_listed = True

    @cached_property
    def tree(self) -> ListTree:
        """Tree that assigns points to lists."""
        return read_tree(self.block_lists)

    def distances_to(self, X_new: np.ndarray) -> sparse.csr_array:
        """Return squared distances from new points to their training neighbours."""
        if self.metric == "cosine":
            check_nonzero_rows(X_new)
        as_points, from_squares = LIST_METRICS[self.metric]
        new, lists = as_points(X_new), self.block_lists
        n_probes = lists.part("probes", 0).shape[1]
        probes = self.tree.nearest_lists(new, n_probes)
        points, places, starts, numbers = _probed(lists, probes)
        nearest = search_lists(new, numbers, points, starts, self.n_neighbors)
        sort_rows(nearest)
        dtype = index_dtype(lists.starts[-1], 0)
        nearest = nearest._replace(ids=places.astype(dtype)[nearest.ids])
        d2 = union_of(nearest, self._points_in_reach(new, probes[:, 0]), lists.starts[-1])
        d2.data = from_squares(d2.data)
        return d2

    def _points_in_reach(self, new: np.ndarray, own_lists: np.ndarray) -> NeighborRows:
        """Return the points within whose radii the new points are."""
        lists, dtype = self.block_lists, index_dtype(self.block_lists.starts[-1], 0)
        targets, sources, squares = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        for b, start in enumerate(lists.starts[:-1]):
            parts = ("points", "probes", "radii", "ties")
            trained = tuple(lists.part(part, b) for part in parts)
            back = points_in_reach(new, own_lists, self.tree.n_lists, trained)
            targets.append(np.repeat(np.arange(len(new)), np.diff(back.indptr)))
            sources.append(back.ids.astype(dtype) + dtype(start))
            squares.append(back.squares)
        return _by_target(targets, sources, squares, len(new))
