r"""Points in lists of near ones: who is near whom without comparing everybody.

The points are split by k-means into lists of about ``POINTS_PER_LIST``, and each point looks for
neighbours in the ``n_probes`` lists whose centroids are nearest to it. With
:math:`\ell(i)` the list of point :math:`i`, :math:`P_i` the lists that it probes, and
:math:`r_i` the distance to its ``n_neighbors``-th nearest point there,

.. math:: i \sim j \quad\text{if}\quad
          \ell(j) \in P_i,\; d_{ij} \le r_i \quad\text{or}\quad \ell(i) \in P_j,\; d_{ij} \le r_j.

Integers have many distances in common. Among points at the distance :math:`r_i` those are
neighbours which are nearest in a second distance, the sum of absolute differences with weights
that have nothing to do with each other; ties in both, which are copies or mirror images, all are.

The rule needs nothing but coordinates, so a training point given again has the row that it had.
With a single list every point probes all others, and the rule is exact.

The lists serve twice. Kept in their order, near points are near in memory, too, which makes
products with the heat operator faster.
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
SAMPLE_PER_LIST = 32  # points that k-means sees of each list
SEEN_PER_CHILD = 256  # of which so many are enough for the centroids of a node
SWEEPS = 4  # of k-means at each level: more of them find hardly more neighbours
CHILDREN = 128  # of a node of the tree, about, at most
BEAM = 16  # nodes of each level that are followed to the next
GROUP = 2048  # queries at a time
# So many points at one distance are copies of each other, and their graph has no end.
MOST_TIES = 50_000


class Level(NamedTuple):
    """Children of all nodes of one level of a tree, node after node."""

    centroids: np.ndarray
    starts: np.ndarray


class Found(NamedTuple):
    """Rows of neighbours."""

    indptr: np.ndarray
    ids: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class ListTree:
    """Centroids of lists, found from the top down; without levels there is one list.

    Attributes
    ----------
    levels : tuple of Level
        The centroids of the last level are those of the lists.
    """

    levels: tuple[Level, ...] = ()

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self.levels[-1].centroids) if self.levels else 1

    def nearest_lists(self, X: np.ndarray, n_probes: int) -> np.ndarray:
        """Return the nearest lists of each row, the nearest first, as far as the beam sees."""

        def descend(rows: slice) -> np.ndarray:
            found = np.zeros((len(X[rows]), 1), np.int32)
            for level in self.levels:
                n_followed = n_probes if level is self.levels[-1] else BEAM
                found = _nearest_children(X[rows], found, level, n_followed)
            return found

        return np.concatenate(in_threads(descend, _groups(len(X)), name="lists"))


@dataclass(frozen=True)
class NeighborLists:
    """Points in list order, and the lists in which each looks for neighbours.

    Attributes
    ----------
    tree : ListTree
        How a point finds its list.
    points : array of shape (n_points, n_features)
        In list order.
    order : array of shape (n_points,)
        Which of the given rows each point is.
    probes : array of shape (n_points, n_probes)
        The lists that each point probes, its own first; -1 where there are no more.
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
        """Where each list begins, and where the last one ends."""
        return np.searchsorted(self.probes[:, 0], np.arange(self.tree.n_lists + 1))

    def graph(self, n_neighbors: int) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
        """Return the symmetric graph of squared distances, the squared radii, and the second."""
        found = search_lists(self.points, self.probes, self.points, self.starts, n_neighbors)
        radii = squared_radii(found, n_neighbors)
        ties = second_radii(found, n_neighbors, self.points, self.points)
        sort_rows(found)
        return union_of(found, reversed_rows(found, len(radii)), len(radii)), radii, ties

    def rows(
        self, X_new: np.ndarray, n_neighbors: int, radii: np.ndarray, ties: np.ndarray | None
    ) -> sparse.csr_array:
        """Return squared distances from new points to their neighbours, by the same rule."""
        probes = self.tree.nearest_lists(X_new, self.probes.shape[1])
        found = search_lists(X_new, probes, self.points, self.starts, n_neighbors)
        sort_rows(found)
        back = self._found_by_points(X_new, probes[:, 0], radii, ties)
        return union_of(found, back, len(self.points))

    def _found_by_points(
        self, X_new: np.ndarray, lists: np.ndarray, radii: np.ndarray, ties: np.ndarray | None
    ) -> Found:
        """Return which points find the new points within their radii."""
        looked_into = np.zeros(self.tree.n_lists + 1, bool)  # the last is -1, which is no list
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
    """Split the points by k-means, and the parts again, until they are lists.

    What k-means sees are rows at equal steps: nothing is random, and the centroids of a node come
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
    """Return which points from ``start`` to ``stop`` are a sample: rows at equal steps."""
    n_sample = -(-n_points // POINTS_PER_LIST) * SAMPLE_PER_LIST
    return _equal_steps(n_points, n_sample, start, stop)


def tree_height(n_points: int) -> int:
    """Return how often so many points are split until they are lists."""
    n_lists = -(-n_points // POINTS_PER_LIST)
    return math.ceil(math.log(n_lists, CHILDREN)) if n_lists > 1 else 0


def grown_levels(sample: np.ndarray, height: int) -> tuple[Level, ...]:
    """Split a sample, and its parts again, ``height`` times in all; return what that makes."""
    nodes, levels = [sample], []
    for left in range(height, 0, -1):
        split = in_threads(partial(_split, height=left), nodes)
        sizes = [len(centroids) for centroids, _ in split]
        centroids = np.concatenate([centroids for centroids, _ in split])
        levels.append(Level(centroids, np.cumsum([0, *sizes])))
        nodes = [part for _, parts in split for part in parts]
    return tuple(levels)


def joined_level(parts: list[Level]) -> Level:
    """Return the level of a tree whose branches have these."""
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    centroids = np.concatenate([part.centroids for part in parts])
    return Level(centroids, np.concatenate([[0], np.cumsum(sizes)]))


def _split(sample: np.ndarray, height: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Split a sample by k-means, so that ``height`` such splits end in lists."""
    centroids = centroids_of(sample[places_seen(len(sample), height)], len(sample), height)
    return centroids, by_centroid(sample, centroids)


def places_seen(n_sample: int, height: int) -> np.ndarray:
    """Return which of a sample the centroids come from, for ``height`` splits to end in lists."""
    return _equal_steps(n_sample, SEEN_PER_CHILD * _n_children(n_sample, height))


def centroids_of(seen: np.ndarray, n_sample: int, height: int) -> np.ndarray:
    """Return the centroids by which a sample is split, from what is seen of it."""
    centroids = seen[_equal_steps(len(seen), _n_children(n_sample, height))]
    for _ in range(SWEEPS):
        centroids = _means(seen, _nearest_centroids(seen, centroids), centroids)
    # A centroid that nothing is near, of copies for instance, would have no children.
    return centroids[np.unique(_nearest_centroids(seen, centroids))]


def by_centroid(sample: np.ndarray, centroids: np.ndarray) -> list[np.ndarray]:
    """Return the part of a sample that is nearest to each centroid, in its order."""
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
    """Return those of the places ``i * n_points // n_steps`` that are within a range."""
    n_steps = max(1, min(n_steps, n_points))
    ends = (start, n_points if stop is None else stop)
    steps = np.arange(*(-(-end * n_steps // n_points) for end in ends))
    whole, rest = divmod(n_points, n_steps)
    return steps * whole + steps * rest // n_steps  # no product is beyond int64


# --- the search -----------------------------------------------------------------------------


def search_lists(
    queries: np.ndarray, probes: np.ndarray, points: np.ndarray, starts: np.ndarray, n_nearest: int
) -> Found:
    """Find the nearest points of each query in the lists that it probes, ties in both included.

    They come in order of distance, then of the second distance.
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
    """Find all points within a squared distance of each query in the lists that it probes.

    Of points at that distance those whose second distance is within ``ties``, if given. They come
    in no order: to keep one takes the square of their number, and that may be large.
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
    """Return the rows that all groups of queries find."""
    found = in_threads(search, _groups(n_queries), name="neighbours")
    counts, ids, squares = zip(*found, strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Found(indptr, np.concatenate(ids), np.concatenate(squares))


def _nearest_children(
    queries: np.ndarray, nodes: np.ndarray, level: Level, n_nearest: int
) -> np.ndarray:
    """Return the nearest children of the nodes of each query, ties by their number.

    Where the nodes of a query have fewer children, -1 stands for none: what one query finds must
    not depend on the others.
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
    """Return who finds whom at which squared distance, in no order."""
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
    """Return the squared distance to the last neighbour; infinity if there are too few."""
    counts = np.diff(found.indptr)
    return np.where(counts >= n_neighbors, found.squares[found.indptr[1:] - 1], np.inf).astype(
        found.squares.dtype
    )


def second_radii(
    found: Found, n_neighbors: int, queries: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Return the second distance to the last neighbour; infinity if there are too few."""
    lasts = found.ids[found.indptr[1:] - 1]
    seconds = second_distances(queries, np.arange(len(queries)), points, lasts)
    return np.where(np.diff(found.indptr) >= n_neighbors, seconds, np.inf)


def sort_rows(found: Found) -> None:
    """Sort the neighbours of each point by their number, in place."""
    in_threads(
        lambda rows: kernels.sort_rows(*found, rows.start, min(rows.stop, len(found.indptr) - 1)),
        _groups(len(found.indptr) - 1),
    )


def reversed_rows(found: Found, n_columns: int) -> Found:
    """Return who finds each of so many points, sorted."""
    dtype = index_dtype(len(found.indptr) - 1, 0)
    return Found(*kernels.reverse(*found, n_columns, dtype(0)))


def union_of(one: Found, other: Found, n_columns: int) -> sparse.csr_array:
    """Merge two graphs with sorted rows; scipy would drop stored zeros, which are duplicates."""
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
    """Return the narrowest index type that can address so many stored entries.

    Examples
    --------
    >>> from heatsketch.graph._ivf import index_dtype
    >>> index_dtype(10**6, 15 * 10**6).__name__, index_dtype(2 * 10**8, 3 * 10**9).__name__
    ('int32', 'int64')
    """
    return np.int32 if max(n_columns, n_stored) <= np.iinfo(np.int32).max else np.int64
