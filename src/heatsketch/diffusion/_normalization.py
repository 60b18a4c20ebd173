r"""Normalization of an affinity matrix to a heat kernel.

All normalizations have the form ``A = diag(s) K diag(s)``, and use one iteration,

.. math:: d_{i+1} = K (1 / d_i), \quad d_0 = 1, \quad s = 1 / \sqrt{d_i \, d_{i+1}}.

With :math:`i = 0`, ``A`` is the random walk on a graph, in its symmetric form. With :math:`i = 1`,
it is the symmetric normalization. Iterated until :math:`d_i` no longer changes, it is the
bistochastic normalization. For any :math:`i`, :math:`\sqrt{d_{i+1} / d_i}` is an eigenvector of
``A`` with eigenvalue one: the stationary direction. This module computes the iterates; it never
forms ``A``, and requires only ``K @ vector``.

Iterates are float64 for any dtype of ``K``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_dtype, check_places, check_rows
from heatsketch._core.partitioned import computed, from_each_block, ones_for
from heatsketch._core.row_chunks import multiply_vector
from heatsketch.exceptions import ScalingError, ScalingFailure


@dataclass(frozen=True)
class Scaling:
    r"""Two consecutive iterates, which determine the weights of any row.

    Called with the affinity of the training points, it returns their weights; called with the
    affinity of new points to the training points, it returns those of the new points. A factor of
    a row of the affinity cancels in ``s * K``, unless ``previous`` is None.

    Attributes
    ----------
    previous, current : arrays of shape (n_points,)
        :math:`d_{i-1}` and :math:`d_i`; ``previous`` is None if :math:`d_i = d_0 = 1`.
    n_iter : int
        Number of sweeps.
    residual : float
        Largest deviation of a row sum from one in the last sweep; NaN for normalizations other
        than the bistochastic one.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import Scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> scaling = Scaling(np.ones(2), K @ np.ones(2), n_iter=1, residual=np.nan)
    >>> s, stationary = scaling(K)
    >>> s * (K @ (s * stationary))  # A does not change the stationary direction
    array([0.81649658, 0.81649658])
    >>> stationary
    array([0.81649658, 0.81649658])
    """

    previous: Any
    current: Any
    n_iter: int
    residual: float

    def at(self, places: np.ndarray) -> Scaling:
        """Return the scaling of some points, in memory."""
        previous = None if self.previous is None else np.asarray(self.previous[places])
        return replace(self, previous=previous, current=np.asarray(self.current[places]))

    def __call__(self, K: Any, *, is_training: bool = False) -> tuple[Any, Any]:
        """Return the weights ``s`` and the stationary direction of the rows of ``K``.

        For the training points, ``K (1 / previous)`` is ``current`` and is not computed again.
        """
        check_places(K, "K")
        later = multiply_vector(K, 1 / self.current)
        if self.previous is None:
            earlier = 1 + 0 * later
        else:
            earlier = self.current if is_training else multiply_vector(K, 1 / self.previous)
        # The product of two square roots, since earlier * later may overflow.
        return 1 / (np.sqrt(earlier) * np.sqrt(later)), np.sqrt(later / earlier)


def degree_scaling(K: Any, *, sums: Any = None) -> Scaling:
    r"""Normalize as a random walk on a graph: divide by the degrees :math:`q = K 1`.

    The heat operator is :math:`A = \mathrm{diag}(q^{-1/2}) \, K \, \mathrm{diag}(q^{-1/2})`. Use it
    for graphs, where the degree of a node is a property of the data, not of the sampling.

    Parameters
    ----------
    K : object of shape (n, n) that supports ``K @ vector``
        Symmetric, nonnegative.
    sums : vector of shape (n,), optional
        ``K 1``, if it is known.

    Returns
    -------
    Scaling

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import degree_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> s, stationary = degree_scaling(K)(K)
    >>> s[:, np.newaxis] * K * s
    array([[0.66666667, 0.33333333],
           [0.33333333, 0.66666667]])
    """
    _checked_sums(K, sums)
    return Scaling(None, ones_for(K), n_iter=1, residual=np.nan)


def symmetric_scaling(K: Any, *, sums: Any = None) -> Scaling:
    r"""Algorithm 1: divide by the density twice, then normalize symmetrically.

    With row sums :math:`q = K 1` and :math:`v = q^{-1} K q^{-1} 1`, the heat operator is
    :math:`A = \mathrm{diag}(1 / q\sqrt{v}) \, K \, \mathrm{diag}(1 / q\sqrt{v})`.

    Parameters
    ----------
    K : object of shape (n, n) that supports ``K @ vector``
        Symmetric, nonnegative.
    sums : vector of shape (n,), optional
        ``K 1``, if it is known.

    Returns
    -------
    Scaling

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> s, stationary = symmetric_scaling(K)(K)
    >>> A = s[:, np.newaxis] * K * s
    >>> bool(np.allclose(A @ stationary, stationary))
    True
    """
    sums = _checked_sums(K, sums)
    return Scaling(ones_for(K), sums, n_iter=1, residual=np.nan)


def bistochastic_scaling(
    K: Any, *, sums: Any = None, tol: float = 1e-12, max_iter: int = 1000
) -> Scaling:
    r"""Algorithm 2: scale until every row sums to one.

    The paper's loop is replaced by its damped form

    .. math:: d \leftarrow \sqrt{d \cdot K (1 / d)},

    which has the same limit. For a positive semidefinite ``K`` each sweep at least halves the
    error, while the plain loop may need tens of thousands of sweeps.

    Parameters
    ----------
    K : object of shape (n, n) that supports ``K @ vector``
        Symmetric, nonnegative, preferably with a positive diagonal.
    sums : vector of shape (n,), optional
        ``K 1``, if it is known.
    tol : float, default=1e-12
        Largest deviation of a row sum from one.
    max_iter : int, default=1000
        Maximum number of sweeps.

    Returns
    -------
    Scaling
        With the number of sweeps and the residual reached.

    Raises
    ------
    ScalingError
        If the iteration does not converge, with ``reason``, ``residual`` and ``n_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import bistochastic_scaling
    >>> K = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.5], [0.1, 0.5, 1.0]])
    >>> scaling = bistochastic_scaling(K)
    >>> s, stationary = scaling(K)
    >>> (s[:, np.newaxis] * K * s).sum(axis=0).round(9)
    array([1., 1., 1.])
    >>> scaling.n_iter < 60
    True
    """
    # Start from the first damped iterate, which is exact for isolated points.
    d = np.sqrt(_checked_sums(K, sums))
    residual = np.inf
    for n_iter in range(2, max_iter + 1):
        following = multiply_vector(K, 1 / d)
        residual = _check_sums(following, d, n_iter)
        if residual <= tol:
            return Scaling(d, following, n_iter, residual)
        d = computed(K, np.sqrt(d) * np.sqrt(following))
    raise ScalingError(ScalingFailure.SWEEPS_EXHAUSTED, residual, max_iter)


# Names of the normalizations in estimators and experiments.
SCALINGS = {
    "degree": degree_scaling,
    "symmetric": symmetric_scaling,
    "bistochastic": bistochastic_scaling,
}


def row_sums(K: Any) -> Any:
    """Return :math:`K 1`, in float64."""
    return multiply_vector(K, ones_for(K))


def _checked_sums(K: Any, sums: Any) -> Any:
    """Return :math:`K 1`, computed unless known, and checked."""
    _check_matrix(K)
    if sums is None:
        sums = row_sums(K)
    _check_sums(sums, sums, n_iter=1)
    return sums


def _check_matrix(K: Any) -> None:
    """Raise if ``K`` is not a real matrix; any type with ``K @ vector`` is valid."""
    if isinstance(K, np.ndarray) or sparse.issparse(K):
        check_dtype(K.dtype, "K")
    check_places(K, "K")
    check_rows(K, "K")


# The iteration has diverged if scaling factors are above this: one more sweep could overflow.
_DIVERGED = 1e100


def _check_sums(sums: Any, d: Any, n_iter: int) -> float:
    """Return the residual; raise unless all sums are positive, finite and not too large."""
    lows, highs, residuals = zip(*from_each_block(_extremes, sums, d), strict=True)
    # np.min, unlike min, propagates NaN.
    low, high = float(np.min(lows)), float(np.max(highs))
    residual = float(np.max(residuals)) if n_iter > 1 else np.inf
    if low > 1 / _DIVERGED and high < _DIVERGED:
        return residual
    if n_iter > 1:
        reason = ScalingFailure.DIVERGED
    elif low == 0:
        reason = ScalingFailure.EMPTY_ROW
    else:
        reason = ScalingFailure.NOT_FINITE
    raise ScalingError(reason, residual, n_iter)


def _extremes(sums: np.ndarray, d: np.ndarray) -> tuple[float, float, float]:
    with np.errstate(invalid="ignore"):  # the caller raises for empty rows
        residual = np.max(np.abs(sums / d - 1))
    return float(np.min(sums)), float(np.max(sums)), float(residual)
