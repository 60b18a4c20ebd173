r"""Estimates of kernel bandwidth and intrinsic dimension from distances.

.. math:: m(\varepsilon) = \frac{1}{n} \sum_i
          2 \, \frac{d \log \sum_j \exp(-d^2_{ij} / \varepsilon)}{d \log \varepsilon}

On a manifold of dimension :math:`m` each sum grows as :math:`\varepsilon^{m/2}`, so that the curve
comes close to :math:`m`. There are two deviations. The curve falls where a point has no neighbour
but itself, and where the manifold ends. It rises where the manifold bends: chords are shorter than
paths along it, and the curve overshoots, to 1.2 on a circle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import (
    check_finite,
    check_nonnegative,
    check_not_filled,
    check_rows,
    float_dtype,
    plain_floats,
)
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import is_lazy
from heatsketch.exceptions import DegenerateKernelError, MissingValueError
from heatsketch.graph._metrics import check_nonzero_rows, squared_distances_to

EPSILON_ROWS = 1000  # sampled points
EPSILON_POINTS = 200_000  # at most, whose distances to the sampled points are computed
EPSILON_ENTRIES = 5_000_000  # distances in all
CHUNK_ENTRIES = 500_000  # distances per thread at a time

MOST_ROWS = 10_000  # rows used of given squared distances
ROWS_AT_A_TIME = 1000  # rows whose histograms are in memory
N_BINS = 1000  # of logarithms of squared distances
N_EPSILONS = 400  # points of the curve
FOOT = 0.7  # of the maximum of the curve: the hill around it begins and ends at this height
CAUTION = 6  # power of the overshoot by which epsilon shrinks: on a circle 1.17**6, or 2.5


class EpsilonEstimate(NamedTuple):
    r"""Bandwidth, intrinsic dimension there, and the curve they are read from.

    Attributes
    ----------
    epsilon : float
        The bandwidth.
    dimension : float
        Twice :math:`d \log \sum K_{ij} / d \log \varepsilon` there, summed over pairs at positive
        distance; but at most the height of the peak that epsilon is read from.
    epsilons, dimensions : arrays
        The curve: twice the slope of the logarithm of a point's kernel sum, the point itself
        included, averaged over the points. It falls to zero on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import estimate_epsilon
    >>> estimate = estimate_epsilon(np.arange(100.0)[:, np.newaxis], metric="euclidean")
    >>> peak = estimate.epsilons[np.argmax(estimate.dimensions)]
    >>> np.isclose(estimate.epsilon, peak, rtol=1e-10)  # nothing bends
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
    :math:`\varepsilon` lies between the spacing of the points and the size of the manifold, and
    are flat outside. The bandwidth is taken where they are steepest (Coifman, Shkolnisky, Sigworth
    and Singer, 2008).

    On a closed curve the sums are steepest where the kernel reaches across it, and a kernel half as
    wide does not. Epsilon is therefore corrected by the ratio of the slope there to the slope at
    half the width: where that ratio is above one, epsilon is divided by its sixth power.

    Parameters
    ----------
    X : array or CSR array of shape (n_rows, n_points), or points
        Squared distances of some points to all points. A sample of a few hundred rows is enough;
        of more than 10,000 rows only every second, third, ... is used. A graph truncated to
        nearest neighbours gives too small an epsilon.
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
    X = _checked(X, metric)
    if metric == "cosine":
        check_nonzero_rows(X)
    if metric is not None:
        keys = np.random.default_rng(0).random(X.shape[0])
        X = sampled_squares(X, metric=metric, keys=keys)
    X = X[:: max(1, -(-X.shape[0] // MOST_ROWS))]
    if sparse.issparse(X):
        squares, row_starts = X.data, X.indptr
    else:
        squares, row_starts = X.ravel(), np.arange(X.shape[0] + 1) * X.shape[1]
    _check_present(squares)
    if not (squares > 0).any():
        raise DegenerateKernelError(
            f"epsilon cannot be estimated: X of shape {X.shape} holds no distance above zero, "
            "as if all points were equal; give epsilon as a number, or drop the duplicates."
        )
    return _read_curve(squares, row_starts)


def sampled_squares(X: Any, *, metric: Any, keys: np.ndarray) -> Any:
    """Squared distances of a sample of points, for :func:`estimate_epsilon`.

    The points with the smallest keys are sampled, so that their order does not matter. Distances
    are taken to all points, or to a larger sample that includes these points.

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

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._bandwidth import sampled_squares
    >>> sampled_squares(np.array([[0.0], [2.0]]), metric="euclidean", keys=np.array([0.7, 0.1]))
    array([[0., 4.],
           [4., 0.]])
    """
    X = X if is_lazy(X) else _rows(X)
    X = X.astype(float_dtype(X.dtype), copy=False)
    n_columns = min(X.shape[0], EPSILON_POINTS)
    drawn = _rows(X[_smallest(keys, min(EPSILON_ROWS, EPSILON_ENTRIES // n_columns))])
    if metric == "precomputed":
        return drawn.power(2) if sparse.issparse(drawn) else np.square(drawn)
    points = _rows(X if n_columns == X.shape[0] else X[_smallest(keys, n_columns)])
    squares = squared_distances_to(points, metric)
    d2 = np.empty((drawn.shape[0], n_columns), X.dtype)
    step = max(1, CHUNK_ENTRIES // n_columns)

    def fill(start: int) -> None:
        rows = slice(start, start + step)
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is rejected with its remedy
            d2[rows] = squares(drawn[rows])

    in_threads(fill, range(0, drawn.shape[0], step))
    return d2


def _smallest(keys: np.ndarray, n_drawn: int) -> np.ndarray:
    """Return the indices of the smallest keys, in ascending order."""
    if n_drawn >= len(keys):
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, n_drawn)[:n_drawn])


# --- the curve ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bins:
    """Bins for logarithms of squared distances: sums need few percent accuracy."""

    lowest: float
    width: float

    @property
    def sizes(self) -> np.ndarray:
        """The squared distances in the middle of the bins."""
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
        # Every point is at distance zero from itself, whether that is stored or not.
        return counts.astype(np.float64), np.maximum(lengths - counts.sum(axis=1), 1)


def _read_curve(squares: np.ndarray, row_starts: np.ndarray) -> EpsilonEstimate:
    """Compute the curve and read the estimates; ``row_starts`` is an ``indptr``."""
    apart = squares[squares > 0]
    smallest, largest = float(apart.min()), float(apart.max())
    lowest, highest = np.log([smallest, largest])
    bins = _Bins(lowest, max(highest - lowest, 1.0) / N_BINS)
    # Beyond these bounds every affinity is 0 or every affinity is 1.
    limits = np.finfo(np.float64)
    bounds = max(smallest / 30, limits.tiny), min(largest, limits.max / 32) * 30
    epsilons = np.geomspace(*bounds, N_EPSILONS)
    dimensions, counts = _mean_dimensions(squares, row_starts, bins, epsilons)
    first, peak = _hill(dimensions)
    epsilon = float(epsilons[peak])
    overshoot = _dimension(counts, bins, epsilon) / _dimension(counts, bins, epsilon / 4)
    # Near-duplicate pairs resemble an overshoot, but do not produce a hill.
    epsilon = max(epsilon / max(overshoot, 1.0) ** CAUTION, float(epsilons[first]))
    # Regularly spaced points have no small distances, and the slope of the others is high.
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
        # Where exp(-scaled) is 0 anyway, keep 0 * inf from being nan.
        scaled = np.minimum(bins.sizes[:, np.newaxis] / epsilons, 1000)
    affinities = np.exp(-scaled)
    return affinities, affinities * scaled


def _hill(whole: np.ndarray) -> tuple[int, int]:
    """Return where the highest hill begins, and where its last rise ends.

    Noise has its own peak on the left, which is often higher; the peak of the signal is the last
    one of the same hill. Clusters far apart have a peak on the right, too, but of another hill.
    """
    low = np.flatnonzero(whole < FOOT * whole.max())
    low = np.concatenate([[-1], low, [len(whole)]])
    after = np.searchsorted(low, np.argmax(whole))
    first, stop = int(low[after - 1]) + 1, int(low[after])
    rises = np.flatnonzero(np.diff(whole[first:stop]) > 0)
    return first, first + int(max(rises + 1, default=0))


# --- errors -------------------------------------------------------------------------------


def _checked(X: Any, metric: Any) -> Any:
    """Return plain floats; missing squared distances are counted later."""
    is_given = metric is None or metric == "precomputed"
    if is_given:
        check_not_filled(X, "X")
    X = _rows(plain_floats(X))
    check_rows(X)
    if is_given:
        check_nonnegative(X, f"metric={metric!r}", "distances are at least 0")
    if metric is not None:
        check_finite(X)
    return X


def _rows(X: Any) -> Any:
    """Return an array or a CSR array, which can be indexed by rows."""
    return sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)


def _check_present(squares: np.ndarray) -> None:
    missing = ~np.isfinite(squares)
    if missing.any():
        raise MissingValueError(
            f"X gives {squares[np.argmax(missing)]} as a squared distance, and "
            f"{np.count_nonzero(missing)} such values of {squares.size}; correct or rescale X, or "
            "correct metric if it is your own."
        )
