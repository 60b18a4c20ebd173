r"""Estimates of kernel bandwidth and intrinsic dimension from distances.

.. math:: m(\varepsilon) = \frac{1}{n} \sum_i
          2 \, \frac{d \log \sum_j \exp(-d^2_{ij} / \varepsilon)}{d \log \varepsilon}

On a manifold of dimension :math:`m` each sum grows as :math:`\varepsilon^{m/2}`, so the curve comes
close to :math:`m`. There are two deviations. The curve is lower if ``epsilon`` is so small that
points have no neighbours, or so large that the kernel covers the whole manifold. It is higher where
the manifold bends, since chords are shorter than paths along it: up to 1.2 on a circle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, check_rows, plain_distances
from heatsketch.diffusion._affinity import entries_of_rows
from heatsketch.exceptions import DegenerateKernelError
from heatsketch.graph._neighbors import checked_points, squared_distances

EPSILON_ROWS = 1000  # sampled points
EPSILON_POINTS = 200_000  # largest number of points to which their distances are computed
EPSILON_ENTRIES = 5_000_000  # largest number of these distances

MOST_ROWS = 10_000  # rows used of given squared distances
ROWS_AT_A_TIME = 1000  # rows whose histograms are in memory at a time
N_BINS = 1000  # of logarithms of squared distances
N_EPSILONS = 400  # points of the curve
# The peak extends to where the curve falls below this fraction of its maximum.
PEAK_EDGE = 0.7
# Epsilon is divided by the overshoot of the curve to this power: by 1.17**6 = 2.5 on a circle.
OVERSHOOT_POWER = 6


class EpsilonEstimate(NamedTuple):
    r"""Bandwidth, intrinsic dimension, and the curve from which they are read.

    Attributes
    ----------
    epsilon : float
        The bandwidth.
    dimension : float
        Twice :math:`d \log \sum K_{ij} / d \log \varepsilon` at the bandwidth, over pairs at
        positive distance; at most the height of the peak of the curve.
    epsilons, dimensions : arrays
        The curve: twice the slope of the logarithm of a point's kernel sum (which includes the
        point itself), averaged over the points. It falls to zero on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import estimate_epsilon
    >>> estimate = estimate_epsilon(np.arange(100.0)[:, np.newaxis], metric="euclidean")
    >>> peak = estimate.epsilons[np.argmax(estimate.dimensions)]
    >>> np.isclose(estimate.epsilon, peak, rtol=1e-10)  # a line does not bend
    np.True_
    """

    epsilon: float
    dimension: float
    epsilons: np.ndarray
    dimensions: np.ndarray


def estimate_epsilon(X: Any, *, metric: Any = None) -> EpsilonEstimate:
    r"""Estimate the largest bandwidth at which the intrinsic dimension shows.

    On a manifold of dimension :math:`m` kernel sums grow as
    :math:`\sum_j \exp(-d^2_{ij}/\varepsilon) \propto \varepsilon^{m/2}` while
    :math:`\varepsilon` is between the spacing of the points and the size of the manifold, and are
    constant outside. The bandwidth is where the slope is largest (Coifman, Shkolnisky, Sigworth
    and Singer, 2008).

    On a closed curve the slope is largest where the kernel reaches across the curve; a kernel half
    as wide does not. So epsilon is corrected by the ratio of the slope there to the slope at half
    the width: if the ratio is above one, epsilon is divided by its sixth power.

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_points), or points
        Squared distances of some points to all points. A sample of a few hundred rows is enough;
        of more than 10,000 rows only every second, third, ... is used. A graph of nearest
        neighbours gives an epsilon that is too small.
    metric : str, callable or None, default=None
        If given, ``X`` holds points, one per row, and this is their metric: a name from
        ``METRICS``, ``"precomputed"`` for distances, or a function of two points. If there are
        many points a sample is used, always the same one.

    Returns
    -------
    EpsilonEstimate
        ``epsilon``, ``dimension``, and the curve ``dimensions`` over ``epsilons``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import estimate_epsilon
    >>> from heatsketch.graph import neighbor_graph
    >>> angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> round(estimate_epsilon(neighbor_graph(circle)).dimension, 1)
    1.1
    >>> round(estimate_epsilon(circle, metric="euclidean").epsilon, 1)
    0.5
    """
    if metric is None:
        X = _rows(plain_distances(X, "X"))
        check_rows(X)
        check_finite(X)
    else:
        X = checked_points(X, metric)
        keys = np.random.default_rng(0).random(X.shape[0])
        X = sampled_squares(X, metric=metric, keys=keys)
    X = X[:: max(1, -(-X.shape[0] // MOST_ROWS))]
    row_starts, squares = (X.indptr, X.data) if sparse.issparse(X) else entries_of_rows(X)
    if not (squares > 0).any():
        raise DegenerateKernelError(
            f"epsilon cannot be estimated, since all distances in X (shape {X.shape}) are zero; "
            "set epsilon to a number, or drop duplicates."
        )
    return _read_curve(squares, row_starts)


def sampled_squares(X: Any, *, metric: Any, keys: np.ndarray) -> Any:
    """Squared distances of a sample of points, for :func:`estimate_epsilon`.

    The points with the smallest keys are sampled, so that the order of points does not matter.
    Distances are computed to all points, or to a larger sample.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_points, n_features)
        Points; with ``metric="precomputed"`` their distances, dense or sparse.
    metric : str or callable
        A name from ``METRICS``, ``"precomputed"``, or a function of two points.
    keys : array of shape (n_points,)
        A random number for each point.

    Returns
    -------
    array of shape (n_drawn, n_points)
        A CSR array if sparse distances were given. At most ``EPSILON_ENTRIES`` in all, of at most
        ``EPSILON_ROWS`` points to at most ``EPSILON_POINTS``.
    """
    n_columns = min(X.shape[0], EPSILON_POINTS)
    drawn = _rows(X[_smallest(keys, min(EPSILON_ROWS, EPSILON_ENTRIES // n_columns))])
    if metric != "precomputed" and n_columns < X.shape[0]:
        X = X[_smallest(keys, n_columns)]
    return squared_distances(drawn, _rows(X), metric=metric)


def _smallest(keys: np.ndarray, n_drawn: int) -> np.ndarray:
    """Return the indices of the smallest keys, in ascending order."""
    if n_drawn >= len(keys):
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, n_drawn)[:n_drawn])


# --- the curve ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bins:
    """Bins for logarithms of squared distances; sums need an accuracy of a few percent only."""

    lowest: float
    width: float

    @property
    def sizes(self) -> np.ndarray:
        """Squared distances in the middle of the bins."""
        with np.errstate(over="ignore"):
            return np.exp(self.lowest + self.width * (np.arange(N_BINS) + 0.5))

    def counts(self, squares: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each row the counts per bin, and the number of zeros."""
        rows = np.repeat(np.arange(len(lengths)), lengths)
        is_apart = squares > 0
        logs = np.log(squares[is_apart], dtype=np.float64)
        bins = np.minimum(((logs - self.lowest) / self.width).astype(np.intp), N_BINS - 1)
        places = rows[is_apart] * N_BINS + bins
        counts = np.bincount(places, minlength=len(lengths) * N_BINS).reshape(-1, N_BINS)
        # The distance of each point to itself is zero, even if it is not stored.
        return counts.astype(np.float64), np.maximum(lengths - counts.sum(axis=1), 1)


def _read_curve(squares: np.ndarray, row_starts: np.ndarray) -> EpsilonEstimate:
    """Compute the curve and read the estimates; ``row_starts`` is an ``indptr``."""
    apart = squares[squares > 0]
    smallest, largest = float(apart.min()), float(apart.max())
    lowest, highest = np.log([smallest, largest])
    bins = _Bins(lowest, max(highest - lowest, 1.0) / N_BINS)
    # Outside these bounds all affinities are 0, or all are 1.
    limits = np.finfo(np.float64)
    bounds = max(smallest / 30, limits.tiny), min(largest, limits.max / 32) * 30
    epsilons = np.geomspace(*bounds, N_EPSILONS)
    dimensions, counts = _mean_dimensions(squares, row_starts, bins, epsilons)
    first, peak = _peak(dimensions)
    epsilon = float(epsilons[peak])
    overshoot = _dimension(counts, bins, epsilon) / _dimension(counts, bins, epsilon / 4)
    # Near-duplicate pairs can look like an overshoot; epsilon stays within the peak.
    epsilon = max(epsilon / max(overshoot, 1.0) ** OVERSHOOT_POWER, float(epsilons[first]))
    # The slope is too large for regularly spaced points, which have no small distances.
    dimension = min(_dimension(counts, bins, epsilon), float(dimensions[peak]))
    return EpsilonEstimate(_rounded(epsilon), dimension, epsilons, dimensions)


def _rounded(epsilon: float) -> float:
    """Round to 36 bits, since the last bits differ between math libraries."""
    mantissa, exponent = math.frexp(epsilon)
    return math.ldexp(round(math.ldexp(mantissa, 36)), exponent - 36)


def _mean_dimensions(
    squares: np.ndarray, row_starts: np.ndarray, bins: _Bins, epsilons: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the mean slope of rows, and the total count in each bin."""
    affinities, growths = _kernel(bins, epsilons)
    n_rows = len(row_starts) - 1
    dimensions, all_counts = np.zeros(len(epsilons)), np.zeros(N_BINS)
    for start in range(0, n_rows, ROWS_AT_A_TIME):
        starts = row_starts[start : start + ROWS_AT_A_TIME + 1]
        counts, n_zeros = bins.counts(squares[starts[0] : starts[-1]], np.diff(starts))
        slopes = (counts @ growths) / (counts @ affinities + n_zeros[:, np.newaxis])
        dimensions += 2 * slopes.sum(axis=0) / n_rows
        all_counts += counts.sum(axis=0)
    return dimensions, all_counts


def _dimension(counts: np.ndarray, bins: _Bins, epsilon: float) -> float:
    """Return twice the slope of the kernel sum over pairs at positive distance."""
    affinities, growths = _kernel(bins, np.array([epsilon]))
    return float(2 * (counts @ growths)[0] / (counts @ affinities)[0])


def _kernel(bins: _Bins, epsilons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the affinity in each bin, and its derivative in log epsilon."""
    with np.errstate(over="ignore"):
        # exp(-1000) is 0; a larger value could give 0 * inf, which is NaN.
        scaled = np.minimum(bins.sizes[:, np.newaxis] / epsilons, 1000)
    affinities = np.exp(-scaled)
    return affinities, affinities * scaled


def _peak(curve: np.ndarray) -> tuple[int, int]:
    """Return the start of the highest peak, and the position of its last local maximum.

    Noise has a maximum on the left, which is often higher; the signal is the last maximum of the
    same peak. Clusters that are far apart have a separate peak on the right.
    """
    low = np.flatnonzero(curve < PEAK_EDGE * curve.max())
    low = np.concatenate([[-1], low, [len(curve)]])
    after = np.searchsorted(low, np.argmax(curve))
    first, stop = int(low[after - 1]) + 1, int(low[after])
    rises = np.flatnonzero(np.diff(curve[first:stop]) > 0)
    return first, first + int(max(rises + 1, default=0))


def _rows(X: Any) -> Any:
    """Return an array or a CSR array, which can be indexed by rows."""
    return sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
