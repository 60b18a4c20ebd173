"""HeatClustering: clusters of training points and new points."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.parallel import with_n_jobs
from heatsketch.estimators._base import Count, HeatEstimator, checks_parameters
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat._graph import Batch
from heatsketch.heat._sketch import seed_of
from heatsketch.uses._clusters import (
    cluster_centers,
    cluster_rows,
    cluster_vectors,
    nearest_centers,
)

__all__ = ["HeatClustering"]


class HeatClustering(ClusterMixin, HeatEstimator):
    r"""Find clusters of any shape, and label new points.

    .. math:: z_i = \frac{c_i}{|c_i|}, \qquad
              c_i = (v_{i0}, \; \lambda_1 v_{i1}, \ldots, \lambda_{k+1} v_{i,k+1})

    This is spectral clustering (Ng, Jordan and Weiss, 2001) with two more eigenvectors: k-means on
    the normalized rows ``z`` of leading eigenvectors of the heat operator. :meth:`predict` uses the
    neighbours of a new point among the training points.

    Parameters
    ----------
    n_clusters : int, default=8
        Number ``k`` of clusters.
    n_neighbors, metric, weights, normalization, engine, n_jobs, verbose :
        As for :class:`HeatSketch`.
    random_state : int, RandomState instance or None, default=0
        Seed of the initializations of k-means.

    Attributes
    ----------
    graph_ : HeatGraph
    labels_ : array of int of shape (n_samples,)
        Clusters of the training points, numbered from 0.
    cluster_centers_ : array of shape (n_clusters, n_clusters + 2)
        Cluster centres in the space of the rows ``z``.
    n_features_in_, feature_names_in_ :
        As for :class:`HeatSketch`.

    Examples
    --------
    Two interleaved half circles:

    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from heatsketch import HeatClustering
    >>> X, moon = make_moons(500, noise=0.1, random_state=0)
    >>> model = HeatClustering(2).fit(X)
    >>> round(float(adjusted_rand_score(moon, model.labels_)), 2)
    0.99
    >>> bool((model.predict(X[:100]) == model.labels_[:100]).all())
    True
    """

    labels_: np.ndarray
    cluster_centers_: np.ndarray

    _fitted: ClassVar[tuple[str, ...]] = ("graph_", "labels_", "cluster_centers_", "_vectors")
    _parameter_constraints: ClassVar[dict] = {
        **HeatEstimator._parameter_constraints,
        "n_clusters": [Count()],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_neighbors=15,
        metric="euclidean",
        weights="local",
        normalization="auto",
        random_state=0,
        engine=None,
        n_jobs=None,
        verbose=None,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weights = weights
        self.normalization = normalization
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X, y, ids :
            As for :meth:`HeatSketch.fit`.

        Returns
        -------
        self
        """
        with self._working(X):
            graph, n_clusters = self._graph_of(X, ids), int(self.n_clusters)
            if n_clusters > graph.n_samples:
                raise HeatSketchError(
                    f"n_clusters must be at most n_samples={graph.n_samples}, got {n_clusters}."
                )
            vectors = cluster_vectors(graph, n_clusters)
            A, _ = graph.local()
            rows = graph.outer(cluster_rows(A, vectors, graph.stationary_length))
            centers = cluster_centers(rows, n_clusters, seed_of(self.random_state))
            labels = nearest_centers(rows, centers)
        self._accept(X, graph, labels_=labels, cluster_centers_=centers, _vectors=vectors)
        return self

    @with_n_jobs
    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters of points.

        Training points get their clusters in ``labels_``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            Training points or new points, as for :meth:`HeatSketch.transform`.

        Returns
        -------
        array of int of shape (n_new,)
        """
        check_is_fitted(self)
        length = self.graph_.stationary_length

        def rows(batch: Batch) -> np.ndarray:
            return cluster_rows(batch.operator, batch.of(self._vectors), length)

        return nearest_centers(self._rows(X).each(rows), self.cluster_centers_)
