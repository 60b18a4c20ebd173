"""NearIsometry: the linear map with the least worst-case distortion."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from heatsketch._core.checks import check_points, native_numbers, plain_numbers
from heatsketch._core.parallel import with_n_jobs
from heatsketch._core.progress import show_progress
from heatsketch.estimators._base import (
    MACHINE_CONSTRAINTS,
    Count,
    SavedEstimator,
    check_features,
    checks_parameters,
)
from heatsketch.exceptions import DtypeError
from heatsketch.heat._sketch import seed_of
from heatsketch.near_isometry._distortion import least_distortion_map


class NearIsometry(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    r"""Reduce the dimension by a linear map with small worst-case distortion.

    .. math:: \min_P \; \log L, \qquad
              L = \max_{i \ne j} \frac{|P^T (x_i - x_j)|}{|x_i - x_j|} \Big/
                  \min_{i \ne j} \frac{|P^T (x_i - x_j)|}{|x_i - x_j|}

    Principal components preserve distances on average, but may map some pairs close together.
    Random projections preserve the distances of all pairs, but need many dimensions. This map
    minimizes the distortion of the worst pair. After a :class:`HeatSketch` with many components it
    gives diffusion distances in few dimensions:
    ``make_pipeline(HeatSketch(256), NearIsometry(8))``.

    Parameters
    ----------
    n_components : int, default=2
        Number of output dimensions, at most the number of features.
    random_state : int, RandomState instance or None, default=0
        Seed of the initial maps, and of the samples in which the worst pairs are searched. None
        uses a seed from the operating system, and does not change NumPy's global random state.
    n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map, scaled so that the distances of the ``n_pairs_`` pairs change by at most a factor
        of ``exp(log_distortion_ / 2)``.
    log_distortion_ : float
        Logarithm of the ratio of the largest to the smallest stretch of a distance.
    n_pairs_ : int
        Number of pairs from which ``log_distortion_`` was computed.
    is_certified_ : bool
        Whether these are all pairs of points that differ by more than rounding, which is so for
        up to 50,000 points. With more points the worst pairs are searched, and
        ``log_distortion_`` is a lower bound.
    converged_ : bool
        Whether the last round of the optimization was no significant improvement.
    history_ : array
        The distortion at the start and after each round.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` has any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from heatsketch import HeatSketch, NearIsometry
    >>> X, _ = load_digits(return_X_y=True)
    >>> wide = HeatSketch(64, n_neighbors=15)
    >>> model = make_pipeline(wide, NearIsometry(8)).fit(X[:400])
    >>> model.transform(X[400:]).shape, bool(model[-1].log_distortion_ < 1)
    ((1397, 8), True)
    """

    _fitted: ClassVar[tuple[str, ...]] = (
        *("components_", "log_distortion_", "n_pairs_"),
        *("is_certified_", "converged_", "history_"),
    )
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Count()],
        "random_state": ["random_state"],
        **MACHINE_CONSTRAINTS,
    }

    def __init__(self, n_components=2, *, random_state=0, n_jobs=None, verbose=None):
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    @with_n_jobs
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the map.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        points = _dense_numbers(X, least=2)
        seed = seed_of(self.random_state)
        with show_progress(self.verbose):
            best = least_distortion_map(points, int(self.n_components), seed=seed)
        validate_data(self, native_numbers(X), skip_check_array=True)
        self.components_ = best.components.T.astype(points.dtype)
        self.log_distortion_ = best.log_distortion
        self.n_pairs_ = best.n_pairs
        self.is_certified_ = best.exact
        self.converged_ = best.converged
        self.history_ = best.history
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Apply the map.

        Parameters
        ----------
        X : array or data frame of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new, n_components)
        """
        check_is_fitted(self)
        check_features(self, X)
        points = _dense_numbers(X, least=1)
        return points @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _dense_numbers(X: Any, *, least: int) -> np.ndarray:
    """Return points as a dense array of finite numbers whose squares are in range."""
    X = plain_numbers(X, least=least)
    if sparse.issparse(X):
        raise DtypeError(
            f"X must be dense, got a sparse matrix of shape {X.shape}; pass X.toarray(), or "
            "embed X with HeatSketch first."
        )
    check_points(X, is_new=least == 1)
    return X
