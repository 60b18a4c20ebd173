r"""How far a sketched distance may be from the true one.

A column of a sketch gives, for a pair of points, a number of mean zero whose variance is the
squared diffusion distance; ``k`` columns are ``k`` independent ones. So

.. math:: k \, \frac{|y_i - y_j|^2}{d_p(i, j)^2} \sim \chi^2_k

exactly, if the random numbers are Gaussians. For Rademacher ones it depends on the pair: where
two points keep their heat for themselves the numbers are 0 or :math:`\pm 2` times the same, and no
interval of the chi-squared kind covers. But the mean of their squares is known, the mean of
their fourth powers is at most three, and by Chernoff's bound

.. math::

    P(S \ge k x) \le (x e^{1 - x})^{k/2}, \qquad
    P(S \le k x) \le e^{-k D(x/3 \,\|\, 1/3)},

with :math:`S = k |y_i - y_j|^2 / d_p^2`, the first for :math:`x > 1`, the second for
:math:`x < 1`, and ``D`` the divergence of two coins. An interval from these holds for every pair.

Neighbours that the sketch itself has chosen need more: it chooses those whose distances it
estimates too small. Let the ``R`` of ``m`` candidates with the smallest estimates be chosen.

* **Upper ends.** If that of each candidate is too low with probability
  :math:`\frac{\alpha}{2} \frac{R}{m}`, then at most :math:`\frac{\alpha}{2} R` of all candidates,
  so of those chosen, have such an interval on average. (This is the false coverage rate of
  Benjamini and Yekutieli, 2005, for a fixed number of choices.)
* **Lower ends** need no correction. Let ``T`` be the ``R`` candidates that are nearest in truth.
  If one outside ``T`` is chosen and its lower end is too high, its estimate exceeds ``c`` times a
  distance that is at least all those of ``T``. The estimates of those in ``T`` that were not chosen
  are larger still, so their lower ends are too high as well; and they are as many as were chosen
  outside ``T``. So no more lower ends are too high among those chosen than in ``T``, and ``T`` is
  fixed.

So the upper tail is multiplied by ``R / m``, and the ``R`` intervals cover with probability
:math:`1 - \alpha` on average, however the estimates depend on each other. With
:math:`\alpha / R` in place of :math:`\alpha` all of them cover at once with that probability.

All this is the error of the sketch. It says nothing of how well the points that were drawn
stand for those that might have been.
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

MOST_COMPONENTS = 1e12  # beyond all sketches, and where the chi-squared law is still accurate


class DistanceEstimate(NamedTuple):
    r"""Sketched diffusion distances :math:`|y_i - y_j|`, and intervals that cover the true ones.

    Attributes
    ----------
    distance : array
        Distances in the embedding.
    low, high : arrays
        Ends of the intervals. They allow for the error of the sketch only: not for that of the
        sample, nor for a graph that was searched approximately.

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
    r"""Factors between which the true distance lies, in units of the sketched one.

    .. math:: P(\mathrm{low} \, |y_i - y_j| \le d_p(i, j) \le \mathrm{high} \, |y_i - y_j|)
              \ge \mathrm{confidence}

    Parameters
    ----------
    n_components : int
        Columns of the sketch.
    confidence : float
        Between 0 and 1.
    random_matrix : {"gaussian", "rademacher"}, default="gaussian"
        What the sketch was made with. For Gaussians the probability is exactly ``confidence``.
    selected : float, default=1.0
        Which share of the candidates was chosen, for the smallest sketched distances.

    Returns
    -------
    low, high : float
        ``high`` is infinite where so few Rademacher entries bound nothing from above.

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
    """Confidence that each interval needs for all of them to cover at once (Bonferroni).

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
    r"""Lengths of differences of sketched rows, :math:`|y_i - y_j|`, with their intervals.

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
    # In units of a power of two, which rounds nothing: squares of 1e-200 would be lost.
    _, exponents = np.frexp(np.max(np.abs(apart), axis=-1))
    lengths = np.linalg.norm(np.ldexp(apart, -exponents[..., np.newaxis]), axis=-1)
    distance = np.ldexp(lengths, exponents)
    # Without a bound from above there is none for a length of zero, either.
    upper = high * distance if high < np.inf else np.full_like(distance, np.inf)
    return DistanceEstimate(distance, low * distance, upper)


def _gaussian_tails(k: int, tail: float) -> tuple[float, float]:
    """Return the quantiles of the mean of ``k`` squares, in units of its mean."""
    return float(chi2.ppf(tail, k)) / k, float(chi2.isf(tail, k)) / k


def _rademacher_tails(k: int, tail: float) -> tuple[float, float]:
    """Return what the mean of ``k`` squares leaves with at most that probability, each side."""
    exponent = -math.log(tail) / k
    # x - 1 - log x = 2 exponent, beyond one
    largest = -float(lambertw(-math.exp(-1 - 2 * exponent), -1).real)
    if exponent >= -math.log(2 / 3):  # that all are zero is more likely than that
        return 0.0, largest

    def excess(q: float) -> float:
        return float(rel_entr(q, 1 / 3) + rel_entr(1 - q, 2 / 3)) - exponent

    return 3 * float(brentq(excess, 0.0, 1 / 3)), largest


TAILS = {"gaussian": _gaussian_tails, "rademacher": _rademacher_tails}


def components_needed(error: float, *, confidence: float = 0.95, n_pairs: int = 1) -> int:
    r"""How many components keep distances within a relative error.

    The smallest ``k`` from which on

    .. math:: P\left(\left| \frac{|y_i - y_j|}{d_p(i, j)} - 1 \right| > \mathrm{error}\right)
              \le \frac{1 - \mathrm{confidence}}{\mathrm{n\_pairs}},

    by the exact law for Gaussians; for large ``k`` that is the paper's rate,
    :math:`\mathrm{error} \approx z / \sqrt{2 k}`, with its constant.

    Parameters
    ----------
    error : float
        Relative error of a distance, between 0 and 1.
    confidence : float, default=0.95
        Probability that all the distances asked for are within it.
    n_pairs : int, default=1
        How many distances; the logarithm of their number is what counts.

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
    r"""Confidence that one of two distances is the smaller one, from the same sketch.

    Sketched distances of ``i`` to two points share the random numbers, so they are compared
    column by column: the two distances are equal if and only if the sum and the difference of
    :math:`u = y_i - y_j` and :math:`w = y_i - y_l` are uncorrelated (Pitman and Morgan, 1939), and
    then, with Gaussians,

    .. math:: \sqrt{k - 1} \, \frac{r}{\sqrt{1 - r^2}} \sim t_{k - 1}, \qquad
              r = \frac{(w - u) \cdot (w + u)}{|w - u| |w + u|}

    exactly. For Rademacher ones it is an approximation.

    Parameters
    ----------
    nearer, farther : arrays of shape (..., k)
        Differences ``u`` and ``w`` of rows of a sketch; ``k`` is at least 2.

    Returns
    -------
    array of shape (...)
        One half means that the sketch cannot tell.

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
        # Equal rows cannot be distinguished; parallel ones can, without any doubt.
        r = np.where(sizes > 0, product / np.sqrt(sizes), 0.0).clip(-1, 1)
        return t.cdf(math.sqrt(degrees) * r / np.sqrt(1 - r**2), degrees)


def _fraction(name: str, value: float, *, instead: float = 0.95) -> float:
    if not (isinstance(value, Real) and 0 < value < 1):
        raise HeatSketchError(
            f"{name}={value!r} must lie between 0 and 1; use {instead}, for instance."
        )
    return float(value)
