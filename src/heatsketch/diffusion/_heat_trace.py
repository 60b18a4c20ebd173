r"""The heat trace: how much of the heat kernel remains after ``p`` steps.

.. math:: \mathrm{tr}(A^{2p}) = \sum_{l \ge 1} \lambda_l^{2p} = E |A^p g|^2

The stationary eigenvalue one is left out. A sketch estimates the trace at every step without
further products: it is the mean squared length of the columns, and their standard deviation gives
the standard error. The inner products of different columns estimate the trace at twice the power,
:math:`E (A^p g \cdot A^p h)^2 = \mathrm{tr}(A^{4p})`. Together they give the effective number of
directions of the kernel ``A^{2p}``,

.. math:: r_p = \frac{\mathrm{tr}(A^{2p})^2}{\mathrm{tr}(A^{4p})}.

A sketch ``Y`` of ``k`` columns approximates the kernel with the relative error

.. math:: \frac{E \lVert Y Y^T - A^{2p} \rVert_F^2}{\lVert A^{2p} \rVert_F^2} = \frac{r_p + 1}{k}:

at a small power more directions remain than it can represent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.partitioned import as_block, from_each_block, of_pieces
from heatsketch._core.progress import steps

GRAM_COLUMNS = 64  # columns whose inner products are used
SETTLED_DECREASE = 0.15  # largest relative decrease of the number of directions in a settled step
FEWEST_COLUMNS = 16  # needed to estimate the number of directions


class HeatTrace(NamedTuple):
    r"""A heat trace, with its error.

    Attributes
    ----------
    powers : array of int
        Diffusion times ``p``.
    trace : array
        Estimates of :math:`\mathrm{tr}(A^{2p})`, the stationary direction left out.
    error : array
        Their standard errors.
    directions : array
        Estimates of :math:`\mathrm{tr}(A^{2p})^2 / \mathrm{tr}(A^{4p})`, the effective number of
        directions of the heat kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import gaussian_matrix, heat_operator, heat_trace
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> _, trace, error, directions = heat_trace(A, gaussian_matrix(2, 5000, seed=0), largest=2)
    >>> (abs(trace - [3.0**-2, 3.0**-4]) < 4 * error).all(), directions.round()
    (np.True_, array([1., 1.]))
    """

    powers: np.ndarray
    trace: np.ndarray
    error: np.ndarray
    directions: np.ndarray


def heat_trace(A: Any, G: Any, *, largest: int) -> HeatTrace:
    r"""Heat trace :math:`\mathrm{tr}(A^{2p})` at the powers 1, 2, ..., largest.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        A random matrix; see :func:`gaussian_matrix` and :func:`rademacher_matrix`.
    largest : int
        The largest power.

    Returns
    -------
    HeatTrace
        ``powers``, ``trace``, ``error`` and ``directions``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import gaussian_matrix, heat_operator, heat_trace
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> K = np.exp(-np.subtract.outer(np.arange(50), np.arange(50)) ** 2 / 9.0)
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> trace = heat_trace(A, gaussian_matrix(50, 64, seed=0), largest=4).trace
    >>> (np.diff(trace) < 0).all()
    np.True_
    """
    return _diffuse_until(A, G, lambda directions: False, largest)[1]


def diffuse_until_few(A: Any, G: Any, few: float, *, largest: int) -> tuple[Any, HeatTrace]:
    r"""Apply ``A`` until the kernel has at most ``few`` directions.

    Counting directions takes two thirds of the time of a step. They are not counted at powers where
    more than ``few`` must remain: usually their logarithm is a convex function of the power, so it
    is above the line through the last two counts.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        Not modified.
    few : float
    largest : int
        Maximum number of steps.

    Returns
    -------
    block : array of shape (n, k)
        :math:`A^{p-1} G`, one step before the end.
    trace : HeatTrace
        At the powers 1, 2 and others up to p.
    """
    return _diffuse_until(A, G, lambda directions: directions[-1] <= few, largest, few)


def diffuse_until_settled(A: Any, G: Any, *, largest: int) -> tuple[Any, HeatTrace]:
    """Apply ``A`` until the last step hardly reduced the number of directions.

    Parameters and results are those of :func:`diffuse_until_few`, but at all powers.
    """
    return _diffuse_until(A, G, is_settled, largest)


def _diffuse_until(
    A: Any, G: Any, enough: Callable[[list[float]], bool], largest: int, few: float = math.inf
) -> tuple[Any, HeatTrace]:
    before: Any = None
    G = as_block(A, G)
    block, coefficients, done = G, A.stationary_coefficients(G), steps("diffusion", largest)
    power, powers, traces = 0, list[int](), list[tuple[float, float, float]]()
    while power < largest and not (traces and enough([count for *_, count in traces])):
        next_power = min(power + _steps_to_few(powers, traces, few), largest)
        while power < next_power:
            spare = None if before is G else before
            before, (block, coefficients) = block, A.step(block, coefficients, out=spare)
            power += 1
            done()
        powers.append(power)
        traces.append(trace_of_block(block))
    for _ in range(largest - power):  # report the steps that are not needed
        done()
    return before, HeatTrace(np.array(powers), *np.array(traces).T)


def is_settled(directions: list[float]) -> bool:
    """Return True if the last step hardly reduced the number of directions."""
    return len(directions) > 1 and directions[-1] >= (1 - SETTLED_DECREASE) * directions[-2]


def _steps_to_few(powers: list[int], traces: list[Any], few: float) -> int:
    """Return the least number of steps until ``few`` directions remain."""
    if len(powers) < 2:
        return 1
    (earlier, last), (*_, before), (*_, now) = powers[-2:], traces[-2], traces[-1]
    if not before > now > few:
        return 1
    steps_to_few = (last - earlier) * math.log(now / few) / math.log(before / now)
    return min(math.ceil(steps_to_few), last)


def trace_of_block(block: Any) -> tuple[float, float, float]:
    r"""Return trace of :math:`A^{2p}`, standard error and number of directions.

    Parameters
    ----------
    block : array of shape (n, k)
        :math:`A^p G`, without the stationary direction.
    """
    n_columns = block.shape[1]
    lengths, products = _squared_lengths_and_products(block)
    trace = lengths.mean()
    if n_columns < 2:
        return trace, math.inf, math.inf  # cannot be estimated from one column
    error = lengths.std(ddof=1) / math.sqrt(n_columns)
    apart = ~np.eye(len(products), dtype=bool)
    doubled = np.mean(products[apart] ** 2)
    return trace, error, trace**2 / doubled if doubled > 0 else 0.0


def _squared_lengths_and_products(block: Any) -> list[np.ndarray]:
    """Return squared lengths of all columns, and inner products of some."""
    return _sums(from_each_block(_moments_of_block, block))


def _moments_of_block(block: np.ndarray) -> list[np.ndarray]:
    return _sums(of_pieces(_moments_of_piece, block))


def _sums(moments: list[Any]) -> list[np.ndarray]:
    """Add up in a fixed order."""
    sums = (np.sum(parts, axis=0, dtype=np.float64) for parts in zip(*moments, strict=True))
    return [np.asarray(total) for total in sums]


def _moments_of_piece(piece: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    some = piece[:, :GRAM_COLUMNS]
    return np.einsum("ij,ij->j", piece, piece), some.T @ some
