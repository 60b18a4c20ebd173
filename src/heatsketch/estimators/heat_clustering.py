"""HeatClustering: clusters of training points and new points."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.parallel import with_n_jobs
from heatsketch.diffusion._clusters import (
    cluster_centers,
    cluster_rows,
    cluster_vectors,
    nearest_centers,
)
from heatsketch.estimators._base import HeatEmbedding, checks_parameters
from heatsketch.estimators._callbacks import CallbackSupportMixin, fit_progress
from heatsketch.estimators._given_model import fitted_model
from heatsketch.estimators._validation import MACHINE_CONSTRAINTS, Count, check_numbers, seed_of
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError

__all__ = ["HeatClustering"]


class HeatClustering(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    r"""Find clusters of any shape, and label new points.

    .. math:: z_i = \frac{c_i}{|c_i|}, \qquad
              c_i = (v_{i0}, \; \lambda_1 v_{i1}, \ldots, \lambda_{k+1} v_{i,k+1})

    This is spectral clustering (Ng, Jordan and Weiss, 2001) with two more eigenvectors: k-means on
    the normalized rows ``z`` of leading eigenvectors of the heat operator, which are computed from
    the sketch. :meth:`predict` uses the neighbours of a new point among the training points.

    Parameters
    ----------
    n_clusters : int, default=8
        Number ``k`` of clusters.
    model : HeatSketch, DiffusionMap or None, default=None
        Model that provides the graph. A fitted model is not fitted again, so that one graph can
        serve several purposes; of an unfitted model a clone is fitted. None is ``HeatSketch()``.
        The graph must be in memory.
    random_state : int, RandomState instance or None, default=0
        Seed of the initializations of k-means.
    n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    labels_ : array of int of shape (n_samples,)
        Clusters of the training points, numbered from 0.
    cluster_centers_ : array of shape (n_clusters, n_clusters + 2)
        Cluster centres in the space of the rows ``z``.
    vectors_ : array of shape (n_samples, n_clusters + 1)
        The eigenvectors, in the order of ``model_.heat_operator_``.
    model_ : HeatSketch or DiffusionMap
        The fitted model.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` has any.

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

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Count()],
        "model": [HeatEmbedding, None],
        "random_state": ["random_state"],
        **MACHINE_CONSTRAINTS,
    }

    def __init__(self, n_clusters=8, model=None, *, random_state=0, n_jobs=None, verbose=None):
        self.n_clusters = n_clusters
        self.model = model
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    @with_n_jobs
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Points in a form that ``model`` accepts. None uses the points that ``model`` was fitted
            to.
        y : ignored

        Returns
        -------
        self
        """
        with fit_progress(self):
            model, n_clusters = fitted_model(self, X, HeatSketch()), int(self.n_clusters)
            if n_clusters > len(model.embedding_):
                raise HeatSketchError(
                    f"n_clusters={n_clusters} is more than the n_samples={len(model.embedding_)} "
                    "points; use fewer clusters.",
                    n_clusters=n_clusters,
                )
            A = model._training_operator("fit")
            self.vectors_ = cluster_vectors(A, model._spectral_block(A), n_clusters)
            self.model_ = model
            rows = model._in_given_order(self._rows(A))
            self.cluster_centers_ = cluster_centers(rows, n_clusters, seed_of(self.random_state))
        self.labels_ = nearest_centers(rows, self.cluster_centers_)
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
        X = check_numbers(self, X, reset=False)
        model = self.model_._as_fitted()
        model.__dict__.pop("feature_names_in_", None)  # names were checked above
        rows = model._of_new_rows("predict", X, self._rows)
        return nearest_centers(rows, self.cluster_centers_)

    def _rows(self, A: Any, *_: Any) -> np.ndarray:
        """Return the rows ``z`` that k-means clusters, for rows of the heat operator."""
        return cluster_rows(A, self.vectors_, float(self.model_.stationary_length_))

    # --- scikit-learn -------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        given = () if self.model is None else (self.model.metric, self.model.affinity)
        tags.input_tags.pairwise = "precomputed" in given
        return tags
