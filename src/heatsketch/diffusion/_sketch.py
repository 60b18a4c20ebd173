r"""Sketches of the heat kernel: powers of ``A`` applied to a random matrix.

.. math:: Y = \frac{1}{\sqrt{k}} A^p G

The rows of ``Y`` are the embedding. If the columns of ``G`` are independent with mean zero and
variance one,

.. math:: E |y_i - y_j|^2 = |(A^p)_i - (A^p)_j|^2 = d_p(i, j)^2,

which is the squared diffusion distance, and for Gaussian ``G`` the ratio
:math:`k |y_i - y_j|^2 / d_p(i, j)^2` is exactly chi-squared with ``k`` degrees of freedom.

The stationary direction of ``A`` is removed from the block before every product, because it does
not decay and would dominate the rest (at p = 512 float64 distances would be noise). The removed
part is known in closed form: :meth:`HeatOperator.stationary_part`.

A small power is a loop. A large one is a sum of Chebyshev polynomials,

.. math:: x^p = \sum_j c_j T_j(x), \qquad c_j = 2^{1 - p} \binom{p}{(p - j) / 2},

for even ``p - j``, with half of this at :math:`j = 0` and zeros for odd ``p - j``,
whose coefficients are the probabilities that a random walk of ``p`` steps ends at distance ``j``.
Few are relevant beyond :math:`\sqrt{p}`, so that about
:math:`\sqrt{2 p \log(2 / \mathrm{tol})}` products replace ``p``.
If the spectrum begins above -1 the argument is mapped from a shorter interval, the random walk is
lazy, and up to 30 % fewer products are needed. The heat semigroup :math:`e^{-t (I - A)}` and
non-integer powers are such sums, too.

Their error is kept small relative to the result; see :mod:`heatsketch.diffusion._chebyshev`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import dropwhile
from typing import Any

import numpy as np
from scipy.special import gamma, ive

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

# Plain steps before a sum: most of a random matrix decays in the first step.
FIRST_STEPS = 4
# Most terms of the sum for a non-integer power, whose coefficients decay slowly.
LONGEST_SUM = 1000
# Beyond this power or time a sum would take more than seven thousand products.
LONGEST_TIME = 1_000_000


def diffuse(A: Any, block: Any, *, power: float) -> Any:
    """Apply ``A`` to a block ``power`` times, without its stationary direction.

    Parameters
    ----------
    A : HeatOperator
    block : array of shape (n, k)
        Not modified.
    power : int or float
        An integer, unless the spectrum of ``A`` is nonnegative, as for a Gaussian kernel of all
        pairs.

    Returns
    -------
    array of shape (n, k)

    Raises
    ------
    SpectrumError
        If ``A`` has no such power, or it cannot be computed accurately.

    Examples
    --------
    Powers add up:

    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch.diffusion._sketch import diffuse
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> block = np.array([[1.0], [0.0]])
    >>> diffuse(A, diffuse(A, block, power=2), power=1) == diffuse(A, block, power=3)
    array([[ True],
           [ True]])
    """
    _check_time("power", power)
    block = as_block(A, block)
    if power == int(power):
        return _whole_powers(A, block, [int(power)])[int(power)]
    # The sum takes enough of the power for fast decay of its coefficients; steps do the rest.
    whole = max(0, int(power) - 3)
    block = _fractional_power(A, block, power - whole, named=power)
    return _whole_powers(A, block, [whole])[whole]


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

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch.diffusion._sketch import diffuse_path
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> [Y[0, 0].round(3) for Y in diffuse_path(A, np.array([[1.0], [-1.0]]), powers=[2, 1])]
    [np.float64(0.111), np.float64(0.333)]
    """
    powers = list(powers)
    for power in powers:
        _check_time("powers", power)
        if power != int(power):
            raise SpectrumError(
                f"powers={power} is not whole, and a path has whole powers only; "
                f"use sketch(A, G, power={power})."
            )
    blocks = _whole_powers(A, as_block(A, block), powers)
    return [blocks[power] for power in powers]


def sketch(A: Any, G: Any, *, power: float) -> Any:
    r"""Embedding :math:`Y = A^p G / \sqrt{k}`, without the stationary direction.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        A random matrix; see :func:`gaussian_matrix` and :func:`rademacher_matrix`.
    power : int or float
        Diffusion time ``p``, at least 0; an integer, unless the spectrum of ``A`` is nonnegative,
        as for a Gaussian kernel of all pairs.

    Returns
    -------
    array of shape (n, k)

    Raises
    ------
    SpectrumError
        If ``A`` has no such power, or it cannot be computed accurately.

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
    >>> sketch(A, gaussian_matrix(200, 16, seed=0), power=2.5).shape
    (200, 16)
    """
    Y = diffuse(A, G, power=power)
    if Y is G:  # not scaled in place, since it belongs to the caller
        return G / math.sqrt(G.shape[1])
    Y /= math.sqrt(Y.shape[1])
    return Y


def sketch_path(A: Any, G: Any, *, powers: Iterable[int]) -> list[Any]:
    r"""Embeddings :math:`A^p G / \sqrt{k}` for many powers in one pass.

    It needs hardly more products than the largest power alone.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
    powers : iterable of int
        Diffusion times, in any order, each at least 0.

    Returns
    -------
    list of arrays of shape (n, k)
        One for each power, in the order given.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import gaussian_matrix, heat_operator, sketch_path
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> [Y.shape for Y in sketch_path(A, gaussian_matrix(2, 5, seed=0), powers=[8, 1, 64])]
    [(2, 5), (2, 5), (2, 5)]
    """
    blocks = diffuse_path(A, G, powers=powers)
    return [block / math.sqrt(block.shape[1]) for block in blocks]


def sketch_heat(A: Any, G: Any, *, time: float) -> Any:
    r"""Embedding :math:`Y = e^{-t (I - A)} G / \sqrt{k}` in continuous time.

    The stationary direction is left out. For times far above one the result is close to ``sketch``
    at the power ``time``; unlike a power, the time may be fractional for any ``A``.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        A random matrix; see :func:`gaussian_matrix` and :func:`rademacher_matrix`.
    time : float
        Diffusion time ``t``, nonnegative.

    Returns
    -------
    array of shape (n, k)

    Raises
    ------
    SpectrumError
        If ``time`` is negative or not finite.

    Examples
    --------
    Only one direction remains here, with eigenvalue 1/3, and 1.5 (1 - 1/3) = 1:

    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, sketch_heat, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> sketch_heat(A, np.array([[1.0], [-1.0]]), time=1.5).round(6)
    array([[ 0.367879],
           [-0.367879]])
    """
    _check_time("time", time)
    Y = _heat_semigroup(A, as_block(A, G), float(time), lower_end(A))
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
    # steps, a lazy one if the interval is not centred. They are computed without cancellation.
    side = (1 - low) / 4
    steps, walk = np.array([side, 1 - 2 * side, side]), np.ones(1)
    for digit in bin(power)[2:]:
        walk = _convolved(walk, walk)
        if digit == "1":
            walk = _convolved(walk, steps)
        beyond = int(np.argmax(walk > 1e-60))
        walk = walk[beyond : len(walk) - beyond]
    coefficients = 2 * walk[len(walk) // 2 :]
    coefficients[0] /= 2
    return coefficients


def _convolved(walk: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the convolution, added in order, while np.convolve uses BLAS."""
    found = np.zeros(len(walk) + len(steps) - 1)
    for place, probability in enumerate(steps):
        found[place : place + len(walk)] += probability * walk
    return found


# --- integer powers ------------------------------------------------------------------------


def _whole_powers(A: Any, block: Any, powers: Iterable[int]) -> dict[int, Any]:
    """Return a block for each power: small ones by steps, large ones by sums."""
    ordered = sorted(set(powers))
    large = list(dropwhile(lambda power: not _pays(power, block.dtype), ordered))
    small = ordered[: len(ordered) - len(large)]
    found, reached = {}, 0
    for power in small:
        block, reached = _steps(A, block, power - reached), power
        found[power] = block
    if large:
        first = max(reached, FIRST_STEPS)
        found.update(_large_powers(A, _steps(A, block, first - reached), large, first))
    return found


def _large_powers(A: Any, block: Any, powers: list[int], reached: int) -> dict[int, Any]:
    """Return a block for each power, from shared Chebyshev vectors if possible."""
    found: dict[int, Any] = {}
    low, high, tolerance = lower_end(A), 1.0, tolerance_of(block.dtype)
    while powers:
        interval = Interval(max(low, -high), high)
        start = interval.low / high
        series = [Series(power_coefficients(power - reached, start)) for power in powers]
        sums, degree, growth = chebyshev_sums(A, block, series, interval, tolerance)
        for power, total in zip(powers, sums, strict=False):
            total *= high ** (power - reached)
            found[power] = total
        if sums:
            reached = powers[len(sums) - 1]
            block = found[reached]
        powers = powers[len(sums) :]
        if powers and low > -1 and growth > 2:
            low = -1.0  # eigenvalues lie outside: extend the interval downwards
        elif powers:
            # The result is too small for a sum, whose error is relative to its initial block.
            # Steps do not have this problem; as many as before do not cost much more.
            ahead = min(max(degree, reached), powers[0] - reached)
            before = _steps(A, block, ahead - 1)
            block, reached = _steps(A, before, 1), reached + ahead
            if _is_gone(block):
                return found | {power: 0 * block for power in powers}
            high = _radius(block, before, powers[-1] - reached)
            # After a fast decay one direction outweighs the others, which need more digits.
            tolerance = 512 * machine_epsilon(block.dtype)
    return found


def _radius(block: Any, before: Any, power: int) -> float:
    """Return the radius of the interval on which to sum a power of a block.

    A block never decays faster than it last did: if ``|A x| = r |x|`` then ``|A^p y| >= r^p |y|``
    for ``y = A x``. So the error of a sum on ``[-r, r]`` is relative to its result. Eigenvalues
    outside make it longer, not wrong; a factor of 8 in its error is accepted so that fewer lie
    outside.
    """
    radius = ratio(frobenius_norm(block), frobenius_norm(before)) * 8 ** (1 / max(power, 1))
    return min(max(radius, 0.5), 1.0)  # below 1/2 a large power is only rounding


def _steps(A: Any, block: Any, count: int) -> Any:
    """Take steps in the memory of two blocks; the given one is not modified."""
    given, spare, coefficients = block, None, A.stationary_coefficients(block)
    done = steps("diffusion", count)
    for _ in range(count):
        following, coefficients = A.step(block, coefficients, out=spare)
        block, spare = following, None if block is given else block
        done()
    return block


def _pays(power: int, dtype: Any) -> bool:
    """Return True if a sum needs at most half of the products."""
    if power <= 2 * FIRST_STEPS:
        return False
    degree = Series(power_coefficients(power)).degree(cut_of(dtype))
    return 2 * (FIRST_STEPS + degree) <= power


# --- other functions of A ------------------------------------------------------------------


def _heat_semigroup(A: Any, block: Any, time: float, low: float) -> Any:
    if _is_gone(block):
        return 0 * block
    degrees = np.arange(40 + int(10 * math.sqrt(time)))  # higher terms are below rounding
    coefficients = 2 * ive(degrees, time * (1 - low) / 2)
    coefficients[0] /= 2
    series, tolerance = [Series(coefficients)], tolerance_of(block.dtype)
    sums, _, growth = chebyshev_sums(A, block, series, Interval(low, 1.0), tolerance)
    if sums:
        return sums[0]
    if growth > 2 and low > -1:
        return _heat_semigroup(A, block, time, -1.0)
    # In half the time, heat decays by half as many digits.
    return _heat_semigroup(A, _heat_semigroup(A, block, time / 2, low), time / 2, low)


def _fractional_power(A: Any, block: Any, power: float, *, named: float) -> Any:
    """Return ``A^power block`` from a sum on [0, 1], for a nonnegative spectrum."""
    degrees = np.arange(LONGEST_SUM + 1)
    scale = 2 * gamma(power + 0.5) / (math.sqrt(math.pi) * gamma(power + 1))
    coefficients = scale * _binomials(power, degrees)
    # The coefficients beyond decay like degree^(-2 power - 1).
    beyond = abs(coefficients[-1]) * LONGEST_SUM / (2 * power)
    series = [Series(coefficients, beyond)]
    tolerance = tolerance_of(block.dtype)
    sums, degree, growth = chebyshev_sums(A, block, series, Interval(0.0, 1.0), tolerance)
    if growth > 1.01:
        lowest = (1 - math.cosh(math.acosh(growth) / degree)) / 2
        raise SpectrumError(
            f"power={named} of a negative eigenvalue is not a real number, and A has one below "
            f"{lowest:.2g}; use an integer power, a kernel of all pairs (n_neighbors=None), which "
            "has no negative ones, or in Python sketch_heat.",
            power=named,
            n_neighbors=None,
        )
    if not sums:
        raise SpectrumError(
            f"power={named} cannot be had accurately from {LONGEST_SUM} products, since small "
            "eigenvalues have no smooth power; use an integer power, a larger one, or in Python "
            "sketch_heat.",
            power=named,
        )
    return sums[0]


def _is_gone(block: Any) -> bool:
    """Return True if a block has underflowed."""
    return not frobenius_norm(block) > np.finfo(block.dtype).tiny


def _binomials(half: float, places: np.ndarray) -> np.ndarray:
    """Return binom(2 half, half - place) up to a factor, halved at place 0."""
    steps = places[:-1]
    values = np.cumprod(np.concatenate([[1.0], (half - steps) / (half + steps + 1)]))
    values[0] /= 1 + (places[0] == 0)
    return values


def _check_time(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise SpectrumError(
            f"{name}={value} would amplify what heat has wiped out; "
            f"use a finite {name} that is not negative."
        )
    if value > LONGEST_TIME:
        raise SpectrumError(
            f"{name}={value} is so long that heat has wiped out all there was, or that its "
            f"products take days; use at most {LONGEST_TIME}."
        )
