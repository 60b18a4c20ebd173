"""The estimator of the map that distorts distances least."""

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
    r"""Take wide coordinates to a few, by the linear map that distorts no distance much.

    .. math:: \min_P \; \log L, \qquad
              L = \max_{i \ne j} \frac{|P^T (x_i - x_j)|}{|x_i - x_j|} \Big/
                  \min_{i \ne j} \frac{|P^T (x_i - x_j)|}{|x_i - x_j|}

    Principal components keep distances on average, and let some pairs fall together; random
    projections treat all pairs alike, and need many dimensions. This map is chosen for its worst
    pair. Behind a wide :class:`HeatSketch` it gives diffusion distances in few dimensions:
    ``make_pipeline(HeatSketch(256), NearIsometry(8))``.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions to keep, at most as many as there are features.
    random_state : int, RandomState instance or None, default=0
        Of the starts of the descent, and of the samples in which hard pairs are looked for. None
        draws a seed from the operating system, and leaves NumPy's global state alone.
    n_jobs, verbose :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map. Stretches lie evenly around one: no distance between training points changes by
        more than a factor ``exp(log_distortion_ / 2)``.
    log_distortion_ : float
        Logarithm of the largest stretch over the least.
    n_pairs_ : int
        Pairs that it was read from.
    is_certified_ : bool
        Whether these are all pairs of different points, as they are up to 50,000 points. Beyond,
        the worst ones are searched, and ``log_distortion_`` is a lower bound.
    converged_ : bool
        Whether the last round of the descent gained nothing worth another one.
    history_ : array
        The distortion after each round.
    parameters_ : dict
        The parameters but ``n_jobs`` and ``verbose``, as they were in :meth:`fit`.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Their names, where ``X`` has any.

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
    # A number is not its own seed here: the maps that it leads to shall stay what they were.
    return int(check_random_state(random_state).randint(2**31))
