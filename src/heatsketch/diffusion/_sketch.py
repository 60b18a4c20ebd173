r"""Sketches of the heat kernel: powers of ``A`` applied to a random matrix.

.. math:: Y = \frac{1}{\sqrt{k}} A^p G

The rows of ``Y`` are the embedding. If the columns of ``G`` are independent with mean zero and
variance one,

.. math:: E |y_i - y_j|^2 = |(A^p)_i - (A^p)_j|^2 = d_p(i, j)^2,

which is the squared diffusion distance, and for Gaussian ``G`` the ratio
:math:`k |y_i - y_j|^2 / d_p(i, j)^2` is exactly chi-squared with ``k`` degrees of freedom.

The stationary direction of ``A`` is removed from the block before every product. It does not decay,
so its rounding errors would dominate the rest: at p = 512, float64 distances would be noise. The
removed part is known in closed form: :meth:`HeatOperator.stationary_part`.

A small power is a loop. A large one is a sum of Chebyshev polynomials,

.. math:: x^p = \sum_j c_j T_j(x), \qquad c_j = 2^{1 - p} \binom{p}{(p - j) / 2},

for even ``p - j``, with half of this at :math:`j = 0` and zeros for odd ``p - j``,
whose coefficients are the probabilities that a random walk of ``p`` steps ends at distance ``j``.
They are small above :math:`\sqrt{p}`, so about :math:`\sqrt{2 p \log(2 / \mathrm{tol})}` products
are enough instead of ``p``. If the spectrum begins above -1, a shorter interval is mapped to the
domain of the polynomials, the random walk is lazy, and up to 30 % fewer products are needed.

The error of a sum is kept small relative to its result; see :mod:`heatsketch.diffusion._chebyshev`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import dropwhile
from typing import Any

import numpy as np

from heatsketch._core.partitioned import as_block
from heatsketch._core.progress import steps
from heatsketch.diffusion._chebyshev import (
    Interval,
    Series,
    chebyshev_sums,
    cut_of,
    frobenius_norm,
    lower_end,
    machine_epsilon,
    ratio,
    tolerance_of,
)
from heatsketch.exceptions import SpectrumError

FIRST_STEPS = 4  # plain steps before a sum, since most of a random matrix decays in the first ones
LARGEST_POWER = 1_000_000  # a sum takes seven thousand products for it


def diffuse(A: Any, block: Any, *, power: int) -> Any:
    """Apply ``A`` to a block ``power`` times, without its stationary direction.

    Parameters
    ----------
    A : HeatOperator
    block : array of shape (n, k)
        Not modified.
    power : int

    Returns
    -------
    array of shape (n, k)
    """
    return diffuse_path(A, block, powers=[power])[0]


def diffuse_path(A: Any, block: Any, *, powers: Iterable[int]) -> list[Any]:
    """Apply many powers of ``A`` to a block, in one pass.

    Parameters
    ----------
    A : HeatOperator
    block : array of shape (n, k)
        Not modified.
    powers : iterable of int

    Returns
    -------
    list of arrays of shape (n, k)
        One for each power, in the order given; the power 0 is the block itself.
    """
    powers = [_checked_power(power) for power in powers]
    block, ordered = as_block(A, block), sorted(set(powers))
    # Small powers are computed by steps, large ones by sums.
    large = list(dropwhile(lambda power: not _is_faster_as_sum(power, block.dtype), ordered))
    blocks, reached = {}, 0
    for power in ordered[: len(ordered) - len(large)]:
        block, reached = _steps(A, block, power - reached), power
        blocks[power] = block
    if large:
        first = max(reached, FIRST_STEPS)
        blocks |= _large_powers(A, _steps(A, block, first - reached), large, first)
    return [blocks[power] for power in powers]


def sketch(A: Any, G: Any, *, power: int) -> Any:
    r"""Embedding :math:`Y = A^p G / \sqrt{k}`, without the stationary direction.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        A random matrix; see :func:`gaussian_matrix` and :func:`rademacher_matrix`.
    power : int
        Diffusion time ``p``, from 0 to a million.

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import bistochastic_scaling, gaussian_affinity, gaussian_matrix
    >>> from heatsketch.diffusion import heat_operator, sketch
    >>> from heatsketch.graph import neighbor_graph
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> K = gaussian_affinity(neighbor_graph(X), epsilon=2.0)
    >>> A = heat_operator(K, bistochastic_scaling(K))
    >>> sketch(A, gaussian_matrix(200, 16, seed=0), power=8).shape
    (200, 16)
    """
    Y = diffuse(A, G, power=power)
    return Y / math.sqrt(Y.shape[1])


def power_coefficients(power: int, low: float = -1.0) -> np.ndarray:
    r"""Return the coefficients of :math:`x^p = \sum_j c_j T_j(x)`.

    Parameters
    ----------
    power : int
    low : float, default=-1.0
        Lower end of the interval that is mapped to [-1, 1], the domain of the polynomials; its
        upper end is one.

    Returns
    -------
    array of shape (power + 1,), or shorter if coefficients are below 1e-60

    Examples
    --------
    >>> from heatsketch.diffusion._sketch import power_coefficients
    >>> power_coefficients(3)
    array([0.  , 0.75, 0.  , 0.25])
    >>> power_coefficients(1, low=0.0)
    array([0.5, 0.5])
    """
    # With x = (z + 1/z) / 2 they are the probabilities of the positions of a random walk after p
    # steps, which is lazy if the interval is not centred. All are >= 0, so nothing cancels.
    side = (1 - low) / 4
    steps, walk = np.array([side, 1 - 2 * side, side]), np.ones(1)
    for digit in bin(power)[2:]:
        walk = _convolved(walk, walk)
        if digit == "1":
            walk = _convolved(walk, steps)
        n_tiny = int(np.argmax(walk > 1e-60))
        walk = walk[n_tiny : len(walk) - n_tiny]
    coefficients = 2 * walk[len(walk) // 2 :]
    coefficients[0] /= 2
    return coefficients


def _convolved(walk: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the convolution, added in a fixed order, without BLAS."""
    total = np.zeros(len(walk) + len(steps) - 1)
    for place, probability in enumerate(steps):
        total[place : place + len(walk)] += probability * walk
    return total


def _large_powers(A: Any, block: Any, powers: list[int], reached: int) -> dict[int, Any]:
    """Return a block for each power, from shared Chebyshev vectors if possible."""
    blocks: dict[int, Any] = {}
    low, high, tolerance = lower_end(A), 1.0, tolerance_of(block.dtype)
    while powers:
        interval = Interval(max(low, -high), high)
        start = interval.low / high
        series = [Series(power_coefficients(power - reached, start)) for power in powers]
        sums, degree, growth = chebyshev_sums(A, block, series, interval, tolerance)
        for power, total in zip(powers, sums, strict=False):
            total *= high ** (power - reached)
            blocks[power] = total
        if sums:
            reached = powers[len(sums) - 1]
            block = blocks[reached]
        powers = powers[len(sums) :]
        if powers and low > -1 and growth > 2:
            low = -1.0  # extend the interval, since there are eigenvalues below it
        elif powers:
            # The result is too small for a sum, whose error is relative to its initial block. The
            # error of steps is not; take as many as the sum had terms.
            ahead = min(max(degree, reached), powers[0] - reached)
            before = _steps(A, block, ahead - 1)
            block, reached = _steps(A, before, 1), reached + ahead
            if _is_gone(block):
                return blocks | {power: 0 * block for power in powers}
            high = _radius(block, before, powers[-1] - reached)
            # After a fast decay one direction is larger than the others, which need more digits.
            tolerance = 512 * machine_epsilon(block.dtype)
    return blocks


def _radius(block: Any, before: Any, power: int) -> float:
    """Return the radius of the interval on which to sum a power of a block.

    The decay of a block only slows down: if ``|A x| = r |x|`` then ``|A^p y| >= r^p |y|`` for
    ``y = A x``. So the error of a sum on ``[-r, r]`` is relative to its result. With eigenvalues
    outside the interval the sum takes longer but is correct; to have fewer of them, the interval
    is extended at the price of a factor of 8 in the error.
    """
    radius = ratio(frobenius_norm(block), frobenius_norm(before)) * 8 ** (1 / max(power, 1))
    return min(max(radius, 0.5), 1.0)  # large powers of eigenvalues below 1/2 are below rounding


def _steps(A: Any, block: Any, count: int) -> Any:
    """Take steps in the memory of two blocks; the given block is not modified."""
    given, spare, coefficients = block, None, A.stationary_coefficients(block)
    done = steps("diffusion", count)
    for _ in range(count):
        following, coefficients = A.step(block, coefficients, out=spare)
        block, spare = following, None if block is given else block
        done()
    return block


def _is_faster_as_sum(power: int, dtype: Any) -> bool:
    """Return True if a sum needs at most half as many products as steps."""
    if power <= 2 * FIRST_STEPS:
        return False
    degree = Series(power_coefficients(power)).degree(cut_of(dtype))
    return 2 * (FIRST_STEPS + degree) <= power


def _is_gone(block: Any) -> bool:
    """Return True if a block has underflowed."""
    return not frobenius_norm(block) > np.finfo(block.dtype).tiny


def _checked_power(power: Any) -> int:
    if not 0 <= power <= LARGEST_POWER or power != int(power):
        raise SpectrumError(
            f"power must be an integer from 0 to {LARGEST_POWER:,}, got {power}; products for a "
            "larger one would take days."
        )
    return int(power)
