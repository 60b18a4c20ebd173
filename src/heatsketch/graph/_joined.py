"""Extension of a neighbour graph to new points.

The nearest neighbours of a training point are among its present neighbours and the new points
within its radius. Those of a new point are among its nearest training points and its nearest new
points. So the graph is the one that a search over all points would find, without comparing training
points with each other again. An approximate search uses the inverted lists of the training points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.parallel import in_threads
from heatsketch.graph._ivf import Found, NeighborLists, found_in_groups, reversed_rows, union_of
from heatsketch.graph._metrics import LIST_METRICS, second_distances
from heatsketch.graph._neighbors import Neighbors, find_neighbors
from heatsketch.graph._transformer_neighbors import Measure, pair_chunks


def joined_graph(neighbors: Neighbors, links: sparse.csr_array, X_new: Any) -> sparse.csr_array:
    """Return squared distances between neighbours among training and new points.

    Parameters
    ----------
    neighbors : Neighbors
        The training points.
    links : CSR array of shape (n_points, n_points)
        Matrix whose stored entries are the pairs of neighbours among the training points.
    X_new : array or CSR array of shape (n_new, n_features)
        The new points.

    Returns
    -------
    CSR array of shape (n_points + n_new, n_points + n_new)
        Graph like that of :func:`neighbor_graph`, with the training points first.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph import neighbor_graph
    >>> from heatsketch.graph._joined import joined_graph
    >>> from heatsketch.graph._neighbors import find_neighbors
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> neighbors, d2 = find_neighbors(X[:300], n_neighbors=10)
    >>> joined = joined_graph(neighbors, d2, X[300:])
    >>> (joined != neighbor_graph(X, n_neighbors=10)).nnz
    0
    """
    old = _measured(links, neighbors)
    across = neighbors.distances_to(X_new)
    new = _among_new(neighbors, X_new)
    near = sparse.csr_array(sparse.block_array([[old, across.T], [across, new]]))
    near.sort_indices()
    stack = sparse.vstack if sparse.issparse(X_new) else np.concatenate
    points = stack([neighbors.points, X_new])
    if not sparse.issparse(X_new) and neighbors.metric in LIST_METRICS:
        points = LIST_METRICS[neighbors.metric][0](points)
    found = _nearest(near, points, neighbors.n_neighbors)
    return union_of(found, reversed_rows(found, near.shape[0]), near.shape[0])


def _measured(links: sparse.csr_array, neighbors: Neighbors) -> sparse.csr_array:
    """Return the squared distances of linked training points."""
    measure = Measure(neighbors.points, neighbors.points, neighbors.metric)
    counts = np.diff(links.indptr)

    def squares(rows: slice) -> np.ndarray:
        first = np.repeat(np.arange(rows.start, rows.stop), counts[rows])
        return measure(first, links.indices[links.indptr[rows.start] : links.indptr[rows.stop]])

    data = np.concatenate(in_threads(squares, pair_chunks(counts, measure)))
    return sparse.csr_array((data, links.indices, links.indptr), shape=links.shape)


def _among_new(neighbors: Neighbors, X_new: Any) -> sparse.csr_array:
    """Return squared distances between each new point and its nearest new points."""
    n_neighbors = min(neighbors.n_neighbors, X_new.shape[0])
    if neighbors.lists is None:
        return find_neighbors(X_new, n_neighbors=n_neighbors, metric=neighbors.metric)[1]
    as_points, from_squares = LIST_METRICS[neighbors.metric]
    n_probes = neighbors.lists.probes.shape[1]
    lists = NeighborLists.arrange(as_points(X_new), neighbors.lists.tree, n_probes)
    d2 = lists.graph(n_neighbors)[0]
    d2.data = from_squares(d2.data)
    places = np.argsort(lists.order)
    return d2[places][:, places]


def _nearest(near: sparse.csr_array, points: Any, n_neighbors: int) -> Found:
    """Return the nearest points of each row; ties by the second distance."""

    def search(rows: slice) -> tuple[np.ndarray, ...]:
        some = near[rows]
        counts = np.diff(some.indptr)
        squares = np.full((len(counts), max(counts.max(), n_neighbors)), np.inf, some.dtype)
        squares[np.arange(squares.shape[1]) < counts[:, np.newaxis]] = some.data
        radii = np.partition(squares, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
        finders = np.repeat(np.arange(len(counts)), counts)
        kept, tied = some.data < radii[finders], np.flatnonzero(some.data == radii[finders])
        at, places = finders[tied], some.indices[tied]
        seconds = second_distances(points, at + rows.start, points, places)
        order, starts = np.lexsort((seconds, at)), np.searchsorted(at, np.arange(len(counts)))
        lasts = starts + n_neighbors - np.bincount(finders[kept], minlength=len(counts)) - 1
        kept[tied] = seconds <= seconds[order][lasts[at]]
        sizes = np.bincount(finders[kept], minlength=len(counts))
        return sizes, some.indices[kept], some.data[kept]

    return found_in_groups(search, near.shape[0])
