"""DiffusionMap: the leading eigenvectors of the heat operator."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from heatsketch._core.parallel import with_n_jobs
from heatsketch._core.partitioned import is_lazy
from heatsketch.diffusion._normalization import row_sums
from heatsketch.diffusion._operator import HeatOperator
from heatsketch.diffusion._spectral import eigenvalue_powers, leading_eigenpairs
from heatsketch.engines import Engine
from heatsketch.estimators._base import HeatEmbedding, checks_parameters
from heatsketch.estimators._warnings import warn_about_decay
from heatsketch.exceptions import HeatSketchError

__all__ = ["DiffusionMap"]


class DiffusionMap(HeatEmbedding):
    r"""Embed points by the leading eigenvectors of the heat operator.

    .. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

    The diffusion map of Coifman and Lafon, with the same kernels, normalizations and extension to
    new points as :class:`HeatSketch`. It is the best choice in few dimensions, especially for
    plots, but loses everything that its ``k`` eigenvectors do not represent.

    Parameters
    ----------
    n_components : int, default=2
        Number ``k`` of eigenvectors, not counting the stationary one of each connected component:
        a coordinate shows the shape of a component, and is zero in all others.
    power : float, default=1.0
        Diffusion time ``t``.
    epsilon, n_neighbors, neighbors, metric, affinity :
        As for :class:`HeatSketch`.
    self_loops, normalization, weighting, engine :
        As for :class:`HeatSketch`.
    n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding of the training points.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues in decreasing order.
    before_last_ : array of shape (n_samples, n_components)
        Eigenvectors times eigenvalues to the power ``t - 1``, by which :meth:`transform`
        multiplies.
    epsilon_, epsilon_estimate_, heat_operator_, scaling_ :
        As for :class:`HeatSketch`.
    n_connected_components_, component_labels_ :
        As for :class:`HeatSketch`.
    neighbors_, order_, row_names_, stationary_length_, n_features_in_, feature_names_in_ :
        As for :class:`HeatSketch`.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from heatsketch import DiffusionMap
    >>> X, position = make_swiss_roll(600, random_state=0)
    >>> DiffusionMap(2, n_neighbors=12, power=4).fit_transform(X).shape
    (600, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **HeatEmbedding._parameter_constraints,
        "power": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components=2,
        *,
        power=1.0,
        epsilon="local",
        n_neighbors=15,
        neighbors=None,
        metric="euclidean",
        affinity="gaussian",
        self_loops=True,
        normalization="auto",
        weighting="random_walk",
        engine=None,
        n_jobs=None,
        verbose=None,
    ):
        self.n_components = n_components
        self.power = power
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.metric = metric
        self.affinity = affinity
        self.self_loops = self_loops
        self.normalization = normalization
        self.weighting = weighting
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    @with_n_jobs
    def fit(self, X: Any, y: Any = None, *, row_ids: Any = None) -> Self:
        """Embed the points of ``X``.

        Parameters
        ----------
        X, y, row_ids :
            As for :meth:`HeatSketch.fit`.

        Returns
        -------
        self
        """
        with self._fitting() as (model, engine):
            X, ids = model._read(engine, X, row_ids)
            K = model._affinity(engine, X, ids)
            sums = row_sums(K)
            model._check_graph(K, sums, X)
            del X
            A = model._operator(engine, K, sums, ids)
            del K
            model._embed(engine, A)
            model.heat_operator_ = model._remembering_points(A)
        return self

    def _embed(self, engine: Engine, A: HeatOperator) -> None:
        """Find eigenvectors, and multiply each by a power of its eigenvalue."""
        if is_lazy(A.stationary):
            raise HeatSketchError(
                f"engine={self.engine!r} keeps no eigenvectors; use HeatSketch, or engine=None."
            )
        self.eigenvalues_, vectors = leading_eigenpairs(
            A, self.n_components, components=self._components(A)
        )
        eigenvalue_powers(self.eigenvalues_, self.power)  # so that errors name the given power
        # One power is left for the last product, since A v = lambda v.
        self.before_last_ = vectors * eigenvalue_powers(self.eigenvalues_, self.power - 1)
        last = A @ self.before_last_
        warn_about_decay(A, self.before_last_, last, power=self.power, epsilon=self._named_epsilon)
        self.embedding_ = engine.in_given_order(self._finish(last, A), self.order_)

    def _finish(self, last: np.ndarray, A: HeatOperator, labels: Any = None) -> np.ndarray:
        return self._weighted(last, A)
