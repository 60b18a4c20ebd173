"""DiffusionMap: the leading eigenvectors of the heat operator."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.parallel import with_n_jobs
from heatsketch.diffusion._spectral import eigenvalue_powers, leading_eigenpairs
from heatsketch.estimators._base import Count, EmbeddingEstimator, checks_parameters
from heatsketch.heat._checks import warn_about_decay
from heatsketch.heat._graph import Batch
from heatsketch.heat._sketch import weighted

__all__ = ["DiffusionMap"]


class DiffusionMap(EmbeddingEstimator):
    r"""Embed points or graphs by the leading eigenvectors of the heat operator.

    .. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

    The diffusion map of Coifman and Lafon, with the same kernels, normalizations and extension to
    new points as :class:`HeatSketch`. It is the best choice in few dimensions, especially for
    plots, but has no information beyond its ``k`` eigenvectors.

    Parameters
    ----------
    n_components : int, default=2
        Number ``k`` of eigenvectors, not counting the stationary one of each connected component:
        a coordinate shows the shape of a component, and is zero in all others.
    power : float, default=1.0
        Diffusion time ``t``.
    n_neighbors, metric, weights, normalization, weighting, engine, n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    graph_ : HeatGraph
    embedding_ : array of shape (n_samples, n_components)
        The embedding of the training points.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues in decreasing order.
    n_features_in_, feature_names_in_ :
        As for :class:`HeatSketch`.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from heatsketch import DiffusionMap
    >>> X, position = make_swiss_roll(600, random_state=0)
    >>> DiffusionMap(2, n_neighbors=12, power=4).fit_transform(X).shape
    (600, 2)
    """

    eigenvalues_: np.ndarray

    _fitted: ClassVar[tuple[str, ...]] = ("graph_", "eigenvalues_", "embedding_", "_before_last")
    _parameter_constraints: ClassVar[dict] = {
        **EmbeddingEstimator._parameter_constraints,
        "n_components": [Count()],
        "power": [Interval(Real, 0, None, closed="left")],
        "weighting": [StrOptions({"random_walk", "symmetric"})],
    }

    def __init__(
        self,
        n_components=2,
        *,
        power=1.0,
        n_neighbors=15,
        metric="euclidean",
        weights="local",
        normalization="auto",
        weighting="random_walk",
        engine=None,
        n_jobs=None,
        verbose=None,
    ):
        self.n_components = n_components
        self.power = power
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weights = weights
        self.normalization = normalization
        self.weighting = weighting
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Embed points or the nodes of a graph.

        Parameters
        ----------
        X, y, ids :
            As for :meth:`HeatSketch.fit`.

        Returns
        -------
        self
        """
        with self._working(X):
            graph = self._graph_of(X, ids)
            A, parts = graph.local()
            values, vectors = leading_eigenpairs(A, self.n_components, components=parts)
            eigenvalue_powers(values, self.power)  # so that errors name the given power
            # One power is left for the last product, since A v = lambda v.
            before_last = vectors * eigenvalue_powers(values, self.power - 1)
            last = A @ before_last
            bandwidth = graph.rule.named_bandwidth
            warn_about_decay(A, before_last, last, power=self.power, bandwidth=bandwidth)
            embedding = graph.outer(weighted(last, graph, A, self.weighting))
        self._accept(X, graph, eigenvalues_=values, embedding_=embedding, _before_last=before_last)
        return self

    @with_n_jobs
    def transform(self, X: Any) -> np.ndarray:
        """Embed new points by the same rule as the training points.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            As for :meth:`HeatSketch.transform`.

        Returns
        -------
        array of shape (n_new, n_components)
        """
        check_is_fitted(self)

        def embedded(batch: Batch) -> np.ndarray:
            block = batch.times(self._before_last)
            return weighted(block, self.graph_, batch.operator, self.weighting)

        return self._rows(X).each(embedded)
