r"""Inverted lists: search for neighbours without comparing all pairs of points.

k-means splits the points into lists of about ``POINTS_PER_LIST`` points, and the neighbours of each
point are searched in the ``n_probes`` lists whose centroids are nearest to it. With
:math:`\ell(i)` the list of point :math:`i`, :math:`P_i` the lists that it probes, and
:math:`r_i` the distance to its ``n_neighbors``-th nearest point there,

.. math:: i \sim j \quad\text{if}\quad
          \ell(j) \in P_i,\; d_{ij} \le r_i \quad\text{or}\quad \ell(i) \in P_j,\; d_{ij} \le r_j.

Integer coordinates give many equal distances. Ties at the distance :math:`r_i` are broken by a
second distance: the sum of absolute differences with an incommensurable weight for each coordinate.
Points that are tied in both distances, which are duplicates or mirror images, are all neighbours.

The rule depends on coordinates only, so a training point passed as a new point gets the same row.
With a single list every point is compared with all others, and the rule is exact.

If points are in the order of the lists, near points are adjacent in memory. This makes products
with the heat operator faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.parallel import in_threads
from heatsketch.exceptions import DegenerateKernelError
from heatsketch.graph._metrics import second_distances

POINTS_PER_LIST = 128
SAMPLE_PER_LIST = 32  # points sampled per list, for k-means
SEEN_PER_CHILD = 256  # sampled points that k-means uses per child of a node
SWEEPS = 4  # iterations of k-means at each level; more would hardly improve the recall
CHILDREN = 128  # approximate maximum number of children of a node
BEAM = 16  # nodes that the beam search keeps at each level
GROUP = 2048  # queries per task
MOST_TIES = 50_000  # neighbours at the same distance; more are an error, as the graph would be huge


class Level(NamedTuple):
    """Children of all nodes of one level of a tree, in the order of the nodes."""

    centroids: np.ndarray
    starts: np.ndarray


class NeighborRows(NamedTuple):
    """Neighbours of each query, in CSR form."""

    indptr: np.ndarray
    ids: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class ListTree:
    """Tree of centroids, grown from the root; without levels there is one list.

    Attributes
    ----------
    levels : tuple of Level
        Levels of the tree; the centroids of the last level are those of the lists.
    """

    levels: tuple[Level, ...] = ()

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self.levels[-1].centroids) if self.levels else 1

    def nearest_lists(self, X: np.ndarray, n_probes: int) -> np.ndarray:
        """Return the nearest lists of each row by beam search, the nearest first."""

        def descend(rows: slice) -> np.ndarray:
            nodes = np.zeros((len(X[rows]), 1), np.int32)
            for level in self.levels:
                n_kept = n_probes if level is self.levels[-1] else BEAM
                nodes = _nearest_children(X[rows], nodes, level, n_kept)
            return nodes

        return np.concatenate(in_threads(descend, _groups(len(X)), name="lists"))


@dataclass(frozen=True)
class NeighborLists:
    """Points in list order, and the lists that each point probes.

    Attributes
    ----------
    tree : ListTree
        Tree that assigns points to lists.
    points : array of shape (n_points, n_features)
        Points in list order.
    order : array of shape (n_points,)
        Index of each point in the given rows.
    probes : array of shape (n_points, n_probes)
        The lists that each point probes, its own first; padded with -1.
    """

    tree: ListTree
    points: np.ndarray
    order: np.ndarray
    probes: np.ndarray

    @classmethod
    def arrange(cls, X: np.ndarray, tree: ListTree, n_probes: int) -> NeighborLists:
        """Put each row of ``X`` into its list."""
        probes = tree.nearest_lists(X, n_probes)
        if tree.n_lists == 1:
            return cls(tree, X, np.arange(len(X)), probes)
        order = np.argsort(probes[:, 0], kind="stable")
        return cls(tree, X[order], order, probes[order])

    @property
    def starts(self) -> np.ndarray:
        """Index of the first point of each list, and the end of the last list."""
        return np.searchsorted(self.probes[:, 0], np.arange(self.tree.n_lists + 1))

    def graph(self, n_neighbors: int) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
        """Return the symmetric graph, the squared radii, and the second radii."""
        nearest = search_lists(self.points, self.probes, self.points, self.starts, n_neighbors)
        radii, ties = last_distances(nearest, n_neighbors, self.points, self.points)
        sort_rows(nearest)
        return union_of(nearest, reversed_rows(nearest, len(radii)), len(radii)), radii, ties

    def rows(
        self, X_new: np.ndarray, n_neighbors: int, radii: np.ndarray, ties: np.ndarray
    ) -> sparse.csr_array:
        """Return squared distances from new points to neighbours by the same rule."""
        probes = self.tree.nearest_lists(X_new, self.probes.shape[1])
        nearest = search_lists(X_new, probes, self.points, self.starts, n_neighbors)
        sort_rows(nearest)
        trained = self.points, self.probes, radii, ties
        back = points_in_reach(X_new, probes[:, 0], self.tree.n_lists, trained)
        return union_of(nearest, back, len(self.points))


# --- the tree -------------------------------------------------------------------------------


def grow_tree(X: np.ndarray) -> ListTree:
    """Split the points recursively by k-means until the parts are lists.

    k-means uses a few equally spaced rows, and no random numbers.
    """
    return ListTree(grown_levels(X[places_of_sample(len(X))], tree_height(len(X))))


def places_of_sample(n_points: int, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Return the indices from ``start`` to ``stop`` of an equally spaced sample."""
    n_sample = -(-n_points // POINTS_PER_LIST) * SAMPLE_PER_LIST
    return _equal_steps(n_points, n_sample, start, stop)


def tree_height(n_points: int) -> int:
    """Return the number of levels of the tree of ``n_points`` points."""
    n_lists = -(-n_points // POINTS_PER_LIST)
    return math.ceil(math.log(n_lists, CHILDREN)) if n_lists > 1 else 0


def grown_levels(sample: np.ndarray, height: int) -> tuple[Level, ...]:
    """Split a sample recursively, ``height`` times; return the tree's levels."""
    nodes, levels = [sample], []
    for remaining in range(height, 0, -1):
        split = in_threads(partial(_split, height=remaining), nodes)
        sizes = [len(centroids) for centroids, _ in split]
        centroids = np.concatenate([centroids for centroids, _ in split])
        levels.append(Level(centroids, np.cumsum([0, *sizes])))
        nodes = [part for _, parts in split for part in parts]
    return tuple(levels)


def joined_level(parts: list[Level]) -> Level:
    """Return a level of a tree, joined from that level of its branches."""
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    centroids = np.concatenate([part.centroids for part in parts])
    return Level(centroids, np.concatenate([[0], np.cumsum(sizes)]))


def _split(sample: np.ndarray, height: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Split a sample by k-means so that ``height`` such splits give lists."""
    centroids = centroids_of(sample[places_seen(len(sample), height)], len(sample), height)
    return centroids, by_centroid(sample, centroids)


def places_seen(n_sample: int, height: int) -> np.ndarray:
    """Return the indices of the sampled points that k-means uses at this height."""
    return _equal_steps(n_sample, SEEN_PER_CHILD * _n_children(n_sample, height))


def centroids_of(seen: np.ndarray, n_sample: int, height: int) -> np.ndarray:
    """Return the centroids that split a sample, from the points used by k-means."""
    centroids = seen[_equal_steps(len(seen), _n_children(n_sample, height))]
    for _ in range(SWEEPS):
        centroids = _means(seen, _nearest_centroids(seen, centroids), centroids)
    # Drop centroids without points, which would have no children. Duplicates cause them.
    return centroids[np.unique(_nearest_centroids(seen, centroids))]


def by_centroid(sample: np.ndarray, centroids: np.ndarray) -> list[np.ndarray]:
    """Return the part of a sample nearest to each centroid, in original order."""
    labels = _nearest_centroids(sample, centroids)
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(1, len(centroids)))
    return np.split(sample[order], ends)


def _n_children(n_sample: int, height: int) -> int:
    return max(1, round((n_sample / SAMPLE_PER_LIST) ** (1 / height)))


def _nearest_centroids(sample: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    level = Level(centroids, np.array([0, len(centroids)]))
    return _nearest_children(sample, np.zeros((len(sample), 1), np.int32), level, 1)[:, 0]


def _means(sample: np.ndarray, labels: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the mean of each part; a part without points keeps its centroid."""
    parts = sparse.csr_array(
        (np.ones(len(sample)), labels, np.arange(len(sample) + 1)),
        shape=(len(sample), len(centroids)),
    ).T
    sizes = np.bincount(labels, minlength=len(centroids))[:, np.newaxis]
    means = (parts @ sample / np.maximum(sizes, 1)).astype(sample.dtype)
    return np.where(sizes > 0, means, centroids)


def _equal_steps(
    n_points: int, n_steps: int, start: int = 0, stop: int | None = None
) -> np.ndarray:
    """Return the indices ``i * n_points // n_steps`` from ``start`` to ``stop``."""
    n_steps = max(1, min(n_steps, n_points))
    ends = (start, n_points if stop is None else stop)
    steps = np.arange(*(-(-end * n_steps // n_points) for end in ends))
    whole, rest = divmod(n_points, n_steps)
    return steps * whole + steps * rest // n_steps  # steps * n_points could overflow int64


# --- the search -----------------------------------------------------------------------------


def search_lists(
    queries: np.ndarray, probes: np.ndarray, points: np.ndarray, starts: np.ndarray, n_nearest: int
) -> NeighborRows:
    """Find the nearest points of each query in the lists that it probes.

    Points tied in both distances are all included. Rows are sorted by distance, then by the second
    distance.
    """

    def search(rows: slice) -> tuple[np.ndarray, ...]:
        squares, ids, counts = _nearest(queries[rows], probes[rows], points, starts, n_nearest)
        filled = np.arange(ids.shape[1]) < counts[:, np.newaxis]
        return counts, ids[filled], squares[filled]

    return search_in_groups(search, len(queries))


def search_within(
    queries: np.ndarray,
    probes: np.ndarray,
    points: np.ndarray,
    starts: np.ndarray,
    limits: np.ndarray,
    ties: np.ndarray,
) -> NeighborRows:
    """Find all points in the probed lists within a squared distance of each query.

    Points exactly at that distance are included only if their second distance is at most ``ties``.
    Rows are not sorted, since they may be long.
    """

    def search(rows: slice) -> tuple[np.ndarray, ...]:
        some = queries[rows], probes[rows], points, starts, limits[rows], ties[rows]
        capacity, n_pairs = -1, 64 * len(some[0])
        while n_pairs > capacity:
            capacity = n_pairs
            ids = np.empty(capacity, index_dtype(len(points), 0))
            numbers, squares = np.empty(capacity, np.int32), np.empty(capacity, points.dtype)
            n_pairs = kernels.within(*some, numbers, ids, squares)
        order = np.argsort(numbers[:n_pairs], kind="stable")
        counts = np.bincount(numbers[:n_pairs], minlength=len(some[0]))
        return counts, ids[order], squares[order]

    return search_in_groups(search, len(queries))


def points_in_reach(
    X_new: np.ndarray, lists: np.ndarray, n_lists: int, trained: tuple[np.ndarray, ...]
) -> NeighborRows:
    """Return, for each new point, the training points within whose radii it is.

    ``lists`` has the list of each new point, and ``trained`` has the training points, the lists
    that they probe, their radii and their second radii.
    """
    points, probes, radii, ties = trained
    has_new = np.zeros(n_lists + 1, bool)  # the last entry is for the padding -1
    has_new[lists] = True
    probing = np.flatnonzero(has_new[probes].any(axis=1))
    order = np.argsort(lists, kind="stable")
    starts = np.searchsorted(lists[order], np.arange(n_lists + 1))
    queries, limits = (points[probing], probes[probing]), (radii[probing], ties[probing])
    within = search_within(*queries, X_new[order], starts, *limits)
    order = order.astype(index_dtype(len(X_new), 0))
    back = reversed_rows(within._replace(ids=order[within.ids]), len(X_new))
    return back._replace(ids=probing.astype(index_dtype(len(points), 0))[back.ids])


def search_in_groups(
    search: Callable[[slice], tuple[np.ndarray, ...]], n_queries: int
) -> NeighborRows:
    """Search in groups of queries, and return the rows of all queries."""
    groups = in_threads(search, _groups(n_queries), name="neighbours")
    counts, ids, squares = zip(*groups, strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return NeighborRows(indptr, np.concatenate(ids), np.concatenate(squares))


def _nearest_children(
    queries: np.ndarray, nodes: np.ndarray, level: Level, n_nearest: int
) -> np.ndarray:
    """Return the nearest children of each query's nodes; the lowest index breaks ties.

    Rows with fewer children are padded with -1.
    """
    _, ids, counts = _nearest(queries, nodes, level.centroids, level.starts, n_nearest)
    width = min(n_nearest, ids.shape[1])
    children = np.full((len(queries), n_nearest), -1, np.int32)
    filled = np.arange(width) < counts[:, np.newaxis]
    children[:, :width][filled] = ids[:, :width][filled]
    return children


def _nearest(
    queries: np.ndarray, probes: np.ndarray, points: np.ndarray, starts: np.ndarray, n_nearest: int
) -> tuple[np.ndarray, ...]:
    capacity = min(n_nearest, 32) + 8
    while True:
        squares = np.empty((len(queries), capacity), points.dtype)
        ids = np.empty(squares.shape, index_dtype(len(points), 0))
        counts = np.empty(len(queries), np.int64)
        full = kernels.nearest(queries, probes, points, starts, n_nearest, squares, ids, counts)
        if full < 0:
            return squares, ids, counts
        if capacity > n_nearest + MOST_TIES:
            raise DegenerateKernelError(
                f"X has more than {MOST_TIES} points at the same distance, "
                f"{np.sqrt(squares[full, -1]):.3g}, from the point "
                f"{np.array2string(queries[full], threshold=6, precision=3)}; if they are "
                "duplicates, embed numpy.unique(X, axis=0), otherwise add a little noise to X."
            )
        capacity *= 2


def _groups(n_rows: int) -> list[slice]:
    size = min(GROUP, max(64, n_rows // 16))
    return [slice(i, min(i + size, n_rows)) for i in range(0, max(1, n_rows), size)]


# --- from neighbours to a graph ---------------------------------------------------------------


def last_distances(
    nearest: NeighborRows, n_neighbors: int, queries: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared and second distances to the last neighbours; infinity if there are too few."""
    is_full, lasts = np.diff(nearest.indptr) >= n_neighbors, nearest.indptr[1:] - 1
    squares = nearest.squares[lasts]
    seconds = second_distances(queries, np.arange(len(queries)), points, nearest.ids[lasts])
    radii = np.where(is_full, squares, np.inf).astype(squares.dtype)
    return radii, np.where(is_full, seconds, np.inf)


def sort_rows(rows: NeighborRows) -> None:
    """Sort the neighbours of each point by index, in place."""
    groups = _groups(len(rows.indptr) - 1)
    in_threads(lambda some: kernels.sort_rows(*rows, some.start, some.stop), groups)


def reversed_rows(rows: NeighborRows, n_columns: int) -> NeighborRows:
    """Return, for each of ``n_columns`` points, the sorted queries whose neighbour it is."""
    dtype = index_dtype(len(rows.indptr) - 1, 0)
    return NeighborRows(*kernels.reverse(*rows, n_columns, dtype(0)))


def union_of(one: NeighborRows, other: NeighborRows, n_columns: int) -> sparse.csr_array:
    """Merge two graphs with sorted rows.

    Not with scipy, which drops stored zeros: they are distances between duplicates.
    """
    n_rows = len(one.indptr) - 1
    parts = [(rows.start, rows.stop) for rows in _groups(n_rows)]
    sizes, pairs = np.empty(n_rows, np.int64), (one.indptr, one.ids, other.indptr, other.ids)
    in_threads(lambda part: kernels.union_sizes(*pairs, sizes, *part), parts)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    dtype = index_dtype(n_columns, indptr[-1])
    union = indptr, np.empty(indptr[-1], dtype), np.empty(indptr[-1], one.squares.dtype)
    in_threads(lambda part: kernels.fill_union(one, other, union, *part), parts)
    _, ids, squares = union
    return sparse.csr_array((squares, ids, indptr.astype(dtype)), shape=(n_rows, n_columns))


def index_dtype(n_columns: int, n_stored: int) -> type[np.signedinteger]:
    """Return the narrowest index dtype for a matrix of this size."""
    return np.int32 if max(n_columns, n_stored) <= np.iinfo(np.int32).max else np.int64
