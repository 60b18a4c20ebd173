r"""Functions of an operator, as sums of Chebyshev polynomials.

.. math:: f(A) x = \sum_j c_j T_j(A) x, \qquad T_{j+1}(A) x = 2 A T_j(A) x - T_{j-1}(A) x

Each polynomial is one more product, and several functions share them. The error of a sum is
relative to the block it starts from, and what it should find may be much smaller. So each sum
measures itself: it goes on until the rest is small against what it found, and gives up where
rounding is not.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from heatsketch._core.partitioned import computed, from_each_block, from_each_piece, normal_vector

# After so many products, and whenever half as many have been added, a sum is looked at.
FIRST_LOOK = 32
LANCZOS_STEPS = 20
GRID = 64


class Interval(NamedTuple):
    """Where the spectrum should lie."""

    low: float
    high: float


class Series:
    """Coefficients of a sum, and what is lost by cutting it."""

    def __init__(self, coefficients: np.ndarray, beyond: float = 0.0) -> None:
        self.coefficients = coefficients.tolist()  # numbers that leave float32 blocks float32
        # tails[d] bounds all terms above degree d, since |T_j| <= 1.
        tails = np.cumsum(np.abs(coefficients[:0:-1]))[::-1]
        self.tails = np.append(tails, 0.0) + beyond

    def __getitem__(self, degree: int) -> float:
        """Return the coefficient of a degree."""
        return self.coefficients[degree] if degree < len(self.coefficients) else 0.0

    def degree(self, tolerance: float) -> float:
        """Return the least degree whose tail is within a tolerance; infinity if none is."""
        within = np.flatnonzero(self.tails <= tolerance)
        return int(within[0]) if len(within) else math.inf


class Recurrence:
    """The last two Chebyshev vectors of a block, and the sums over all so far."""

    def __init__(self, A: Any, block: Any, interval: Interval, series: list[Series]) -> None:
        self.A, self.series, self.degree = A, series, 0
        # The interval is mapped to [-1, 1] by x -> slope x + shift.
        self.slope = 2 / (interval.high - interval.low)
        self.shift = -self.slope * (interval.high + interval.low) / 2
        self.totals = _multiples(block, [s[0] for s in series])
        self.previous, self.coefficients = block, A.stationary_coefficients(block)
        self.current = self._next(block, (self.slope, self.shift, 0.0), out=None)

    def advance(self, degree: int) -> None:
        """Go on to a degree, each vector in the memory of the last but one."""
        factors = 2 * self.slope, 2 * self.shift, 1.0
        while self.degree < degree:
            following = self._next(self.current, factors, out=self.previous)
            self.previous, self.current = self.current, following

    def keep(self, count: int) -> None:
        """Leave off all sums but the first ones."""
        self.series, self.totals = self.series[:count], self.totals[:count]

    def _next(self, block: Any, factors: tuple[float, float, float], *, out: Any) -> Any:
        self.degree += 1
        following, self.coefficients = self.A.step(
            block,
            self.coefficients,
            factors=factors,
            out=out,
            totals=self.totals,
            terms=[s[self.degree] for s in self.series],
        )
        return following


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
    vectors, growth = Recurrence(A, block, interval, series), 1.0
    wanted = max(1, *(s.degree(cut) for s in series))
    while vectors.series:
        vectors.advance(int(min(wanted, max(FIRST_LOOK, 3 * vectors.degree // 2))))
        growth = max(1.0, ratio(frobenius_norm(vectors.current), size))
        degrees = []
        for s, total in zip(vectors.series, vectors.totals, strict=True):
            # Rounding and what is cut off are relative to the vectors, the tolerance to the sum.
            found = ratio(frobenius_norm(total), size * growth)
            affordable = rounding * math.sqrt(vectors.degree) <= tolerance * found
            degrees.append(s.degree(cut * found) if affordable else math.inf)
        accurate = len(list(takewhile(math.isfinite, degrees)))
        vectors.keep(accurate)
        wanted = max(degrees[:accurate], default=0)
        if wanted <= vectors.degree:
            break
    return list(vectors.totals), vectors.degree, growth


def _multiples(block: Any, factors: list[float]) -> Any:
    """Return a multiple of a block for each factor: one array, or a list of lazy ones."""
    if isinstance(block, np.ndarray):
        return np.multiply.outer(np.array(factors, block.dtype), block)
    return [factor * block for factor in factors]


def lower_end(A: Any) -> float:
    """Return where the spectrum of ``A`` begins, or somewhat below.

    The shorter the interval, the shorter the sums. These are a few steps of Lanczos on one
    column; the least eigenvalue may hide from it, but not from a sum, whose vectors then grow.
    """
    current = normal_vector(A.stationary)
    current = current / float(np.linalg.norm(current))
    previous, diagonal, side = np.zeros_like(current), [], [0.0]
    for _ in range(min(LANCZOS_STEPS, A.shape[0])):
        following = computed(A.matrix, A @ current - side[-1] * previous)
        diagonal.append(float(current @ following))
        following = computed(A.matrix, following - diagonal[-1] * current)
        side.append(float(np.linalg.norm(following)))
        if side[-1] < 1e-3:
            break
        previous, current = current, following / side[-1]
    values, vectors = eigh_tridiagonal(diagonal, side[1:-1])
    # An eigenvalue lies within the residual of each Ritz value.
    low = values[0] - 2 * abs(side[-1] * vectors[-1, 0]) - 0.01
    # Rounded down: the sums of BLAS depend on the number of threads, what follows must not.
    return min(max(math.floor(low * GRID) / GRID, -1.0), 0.0)


def tolerance_of(dtype: Any) -> float:
    """Relative error that a sum may have from rounding: 3e-9 in float64, 7e-5 in float32."""
    return math.sqrt(machine_epsilon(dtype)) / 5


def cut_of(dtype: Any) -> float:
    """Relative error from what is cut off, or rounding where that is more.

    Pairs of points may be thousands of times closer than the block is large, above all within
    the components of a graph that is not connected; this leaves their distances 5 digits.
    """
    return max(3e-11, 8 * machine_epsilon(dtype))


def machine_epsilon(dtype: Any) -> float:
    """Return the rounding error of a dtype."""
    return float(np.finfo(dtype).eps)


def frobenius_norm(block: Any) -> float:
    """Frobenius norm, computed now; scaled, since float32 has no squares of 1e-28."""
    largest = max(from_each_block(_largest, block))
    if not largest > 0:
        return 0.0
    # By chunks, so that there is never a second block.
    return largest * math.sqrt(sum(from_each_piece(partial(_sum_of_squares, unit=largest), block)))


def _largest(block: np.ndarray) -> float:
    return max(float(np.max(block)), -float(np.min(block)))


def _sum_of_squares(piece: np.ndarray, unit: float) -> float:
    return float(np.sum((piece / unit) ** 2))


def ratio(length: float, other: float) -> float:
    """Divide two lengths; nothing has lost nothing."""
    return length / other if other > 0 else 1.0
