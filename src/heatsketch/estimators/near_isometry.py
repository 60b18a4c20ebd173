"""NearIsometry: the linear map with the least worst-case distortion."""

from __future__ import annotations

import secrets
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.parallel import with_n_jobs
from heatsketch.diffusion._distortion import least_distortion_map
from heatsketch.estimators._base import checks_parameters
from heatsketch.estimators._callbacks import CallbackSupportMixin, fit_progress
from heatsketch.estimators._validation import MACHINE_CONSTRAINTS, Count, check_numbers, check_scale
from heatsketch.exceptions import DtypeError
from heatsketch.persistence._save_load import SaveMixin

__all__ = ["NearIsometry"]


class NearIsometry(
    SaveMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Reduce the dimension by a linear map with small worst-case distortion.

    .. math:: \min_P \; \log L, \qquad
              L = \max_{i \ne j} \frac{|P^T (x_i - x_j)|}{|x_i - x_j|} \Big/
                  \min_{i \ne j} \frac{|P^T (x_i - x_j)|}{|x_i - x_j|}

    Principal components preserve distances on average, but may map some pairs close together.
    Random projections treat all pairs alike, but need many dimensions. This map minimizes the
    distortion of the worst pair. After a :class:`HeatSketch` with many components it gives
    diffusion distances in few dimensions: ``make_pipeline(HeatSketch(256), NearIsometry(8))``.

    Parameters
    ----------
    n_components : int, default=2
        Number of output dimensions, at most the number of features.
    random_state : int, RandomState instance or None, default=0
        Seed of the initial maps of the optimization, and of the samples in which pairs with large
        distortion are searched. None draws a seed from the operating system, without changing
        NumPy's global random state.
    n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map, scaled so that the distance of none of the ``n_pairs_`` pairs changes by more
        than a factor ``exp(log_distortion_ / 2)``.
    log_distortion_ : float
        Logarithm of the ratio of the largest to the smallest stretch of a distance.
    n_pairs_ : int
        Number of pairs from which ``log_distortion_`` was computed.
    is_certified_ : bool
        Whether these are all pairs of distinct points, as is the case up to 50,000 points. With
        more points the worst pairs are searched, and ``log_distortion_`` is a lower bound.
    converged_ : bool
        Whether the last round of the optimization brought no significant improvement.
    history_ : array
        The distortion at the start and after each round.
    parameters_ : dict
        Values of the parameters except ``n_jobs`` and ``verbose`` at the time of :meth:`fit`.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` has any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from heatsketch import HeatSketch
    >>> from heatsketch.estimators.near_isometry import NearIsometry
    >>> X, _ = load_digits(return_X_y=True)
    >>> wide = HeatSketch(64, n_neighbors=15)
    >>> model = make_pipeline(wide, NearIsometry(8)).fit(X[:400])
    >>> model.transform(X[400:]).shape, bool(model[-1].log_distortion_ < 1)
    ((1397, 8), True)
    """

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
        X = self._check(X, reset=True)
        with fit_progress(self):
            found = least_distortion_map(X, int(self.n_components), seed=_seed(self.random_state))
        self.components_ = found.components.T.astype(X.dtype)
        self.log_distortion_ = found.log_distortion
        self.n_pairs_ = found.n_pairs
        self.is_certified_ = found.exact
        self.converged_ = found.converged
        self.history_ = found.history
        self.parameters_ = self._plain_parameters()
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
        return self._check(X, reset=False) @ self.components_.T

    def _check(self, X: Any, *, reset: bool) -> np.ndarray:
        X = check_numbers(self, X, reset=reset)
        if sparse.issparse(X):
            raise DtypeError(
                f"X is sparse, of shape {X.shape}, and its image is not; pass X.toarray(), or "
                "embed it first, with HeatSketch."
            )
        check_scale(X, dtype=X.dtype, reset=reset)
        return X

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _seed(random_state: Any) -> int:
    if random_state is None:
        return secrets.randbits(31)
    # Integers are not used as seeds directly, so that the maps stay those of earlier versions.
    return int(check_random_state(random_state).randint(2**31))
