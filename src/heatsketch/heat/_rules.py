"""Rules that compute a row of affinities, of training points and new points.

A :class:`PointRule` searches the neighbours of a point and computes the weights of the links to
them; a :class:`NodeRule` takes the given weights. To add other weights of links, change
:func:`point_rule` for training points and :meth:`PointRule.affinity` for new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.checks import (
    check_distances,
    check_points,
    check_rows,
    check_square,
    check_symmetric,
    is_graph,
    plain_numbers,
)
from heatsketch.diffusion._affinity import (
    add_self_loops,
    gaussian_affinity_rows,
    local_scales,
    locally_scaled,
    nearest_squares,
    with_self_loops,
)
from heatsketch.diffusion._bandwidth import estimate_epsilon, sampled_squares
from heatsketch.diffusion._known_nodes import known_nodes, row_fingerprints
from heatsketch.diffusion._random_matrix import Kind, random_block
from heatsketch.exceptions import DegenerateKernelError, HeatSketchError
from heatsketch.graph._graph_affinity import graph_affinity
from heatsketch.graph._metrics import ALIASES
from heatsketch.graph._neighbors import Neighbors
from heatsketch.heat._checks import (
    check_affinities,
    check_weights,
    warn_about_far_points,
    warn_about_shared_rows,
    warn_about_zero_diagonal,
)

COMPARED = 1000  # rows whose given distances are compared with those of the points
DISAGREEMENT = 0.01  # largest median relative difference: more than the rounding of float32


@dataclass(frozen=True, eq=False)
class PointRule:
    """Neighbours of points, and Gaussian weights of the links to them.

    Attributes
    ----------
    neighbors : Neighbors
        The points, and the search for the neighbours of new ones.
    scales : array of shape (n_samples,) or None
        Local scales of the points, in the order of the operator.
    bandwidth : float
        Bandwidth of squared distances; 1 if they are scaled locally.
    """

    neighbors: Any
    scales: Any
    bandwidth: float
    kind = "points"

    @property
    def n_features(self) -> int:
        """Number of columns of new points."""
        return self.neighbors.n_features

    @property
    def is_listed(self) -> bool:
        """Whether a new point has few neighbours, which are searched in inverted lists."""
        return self.neighbors.is_listed

    @property
    def starts(self) -> Any:
        """Start of the copies of each distinct point, if copies share rows."""
        return getattr(self.neighbors, "starts", None)

    @property
    def named_bandwidth(self) -> Any:
        """The bandwidth as messages show it."""
        return self.bandwidth if self.scales is None else "local"

    def checked(self, X: Any, dtype: Any) -> Any:
        """Return new points in the dtype and the storage of the training points."""
        X = plain_numbers(X, metric=self.neighbors.metric)
        check_points(X, dtype=dtype, is_new=True)
        if self.neighbors.metric == "precomputed":
            check_distances(X)
        elif sparse.issparse(self.neighbors.points):
            X = sparse.csr_array(X)
        elif sparse.issparse(X):
            X = X.toarray()
        _check_width(X, self.n_features)
        return X.astype(dtype, copy=False)

    def entries(self, X: Any) -> Any:
        """Return squared distances from new points to their neighbours."""
        return self.neighbors.distances_to(X)

    def affinity(self, d2: Any, scales: Any, *, first_row: int) -> Any:
        """Return affinities of new points to their neighbours; rows up to a factor."""
        if scales is not None:
            least = float(self.scales.min())
            d2 = locally_scaled(d2, local_scales(d2, least=least), scales)
        warn_about_far_points(
            nearest_squares(d2), self.bandwidth, self.named_bandwidth, first_row=first_row
        )
        return gaussian_affinity_rows(d2, epsilon=self.bandwidth)

    def with_points(self, X: Any, metric: Any, graph: Any) -> PointRule:
        """Return the rule for new points, which are compared with the points ``X``."""
        if X.shape[0] != graph.shape[0]:
            raise HeatSketchError(
                f"X has {X.shape[0]} rows, but indices has {graph.shape[0]}; pass the points whose "
                "neighbours are listed."
            )
        neighbors = Neighbors(X, np.arange(X.shape[0]), ALIASES.get(metric, metric))
        _check_same_metric(neighbors, graph)
        counts = np.diff(graph.indptr)
        last = np.maximum.reduceat(graph.data, graph.indptr[:-1]).astype(X.dtype)
        # The farthest neighbour must be within the radius if its distance is computed again, also
        # after a search that computes it from inner products.
        radii = last**2 * (1 + np.sqrt(np.finfo(X.dtype).eps))
        n_neighbors = int(np.median(counts))
        return replace(self, neighbors=replace(neighbors, n_neighbors=n_neighbors, radii=radii))

    def links(self, A: Any) -> str:
        """Return which points are linked, in words."""
        if self.neighbors.n_neighbors is not None:
            return f"{self.neighbors.n_neighbors} neighbours each"
        is_given = self.neighbors.metric == "precomputed" and sparse.issparse(A.matrix)
        return "given neighbours" if is_given else "all pairs"


def point_rule(
    neighbors: Any, d2: Any, X: Any, numbers: Any, weights: Any
) -> tuple[PointRule, Any]:
    """Return the rule of points, and their squared distances on the scale of its bandwidth.

    ``numbers`` are those of the rows of ``X`` on which random numbers depend, or None.
    """
    check_weights(weights)
    if isinstance(weights, str) and weights == "local":
        scales = local_scales(d2)
        return PointRule(neighbors, scales, 1.0), locally_scaled(d2, scales, scales)
    if isinstance(weights, str):
        # Estimated from a sample of points with all their distances, since links lack long ones.
        # Points are sampled by their numbers, so that their order does not matter.
        keys = random_block(Kind.SAMPLE, X.shape[0] if numbers is None else numbers, 1)[:, 0]
        squares = sampled_squares(X, metric=neighbors.metric, keys=keys)
        try:
            weights = estimate_epsilon(squares).epsilon
        except DegenerateKernelError as error:
            raise DegenerateKernelError(
                "weights='gaussian' needs points that differ, and all points of X are equal; give "
                "a number as weights, or drop the copies."
            ) from error
    return PointRule(neighbors, None, float(weights)), d2


@dataclass(frozen=True, eq=False)
class NodeRule:
    """Given weights of links.

    Attributes
    ----------
    n_features : int
        Number of nodes.
    nodes : array of shape (n_features,) or None
        Their names.
    fingerprints : array of shape (n_features,) or None
        Numbers by which nodes that got a self-loop are recognized; NaN for others.
    """

    n_features: int
    nodes: Any
    fingerprints: Any
    scales = starts = bandwidth = named_bandwidth = neighbors = None
    is_listed, kind = False, "nodes"

    @classmethod
    def of(cls, W: Any, nodes: Any, *, self_loops: bool) -> tuple[NodeRule, Any]:
        """Return the rule and the affinities of a square matrix of weights."""
        check_square(W, name="W")
        fingerprints, K = None, W
        if self_loops:
            K = with_self_loops(W)
            if K is not W:
                has_loop = np.asarray(W.diagonal()) != 0
                fingerprints = np.where(has_loop, np.nan, row_fingerprints(W))
        check_affinities(K)
        check_symmetric(K, name="W")
        if not self_loops:
            warn_about_zero_diagonal(K)
        return cls(W.shape[0], nodes, fingerprints), K

    def checked(self, X: Any, dtype: Any) -> Any:
        """Return weights of links to the nodes, with the self-loops of known nodes."""
        if is_graph(X):
            X = self._rows_of_nodes(X)
        X = plain_numbers(X).astype(dtype, copy=False)
        _check_width(X, self.n_features)
        if self.fingerprints is not None:
            rows, nodes, shared = known_nodes(X, self.fingerprints)
            warn_about_shared_rows(shared)
            X = add_self_loops(X, rows, nodes)
        check_affinities(X)
        return X

    def entries(self, X: Any) -> Any:
        """Return the weights."""
        return X

    def affinity(self, W: Any, scales: Any, *, first_row: int) -> Any:
        """Return the weights."""
        return W

    def _rows_of_nodes(self, X: Any) -> Any:
        """Return the weights of a graph of the same nodes, in their order."""
        affinity, names = graph_affinity(X)
        places = {name: place for place, name in enumerate(names.tolist())}
        known = [] if self.nodes is None else self.nodes.tolist()
        if places.keys() != set(known):
            raise HeatSketchError(
                "X must have the same nodes as the graph from which the HeatGraph was made; make "
                "another HeatGraph, or pass rows of weights of links to all nodes."
            )
        order = [places[name] for name in known]
        return affinity[order][:, order]

    def links(self, A: Any) -> str:
        """Return the number of links, in words."""
        if not sparse.issparse(A.matrix):
            return "all pairs"
        n_loops = np.count_nonzero(A.matrix.diagonal())
        return f"{(A.matrix.nnz - n_loops) // 2:,} links"


def _check_width(X: Any, n_features: int) -> None:
    if X.shape[1] != n_features:
        raise HeatSketchError(
            f"X has {X.shape[1]} features, but HeatGraph is expecting {n_features} features as "
            "input; pass rows with the same columns."
        )


# --- neighbours searched by another library -----------------------------------------------------


def lists_as_distances(indices: Any, distances: Any) -> sparse.csr_array:
    """Return lists of neighbours as a sparse matrix of distances, with stored zeros."""
    indices, distances = np.asarray(indices), np.asarray(distances)
    if indices.ndim != 2 or indices.dtype.kind not in "iu" or indices.shape != distances.shape:
        raise HeatSketchError(
            "indices and distances must be arrays of one shape, with one row for each point and "
            f"integer indices, got shapes {indices.shape} and {distances.shape} and dtype "
            f"{indices.dtype}."
        )
    check_rows(indices, "indices")
    n_samples = len(indices)
    listed = indices >= 0
    if indices.max() >= n_samples or indices.min() < -1:
        raise HeatSketchError(
            f"indices must be from 0 to {n_samples - 1}, or -1 for no neighbour, got "
            f"{indices.min()} to {indices.max()}."
        )
    rows = np.nonzero(listed)[0]
    indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
    values = plain_numbers(distances[listed][:, np.newaxis])[:, 0]
    matrix = sparse.csr_array((values, indices[listed], indptr), shape=(n_samples, n_samples))
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        same = np.flatnonzero((np.diff(matrix.indices) == 0) & (np.diff(rows) == 0))[0]
        raise HeatSketchError(
            f"indices has row {matrix.indices[same]} twice in row {rows[same]}; list each "
            "neighbour once, and -1 where there is none."
        )
    return matrix


def _check_same_metric(neighbors: Neighbors, graph: sparse.csr_array) -> None:
    """Raise if the median given distance differs from that of the points."""
    rows = np.arange(min(COMPARED, graph.shape[0]))
    places = graph.indptr[rows + 1] - 1  # of one neighbour of each row
    columns, given = graph.indices[places], graph.data[places]
    near = Neighbors(neighbors.points[columns], rows, neighbors.metric)
    ours = np.sqrt(near.distances_to(neighbors.points[rows]).diagonal().astype(np.float64))
    apart = ours > 0
    off = np.abs(given[apart] / ours[apart] - 1)
    if off.size and np.median(off) > DISAGREEMENT:
        place = np.flatnonzero(apart)[np.argsort(off)[len(off) // 2]]
        raise HeatSketchError(
            f"distances has {given[place]:.6g} between rows {place} and {columns[place]}, but in X "
            f"it is {ours[place]:.6g} with metric={neighbors.metric!r}; pass the metric of the "
            "search, and distances that are not squared."
        )
