r"""Neighbour graphs: squared distances of all pairs or of nearest neighbours.

.. math::

    d^2_{ij} = d(x_i, x_j)^2 \quad\text{where}\quad
    d(x_i, x_j) \le r_i \;\text{ or }\; d(x_i, x_j) \le r_j,

with :math:`r_i` the distance from :math:`x_i` to the ``n_neighbors``-th nearest training point;
the nearest one is the point itself. Without ``n_neighbors`` every pair is kept, as in the paper.
Ties at the distance :math:`r_i` are broken by a second distance (:mod:`heatsketch.graph._ivf`);
points tied in both distances are all kept.

The rule does not depend on row numbers, so it is the same for new points and training points: a
training point passed as a new point gets the same row, even if it has duplicates. Only the radii
are stored for this.

Euclidean distances between dense points are sums of squared differences in the dtype of the points.
They are exactly symmetric, exactly zero between duplicates, and do not depend on the other pairs.
If comparing all pairs would take too long, neighbours are searched in inverted lists; see
:mod:`heatsketch.graph._ivf`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.checks import (
    check_distance_matrix,
    check_finite,
    check_integer,
    check_places,
    check_rows,
    float_dtype,
    plain_distances,
    plain_floats,
)
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import RowBlocks
from heatsketch.graph._ivf import (
    ListTree,
    NeighborLists,
    NeighborRows,
    grow_tree,
    reversed_rows,
    union_of,
)
from heatsketch.graph._metrics import (
    LIST_METRICS,
    check_nonzero_rows,
    check_symmetric_metric,
    check_width,
    metric_of,
    not_finite_error,
    second_distances,
    squared_distances_to,
)

TILE_ENTRIES = 4_000_000  # 32 MB of float64 per thread
FRONTIER = 32  # points whose links are searched at a time


def neighbor_graph(X: Any, *, n_neighbors: int | None = None, metric: Any = "euclidean") -> Any:
    r"""Return squared distances :math:`d(x_i, x_j)^2` between neighbours.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_points, n_features)
        Points; with ``metric="precomputed"`` their distances, dense or sparse.
    n_neighbors : int or None, default=None
        Keep a pair if one of the two is among the ``n_neighbors`` nearest points of the other,
        counting the other itself. Ties are broken by a second distance; duplicates are all kept.
        None keeps every pair.
    metric : str or callable, default="euclidean"
        A name from ``METRICS`` or ``ALIASES``, ``"precomputed"``, or a function of two points.

    Returns
    -------
    array or CSR array of shape (n_points, n_points)
        Exactly symmetric, in float32 if that represents the dtype of ``X`` exactly (float16,
        integers of at most 16 bits, booleans), and in float64 otherwise. In a sparse result a
        stored zero is a distance of zero, and pairs that are not stored are not neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph import neighbor_graph
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> neighbor_graph(X)
    array([[0., 1., 9.],
           [1., 0., 4.],
           [9., 4., 0.]])
    >>> neighbor_graph(X, n_neighbors=2).toarray()  # 0 and 2 are not neighbours
    array([[0., 1., 0.],
           [1., 0., 4.],
           [0., 4., 0.]])
    """
    return find_neighbors(checked_points(X, metric), n_neighbors=n_neighbors, metric=metric)[1]


def checked_points(X: Any, metric: Any) -> Any:
    """Return points, or distances with ``metric="precomputed"``, as plain floats; or raise."""
    is_given = metric == "precomputed"
    X = plain_distances(X, "X") if is_given else plain_floats(X)
    check_rows(X)
    check_finite(X)
    if is_given:
        check_distance_matrix(X)
    if metric == "cosine":
        check_nonzero_rows(X)
    # scipy's older sparse matrices are converted, too.
    return sparse.csr_array(X) if sparse.issparse(X) else X


def squared_distances(X_new: Any, X: Any, *, metric: Any = "euclidean") -> Any:
    """Return squared distances from each row of ``X_new`` to each row of ``X``.

    Parameters
    ----------
    X_new : array or sparse matrix of shape (n_new, n_features)
        Points; with ``metric="precomputed"`` their distances, dense or sparse.
    X : array or sparse matrix of shape (n_points, n_features)
    metric :
        As for :func:`neighbor_graph`.

    Returns
    -------
    array of shape (n_new, n_points)
        A CSR array if sparse distances were given.
    """
    X_new, X, metric = _floats(X_new), _floats(X), metric_of(metric)
    if metric == "precomputed" and sparse.issparse(X_new):
        return _squares(X_new)
    if callable(metric) and not sparse.issparse(X):
        check_symmetric_metric(metric, X)
    if metric == "cosine":
        check_nonzero_rows(X_new)
    d2 = np.empty((X_new.shape[0], X.shape[0]), X_new.dtype)
    _over_tiles(d2.__setitem__, X_new, X, metric)
    return d2


@dataclass(frozen=True)
class Neighbors:
    """Training points, and the rule that selects neighbours of new points among them.

    Attributes
    ----------
    points : array or sparse matrix
        The training points, in the order of :attr:`order`; each once if duplicates share rows.
    order : array of shape (n_points,)
        Row of the given ``X`` for each point; near points are adjacent.
    metric, n_neighbors :
        As given.
    radii : array of shape (n_points,) or None
        Squared distance of each point to its last neighbour.
    lists : NeighborLists or None
        Inverted lists in which neighbours are searched.
    starts : array of shape (n_points + 1,) or None
        Start of the duplicates of each point in :attr:`order`, if duplicates share rows.
    ties : array of shape (n_points,) or None
        Second distance of each point to its last neighbour, which breaks ties
        (:mod:`heatsketch.graph._ivf`); None if all tied points are neighbours.

    Examples
    --------
    A training point passed as a new point gets its row of the graph:

    >>> import numpy as np
    >>> from heatsketch.graph._neighbors import find_neighbors
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> neighbors, d2 = find_neighbors(X, n_neighbors=2)
    >>> neighbors.distances_to(X[1:2]).toarray()
    array([[1., 0., 4.]])
    """

    points: Any
    order: np.ndarray
    metric: Any
    n_neighbors: Any = None
    radii: Any = None
    lists: NeighborLists | None = None
    starts: Any = None
    ties: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns of new points."""
        return self.points.shape[1]

    @property
    def is_listed(self) -> bool:
        """Whether neighbours of new points are searched in inverted lists."""
        return self.lists is not None

    def distances_to(self, X_new: Any) -> Any:
        """Return squared distances from new points to their training neighbours.

        Parameters
        ----------
        X_new : array or sparse matrix of shape (n_new, n_features)
            Points; with ``metric="precomputed"`` their distances to the training points in the
            given order.

        Returns
        -------
        array or CSR array of shape (n_new, n_points)
            Columns are in the order of ``points``; duplicates that share rows have one column.
        """
        X_new = _floats(X_new)
        if self.metric == "precomputed" and self.starts is not None:
            X_new = X_new[:, self.order[self.starts[:-1]]]
        if self.metric == "cosine":
            check_nonzero_rows(X_new)
        if self.lists is not None:
            as_points, from_squares = LIST_METRICS[self.metric]
            d2 = self.lists.rows(as_points(X_new), self.n_neighbors, self.radii, self.ties)
            d2.data = from_squares(d2.data)
            return d2
        if self.n_neighbors is None:
            return squared_distances(X_new, self.points, metric=self.metric)
        near = partial(self._near, X_new)
        return sparse.vstack(_over_tiles(near, X_new, self.points, self.metric), format="csr")

    def _near(self, X_new: Any, rows: slice, d2: np.ndarray) -> sparse.csr_array:
        """Return squared distances to neighbours, of the new points or of the training points."""
        near = _nearest(X_new, self.points, self.metric, self.n_neighbors, rows, d2)[0]
        near |= d2 < self.radii
        places = np.divmod(np.flatnonzero(d2 == self.radii), d2.shape[1])
        if self.metric == "precomputed" or self.ties is None:
            near[places] = True
        else:
            seconds = second_distances(X_new[rows], places[0], self.points, places[1])
            near[places] |= seconds <= self.ties[places[1]]
        return _entries(d2, near)


def find_neighbors(
    X: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    n_probes: int | Callable[[np.ndarray, ListTree], int] | None = None,
) -> tuple[Neighbors, Any]:
    """Find neighbours; return the rule for new points and the squared distances.

    Parameters
    ----------
    X, n_neighbors, metric :
        As for :func:`neighbor_graph`.
    n_probes : int, callable or None, default=None
        Number of inverted lists in which the neighbours of each point are searched, with metric
        "euclidean" or "cosine" and dense points; or a function that chooses it from the
        points and their tree of lists. None searches all points.

    Returns
    -------
    neighbors : Neighbors
    d2 : array or CSR array of shape (n_points, n_points)
        Graph as from :func:`neighbor_graph`, but with rows and columns in the order
        ``neighbors.order``, which is that of ``X`` unless inverted lists are used.
    """
    X, metric = _floats(X), metric_of(metric)
    order = np.arange(X.shape[0])
    if metric == "precomputed" and sparse.issparse(X):
        return Neighbors(X, order, metric), _symmetric_squares(X)
    if n_neighbors is None:
        return Neighbors(X, order, metric), squared_distances(X, X, metric=metric)
    n_neighbors = check_integer("n_neighbors", n_neighbors, most=X.shape[0])
    if metric == "cosine":
        check_nonzero_rows(X)
    if not sparse.issparse(X) and metric in LIST_METRICS:
        return _listed_neighbors(X, n_neighbors, metric, n_probes)
    if callable(metric) and not sparse.issparse(X):
        check_symmetric_metric(metric, X)

    def nearest(rows: slice, d2: np.ndarray) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
        near, *limits = _nearest(X, X, metric, n_neighbors, rows, d2)
        return _entries(d2, near), *limits

    near, *limits = zip(*_over_tiles(nearest, X, X, metric), strict=True)
    radii, ties = (np.concatenate(parts) for parts in limits)
    neighbors = Neighbors(X, order, metric, n_neighbors, radii, ties=ties)
    if callable(metric) or metric == "precomputed":  # may be asymmetric by rounding errors
        return neighbors, neighbors.distances_to(X)
    graph = sparse.vstack(near, format="csr")
    directed = NeighborRows(graph.indptr, graph.indices, graph.data)
    return neighbors, union_of(directed, reversed_rows(directed, len(order)), len(order))


def _listed_neighbors(
    X: np.ndarray, n_neighbors: int, metric: str, n_probes: Any
) -> tuple[Neighbors, sparse.csr_array]:
    as_points, from_squares = LIST_METRICS[metric]
    points = as_points(X)
    tree = ListTree() if n_probes is None else grow_tree(points)
    if callable(n_probes):
        n_probes = n_probes(points, tree)
    lists = NeighborLists.arrange(points, tree, n_probes or 1)
    d2, radii, ties = lists.graph(n_neighbors)
    d2.data = from_squares(d2.data)
    if not np.isfinite(d2.data).all():
        entries = sparse.coo_array(d2)
        place = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        row, column = (int(lists.order[i[place]]) for i in entries.coords)
        raise not_finite_error(entries.data[place], row, column, metric)
    points = lists.points if metric == "euclidean" else X[lists.order]
    return Neighbors(points, lists.order, metric, n_neighbors, radii, lists, ties=ties), d2


def label_components(K: Any) -> tuple[int, Any]:
    """Return the number of connected components of an affinity and their labels.

    Affinities below machine precision times the largest of their row are ignored: they transport
    no heat in any realistic number of steps.

    Parameters
    ----------
    K : array or sparse matrix of shape (n, n)

    Returns
    -------
    n_components : int
    labels : array of int of shape (n,)
        Component of each row, numbered from 0 in the order of their first rows.
    """
    eps = np.finfo(K.dtype if K.dtype.kind == "f" else np.float64).eps
    if isinstance(K, RowBlocks):
        return K.label_components(eps)
    if sparse.issparse(K):
        check_places(K, "K")
        links = sparse.csr_array(K)
        return kernels.label_components(links.indptr, links.indices, links.data, eps)
    return _label_components(K, eps * K.max(axis=1))


def _label_components(K: np.ndarray, least: np.ndarray) -> tuple[int, np.ndarray]:
    """Label the components of a dense matrix by graph search.

    Each point is visited once and compared with the points that are not labelled yet.
    """
    unreached, n_components = np.arange(len(least)), 0
    labels = np.empty(len(least), np.int32)
    while unreached.size:
        frontier, unreached = unreached[:1], unreached[1:]
        labels[frontier] = n_components
        while frontier.size and unreached.size:
            batch, frontier = frontier[:FRONTIER], frontier[FRONTIER:]
            threshold = np.minimum(least[batch, np.newaxis], least[unreached])
            reached = (K[np.ix_(batch, unreached)] > threshold).any(axis=0)
            labels[unreached[reached]] = n_components
            frontier = np.concatenate([frontier, unreached[reached]])
            unreached = unreached[~reached]
        n_components += 1
    return n_components, labels


# --- tiles --------------------------------------------------------------------------------


def _over_tiles(function: Callable, X_new: Any, X: Any, metric: Any) -> list:
    """Apply a function to batches of rows and squared distances, in threads."""
    if metric != "precomputed":
        check_width(X_new, X)
    squares = squared_distances_to(X, metric)
    # User-defined metrics are slow, and Ctrl-C takes effect only at the end of a tile.
    entries = TILE_ENTRIES // 1000 if callable(metric) else TILE_ENTRIES
    step = max(1, entries // X.shape[0])

    def apply(start: int) -> Any:
        rows = slice(start, start + step)
        # Compare distances in the dtype of X, in which they are stored, so that radii of stored
        # distances select the same neighbours.
        with np.errstate(over="ignore", invalid="ignore"):
            d2 = squares(X_new[rows]).astype(X_new.dtype, copy=False)
        if not np.isfinite(d2).all():
            row, column = (int(place) for place in np.argwhere(~np.isfinite(d2))[0])
            raise not_finite_error(d2[row, column], start + row, column, metric)
        return function(rows, d2)

    return in_threads(apply, range(0, X_new.shape[0], step))


def _nearest(
    X_new: Any, X: Any, metric: Any, n_neighbors: int, rows: slice, d2: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a mask of the nearest points of each row, and its first and second radius."""
    # A copy, since a view would keep the whole tile in memory.
    radii = np.partition(d2, n_neighbors - 1, axis=1)[:, n_neighbors - 1].copy()
    ties = np.full(len(d2), np.inf)
    near = d2 <= radii[:, np.newaxis]
    if metric == "precomputed":  # without coordinates there is no second distance
        return near, radii, ties
    queries, places = np.divmod(np.flatnonzero(d2 == radii[:, np.newaxis]), d2.shape[1])
    seconds = second_distances(X_new[rows], queries, X, places)
    n_tied = np.bincount(queries, minlength=len(d2))
    n_kept = n_neighbors - (near.sum(axis=1) - n_tied)
    by_second = np.lexsort((seconds, queries))
    ties = seconds[by_second][np.cumsum(n_tied) - n_tied + n_kept - 1]
    near[queries, places] = seconds <= ties[queries]
    return near, radii, ties


def _entries(d2: np.ndarray, near: np.ndarray) -> sparse.csr_array:
    indptr = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
    places = np.flatnonzero(near)
    # Not from d2 * near, where scipy would drop zeros, which are distances between duplicates.
    return sparse.csr_array((d2.ravel()[places], places % d2.shape[1], indptr), shape=d2.shape)


def _squares(distances: Any) -> sparse.csr_array:
    squared = sparse.csr_array(distances, copy=True)
    squared.sum_duplicates()  # also sorts
    squared.data **= 2
    return squared


def _symmetric_squares(distances: Any) -> sparse.csr_array:
    """Square and symmetrize a sparse graph of distances; store a zero diagonal.

    Operations of scipy would drop stored zeros, which are distances between duplicates. So each
    entry is listed in both directions, summed, and divided by how often it is listed.
    """
    d2 = _squares(distances).tocoo()
    diagonal = np.arange(d2.shape[0])
    i, j = np.concatenate([d2.row, d2.col, diagonal]), np.concatenate([d2.col, d2.row, diagonal])
    values = np.concatenate([d2.data, d2.data, np.zeros_like(d2.data, shape=len(diagonal))])
    total, times = (
        sparse.coo_array((data, (i, j)), shape=d2.shape).tocsr()
        for data in (values, np.ones_like(values))
    )
    total.data /= times.data
    return total


def _floats(X: Any) -> Any:
    """Convert to a float dtype of the compiled loops, since integers would overflow."""
    return X.astype(float_dtype(X.dtype), copy=False)
