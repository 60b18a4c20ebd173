r"""Neighbours found by a scikit-learn transformer, and a rule for new points.

With :math:`N(x)` the training points that the transformer lists for a point, itself included if it
is one of them, and :math:`r_x` the distance to the last of these,

.. math:: x \sim y \quad\text{if}\quad N(x) \cap N(y) \ne \emptyset
          \;\text{ and }\; d(x, y) \le \max(r_x, r_y).

If the search is exact and there are no ties, these are the neighbours of ``graph/_neighbors.py``:
if :math:`y \in N(x)`, both lists contain :math:`y`. The rule is symmetric, and needs only the list
and the coordinates of a new point. So a training point passed as a new point gets the same row if
the transformer lists the same points for it; their order and the rounding of their distances do not
matter. With an approximate search, the rule recovers some of the missed neighbours.

A new point that is not close to any training point loses neighbours that would list it but share no
listed point with it: 0.5 % of the neighbours of held-out digits, 2 % with normal points in 10
dimensions, and 12 % in 64.

Distances are computed here, in the metric of the estimator. The distances of the transformer only
serve as a check that it uses the same metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.parallel import in_threads
from heatsketch._core.pickling import from_plain, plain
from heatsketch.exceptions import HeatSketchError, ScaleError
from heatsketch.graph._ivf import index_dtype
from heatsketch.graph._metrics import (
    LIST_METRICS,
    METRICS,
    check_nonzero_rows,
    check_symmetric_metric,
    squared_distances_to,
)

PAIRS = 2_000_000  # pairs that a thread compares at a time
ROWS_COMPARED = 1000  # rows whose distances are compared with those of the transformer
DISAGREEMENT = 0.01  # allowed median relative difference: more than the rounding of float32


@dataclass(frozen=True)
class TransformerNeighbors:
    """Training points, and the rule for their neighbours among new points.

    Attributes
    ----------
    transformer : object
        The fitted transformer.
    points : array or CSR array of shape (n_points, n_features)
        The training points.
    order : array of shape (n_points,)
        Row of the given ``X`` for each point: always the row of the same index.
    metric : str or callable
        As given.
    lists : CSR array of shape (n_points, n_points)
        Entry (i, j) is one if the transformer lists point j for point i.
    radii : array of shape (n_points,)
        Squared distance of each point to the farthest point in its list.

    Examples
    --------
    A training point passed as a new point gets its row of the graph:

    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsTransformer
    >>> from heatsketch.graph._transformer_neighbors import neighbors_by_transformer
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> neighbors, d2 = neighbors_by_transformer(X, KNeighborsTransformer(n_neighbors=1))
    >>> d2.toarray()
    array([[0., 1., 0.],
           [1., 0., 4.],
           [0., 4., 0.]])
    >>> neighbors.distances_to(X[1:2]).toarray()
    array([[1., 0., 4.]])
    """

    transformer: Any
    points: Any
    order: np.ndarray
    metric: Any
    lists: sparse.csr_array
    radii: np.ndarray

    def __getstate__(self) -> dict[str, Any]:
        """Return the state as plain arrays."""
        return plain(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state from plain arrays."""
        vars(self).update(from_plain(state))

    def distances_to(self, X_new: Any) -> sparse.csr_array:
        """Return squared distances from new points to their training neighbours.

        Parameters
        ----------
        X_new : array or CSR array of shape (n_new, n_features)

        Returns
        -------
        CSR array of shape (n_new, n_points)
        """
        graph = _listed(self.transformer, X_new, len(self.order))
        measure = Measure(X_new, self.points, self.metric)
        lists = _ones(graph)
        return _near(lists, _radii(lists, measure), self.lists, self.radii, measure)


def neighbors_by_transformer(
    X: Any, transformer: Any, *, metric: Any = "euclidean"
) -> tuple[TransformerNeighbors, sparse.csr_array]:
    """Find neighbours with a transformer; return the rule and squared distances.

    Parameters
    ----------
    X : array or CSR array of shape (n_points, n_features)
    transformer : object
        Transformer with ``fit`` and ``transform``, like scikit-learn's ``KNeighborsTransformer``;
        ``transform`` returns a sparse matrix of distances to the training points. It is fitted
        here. ``fit_transform`` is not used, since some transformers then find other neighbours.
    metric : str or callable, default="euclidean"
        The metric of the transformer.

    Returns
    -------
    neighbors : TransformerNeighbors
    d2 : CSR array of shape (n_points, n_points)
        Exactly symmetric; a stored zero is a distance of zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsTransformer
    >>> from heatsketch.graph import neighbor_graph
    >>> from heatsketch.graph._transformer_neighbors import neighbors_by_transformer
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> _, d2 = neighbors_by_transformer(X, KNeighborsTransformer(n_neighbors=9))
    >>> (d2 != neighbor_graph(X, n_neighbors=10)).nnz  # itself is the tenth
    0
    """
    if metric == "cosine":
        check_nonzero_rows(X)
    if callable(metric) and not sparse.issparse(X):
        check_symmetric_metric(metric, X)
    transformer.fit(X)
    graph = _listed(transformer, X, X.shape[0])
    measure = Measure(X, X, metric)
    _check_metric(transformer, graph, measure)
    lists = _ones(graph)
    radii = _radii(lists, measure)
    neighbors = TransformerNeighbors(transformer, X, np.arange(X.shape[0]), metric, lists, radii)
    return neighbors, _near(lists, radii, lists, radii, measure)


def _near(
    lists: sparse.csr_array,
    radii: np.ndarray,
    training_lists: sparse.csr_array,
    training_radii: np.ndarray,
    measure: Measure,
) -> sparse.csr_array:
    """Return squared distances of points that share a listed point and are near."""
    listed_by = sparse.csr_array(training_lists.T)

    def search(rows: slice) -> tuple[np.ndarray, ...]:
        shared = lists[rows] @ listed_by
        shared.sort_indices()
        counts = np.diff(shared.indptr)
        first, second = np.repeat(np.arange(rows.start, rows.stop), counts), shared.indices
        d2 = measure(first, second)
        near = d2 <= np.maximum(radii[first], training_radii[second])
        sizes = np.bincount(first[near] - rows.start, minlength=rows.stop - rows.start)
        return sizes, second[near], d2[near]

    chunks = pair_chunks(lists @ np.diff(listed_by.indptr), measure)
    sizes, ids, squares = zip(*in_threads(search, chunks, name="neighbours"), strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    dtype = index_dtype(len(training_radii), int(indptr[-1]))
    entries = np.concatenate(squares), np.concatenate(ids).astype(dtype), indptr.astype(dtype)
    return sparse.csr_array(entries, shape=(lists.shape[0], len(training_radii)))


def _radii(lists: sparse.csr_array, measure: Measure) -> np.ndarray:
    """Return the squared distance to the farthest point listed for each row."""

    def farthest(rows: slice) -> np.ndarray:
        some = lists[rows]
        d2 = measure(
            np.repeat(np.arange(rows.start, rows.stop), np.diff(some.indptr)), some.indices
        )
        return np.maximum.reduceat(d2, some.indptr[:-1])  # no row is empty

    return np.concatenate(in_threads(farthest, pair_chunks(np.diff(lists.indptr), measure)))


def pair_chunks(sizes: np.ndarray, measure: Measure) -> Iterator[slice]:
    """Yield slices of rows with a limited number of pairs, at least one row each."""
    groups = np.cumsum(sizes) // max(PAIRS // measure.width, 1)
    ends = np.flatnonzero(np.diff(groups, append=np.inf)) + 1
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        yield slice(int(start), int(stop))


# --- results of the transformer ---------------------------------------------------------------


def _listed(transformer: Any, X: Any, n_points: int) -> sparse.csr_array:
    """Return the graph of a transformer; each row must have at least one entry."""
    graph = transformer.transform(X)
    if not sparse.issparse(graph) or graph.shape != (X.shape[0], n_points):
        raise HeatSketchError(
            f"neighbors={transformer!r} returns a {type(graph).__name__} of shape "
            f"{np.shape(graph)}, and not a sparse matrix of distances from the {X.shape[0]} rows "
            f"of X to the {n_points} training points; use a transformer such as "
            "sklearn.neighbors.KNeighborsTransformer(mode='distance')."
        )
    graph = sparse.csr_array(graph)
    counts = np.diff(graph.indptr)
    if not counts.all():
        raise HeatSketchError(
            f"neighbors={transformer!r} finds no neighbour of row {int(np.argmin(counts))} of X; "
            "let it search for more, or further away."
        )
    return graph


def _ones(graph: sparse.csr_array) -> sparse.csr_array:
    """Return the listed pairs as ones, including stored zeros of the graph."""
    ones = np.ones(graph.nnz, np.float32)
    lists = sparse.csr_array((ones, graph.indices, graph.indptr), shape=graph.shape)
    lists.sum_duplicates()
    return lists


def _check_metric(transformer: Any, graph: sparse.csr_array, measure: Measure) -> None:
    """Raise if the distances of the transformer differ, by the median over some."""
    some = graph[:ROWS_COMPARED]
    first = np.repeat(np.arange(some.shape[0]), np.diff(some.indptr))
    ours, theirs = np.sqrt(measure(first, some.indices).astype(np.float64)), some.data
    apart = np.flatnonzero(ours > 0)
    off = np.abs(theirs[apart] / ours[apart] - 1)
    if not len(apart) or np.median(off) <= DISAGREEMENT:
        return
    place = apart[np.argsort(off)[len(off) // 2]]
    named = getattr(transformer, "metric", None)
    remedy = f"metric={named!r}" if named in METRICS else "the metric of the transformer"
    raise HeatSketchError(
        f"neighbors={transformer!r} finds row {first[place]} of X {theirs[place]:.6g} from row "
        f"{some.indices[place]}, and metric={measure.metric!r} {ours[place]:.6g}; pass {remedy} "
        "to the estimator, and let the transformer return distances: neither their squares, nor "
        "connections (mode='connectivity')."
    )


# --- distances of pairs -----------------------------------------------------------------------


class Measure:
    """Squared distances of pairs of rows, bit-identical in any batch."""

    def __init__(self, X_new: Any, X: Any, metric: Any) -> None:
        squared_distances_to(X, metric)  # raises for unknown metrics, and those not for sparse X
        self.metric, self.dtype = metric, X.dtype
        self.is_sparse, self.is_listed = sparse.issparse(X), metric in LIST_METRICS
        self.queries = self._coordinates(X_new)
        self.points = self.queries if X_new is X else self._coordinates(X)
        self.width = 1 + (X.nnz // X.shape[0] if self.is_sparse else 0)

    def _coordinates(self, X: Any) -> Any:
        """Return points whose Euclidean distances give the metric, or the points."""
        if self.is_sparse:
            X = sparse.csr_array(X.astype(np.float64))
            X = X if self.metric == "euclidean" else LIST_METRICS[self.metric][0](X)
            X.sum_duplicates()  # also sorts, since the order of a sum affects its rounding
            return X
        return LIST_METRICS[self.metric][0](X) if self.is_listed else X

    def __call__(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if not self.is_listed:
            d2 = self._by_rows(first, second)
        else:
            squares = self._sparse if self.is_sparse else self._dense
            d2 = LIST_METRICS[self.metric][1](squares(first, second))
        d2 = d2.astype(self.dtype, copy=False)
        if not np.isfinite(d2).all():
            place = int(np.argmin(np.isfinite(d2)))
            raise ScaleError(
                f"metric={self.metric!r} gives {d2[place]} as the squared distance of row "
                f"{first[place]} of X to training point {second[place]} in {d2.dtype}; rescale X, "
                "or correct the metric if it is your own."
            )
        return d2

    def _dense(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        out = np.empty(len(first), self.dtype)
        kernels.squares_between(self.queries, self.points, first, second, out)
        return out

    def _sparse(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        difference = self.queries[first] - self.points[second]
        return np.asarray(difference.multiply(difference).sum(axis=1)).ravel()

    def _by_rows(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        rows, starts = np.unique(first, return_index=True)  # first is sorted
        squares = squared_distances_to
        parts = zip(rows, np.split(second, starts[1:]), strict=True)
        found = [
            squares(self.points[ids], self.metric)(self.queries[[row]])[0] for row, ids in parts
        ]
        return np.concatenate(found)
