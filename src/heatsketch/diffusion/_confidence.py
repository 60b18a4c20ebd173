r"""Confidence intervals for sketched distances.

For a pair of points, each column of a sketch gives a number of mean zero whose variance is the
squared diffusion distance; the numbers of the ``k`` columns are independent. So

.. math:: k \, \frac{|y_i - y_j|^2}{d_p(i, j)^2} \sim \chi^2_k

exactly, if the random numbers are Gaussian. For Rademacher numbers the distribution depends on the
pair: if heat does not spread from two points, each number is 0 or :math:`\pm 2` times the same
value, and a chi-squared interval does not cover. But the mean of their squares is known, the mean
of their fourth powers is at most three, and by Chernoff's bound

.. math::

    P(S \ge k x) \le (x e^{1 - x})^{k/2}, \qquad
    P(S \le k x) \le e^{-k D(x/3 \,\|\, 1/3)},

with :math:`S = k |y_i - y_j|^2 / d_p^2`, the first for :math:`x > 1`, the second for
:math:`x < 1`, and ``D`` the divergence of two Bernoulli distributions. An interval from these holds
for every pair.

Neighbours selected by the sketch need a correction, since these are points whose distances it
underestimates. Let the ``R`` of ``m`` candidates with the smallest estimates be selected.

* **Upper ends.** If the upper end of each candidate is too low with probability
  :math:`\frac{\alpha}{2} \frac{R}{m}`, then on average at most :math:`\frac{\alpha}{2} R` of all
  candidates, and so of the selected ones, have such an interval. (This is the false coverage rate
  of Benjamini and Yekutieli, 2005, for a fixed number of selections.)
* **Lower ends** need no correction. Let ``T`` be the ``R`` candidates that are truly nearest.
  If one outside ``T`` is selected and its lower end is too high, its estimate exceeds ``c`` times a
  distance that is at least as large as all those of ``T``. The estimates of those in ``T`` that
  were not selected are larger still, so their lower ends are too high as well; and there are as
  many of them as were selected outside ``T``. So at most as many lower ends are too high among the
  selected candidates as in ``T``, and ``T`` is fixed.

So the upper tail is multiplied by ``R / m``, and the ``R`` intervals cover with probability
:math:`1 - \alpha` on average, whatever the dependence between the estimates. With
:math:`\alpha / R` in place of :math:`\alpha` all of them cover simultaneously with that
probability.

These intervals cover the error of the sketch only. They do not cover the sampling error of the
data.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw, rel_entr
from scipy.stats import chi2, t

from heatsketch._core.html import html_table
from heatsketch.exceptions import HeatSketchError

MOST_COMPONENTS = 1e12  # up to here, chi-squared probabilities are accurate


class DistanceEstimate(NamedTuple):
    r"""Sketched diffusion distances :math:`|y_i - y_j|`, with intervals.

    Attributes
    ----------
    distance : array
        Distances in the embedding.
    low, high : arrays
        Ends of the intervals. They cover the error of the sketch, but not the sampling error of
        the data, nor the error of an approximate neighbour search.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import diffusion_distances, gaussian_matrix
    >>> distance, low, high = diffusion_distances(gaussian_matrix(5, 64, seed=0), [[0, 1]])
    >>> bool(low[0] < distance[0] < high[0])
    True
    """

    distance: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def _repr_html_(self) -> str:
        return html_table(self._asdict())


def scale_interval(
    n_components: int,
    confidence: float,
    *,
    random_matrix: str = "gaussian",
    selected: float = 1.0,
) -> tuple[float, float]:
    r"""Return bounds of the true distance, in units of the sketched one.

    .. math:: P(\mathrm{low} \, |y_i - y_j| \le d_p(i, j) \le \mathrm{high} \, |y_i - y_j|)
              \ge \mathrm{confidence}

    Parameters
    ----------
    n_components : int
        Columns of the sketch.
    confidence : float
        Between 0 and 1.
    random_matrix : {"gaussian", "rademacher"}, default="gaussian"
        Type of the random matrix. For Gaussians the probability is exactly ``confidence``.
    selected : float, default=1.0
        Share of the candidates that were selected for the smallest sketched distances.

    Returns
    -------
    low, high : float
        ``high`` is infinite if there are too few Rademacher entries for an upper bound.
    """
    tail = (1 - _fraction("confidence", confidence)) / 2
    if random_matrix not in TAILS:
        raise HeatSketchError(
            f"random_matrix must be one of {sorted(TAILS)}, got {random_matrix!r}."
        )
    _, largest = TAILS[random_matrix](n_components, tail)
    smallest, _ = TAILS[random_matrix](n_components, tail * selected)
    return 1 / math.sqrt(largest), 1 / math.sqrt(smallest) if smallest > 0 else math.inf


def simultaneous_confidence(confidence: float, n_intervals: int) -> float:
    """Confidence of each interval for simultaneous coverage (Bonferroni)."""
    return 1 - (1 - _fraction("confidence", confidence)) / max(n_intervals, 1)


def distance_estimate(
    differences: Any, confidence: float, *, random_matrix: str = "gaussian", selected: float = 1.0
) -> DistanceEstimate:
    r"""Lengths of differences of sketched rows, with intervals.

    Parameters
    ----------
    differences : array of shape (..., k)
    confidence, random_matrix, selected :
        As for :func:`scale_interval`.

    Returns
    -------
    DistanceEstimate
        Arrays of shape (...).
    """
    low, high = scale_interval(
        np.shape(differences)[-1], confidence, random_matrix=random_matrix, selected=selected
    )
    differences = np.asarray(differences, np.float64)
    # Scaled by a power of two, which is exact, since squares of 1e-200 would underflow.
    _, exponents = np.frexp(np.max(np.abs(differences), axis=-1))
    lengths = np.linalg.norm(np.ldexp(differences, -exponents[..., np.newaxis]), axis=-1)
    distance = np.ldexp(lengths, exponents)
    # If there is no upper bound, it is infinite also for a distance of zero.
    upper = high * distance if high < np.inf else np.full_like(distance, np.inf)
    return DistanceEstimate(distance, low * distance, upper)


def _gaussian_tails(k: int, tail: float) -> tuple[float, float]:
    """Return the quantiles of the mean of ``k`` squares, relative to its mean."""
    return float(chi2.ppf(tail, k)) / k, float(chi2.isf(tail, k)) / k


def _rademacher_tails(k: int, tail: float) -> tuple[float, float]:
    """Return lower and upper bounds of the mean of ``k`` squares.

    Each is violated with probability at most ``tail``.
    """
    exponent = -math.log(tail) / k
    # The solution x > 1 of x - 1 - log x = 2 * exponent.
    largest = -float(lambertw(-math.exp(-1 - 2 * exponent), -1).real)
    if exponent >= -math.log(2 / 3):  # even a mean of zero is not improbable enough
        return 0.0, largest

    def excess(q: float) -> float:
        return float(rel_entr(q, 1 / 3) + rel_entr(1 - q, 2 / 3)) - exponent

    return 3 * float(brentq(excess, 0.0, 1 / 3)), largest


TAILS = {"gaussian": _gaussian_tails, "rademacher": _rademacher_tails}


def components_needed(error: float, *, confidence: float = 0.95, n_pairs: int = 1) -> int:
    r"""Number of components that keep distances within a relative error.

    It is the smallest ``k`` from which on

    .. math:: P\left(\left| \frac{|y_i - y_j|}{d_p(i, j)} - 1 \right| > \mathrm{error}\right)
              \le \frac{1 - \mathrm{confidence}}{\mathrm{n\_pairs}},

    by the exact distribution for Gaussians. For large ``k`` this is the rate of the paper, with its
    constant: :math:`\mathrm{error} \approx z / \sqrt{2 k}`.

    Parameters
    ----------
    error : float
        Relative error of a distance, between 0 and 1.
    confidence : float, default=0.95
        Probability that all ``n_pairs`` distances are within the error.
    n_pairs : int, default=1
        Number of distances. The result grows with its logarithm only.

    Returns
    -------
    int

    Examples
    --------
    >>> from heatsketch import components_needed
    >>> components_needed(0.1)
    192
    >>> components_needed(0.1, n_pairs=1_000_000)
    1492
    """
    error = _fraction("error", error)
    if not 1 <= n_pairs < math.inf:
        raise HeatSketchError(f"n_pairs must be >= 1 and finite, got {n_pairs}.")
    allowed = (1 - _fraction("confidence", confidence)) / n_pairs

    def is_enough(k: int) -> bool:
        outside = chi2.sf(k * (1 + error) ** 2, k) + chi2.cdf(k * (1 - error) ** 2, k)
        return bool(outside <= allowed)

    most = 1
    while not is_enough(most):
        if most > MOST_COMPONENTS:
            raise HeatSketchError(
                f"error={error} and n_pairs={n_pairs} need more than {MOST_COMPONENTS:.0e} "
                "components; use a larger error, or fewer pairs."
            )
        most *= 2
    return bisect_left(range(most), True, lo=most // 2 + 1, key=is_enough)


def order_confidence(nearer: Any, farther: Any) -> np.ndarray:
    r"""Confidence that one of two distances in a sketch is smaller than the other.

    Sketched distances from ``i`` to two points share random numbers, so they are compared column
    by column. The two distances are equal if and only if the sum and the difference of
    :math:`u = y_i - y_j` and :math:`w = y_i - y_l` are uncorrelated (Pitman and Morgan, 1939).
    Then, with Gaussians,

    .. math:: \sqrt{k - 1} \, \frac{r}{\sqrt{1 - r^2}} \sim t_{k - 1}, \qquad
              r = \frac{(w - u) \cdot (w + u)}{|w - u| |w + u|}

    exactly. With Rademacher numbers it is an approximation.

    Parameters
    ----------
    nearer, farther : arrays of shape (..., k)
        Differences ``u`` and ``w`` of rows of a sketch; ``k`` is at least 2.

    Returns
    -------
    array of shape (...)
        1/2 if the sketch cannot distinguish the two distances.
    """
    nearer, farther = np.asarray(nearer, np.float64), np.asarray(farther, np.float64)
    minus, plus = farther - nearer, farther + nearer
    product = np.sum(minus * plus, axis=-1)
    sizes = np.sum(minus**2, axis=-1) * np.sum(plus**2, axis=-1)
    degrees = minus.shape[-1] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        # 1/2 for equal rows, and 0 or 1 for parallel rows of different lengths.
        r = np.where(sizes > 0, product / np.sqrt(sizes), 0.0).clip(-1, 1)
        return t.cdf(math.sqrt(degrees) * r / np.sqrt(1 - r**2), degrees)


def _fraction(name: str, value: float) -> float:
    if not (isinstance(value, Real) and 0 < value < 1):
        raise HeatSketchError(f"{name} must be a number between 0 and 1, got {value!r}.")
    return float(value)
