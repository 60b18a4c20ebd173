"""Neighbour graph on a cluster: search in blocks, symmetrize across blocks.

The rule is that of :mod:`heatsketch.graph._ivf`, and so is the graph: with the same tree, probes
and order, every entry is the same, whatever the blocks are.
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
    Found,
    ListTree,
    index_dtype,
    reversed_rows,
    search_lists,
    search_within,
    second_radii,
    sort_rows,
    squared_radii,
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

    Lists are renumbered in their order, so that ties are broken in the same way.
    """
    starts = lists.list_starts
    wanted = np.unique(probes)
    wanted = wanted[wanted >= 0]
    sizes = starts[wanted + 1] - starts[wanted]
    # Read adjacent lists together.
    breaks = np.flatnonzero(np.diff(wanted) > 1) + 1
    runs = np.split(wanted, breaks)
    parts = [(int(starts[run[0]]), int(starts[run[-1] + 1])) for run in runs]
    points = np.concatenate([lists.rows_between("points", *part) for part in parts])
    places = np.concatenate([np.arange(*part) for part in parts])
    numbers = np.full(len(starts), -1, np.int32)  # the last entry is for the padding -1
    numbers[wanted] = np.arange(len(wanted))
    return points, places, np.cumsum([0, *sizes]), numbers[probes]


def _search(b: int, lists: BlockLists, n_neighbors: int) -> None:
    """Write the neighbours of the points of a block, also grouped by neighbour."""
    queries, probes = (np.array(lists.part(part, b)) for part in ("points", "probes"))
    points, places, starts, probes = _probed(lists, probes)
    found = search_lists(queries, probes, points, starts, n_neighbors)
    radii = squared_radii(found, n_neighbors)
    ties = second_radii(found, n_neighbors, queries, points)
    sort_rows(found)
    back = reversed_rows(found, len(points))
    dtype = index_dtype(lists.starts[-1], 0)
    sources = back.ids.astype(dtype) + dtype(lists.starts[b])  # the sum may overflow int32
    for part, array in (
        ("radii", radii),
        ("ties", ties),
        ("found-indptr", found.indptr),
        ("found-ids", places.astype(dtype)[found.ids]),
        ("found-squares", found.squares),
        ("back-places", places),
        ("back-indptr", back.indptr),
        ("back-ids", sources),
        ("back-squares", back.squares),
    ):
        write_block(array, _file(lists, part, b))


def _join(b: int, lists: BlockLists, metric: str) -> list[tuple[int, int, int]]:
    """Write the symmetric rows of a block; return the rows of others they need."""
    parts = ("found-indptr", "found-ids", "found-squares")
    found = Found(*(read_block(_file(lists, part, b)) for part in parts))
    graph = union_of(found, _found_by_others(b, lists), lists.starts[-1])
    graph.data = LIST_METRICS[metric][1](graph.data)
    if not np.isfinite(graph.data).all():
        raise ScaleError(
            f"metric={metric!r} gives squared distances beyond {graph.dtype}; rescale X."
        )
    needs = write_matrix(lists.storage, f"graph-{lists.name}", b, graph, lists.starts)
    return [(owner, *rows) for owner, rows in needs.items()]


def _found_by_others(b: int, lists: BlockLists) -> Found:
    """Return the points that find those of a block, in order."""
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


def _by_target(targets: list, sources: list, squares: list, n_targets: int) -> Found:
    """Group sources by the target that they find, keeping the order of sources."""
    target = np.concatenate(targets)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=n_targets)
    return Found(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate(sources)[order],
        np.concatenate(squares)[order],
    )


# --- new points -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockNeighbors:
    """Training points on storage, and the rule for their neighbours.

    They can be read wherever the storage is accessible, without a cluster.
    """

    block_lists: BlockLists
    metric: str
    n_neighbors: int
    n_features: int
    order: Any
    points: Any = None
    lists: Any = True  # tells estimators that there are lists

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
        found = search_lists(new, numbers, points, starts, self.n_neighbors)
        sort_rows(found)
        dtype = index_dtype(lists.starts[-1], 0)
        found = found._replace(ids=places.astype(dtype)[found.ids])
        d2 = union_of(found, self._found_by_points(new, probes[:, 0]), lists.starts[-1])
        d2.data = from_squares(d2.data)
        return d2

    def _found_by_points(self, new: np.ndarray, own_lists: np.ndarray) -> Found:
        """Return the points that have the new points within their radii."""
        lists, n_lists = self.block_lists, self.tree.n_lists
        looked_into = np.zeros(n_lists + 1, bool)  # the last entry is for the padding -1
        looked_into[own_lists] = True
        order = np.argsort(own_lists, kind="stable")
        starts = np.searchsorted(own_lists[order], np.arange(n_lists + 1))
        dtype = index_dtype(lists.starts[-1], 0)
        targets, sources, squares = [np.zeros(0, np.int64)], [np.zeros(0, dtype)], [new[:0, 0]]
        for b in range(len(lists.starts) - 1):
            probes = lists.part("probes", b)
            probing = np.flatnonzero(looked_into[probes].any(axis=1))
            if not len(probing):
                continue
            parts = ("points", "radii", "ties")
            points, *limits = (lists.part(part, b)[probing] for part in parts)
            found = search_within(points, probes[probing], new[order], starts, *limits)
            targets.append(order[found.ids])
            finders = np.repeat(probing + lists.starts[b], np.diff(found.indptr))
            sources.append(finders.astype(dtype))
            squares.append(found.squares)
        return _by_target(targets, sources, squares, len(new))
