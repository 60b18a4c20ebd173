r"""From squared distances to affinities: the Gaussian kernel and its bandwidth.

.. math:: K_{ij} = \exp(-d^2_{ij} / \varepsilon)

The diagonal is kept, :math:`K_{ii} = 1`: with it a symmetric ``K`` always has a bistochastic
normalization, no row is empty, and a walk on a bipartite graph does not oscillate for ever.

Other tools write the same kernel otherwise. Our ``epsilon`` is

* ``1 / gamma`` of scikit-learn's ``rbf_kernel``,
* ``4 * epsilon`` of pyDiffMap,
* ``2 * sigma**2`` of destiny and of whoever writes a Gaussian density.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch.exceptions import DegenerateKernelError, HeatSketchError
from heatsketch.row_chunks import multiply_vector

N_BINS = 2000  # of logarithms of squared distances

__all__ = [
    "EpsilonEstimate",
    "estimate_epsilon",
    "gaussian_affinity",
    "gaussian_affinity_rows",
    "lonely_fraction",
    "nearest_squares",
]


def gaussian_affinity(d2: Any, *, epsilon: float) -> Any:
    r"""Gaussian affinity, :math:`K_{ij} = \exp(-d^2_{ij} / \varepsilon)`.

    Parameters
    ----------
    d2 : array or sparse matrix
        Squared distances. In a sparse matrix the stored entries are the neighbours, stored
        zeros included; what is not stored has no affinity.
    epsilon : float
        Bandwidth, in the units of the squared distances.

    Returns
    -------
    array or sparse matrix like ``d2``

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import gaussian_affinity
    >>> gaussian_affinity(np.array([[0.0, 1.0], [1.0, 0.0]]), epsilon=0.5).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """
    if sparse.issparse(d2):
        K = copy(d2)  # which shares the indices
        K.data = np.exp(_exponents(d2.data, epsilon))
        return K
    exponents = _exponents(d2, epsilon)
    # In place: all pairs are large.
    return np.exp(exponents, out=exponents if isinstance(exponents, np.ndarray) else None)


def _exponents(d2: Any, epsilon: float) -> Any:
    if not epsilon > 0:
        raise HeatSketchError(
            f"epsilon={epsilon} must be positive; use estimate_epsilon(d2).epsilon, for instance."
        )
    # In the dtype of d2 an extreme epsilon would round to 0 or to infinity, and 0 / 0 is nan.
    limits = np.finfo(np.result_type(d2.dtype, 1.0))
    epsilon = min(max(float(epsilon), float(limits.tiny)), float(limits.max))
    with np.errstate(over="ignore"):  # exp(-inf) is 0, as it should be
        return d2 / -epsilon


def gaussian_affinity_rows(d2: Any, *, epsilon: float) -> Any:
    """Gaussian affinity of new points to the training points, each row up to a factor.

    The weights of a new point do not depend on such a factor (see
    :mod:`heatsketch.normalization`), so every row is scaled to have its largest affinity
    equal to one. That leaves a training point as it was, and keeps a point far from all
    others from losing its whole row to underflow.

    Parameters
    ----------
    d2 : array or CSR array of shape (n_new, n_points)
    epsilon : float

    Returns
    -------
    array or CSR array of shape (n_new, n_points)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.affinity import gaussian_affinity_rows
    >>> gaussian_affinity_rows(np.array([[1e6, 1e6 + 1]]), epsilon=1.0).round(3)
    array([[1.   , 0.368]])
    """
    nearest = nearest_squares(d2)
    if sparse.issparse(d2):
        shifted = d2.copy()
        shifted.data = d2.data - np.repeat(nearest, np.diff(d2.indptr))
        return gaussian_affinity(shifted, epsilon=epsilon)
    return gaussian_affinity(d2 - nearest[:, np.newaxis], epsilon=epsilon)


def nearest_squares(d2: Any) -> np.ndarray:
    """Return the smallest squared distance in each row, stored ones only if sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.affinity import nearest_squares
    >>> nearest_squares(np.array([[4.0, 1.0], [0.0, 9.0]]))
    array([1., 0.])
    """
    if not sparse.issparse(d2):
        return d2.min(axis=1)
    nearest = np.zeros(d2.shape[0], d2.dtype)
    filled = np.diff(d2.indptr) > 0
    nearest[filled] = np.minimum.reduceat(d2.data, d2.indptr[:-1][filled])
    return nearest


class EpsilonEstimate(NamedTuple):
    r"""A bandwidth, the intrinsic dimension that it implies, and the curve both were read from.

    Attributes
    ----------
    epsilon : float
        The bandwidth.
    dimension : float
        Twice :math:`d \log \sum_{ij} K_{ij} / d \log \varepsilon` there.
    epsilons, dimensions : arrays
        The curve whose highest point this is.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import estimate_epsilon, neighbor_graph
    >>> estimate = estimate_epsilon(neighbor_graph(np.arange(100.0)[:, np.newaxis]))
    >>> estimate.dimension == estimate.dimensions.max()
    np.True_
    """

    epsilon: float
    dimension: float
    epsilons: np.ndarray
    dimensions: np.ndarray


def estimate_epsilon(d2: Any) -> EpsilonEstimate:
    r"""Bandwidth at which the kernel sees the intrinsic dimension best.

    On a manifold of dimension :math:`m` the kernel sum grows as
    :math:`\sum_{ij} \exp(-d^2_{ij}/\varepsilon) \propto \varepsilon^{m/2}` while
    :math:`\varepsilon` lies between the spacing of the points and the size of the manifold, and
    is flat outside. The slope of its logarithm is known in closed form; epsilon is where it is
    steepest, and twice the slope there is the dimension (Coifman, Shkolnisky, Sigworth and
    Singer, 2008).

    Parameters
    ----------
    d2 : array or CSR array of shape (n_rows, n_points)
        Squared distances of some points to all points. A sample of a few hundred rows will do;
        a graph cut to near neighbours gives too small an epsilon.

    Returns
    -------
    EpsilonEstimate
        ``epsilon``, ``dimension``, and the curve ``dimensions`` over ``epsilons``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import estimate_epsilon, neighbor_graph
    >>> angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> estimate = estimate_epsilon(neighbor_graph(circle))
    >>> round(estimate.dimension)
    1
    """
    squares = d2.data if sparse.issparse(d2) else d2.ravel()
    apart = squares[squares > 0].astype(np.float64)
    if not apart.size:
        raise DegenerateKernelError(
            f"epsilon cannot be estimated: d2 of shape {d2.shape} holds no distance above zero, "
            "as if all points were equal; give epsilon as a number, or drop the duplicates."
        )
    # The sum needs each distance to a percent or so: a histogram of their logarithms will do.
    logs = np.log(apart)
    lowest, width = float(logs.min()), max(float(np.ptp(logs)), 1.0) / N_BINS
    counts = np.bincount(((logs - lowest) / width).astype(np.int32), minlength=N_BINS + 1)
    centers = np.exp(lowest + width * np.minimum(np.arange(len(counts)) + 0.5, N_BINS))
    # Beyond these bounds every affinity is 0 or every affinity is 1.
    limits = np.finfo(np.float64)
    lowest, highest = max(apart.min() / 30, limits.tiny), min(apart.max(), limits.max / 32) * 30
    epsilons = np.geomspace(lowest, highest, 300)
    with np.errstate(over="ignore"):
        # Where exp(-scaled) is 0 anyway, keep 0 * inf from being nan.
        scaled = np.minimum(centers / epsilons[:, np.newaxis], 1000)
    affinities = counts * np.exp(-scaled)
    n_zeros = squares.size - apart.size  # affinity one, whatever epsilon is
    slopes = (affinities * scaled).sum(axis=1) / (affinities.sum(axis=1) + n_zeros)
    best = int(np.argmax(slopes))
    return EpsilonEstimate(float(epsilons[best]), 2 * float(slopes[best]), epsilons, 2 * slopes)


def lonely_fraction(K: Any) -> float:
    """Fraction of points whose affinity is to themselves alone, but for a millionth.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.affinity import lonely_fraction
    >>> lonely_fraction(np.array([[1.0, 1e-9, 1e-9], [1e-9, 1.0, 0.5], [1e-9, 0.5, 1.0]]))
    0.3333333333333333
    """
    sums = multiply_vector(K, np.ones(K.shape[1]))
    return float(np.mean(1 - K.diagonal() / sums < 1e-6))
