r"""All diffusion times at once: a sum that needs no choice of a power.

.. math:: Y = \frac{1}{\sqrt k} f(\tilde A) G, \qquad
          f(x) = \sum_{p \ge p_0} \alpha^{p - p_0} x^p = \frac{x^{p_0}}{1 - \alpha x},
          \qquad \alpha = 1 - \frac{1}{T}

:math:`\tilde A` is the heat operator without its stationary direction and ``T`` the horizon: a
fraction ``1 / T`` of the heat is lost at every step. For ``p_0 = 1`` and large ``T`` the distance
between rows of :math:`f(\tilde A)` is that of diffusion pseudotime (Haghverdi et al., 2016). Rows
are divided by the stationary direction :math:`v`: between rows of :math:`f(\tilde A)` itself, an
eigenvalue near one would compare densities. Its eigenvector is nearly proportional to :math:`v`
within each of two weakly connected parts, and its weight is up to ``T``.

``f`` is applied as a fixed polynomial. With the spectrum of :math:`\tilde A` in ``[low, high]``
mapped to ``[-1, 1]`` by ``z(x)``, and ``z_0 = z(1 / alpha)``,

.. math:: \frac{1}{1 - \alpha x} \approx \frac{1}{1 - \alpha x}
          \left(1 - \frac{T_n(z)}{T_n(z_0)}\right)
          = \frac{2}{\alpha (high - low) \cosh n \theta}
            \sum_{j < n} (2 - [j = 0]) \frac{\sinh (n - j) \theta}{\sinh \theta} T_j(z),
          \qquad \cosh \theta = z_0.

The relative error at every eigenvalue in ``[low, high]`` is at most :math:`1 / T_n(z_0)`, so this
also bounds the relative error of every distance. No inner products are needed: the number of
products is known in advance, and the polynomial depends on ``A`` alone, not on ``G``.

In a graph of several connected components each component has its own stationary direction. All of
them are left out, so that distances within a component are those of the component alone, times one
factor, since :math:`v` has length one in the whole graph. Components are moved apart as a whole:
see :meth:`Components.offsets`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from heatsketch._core.partitioned import PIECE, as_block, computed, from_each_block, normal_vector
from heatsketch._core.progress import steps
from heatsketch.diffusion._chebyshev import (
    Interval,
    Recurrence,
    Series,
    frobenius_norm,
    machine_epsilon,
    ratio,
)

# Results level off at 1000 for real data, and at 10,000 for most curves: docs/background/method.md.
# Where heat spreads more slowly, pseudotime uses the first of HORIZONS that is long enough. The
# number of products grows with the root of the horizon, to 3750 for the longest.
HORIZON = 10_000
HORIZONS = (HORIZON, 10 * HORIZON, 100 * HORIZON)
# Relative error of distances; that of a sketch of 64 components is 9 %.
TOLERANCE = 0.01
# Lanczos: checked after FIRST_CHECK steps, and then after every quarter more. The interval is
# settled once the residual of the largest Ritz value is at most SETTLED of the gap to the end. It
# is accepted if later checks find no eigenvalue beyond, until the probability that one lies beyond
# by HIDDEN of the gap, as that of a small group may, is below RISK for any spectrum. Of 8 graphs
# built to hide one (test_all_times.py), none did then; without this rule, 3 did.
FIRST_CHECK, MOST_STEPS, SETTLED, HIDDEN, RISK = 16, 1000, 0.25, 0.5, 0.5
# Distance between connected components, in units of the root mean square row of the embedding.
SEPARATION = 8
GRID = 64
QUARTERS = tuple(math.sqrt(math.sqrt(2.0**quarter)) for quarter in range(4))  # 2**(1/4) and so on


class Resolvent(NamedTuple):
    r"""A sum over all times that lacks the last product with ``A``.

    Attributes
    ----------
    block : array of shape (n, k)
        :math:`W = (I - \alpha \tilde A)^{-1} B` for the given block ``B``.
    n_products : int
        Products with ``A``, those of single vectors not counted.
    horizon : float
        ``T``, given or chosen.
    interval : Interval
        Where the polynomial approximates the sum. It ends at one if the slowest direction decays
        more slowly than the horizon, so that distances along it saturate.
    """

    block: Any
    n_products: int
    horizon: float
    interval: Interval


def sketch_all_times(
    A: Any,
    G: Any,
    *,
    first_power: int = 1,
    labels: Any = None,
    tolerance: float = TOLERANCE,
    horizon: float = HORIZON,
) -> Any:
    r"""Embedding over all diffusion times.

    .. math:: Y = \frac{1}{\sqrt k} \, \mathrm{diag}(v)^{-1} f(\tilde A) G

    Rows are divided by the stationary direction :math:`v`, of length one, so that distances are
    those of the random walk.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        A random matrix; see :func:`gaussian_matrix` and :func:`rademacher_matrix`.
    first_power : int, default=1
        Power :math:`p_0` at which the sum starts.
    labels : array of int of shape (n,), optional
        Connected component of each row, numbered from 0; omit it if there is only one.
    tolerance : float, default=0.01
        Bound of the relative error of distances. Those to a small, almost disconnected group of
        points may exceed it if Lanczos misses the group, which is unlikely.
    horizon : float, default=10000
        ``T``: a fraction ``1 / T`` of the heat is lost at every step.

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    Only one direction remains here, with eigenvalue 1/3, and 1/3 + 1/9 + ... = 1/2. Both entries
    of the stationary direction are 1 / sqrt(2):

    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, sketch_all_times, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> sketch_all_times(A, np.array([[1.0], [-1.0]]), tolerance=1e-9).round(3)
    array([[ 0.707],
           [-0.707]])
    """
    G = as_block(A, G)
    components = None if labels is None else Components(A, labels)
    block, coefficients = without_stationary(A, G, components), A.stationary_coefficients(G)
    for _ in range(first_power - 1):
        block, coefficients = A.step(block, coefficients)
    options = {"tolerance": tolerance, "horizon": horizon}
    Y = A @ resolvent(A, block, components=components, **options).block
    Y *= (A.dtype.type(math.sqrt(A.squared_length / Y.shape[1])) / A.stationary)[:, np.newaxis]
    return Y if components is None else add_offsets(Y, labels, components.offsets(G, Y))


def all_times_weights(values: np.ndarray, first_power: float) -> np.ndarray:
    r"""Return :math:`f(x) = x^{p_0} / (1 - \alpha x)` for some eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._all_times import all_times_weights
    >>> all_times_weights(np.array([0.9, 0.5]), 1).round(1)
    array([9., 1.])
    """
    return values**first_power / (1 - (1 - 1 / HORIZON) * values)


def resolvent(
    A: Any,
    block: Any,
    *,
    components: Components | None = None,
    tolerance: float = TOLERANCE,
    horizon: float | None = HORIZON,
    interval: Any = None,
) -> Resolvent:
    r"""Apply :math:`(I - \alpha \tilde A)^{-1}` to a block.

    Parameters
    ----------
    A : HeatOperator
    block : array of shape (n, k)
        Overwritten.
    components : Components, optional
        Required if the graph has several.
    tolerance : float
        As for :func:`sketch_all_times`.
    horizon : float or None
        As for :func:`sketch_all_times`; None uses the first of ``HORIZONS`` that the slowest
        direction does not exceed.
    interval : Interval, optional
        Interval that contains the spectrum without the stationary directions; by default it is
        estimated. Two sums are only comparable if theirs is the same.

    Returns
    -------
    Resolvent

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch.diffusion._all_times import resolvent
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> resolvent(A, np.array([[1.0], [-1.0]]), tolerance=1e-6).block.round(3)
    array([[ 1.5],
           [-1.5]])
    """
    if horizon is None or interval is None:
        horizon, interval = _first_long_enough(A, components, [horizon] if horizon else HORIZONS)
    interval = Interval(*map(float, interval))
    end, found, n_products = horizon / (horizon - 1), None, 0
    while True:
        block = without_stationary(A, block, components, out=block)
        coefficients, size = _coefficients(interval, end, tolerance), frobenius_norm(block)
        vectors = Recurrence(A, block, interval, [Series(coefficients)])
        done = steps("all times", len(coefficients))
        for degree in range(1, len(coefficients) + 1):
            vectors.advance(degree)
            done()
        found = vectors.totals[0] if found is None else found + vectors.totals[0]
        n_products += vectors.degree
        if interval == WHOLE or ratio(frobenius_norm(vectors.current), size) <= 2:
            found = without_stationary(A, found, components, out=found)
            return Resolvent(found, n_products, horizon, interval)
        # The vectors grew, so eigenvalues lie outside. The remaining right-hand side is known.
        block = vectors.current / math.cosh(vectors.degree * math.acosh(_pole(interval, end)))
        interval = WHOLE


def _first_long_enough(
    A: Any, components: Components | None, horizons: Sequence[float]
) -> tuple[float, Interval]:
    """Return the first horizon beyond the slowest direction, or the last, and the interval."""
    for horizon in horizons:
        interval = spectrum(A, components, horizon / (horizon - 1))
        if interval.high < 1:
            break
    return horizon, interval


WHOLE = Interval(-1.0, 1.0)


def _coefficients(interval: Interval, end: float, tolerance: float) -> np.ndarray:
    """Return the coefficients of the polynomial in the docstring of this module."""
    width = interval.high - interval.low
    n = math.ceil(math.acosh(1 / tolerance) / math.acosh(_pole(interval, end)))
    # sinh(j t) / sinh(t) is the polynomial U_{j-1}, and cosh(n t) is T_n: by recurrence they are
    # bit-identical on every machine.
    pole, second = _pole(interval, end), [0.0, 1.0]
    while len(second) <= n:
        second.append(2 * pole * second[-1] - second[-2])
    largest = pole * second[n] - second[n - 1]
    coefficients = np.array(second[n:0:-1]) * (4 * end / (width * largest))
    coefficients[0] /= 2
    return coefficients


def _pole(interval: Interval, end: float) -> float:
    """Return the position of the pole when the interval is mapped to [-1, 1]."""
    low, high = interval
    return (2 * end - high - low) / (high - low)


# --- where the spectrum lies --------------------------------------------------------------------


def spectrum(A: Any, components: Components | None = None, end: float = 1.0) -> Interval:
    """Return an interval that holds the nonstationary spectrum of ``A``.

    Lanczos steps on one random vector are taken until the distance between the largest eigenvalue
    and ``end`` is known. Both ends are rounded outwards to a grid, so that they depend on ``A``
    alone.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch.diffusion._all_times import spectrum
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> low, high = spectrum(heat_operator(K, symmetric_scaling(K)))
    >>> low < 1 / 3 < high < 0.5
    True
    """
    current = without_stationary(A, normal_vector(A.stationary)[:, np.newaxis], components)
    length = math.sqrt(_products(current, current)[0])
    if not length > 0:
        return Interval(0.0, 0.5)  # nothing but stationary directions
    current, previous, check = current / length, None, FIRST_CHECK
    diagonal, side, interval = list[float](), [0.0], None
    for n_steps in range(1, min(_most_steps(end), A.shape[0]) + 1):
        w, factors = A.stationary_coefficients(current), (1.0, 0.0, side[-1])
        following, _ = A.step(current, w, factors=factors, out=previous)
        square, along, beyond = _products(current, following)
        diagonal.append(float(along / square))
        # The square is one up to rounding; dividing by it keeps that error from growing.
        side.append(math.sqrt(max(beyond - along**2 / square, 0.0)))
        if side[-1] < 16 * machine_epsilon(A.dtype):
            break
        if n_steps == check:
            low, largest, residual = _ends(diagonal, side)
            if end - largest <= 2 * (end - 1):
                break
            found = _interval(low, largest, residual, end)
            if interval is None or found.high > interval.high:
                interval = found if residual <= SETTLED * (end - largest) else None
            elif _hidden(n_steps, A.shape[0]) * (end - low) <= HIDDEN * (end - largest):
                return interval
            check = 5 * check // 4
        following = computed(A.matrix, (following - diagonal[-1] * current) / side[-1])
        if components is not None:
            following = components.deflate(following)
        previous, current = current, following
    found = _interval(*_ends(diagonal, side), end)
    return interval if interval is not None and found.high <= interval.high else found


def _most_steps(end: float) -> int:
    """Return the largest number of Lanczos steps, which grows as that of products does."""
    return MOST_STEPS if end == 1 else round(MOST_STEPS * max(1, (HORIZON * (end - 1)) ** -0.5))


def _hidden(n_steps: int, n_rows: int) -> float:
    """Bound how far an eigenvalue lies beyond the largest Ritz value.

    The bound is relative to the width of the spectrum, and is exceeded with a probability below
    ``RISK`` for any spectrum: theorem 4.2 of Kuczynski and Wozniakowski (1992), Estimating the
    largest eigenvalue by the power and Lanczos algorithms with a random start, SIAM J. Matrix Anal.
    Appl. 13.
    """
    return (math.log(1.648 * math.sqrt(n_rows) / RISK) / (2 * n_steps - 1)) ** 2


def _ends(diagonal: list[float], side: list[float]) -> tuple[float, float, float]:
    """Return a lower bound of the spectrum, its largest Ritz value and residual."""
    n, sides = len(diagonal), side[1:-1]
    if n <= MOST_STEPS:
        values, vectors = eigh_tridiagonal(diagonal, sides)
    else:  # all vectors would take gigabytes
        both = [
            eigh_tridiagonal(diagonal, sides, select="i", select_range=(i, i)) for i in (0, n - 1)
        ]
        values, vectors = map(np.hstack, zip(*both, strict=True))
    # An eigenvalue lies within the residual of each Ritz value.
    residuals = np.abs(side[-1] * vectors[-1])
    return values[0] - 2 * residuals[0] - 0.01, values[-1], residuals[-1]


def _interval(low: float, largest: float, residual: float, end: float) -> Interval:
    """Return the interval between the ends, rounded outwards."""
    # It includes zero, the eigenvalue of the stationary direction after deflation.
    low = min(max(math.floor(low * GRID) / GRID, -1.0), 0.0)
    # A Ritz value is below its eigenvalue by about residual**2 / gap.
    gap = end - largest - residual * min(max(SETTLED, residual / (end - largest)), 1.0)
    if gap <= 2 * (end - 1):  # the horizon is the limit
        return Interval(low, 1.0)
    octave, quarter = divmod(math.floor(4 * math.log2(gap)), 4)
    return Interval(low, min(end - math.ldexp(QUARTERS[quarter], octave), 1.0))


def _products(x: Any, y: Any) -> np.ndarray:
    """Return ``x @ x``, ``x @ y`` and ``y @ y``, identical for any row partition."""
    return np.cumsum(np.concatenate(from_each_block(_products_of_pieces, x, y)), axis=0)[-1]


def _products_of_pieces(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    starts = range(0, len(x), PIECE)
    pieces = ((x[i : i + PIECE].astype(float), y[i : i + PIECE].astype(float)) for i in starts)
    return np.array([[(a * a).sum(), (a * b).sum(), (b * b).sum()] for a, b in pieces])


# --- connected components -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Components:
    """The connected components of a graph, and the stationary direction of each.

    Attributes
    ----------
    A : HeatOperator
    labels : array of int of shape (n,)
        Component of each row, numbered from 0.
    """

    A: Any
    labels: Any

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths of the stationary directions."""
        v = self.A.stationary[:, np.newaxis]
        return np.sqrt(self._sums(v, v)[:, 0])

    def offsets(self, G: Any, embedding: Any) -> np.ndarray:
        r"""Return the offset added to all rows of each component, to separate them.

        The sum over all times of the stationary part of a component diverges. Components are moved
        in the directions of these sums instead, by eight times the root mean square row of the
        embedding: far, unless rows differ widely in length, but not so far that offsets outweigh
        everything else. The largest component is not moved.

        Parameters
        ----------
        G : array of shape (n, k)
            The random matrix.
        embedding : array of shape (n, k)
            Without offsets.

        Returns
        -------
        array of shape (n_components, k)
        """
        v = self.A.stationary[:, np.newaxis]
        directions = self._sums(v, G) / self.lengths[:, np.newaxis] / math.sqrt(G.shape[1])
        distance = SEPARATION * frobenius_norm(embedding) / math.sqrt(embedding.shape[0])
        ones = v * 0 + 1
        largest = np.argmax(self._sums(ones, ones)[:, 0])
        return ((directions - directions[largest]) * (distance or 1.0)).astype(embedding.dtype)

    def deflate(self, block: Any) -> Any:
        """Return a block without the stationary direction of each component."""
        v = self.A.stationary[:, np.newaxis]
        coefficients = self._sums(v, block) / self.lengths[:, np.newaxis] ** 2
        return _by_rows(_deflated, block, v, self.labels[:, np.newaxis], coefficients=coefficients)

    def _sums(self, v: Any, block: Any) -> np.ndarray:
        """Return ``v @ block`` by component, identical for any row partition."""
        found = from_each_block(_component_sums, block, v, self.labels[:, np.newaxis])
        pieces = [piece for pieces in found for piece in pieces]
        n_components = 1 + max(int(labels[-1]) for labels, _ in pieces)
        totals = np.zeros((n_components, block.shape[1]))
        for labels, sums in pieces:
            totals[labels] += sums
        return totals


def add_offsets(block: Any, labels: Any, offsets: np.ndarray) -> Any:
    """Return a block with the offset of its component added to each row.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._all_times import add_offsets
    >>> add_offsets(np.zeros((3, 1)), np.array([0, 1, 0]), np.array([[0.0], [5.0]])).ravel()
    array([0., 5., 0.])
    """
    return _by_rows(_moved, block, labels[:, np.newaxis], offsets=offsets)


def without_stationary(
    A: Any, block: Any, components: Components | None, *, out: Any = None
) -> Any:
    """Remove stationary directions from a block; ``out`` may be the block itself."""
    return A.deflate(block, out=out) if components is None else components.deflate(block)


def _component_sums(
    block: np.ndarray, v: np.ndarray, labels: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the sorted labels and their sums, for every ``PIECE`` rows."""
    found = []
    for start in range(0, len(block), PIECE):
        rows = slice(start, start + PIECE)
        present, places = np.unique(labels[rows, 0], return_inverse=True)
        n_rows = len(places)
        entries = v[rows, 0].astype(np.float64), (places, np.arange(n_rows))
        found.append((present, sparse.csr_array(entries, (len(present), n_rows)) @ block[rows]))
    return found


def _by_rows(function: Callable[..., Any], block: Any, *others: Any, **arrays: Any) -> Any:
    if isinstance(block, np.ndarray):
        return function(block, *others, **arrays)
    return block.map_blocks(function, *others, **arrays, dtype=block.dtype)


def _moved(block: np.ndarray, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return block + offsets.astype(block.dtype)[labels[:, 0]]


def _deflated(
    block: np.ndarray, v: np.ndarray, labels: np.ndarray, coefficients: np.ndarray
) -> np.ndarray:
    found, coefficients = np.empty_like(block), coefficients.astype(block.dtype)
    for start in range(0, len(block), PIECE):  # avoids a third block in memory
        rows = slice(start, start + PIECE)
        found[rows] = block[rows] - v[rows] * coefficients[labels[rows, 0]]
    return found
