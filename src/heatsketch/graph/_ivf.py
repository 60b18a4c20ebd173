r"""Inverted lists: neighbours without comparing all pairs of points.

The points are split by k-means into lists of about ``POINTS_PER_LIST`` points, and the neighbours
of each point are searched in the ``n_probes`` lists whose centroids are nearest to it. With
:math:`\ell(i)` the list of point :math:`i`, :math:`P_i` the lists that it probes, and
:math:`r_i` the distance to its ``n_neighbors``-th nearest point there,

.. math:: i \sim j \quad\text{if}\quad
          \ell(j) \in P_i,\; d_{ij} \le r_i \quad\text{or}\quad \ell(i) \in P_j,\; d_{ij} \le r_j.

Integer coordinates give many equal distances. Ties at the distance :math:`r_i` are broken by a
second distance: the sum of absolute differences with an incommensurable weight for each coordinate.
Points that are tied in both distances, which are duplicates or mirror images, are all neighbours.

The rule depends on coordinates only, so a training point passed as a new point gets the same row.
With a single list every point probes all others, and the rule is exact.

Near points are also adjacent in memory if points are in the order of the lists. This makes products
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
from heatsketch.exceptions import DegenerateKernelError, HeatSketchError
from heatsketch.graph._metrics import check_width, second_distances

POINTS_PER_LIST = 128
SAMPLE_PER_LIST = 32  # points sampled per list, for k-means
SEEN_PER_CHILD = 256  # sampled points that k-means uses per child of a node
SWEEPS = 4  # iterations of k-means at each level; more find hardly more neighbours
CHILDREN = 128  # approximate maximum number of children of a node
BEAM = 16  # nodes followed from each level to the next
GROUP = 2048  # queries per task
# More points than this at one distance are taken for duplicates, whose graph would be too large.
MOST_TIES = 50_000


class Level(NamedTuple):
    """Children of all nodes of one level of a tree, in the order of the nodes."""

    centroids: np.ndarray
    starts: np.ndarray


class Found(NamedTuple):
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
            found = np.zeros((len(X[rows]), 1), np.int32)
            for level in self.levels:
                n_followed = n_probes if level is self.levels[-1] else BEAM
                found = _nearest_children(X[rows], found, level, n_followed)
            return found

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
        found = search_lists(self.points, self.probes, self.points, self.starts, n_neighbors)
        radii = squared_radii(found, n_neighbors)
        ties = second_radii(found, n_neighbors, self.points, self.points)
        sort_rows(found)
        return union_of(found, reversed_rows(found, len(radii)), len(radii)), radii, ties

    def rows(
        self, X_new: np.ndarray, n_neighbors: int, radii: np.ndarray, ties: np.ndarray | None
    ) -> sparse.csr_array:
        """Return squared distances from new points to neighbours by the same rule."""
        probes = self.tree.nearest_lists(X_new, self.probes.shape[1])
        found = search_lists(X_new, probes, self.points, self.starts, n_neighbors)
        sort_rows(found)
        back = self._found_by_points(X_new, probes[:, 0], radii, ties)
        return union_of(found, back, len(self.points))

    def _found_by_points(
        self, X_new: np.ndarray, lists: np.ndarray, radii: np.ndarray, ties: np.ndarray | None
    ) -> Found:
        """Return the points that have the new points within their radii."""
        looked_into = np.zeros(self.tree.n_lists + 1, bool)  # the last entry is for the padding -1
        looked_into[lists] = True
        probing = np.flatnonzero(looked_into[self.probes].any(axis=1))
        order = np.argsort(lists, kind="stable")
        starts = np.searchsorted(lists[order], np.arange(self.tree.n_lists + 1))
        ties = None if ties is None else ties[probing]
        limits = radii[probing], ties
        found = search_within(
            self.points[probing], self.probes[probing], X_new[order], starts, *limits
        )
        order = order.astype(index_dtype(len(X_new), 0))
        back = reversed_rows(found._replace(ids=order[found.ids]), len(X_new))
        return back._replace(ids=probing.astype(index_dtype(len(self.points), 0))[back.ids])


# --- the tree -------------------------------------------------------------------------------


def grow_tree(X: np.ndarray) -> ListTree:
    """Split the points recursively by k-means until the parts are lists.

    k-means uses equally spaced rows: nothing is random, and the centroids of a node are computed
    from a few of them only.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph._ivf import grow_tree
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> grow_tree(X).n_lists
    79
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
    for left in range(height, 0, -1):
        split = in_threads(partial(_split, height=left), nodes)
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
    # Drop centroids without points, for instance of duplicates: they would have no children.
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
    """Return the indices ``i * n_points // n_steps`` that are within a range."""
    n_steps = max(1, min(n_steps, n_points))
    ends = (start, n_points if stop is None else stop)
    steps = np.arange(*(-(-end * n_steps // n_points) for end in ends))
    whole, rest = divmod(n_points, n_steps)
    return steps * whole + steps * rest // n_steps  # no product overflows int64


# --- the search -----------------------------------------------------------------------------


def search_lists(
    queries: np.ndarray, probes: np.ndarray, points: np.ndarray, starts: np.ndarray, n_nearest: int
) -> Found:
    """Find the nearest points of each query in the lists that it probes.

    Points tied in both distances are all included. Rows are sorted by distance, then by the second
    distance.
    """

    def search(rows: slice) -> tuple[np.ndarray, ...]:
        squares, ids, counts = _nearest(queries[rows], probes[rows], points, starts, n_nearest)
        filled = np.arange(ids.shape[1]) < counts[:, np.newaxis]
        return counts, ids[filled], squares[filled]

    return found_in_groups(search, len(queries))


def search_within(
    queries: np.ndarray,
    probes: np.ndarray,
    points: np.ndarray,
    starts: np.ndarray,
    limits: np.ndarray,
    ties: np.ndarray | None = None,
) -> Found:
    """Find all points in the probed lists within a squared distance of queries.

    If ``ties`` is given, points exactly at that distance are included only if their second distance
    is within ``ties``. Rows are not sorted: insertion in order would take quadratic time, and rows
    may be long.
    """
    seconds = np.full(len(queries), np.inf) if ties is None else ties

    def search(rows: slice) -> tuple[np.ndarray, ...]:
        some = limits[rows], seconds[rows]
        finders, ids, squares = _within(queries[rows], probes[rows], points, starts, *some)
        order = np.argsort(finders, kind="stable")
        counts = np.bincount(finders, minlength=len(queries[rows]))
        return counts, ids[order], squares[order]

    return found_in_groups(search, len(queries))


def found_in_groups(search: Callable[[slice], tuple[np.ndarray, ...]], n_queries: int) -> Found:
    """Search in groups of queries, and return the rows of all."""
    found = in_threads(search, _groups(n_queries), name="neighbours")
    counts, ids, squares = zip(*found, strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Found(indptr, np.concatenate(ids), np.concatenate(squares))


def _nearest_children(
    queries: np.ndarray, nodes: np.ndarray, level: Level, n_nearest: int
) -> np.ndarray:
    """Return the nearest children of each query's nodes; ties by lowest index.

    Rows with fewer children are padded with -1, so that the result of a query does not depend on
    the other queries.
    """
    _, ids, counts = _nearest(queries, nodes, level.centroids, level.starts, n_nearest)
    width = min(n_nearest, ids.shape[1])
    found = np.full((len(queries), n_nearest), -1, np.int32)
    filled = np.arange(width) < counts[:, np.newaxis]
    found[:, :width][filled] = ids[:, :width][filled]
    return found


def _nearest(
    queries: np.ndarray, probes: np.ndarray, points: np.ndarray, starts: np.ndarray, n_nearest: int
) -> tuple[np.ndarray, ...]:
    _check_shapes(points, queries, probes)
    capacity = min(n_nearest, 32) + 8
    while True:
        squares = np.empty((len(queries), capacity), points.dtype)
        ids = np.empty(squares.shape, index_dtype(len(points), 0))
        counts = np.empty(len(queries), np.int64)
        full = kernels.nearest(queries, probes, points, starts, n_nearest, squares, ids, counts)
        if full < 0:
            return squares, ids, counts
        if capacity > n_nearest + MOST_TIES:
            _check_duplicates(queries[full], squares[full])
        capacity *= 2


def _within(
    queries: np.ndarray,
    probes: np.ndarray,
    points: np.ndarray,
    starts: np.ndarray,
    limits: np.ndarray,
    ties: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Return queries, the points that they find, and squared distances, unsorted."""
    _check_shapes(points, queries, probes, limits, ties)
    n_found = 64 * len(queries)
    while True:
        capacity = n_found
        finders, ids = np.empty(capacity, np.int32), np.empty(capacity, index_dtype(len(points), 0))
        squares = np.empty(capacity, points.dtype)
        found = finders, ids, squares
        n_found = kernels.within(queries, probes, points, starts, limits, ties, *found)
        if n_found <= capacity:
            return finders[:n_found], ids[:n_found], squares[:n_found]


def _check_shapes(points: np.ndarray, queries: np.ndarray, *others: np.ndarray) -> None:
    check_width(queries, points)
    if any(len(rows) != len(queries) for rows in others):
        raise HeatSketchError(
            f"probes, and limits if given, of shapes {[rows.shape for rows in others]} must have a "
            f"row for each of the {len(queries)} queries; pass those of the same points."
        )


def _check_duplicates(point: np.ndarray, squares: np.ndarray) -> None:
    raise DegenerateKernelError(
        f"X has more than {MOST_TIES} points at the distance {np.sqrt(squares[-1]):.3g} from the "
        f"point {np.array2string(point, threshold=6, precision=3)}, all of them its neighbours; "
        "are they copies? Embed numpy.unique(X, axis=0), or add a little noise to X."
    )


def _groups(n_rows: int) -> list[slice]:
    size = min(GROUP, max(64, n_rows // 16))
    return [slice(start, start + size) for start in range(0, n_rows, size)]


# --- from neighbours to a graph ---------------------------------------------------------------


def squared_radii(found: Found, n_neighbors: int) -> np.ndarray:
    """Return squared distances to the last neighbours; infinity if too few."""
    counts = np.diff(found.indptr)
    return np.where(counts >= n_neighbors, found.squares[found.indptr[1:] - 1], np.inf).astype(
        found.squares.dtype
    )


def second_radii(
    found: Found, n_neighbors: int, queries: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Return second distances to the last neighbours; infinity if too few."""
    lasts = found.ids[found.indptr[1:] - 1]
    seconds = second_distances(queries, np.arange(len(queries)), points, lasts)
    return np.where(np.diff(found.indptr) >= n_neighbors, seconds, np.inf)


def sort_rows(found: Found) -> None:
    """Sort the neighbours of each point by index, in place."""
    in_threads(
        lambda rows: kernels.sort_rows(*found, rows.start, min(rows.stop, len(found.indptr) - 1)),
        _groups(len(found.indptr) - 1),
    )


def reversed_rows(found: Found, n_columns: int) -> Found:
    """Return the queries that find each of ``n_columns`` points, sorted."""
    dtype = index_dtype(len(found.indptr) - 1, 0)
    return Found(*kernels.reverse(*found, n_columns, dtype(0)))


def union_of(one: Found, other: Found, n_columns: int) -> sparse.csr_array:
    """Merge two graphs with sorted rows.

    scipy would drop stored zeros, which are distances between duplicates.
    """
    n_rows = len(one.indptr) - 1
    parts = [(rows.start, min(rows.stop, n_rows)) for rows in _groups(n_rows)]
    sizes = np.empty(n_rows, np.int64)
    in_threads(
        lambda part: kernels.union_sizes(
            one.indptr, one.ids, other.indptr, other.ids, sizes, *part
        ),
        parts,
    )
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    dtype = index_dtype(n_columns, indptr[-1])
    union = Found(indptr, np.empty(indptr[-1], dtype), np.empty(indptr[-1], one.squares.dtype))
    in_threads(
        lambda part: kernels.fill_union(tuple(one), tuple(other), tuple(union), *part), parts
    )
    return sparse.csr_array(
        (union.squares, union.ids, indptr.astype(dtype)), shape=(n_rows, n_columns)
    )


def index_dtype(n_columns: int, n_stored: int) -> type[np.signedinteger]:
    """Return the narrowest index dtype for a matrix of this size.

    Examples
    --------
    >>> from heatsketch.graph._ivf import index_dtype
    >>> index_dtype(10**6, 15 * 10**6).__name__, index_dtype(2 * 10**8, 3 * 10**9).__name__
    ('int32', 'int64')
    """
    return np.int32 if max(n_columns, n_stored) <= np.iinfo(np.int32).max else np.int64
