r"""Confidence intervals for sketched distances.

For a pair of points, each column of a sketch gives a number of mean zero whose variance is the
squared diffusion distance; the numbers of the ``k`` columns are independent. So

.. math:: k \, \frac{|y_i - y_j|^2}{d_p(i, j)^2} \sim \chi^2_k

exactly, if the random numbers are Gaussian. For Rademacher numbers the law depends on the pair: if
the heat of two points does not spread, each number is 0 or :math:`\pm 2` times the same value, and
no chi-squared interval covers. But the mean of their squares is known, the mean of their fourth
powers is at most three, and by Chernoff's bound

.. math::

    P(S \ge k x) \le (x e^{1 - x})^{k/2}, \qquad
    P(S \le k x) \le e^{-k D(x/3 \,\|\, 1/3)},

with :math:`S = k |y_i - y_j|^2 / d_p^2`, the first for :math:`x > 1`, the second for
:math:`x < 1`, and ``D`` the divergence of two Bernoulli distributions. An interval from these holds
for every pair.

Neighbours selected by the sketch itself need a correction, since it selects those whose distances
it underestimates. Let the ``R`` of ``m`` candidates with the smallest estimates be selected.

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
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw, rel_entr
from scipy.stats import chi2, t

from heatsketch._core.html import html_table
from heatsketch.exceptions import HeatSketchError

MOST_COMPONENTS = 1e12  # more than any sketch has, and the chi-squared law is still accurate


class DistanceEstimate(NamedTuple):
    r"""Sketched diffusion distances :math:`|y_i - y_j|`, with intervals.

    Attributes
    ----------
    distance : array
        Distances in the embedding.
    low, high : arrays
        Ends of the intervals. They cover the error of the sketch only: not that of the sample, nor
        that of an approximate neighbour search.

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

    Examples
    --------
    >>> from heatsketch.diffusion._confidence import scale_interval
    >>> low, high = scale_interval(64, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.853, 1.209)
    >>> scale_interval(4, 0.95, random_matrix="rademacher")[1]
    inf
    """
    tail = (1 - _fraction("confidence", confidence)) / 2
    if random_matrix not in TAILS:
        raise HeatSketchError(
            f"random_matrix={random_matrix!r} is unknown; use one of {sorted(TAILS)}."
        )
    if n_components < 1:
        raise HeatSketchError(f"n_components={n_components} leaves no distance; use 1 or more.")
    _, largest = TAILS[random_matrix](n_components, tail)
    smallest, _ = TAILS[random_matrix](n_components, tail * selected)
    return 1 / math.sqrt(largest), 1 / math.sqrt(smallest) if smallest > 0 else math.inf


def simultaneous_confidence(confidence: float, n_intervals: int) -> float:
    """Confidence of each interval for simultaneous coverage (Bonferroni).

    Examples
    --------
    >>> from heatsketch.diffusion._confidence import simultaneous_confidence
    >>> simultaneous_confidence(0.95, 10)
    0.995
    """
    return 1 - (1 - _fraction("confidence", confidence)) / max(n_intervals, 1)


def distance_estimate(
    apart: Any, confidence: float, *, random_matrix: str = "gaussian", selected: float = 1.0
) -> DistanceEstimate:
    r"""Lengths of differences of sketched rows, with intervals.

    Parameters
    ----------
    apart : array of shape (..., k)
        Differences.
    confidence, random_matrix, selected :
        As for :func:`scale_interval`.

    Returns
    -------
    DistanceEstimate
        Arrays of shape (...).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._confidence import distance_estimate
    >>> distance_estimate(np.full((1, 64), 0.25), 0.95).distance
    array([2.])
    """
    low, high = scale_interval(
        np.shape(apart)[-1], confidence, random_matrix=random_matrix, selected=selected
    )
    apart = np.asarray(apart, np.float64)
    # Scaled by a power of two, which is exact: squares of 1e-200 would underflow.
    _, exponents = np.frexp(np.max(np.abs(apart), axis=-1))
    lengths = np.linalg.norm(np.ldexp(apart, -exponents[..., np.newaxis]), axis=-1)
    distance = np.ldexp(lengths, exponents)
    # Without an upper bound there is none for a length of zero, either.
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
    # the solution above one of x - 1 - log x = 2 exponent
    largest = -float(lambertw(-math.exp(-1 - 2 * exponent), -1).real)
    if exponent >= -math.log(2 / 3):  # the bound for all squares being zero exceeds the tail
        return 0.0, largest

    def excess(q: float) -> float:
        return float(rel_entr(q, 1 / 3) + rel_entr(1 - q, 2 / 3)) - exponent

    return 3 * float(brentq(excess, 0.0, 1 / 3)), largest


TAILS = {"gaussian": _gaussian_tails, "rademacher": _rademacher_tails}


def components_needed(error: float, *, confidence: float = 0.95, n_pairs: int = 1) -> int:
    r"""Number of components that keep distances within a relative error.

    The smallest ``k`` from which on

    .. math:: P\left(\left| \frac{|y_i - y_j|}{d_p(i, j)} - 1 \right| > \mathrm{error}\right)
              \le \frac{1 - \mathrm{confidence}}{\mathrm{n\_pairs}},

    by the exact law for Gaussians. For large ``k`` this is the rate of the paper, including the
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
    error = _fraction("error", error, instead=0.1)
    if not 1 <= n_pairs < math.inf:
        raise HeatSketchError(f"n_pairs={n_pairs} leaves nothing to bound; use 1 or more.")
    allowed = (1 - _fraction("confidence", confidence)) / n_pairs

    def fails(k: int) -> bool:
        if k > MOST_COMPONENTS:
            raise HeatSketchError(
                f"error={error} and n_pairs={n_pairs} take more than {MOST_COMPONENTS:.0e} "
                "components; allow for a larger error, or for fewer pairs."
            )
        beyond = chi2.sf(k * (1 + error) ** 2, k) + chi2.cdf(k * (1 - error) ** 2, k)
        return bool(beyond > allowed)

    enough = 1
    while fails(enough):
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (middle, enough) if fails(middle) else (too_few, middle)
    return enough


def order_confidence(nearer: Any, farther: Any) -> np.ndarray:
    r"""Confidence that one of two distances in a sketch is the smaller one.

    Sketched distances of ``i`` to two points share the random numbers, so they are compared
    column by column: the two distances are equal if and only if the sum and the difference of
    :math:`u = y_i - y_j` and :math:`w = y_i - y_l` are uncorrelated (Pitman and Morgan, 1939), and
    then, with Gaussians,

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
        One half means that the sketch cannot distinguish the two distances.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._confidence import order_confidence
    >>> u = np.random.default_rng(0).normal(size=64)
    >>> bool(order_confidence(u, 2 * u) > 0.99), float(order_confidence(u, u))
    (True, 0.5)
    """
    nearer, farther = np.asarray(nearer, np.float64), np.asarray(farther, np.float64)
    minus, plus = farther - nearer, farther + nearer
    product = np.sum(minus * plus, axis=-1)
    sizes = np.sum(minus**2, axis=-1) * np.sum(plus**2, axis=-1)
    degrees = minus.shape[-1] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        # Equal rows cannot be distinguished; parallel ones can, with certainty.
        r = np.where(sizes > 0, product / np.sqrt(sizes), 0.0).clip(-1, 1)
        return t.cdf(math.sqrt(degrees) * r / np.sqrt(1 - r**2), degrees)


def _fraction(name: str, value: float, *, instead: float = 0.95) -> float:
    if not (isinstance(value, Real) and 0 < value < 1):
        raise HeatSketchError(
            f"{name}={value!r} must lie between 0 and 1; use {instead}, for instance."
        )
    return float(value)
