"""The neighbour graph on a cluster: search in the lists of a block, then symmetrise across blocks.

The rule is that of :mod:`heatsketch.graph._ivf`, and so is the graph: with the same tree, the
same probes and the same order, every entry is the same, wherever blocks are cut.
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
    """Return the points of all lists that are probed, their places, their starts, and the probes.

    Lists are renumbered, in the order that they have, so that ties are broken as ever.
    """
    starts = lists.list_starts
    wanted = np.unique(probes)
    wanted = wanted[wanted >= 0]
    sizes = starts[wanted + 1] - starts[wanted]
    # Lists next to each other are read in one go.
    breaks = np.flatnonzero(np.diff(wanted) > 1) + 1
    runs = np.split(wanted, breaks)
    parts = [(int(starts[run[0]]), int(starts[run[-1] + 1])) for run in runs]
    points = np.concatenate([lists.rows_between("points", *part) for part in parts])
    places = np.concatenate([np.arange(*part) for part in parts])
    numbers = np.full(len(starts), -1, np.int32)  # the last of which is that of -1, too
    numbers[wanted] = np.arange(len(wanted))
    return points, places, np.cumsum([0, *sizes]), numbers[probes]


def _search(b: int, lists: BlockLists, n_neighbors: int) -> None:
    """Write what the points of a block find, and who is found by them."""
    queries, probes = (np.array(lists.part(part, b)) for part in ("points", "probes"))
    points, places, starts, probes = _probed(lists, probes)
    found = search_lists(queries, probes, points, starts, n_neighbors)
    radii = squared_radii(found, n_neighbors)
    ties = second_radii(found, n_neighbors, queries, points)
    sort_rows(found)
    back = reversed_rows(found, len(points))
    dtype = index_dtype(lists.starts[-1], 0)
    sources = back.ids.astype(dtype) + dtype(lists.starts[b])  # the sum may be beyond int32
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
    """Write the symmetric rows of a block; return which rows of others they need."""
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
    """Return who finds the points of a block, in order."""
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
    """Return who finds each target; the sources come in order, and so they stay."""
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
    """Training points on storage, and the rule by which others are their neighbours.

    Read from files wherever they can be read: no cluster is needed.
    """

    block_lists: BlockLists
    metric: str
    n_neighbors: int
    n_features: int
    order: Any
    points: Any = None
    lists: Any = True  # there are some, as far as the estimators ask

    @cached_property
    def tree(self) -> ListTree:
        """How a point finds its list."""
        return read_tree(self.block_lists)

    def distances_to(self, X_new: np.ndarray) -> sparse.csr_array:
        """Squared distances from new points to the training points near them."""
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
        """Return which points find the new points within their radii."""
        lists, n_lists = self.block_lists, self.tree.n_lists
        looked_into = np.zeros(n_lists + 1, bool)  # the last is -1, which is no list
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
