r"""Functions of an operator, as sums of Chebyshev polynomials.

.. math:: f(A) x = \sum_j c_j T_j(A) x, \qquad T_{j+1}(A) x = 2 A T_j(A) x - T_{j-1}(A) x

Each polynomial is one more product, and several functions share them. The error of a sum is
relative to the block it starts from, and what it should find may be much smaller. So each sum
measures itself: it goes on until the rest is small against what it found, and gives up where
rounding is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

__all__ = [
    "Interval",
    "Series",
    "chebyshev_sums",
    "frobenius_norm",
    "machine_epsilon",
    "ratio",
    "tolerance_of",
]

# After so many products, and whenever half as many have been added, a sum is looked at.
FIRST_LOOK = 32


@dataclass(frozen=True)
class Interval:
    """Where the spectrum should lie: ``centre - radius`` to ``centre + radius``."""

    centre: float
    radius: float


class Series:
    """Coefficients of a sum, and what is lost by cutting it."""

    def __init__(self, coefficients: np.ndarray, beyond: float = 0.0) -> None:
        self.coefficients = coefficients.tolist()  # numbers that leave float32 blocks float32
        # tails[d] bounds all terms above degree d, since |T_j| <= 1.
        tails = np.cumsum(np.abs(coefficients[:0:-1]))[::-1]
        self.tails = np.append(tails, 0.0) + beyond

    def add_term(self, total: Any, degree: int, vector: Any) -> Any:
        """Add the term of a degree to a sum."""
        # Every other coefficient of a whole power is zero.
        if degree < len(self.coefficients) and self.coefficients[degree]:
            return total + self.coefficients[degree] * vector
        return total

    def degree(self, tolerance: float) -> float:
        """Return the least degree whose tail is within a tolerance; infinity if none is."""
        within = np.flatnonzero(self.tails <= tolerance)
        return int(within[0]) if len(within) else math.inf


def chebyshev_sums(
    A: Any, block: Any, series: list[Series], interval: Interval, tolerance: float
) -> tuple[list[Any], int, float]:
    """Sum several series, the fastest first, over the same Chebyshev vectors.

    Returns the sums whose relative error is within the tolerance, which are the first ones of
    those asked for; the degree reached; and by how much the vectors grew, which they do if the
    spectrum leaves the interval.
    """
    block = A.deflate(block)
    size, rounding = frobenius_norm(block), machine_epsilon(block.dtype)
    cut = min(tolerance, cut_of(block.dtype))
    previous, current, degree, growth = block, _mapped(A, block, interval), 1, 1.0
    sums = [s.add_term(s.coefficients[0] * block, 1, current) for s in series]
    wanted = max(1, *(s.degree(cut) for s in series))
    while series:
        look = min(wanted, max(FIRST_LOOK, 3 * degree // 2))
        while degree < look:
            previous, current = current, _chebyshev_step(A, current, previous, interval)
            degree += 1
            sums = [s.add_term(t, degree, current) for s, t in zip(series, sums, strict=True)]
        growth = max(1.0, ratio(frobenius_norm(current), size))
        degrees = []
        for s, total in zip(series, sums, strict=True):
            # Rounding and what is cut off are relative to the vectors, the tolerance to the sum.
            found = ratio(frobenius_norm(total), size * growth)
            affordable = rounding * math.sqrt(degree) <= tolerance * found
            degrees.append(s.degree(cut * found) if affordable else math.inf)
        accurate = len(list(takewhile(math.isfinite, degrees)))
        series, sums = series[:accurate], sums[:accurate]
        wanted = max(degrees[:accurate], default=0)
        if wanted <= degree:
            break
    return sums, degree, growth


def _mapped(A: Any, block: Any, interval: Interval) -> Any:
    """Apply ``A``, shifted and scaled so that the interval becomes [-1, 1]."""
    return (A @ A.deflate(block) - interval.centre * block) / interval.radius


def _chebyshev_step(A: Any, current: Any, previous: Any, interval: Interval) -> Any:
    """Return the next vector: ``T_{j+1}(x) = 2 x T_j(x) - T_{j-1}(x)``."""
    return 2 * _mapped(A, current, interval) - previous


def tolerance_of(dtype: Any) -> float:
    """Relative error that a sum may have from rounding: 3e-9 in float64, 7e-5 in float32."""
    return math.sqrt(machine_epsilon(dtype)) / 5


def cut_of(dtype: Any) -> float:
    """Relative error from what is cut off: what 200 products leave of ``x^1024``, or rounding."""
    return max(3e-9, 8 * machine_epsilon(dtype))


def machine_epsilon(dtype: Any) -> float:
    """Return the rounding error of a dtype."""
    return float(np.finfo(dtype).eps)


def frobenius_norm(block: Any) -> float:
    """Frobenius norm, computed now; scaled, since float32 has no squares of 1e-28."""
    largest = float(np.max(np.abs(block)))
    return largest * math.sqrt(float(np.sum((block / largest) ** 2))) if largest > 0 else 0.0


def ratio(length: float, other: float) -> float:
    """Divide two lengths; nothing has lost nothing."""
    return length / other if other > 0 else 1.0
