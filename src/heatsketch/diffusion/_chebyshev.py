r"""Functions of an operator as Chebyshev series.

.. math:: f(A) x = \sum_j c_j T_j(A) x, \qquad T_{j+1}(A) x = 2 A T_j(A) x - T_{j-1}(A) x

Each polynomial needs one product, and several functions share the products. The error of a sum is
relative to the initial block, but the result may be much smaller. So the norm of each sum is
checked: terms are added until the rest is small relative to the sum. If the rounding error is not
small relative to the sum, the sum is dropped.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from heatsketch._core.partitioned import computed, from_each_block, from_each_piece, normal_vector

FIRST_CHECK = 32  # products before the first check of the sums; the number grows by half each time
LANCZOS_STEPS = 20
GRID = 64  # the lower end of the spectrum is rounded down to a multiple of 1 / GRID


class Interval(NamedTuple):
    """Interval that should contain the spectrum."""

    low: float
    high: float


class Series:
    """Coefficients of a sum, and bounds of its truncation error."""

    def __init__(self, coefficients: np.ndarray) -> None:
        self.coefficients = coefficients.tolist()  # Python floats keep float32 blocks float32
        # tails[d] bounds all terms above degree d, since |T_j| <= 1.
        tails = np.cumsum(np.abs(coefficients[:0:-1]))[::-1]
        self.tails = np.append(tails, 0.0)

    def __getitem__(self, degree: int) -> float:
        """Return the coefficient of a degree."""
        return self.coefficients[degree] if degree < len(self.coefficients) else 0.0

    def degree(self, tolerance: float) -> int:
        """Return the smallest degree whose tail is within a tolerance."""
        return int(np.argmax(self.tails <= tolerance))  # the last tail is zero


class Recurrence:
    """The last two Chebyshev vectors of a block, and the partial sums."""

    def __init__(self, A: Any, block: Any, interval: Interval, series: list[Series]) -> None:
        self.A, self.series, self.degree = A, series, 0
        # The interval is mapped to [-1, 1] by x -> slope x + shift.
        self.slope = 2 / (interval.high - interval.low)
        self.shift = -self.slope * (interval.high + interval.low) / 2
        self.totals = _multiples(block, [s[0] for s in series])
        self.previous, self.coefficients = block, A.stationary_coefficients(block)
        self.current = self._next(block, (self.slope, self.shift, 0.0), out=None)

    def advance(self, degree: int) -> None:
        """Advance to a degree; each vector overwrites the one before the previous."""
        factors = 2 * self.slope, 2 * self.shift, 1.0
        while self.degree < degree:
            following = self._next(self.current, factors, out=self.previous)
            self.previous, self.current = self.current, following

    def keep(self, count: int) -> None:
        """Keep the first ``count`` sums and drop the others."""
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
    """Sum several series over the same Chebyshev vectors, sorted by their rate of convergence.

    Returns the first sums, as many as have a relative error within the tolerance; the degree
    reached; and the growth of the vectors, which is above one if eigenvalues are outside the
    interval.
    """
    block = A.deflate(block)
    size, rounding = frobenius_norm(block), machine_epsilon(block.dtype)
    cut = min(tolerance, cut_of(block.dtype))
    vectors, growth = Recurrence(A, block, interval, series), 1.0
    needed = max(1, *(s.degree(cut) for s in series))
    while vectors.series:
        vectors.advance(min(needed, max(FIRST_CHECK, 3 * vectors.degree // 2)))
        growth = max(1.0, ratio(frobenius_norm(vectors.current), size))
        n_accurate, needed = 0, 0
        for s, total in zip(vectors.series, vectors.totals, strict=True):
            # Errors are relative to the vectors, but the tolerance is relative to the sum.
            scale = ratio(frobenius_norm(total), size * growth)
            if rounding * math.sqrt(vectors.degree) > tolerance * scale:
                break
            n_accurate, needed = n_accurate + 1, max(needed, s.degree(cut * scale))
        vectors.keep(n_accurate)
        if needed <= vectors.degree:
            break
    return list(vectors.totals), vectors.degree, growth


def _multiples(block: Any, factors: list[float]) -> Any:
    """Return a multiple of a block for each factor, as an array or lazy arrays."""
    if isinstance(block, np.ndarray):
        return np.multiply.outer(np.array(factors, block.dtype), block)
    return [factor * block for factor in factors]


def lower_end(A: Any) -> float:
    """Return an approximate lower bound of the spectrum of ``A``.

    A shorter interval needs shorter sums. The bound comes from a few Lanczos steps on one vector.
    If these miss the smallest eigenvalue, the vectors of a sum grow, which is detected.
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
    # There is an eigenvalue within the residual of each Ritz value.
    low = values[0] - 2 * abs(side[-1] * vectors[-1, 0]) - 0.01
    # Rounded down to a grid, since BLAS sums depend on the number of threads.
    return min(max(math.floor(low * GRID) / GRID, -1.0), 0.0)


def tolerance_of(dtype: Any) -> float:
    """Return the relative rounding error allowed: 3e-9 in float64, 7e-5 in float32."""
    return math.sqrt(machine_epsilon(dtype)) / 5


def cut_of(dtype: Any) -> float:
    """Return the relative truncation error allowed, or the rounding error if that is larger.

    The distance of a pair may be thousands of times smaller than the norm of the block, especially
    in disconnected graphs. Such distances still have 5 digits.
    """
    return max(3e-11, 8 * machine_epsilon(dtype))


def machine_epsilon(dtype: Any) -> float:
    """Return the rounding error of a dtype."""
    return float(np.finfo(dtype).eps)


def frobenius_norm(block: Any) -> float:
    """Return the Frobenius norm, computed eagerly, and scaled since squares may underflow."""
    largest = max(from_each_block(_largest, block))
    if not largest > 0:
        return 0.0
    # In pieces, which avoids a second block in memory.
    return largest * math.sqrt(sum(from_each_piece(partial(_sum_of_squares, unit=largest), block)))


def _largest(block: np.ndarray) -> float:
    return max(float(np.max(block)), -float(np.min(block)))


def _sum_of_squares(piece: np.ndarray, unit: float) -> float:
    return float(np.sum((piece / unit) ** 2))


def ratio(length: float, other: float) -> float:
    """Divide two lengths; return one if the second is zero."""
    return length / other if other > 0 else 1.0
