r"""All diffusion times at once: a sum that needs no choice of a power.

.. math:: Y = \frac{1}{\sqrt k} f(\tilde A) G, \qquad
          f(x) = \sum_{p \ge p_0} \alpha^{p - p_0} x^p = \frac{x^{p_0}}{1 - \alpha x},
          \qquad \alpha = 1 - \frac{1}{T}

:math:`\tilde A` is the heat operator without its stationary direction. ``T`` is the horizon: a
fraction ``1 / T`` of the heat is lost at every step. For ``p_0 = 1`` and large ``T`` the distance
between rows of :math:`f(\tilde A)` is that of diffusion pseudotime (Haghverdi et al., 2016). Rows
are divided by the stationary direction :math:`v`. Otherwise distances would compare densities if
two parts of the graph are weakly connected: the eigenvector of an eigenvalue near one is then
almost proportional to :math:`v` within each part, and its weight is up to ``T``.

``f`` is applied as a fixed polynomial. With the spectrum of :math:`\tilde A` in ``[low, high]``
mapped to ``[-1, 1]`` by ``z(x)``, and ``z_0 = z(1 / alpha)``,

.. math:: \frac{1}{1 - \alpha x} \approx \frac{1}{1 - \alpha x}
          \left(1 - \frac{T_n(z)}{T_n(z_0)}\right)
          = \frac{2}{\alpha (high - low) \cosh n \theta}
            \sum_{j < n} (2 - [j = 0]) \frac{\sinh (n - j) \theta}{\sinh \theta} T_j(z),
          \qquad \cosh \theta = z_0.

The relative error at every eigenvalue in ``[low, high]`` is at most :math:`1 / T_n(z_0)`, which
also bounds the relative error of every distance. No inner products are needed: the number of
products is known in advance, and the polynomial depends only on ``A``, not on ``G``.

A sketch starts its sum at the first power ``p_0`` at which the number of directions of its heat
kernel has settled. The sum commutes with the steps, so it is applied as soon as the sketch resolves
the heat kernel: its directions can be counted only then (docs/background/method.md).

In a graph of several connected components each component has its own stationary direction. All of
them are removed, so distances within a component are those of the component alone, up to a common
factor, since :math:`v` has length one in the whole graph. Then components are moved apart: see
:meth:`Components.offsets`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from heatsketch._core.partitioned import (
    PIECE,
    as_block,
    by_rows,
    computed,
    from_each_block,
    normal_vector,
    piece_sums,
)
from heatsketch._core.progress import steps
from heatsketch.diffusion._chebyshev import (
    Interval,
    Recurrence,
    Series,
    frobenius_norm,
    machine_epsilon,
    ratio,
)
from heatsketch.diffusion._heat_trace import (
    HeatTrace,
    diffuse_until_few,
    diffuse_until_settled,
)
from heatsketch.diffusion._sketch import diffuse
from heatsketch.graph._neighbors import label_components

# The heat kernel is resolved once the number of its directions is at most this many times the
# number of components.
DIRECTIONS_PER_COMPONENT = 6
LARGEST_POWER = 128  # of either part
# Longer horizons do not change results for real data above 1000, and for most curves above 10,000:
# see docs/background/method.md.
HORIZON = 10_000
# Pseudotime uses the first of these that is long enough for the slowest direction. The number of
# products grows with the square root of the horizon, up to 3750 for the last one.
HORIZONS = (HORIZON, 10 * HORIZON, 100 * HORIZON)
TOLERANCE = 0.002  # largest relative error of the weight of any eigenvalue
ROUGH_TOLERANCE = 0.5  # of a sum from which only the leading directions are computed
MORE_STEPS = 5  # after such a sum, which separate the leading directions from the bulk
LEAST_POWER = 5  # of the sum; below it, near distances are mostly bulk, whose part is estimated
FIRST_CHECK = 16  # Lanczos steps before the first check; the number grows by a quarter each time
MOST_STEPS = 1000  # Lanczos steps for the default horizon
# The interval is settled if the residual of the largest Ritz value is at most this share of its gap
# to the end of the spectrum.
SETTLED = 0.25
# A settled interval is accepted if further checks do not extend it, until the probability is below
# MISS_PROBABILITY that an eigenvalue is higher by more than MISS_MARGIN of the gap. Without these
# further checks, Lanczos misses the largest eigenvalue of 3 of the 8 graphs in test_all_times.py.
MISS_MARGIN = 0.5
MISS_PROBABILITY = 0.5
SEPARATION = 8  # of components, in units of the root mean square row of the embedding
GRID = 64  # the lower end of the spectrum is rounded down to a multiple of 1 / GRID
QUARTERS = tuple(math.sqrt(math.sqrt(2.0**quarter)) for quarter in range(4))  # 2**(quarter / 4)


class Resolvent(NamedTuple):
    r"""A sum over all times before the last product with ``A``.

    Attributes
    ----------
    block : array of shape (n, k)
        :math:`W = (I - \alpha \tilde A)^{-1} B` for the given block ``B``.
    n_products : int
        Products of ``A`` with blocks.
    horizon : float
        ``T``, given or chosen.
    interval : Interval
        Where the polynomial approximates the sum. It ends at one if the slowest direction decays
        more slowly than the horizon; distances along it then saturate.
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
    tolerance : float, default=0.002
        Bound of the relative error of distances. The error may be larger for a small, almost
        disconnected group of points if Lanczos misses the group, which is unlikely.
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
    if components is None:
        return Y
    directions = components.directions(G) / math.sqrt(Y.shape[1])
    return add_offsets(Y, labels, components.offsets(directions, Y))


def all_times_weights(values: np.ndarray, first_power: float) -> np.ndarray:
    r"""Return :math:`f(x) = x^{p_0} / (1 - \alpha x)` for some eigenvalues."""
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
        estimated. Two sums can be compared only if their intervals are the same.

    Returns
    -------
    Resolvent
    """
    if horizon is None or interval is None:
        horizon, interval = _first_long_enough(A, components, [horizon] if horizon else HORIZONS)
    interval = Interval(*map(float, interval))
    end, total, n_products = horizon / (horizon - 1), None, 0
    while True:
        block = without_stationary(A, block, components, out=block)
        coefficients, size = _coefficients(interval, end, tolerance), frobenius_norm(block)
        vectors = Recurrence(A, block, interval, [Series(coefficients)])
        done = steps("all times", len(coefficients))
        for degree in range(1, len(coefficients) + 1):
            vectors.advance(degree)
            done()
        total = vectors.totals[0] if total is None else total + vectors.totals[0]
        n_products += vectors.degree
        if interval == WHOLE or ratio(frobenius_norm(vectors.current), size) <= 2:
            total = without_stationary(A, total, components, out=total)
            return Resolvent(total, n_products, horizon, interval)
        # The vectors grew, so there are eigenvalues outside the interval. Solve for the residual.
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
    # sinh(j t) / sinh(t) is the polynomial U_{j-1}, and cosh(n t) is T_n. Computed by recurrence,
    # they are bit-identical on every machine.
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


# --- the sum of a sketch -------------------------------------------------------------------------


class Times(NamedTuple):
    """Where a sum over all diffusion times starts, and how it was computed.

    Attributes
    ----------
    first_power : int
        The first power of the sum, from 5 to 255.
    n_components : int
        Number of components of the sketch for which it was chosen.
    heat_trace : HeatTrace
        Up to the first power that the sketch resolves; the sum starts there or some steps later.
    interval : array of shape (2,)
        Interval of eigenvalues on which a polynomial approximates the sum.
    n_products : int
        Number of products with the operator.
    """

    first_power: int
    n_components: int
    heat_trace: HeatTrace
    interval: Any
    n_products: int

    @property
    def resolved_power(self) -> int:
        """The first power at which the sketch resolves the heat kernel."""
        return int(self.heat_trace.powers[-1])


def first_times(
    A: Any, G: Any, components: Components | None, n_components: int
) -> tuple[Any, Times]:
    """Choose where a sum over all times starts, and return it, roughly.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, m)
        A random matrix, which is overwritten, with at least ``FEWEST_COLUMNS`` columns.
    components : Components or None
        The connected components, if there are several.
    n_components : int
        Number of components of the sketch that should resolve the heat kernel.

    Returns
    -------
    block : array of shape (n, m)
        About the sum over all times of ``G``, without its last steps.
    times : Times
    """
    G = G if components is None else components.deflate(G)
    few = DIRECTIONS_PER_COMPONENT * n_components
    block, trace = diffuse_until_few(A, G, few, largest=LARGEST_POWER)
    del G
    solved = resolvent(A, block, components=components, tolerance=ROUGH_TOLERANCE)
    del block
    block, curve = diffuse_until_settled(A, solved.block, largest=LARGEST_POWER)
    settled = int(trace.powers[-1]) + len(curve.powers) - 1
    first_power = max(settled, LEAST_POWER)
    block = diffuse(A, block, power=first_power - settled + MORE_STEPS)
    interval, n_products = np.array(solved.interval), first_power + solved.n_products
    times = Times(first_power, n_components, trace, interval, n_products)
    return without_stationary(A, block, components, out=block), times


def sum_over_times(
    A: Any, S: Any, components: Components | None, times: Times
) -> tuple[Any, Times]:
    """Return the sum over all times of a block, without its last step.

    Parameters
    ----------
    A : HeatOperator
    S : array of shape (n, k)
        Overwritten.
    components : Components or None
        The connected components, if there are several.
    times : Times
        Where the sum starts, and its interval. If this is None, the horizon grows until heat has
        spread over the graph.

    Returns
    -------
    block : array of shape (n, k)
    times : Times
        With the interval and the number of products.
    """
    S = S if components is None else components.deflate(S)
    start = min(times.resolved_power, times.first_power)
    horizon = None if times.interval is None else HORIZON
    block = diffuse(A, S, power=start - 1)
    del S
    solved = resolvent(A, block, components=components, horizon=horizon, interval=times.interval)
    del block
    before_last = diffuse(A, solved.block, power=times.first_power - start)
    n_products = times.first_power + solved.n_products
    times = times._replace(interval=np.array(solved.interval), n_products=n_products)
    return without_stationary(A, before_last, components, out=before_last), times


# --- where the spectrum lies --------------------------------------------------------------------


def spectrum(A: Any, components: Components | None = None, end: float = 1.0) -> Interval:
    """Return an interval that contains the nonstationary spectrum of ``A``.

    Lanczos steps on one random vector are taken until the distance between the largest eigenvalue
    and ``end`` is known. Both ends are rounded outwards to a grid, so that rounding errors do not
    change them.
    """
    current = without_stationary(A, normal_vector(A.stationary)[:, np.newaxis], components)
    length = math.sqrt(_products(current, current)[0])
    if not length > 0:
        return Interval(0.0, 0.5)  # there are only stationary directions
    current, previous, check = current / length, None, FIRST_CHECK
    diagonal, side, interval = list[float](), [0.0], None
    for n_steps in range(1, min(_most_steps(end), A.shape[0]) + 1):
        w, factors = A.stationary_coefficients(current), (1.0, 0.0, side[-1])
        following, _ = A.step(current, w, factors=factors, out=previous)
        square, along, next_square = _products(current, following)
        diagonal.append(float(along / square))
        # The square is one up to rounding; without the division, that error would grow.
        side.append(math.sqrt(max(next_square - along**2 / square, 0.0)))
        if side[-1] < 16 * machine_epsilon(A.dtype):
            break
        if n_steps == check:
            low, largest, residual = _ends(diagonal, side)
            if end - largest <= 2 * (end - 1):
                break
            estimate = _interval(low, largest, residual, end)
            if interval is None or estimate.high > interval.high:
                interval = estimate if residual <= SETTLED * (end - largest) else None
            elif _miss_bound(n_steps, A.shape[0]) * (end - low) <= MISS_MARGIN * (end - largest):
                return interval
            check = 5 * check // 4
        following = computed(A.matrix, (following - diagonal[-1] * current) / side[-1])
        if components is not None:
            following = components.deflate(following)
        previous, current = current, following
    estimate = _interval(*_ends(diagonal, side), end)
    return interval if interval is not None and estimate.high <= interval.high else estimate


def _most_steps(end: float) -> int:
    """Return the largest number of Lanczos steps, which grows like the number of products."""
    return MOST_STEPS if end == 1 else round(MOST_STEPS * max(1, (HORIZON * (end - 1)) ** -0.5))


def _miss_bound(n_steps: int, n_rows: int) -> float:
    """Bound how far the largest eigenvalue is above the largest Ritz value.

    The bound is relative to the width of the spectrum, and is exceeded with a probability below
    ``MISS_PROBABILITY`` for any spectrum: theorem 4.2 of Kuczynski and Wozniakowski (1992),
    Estimating the largest eigenvalue by the power and Lanczos algorithms with a random start, SIAM
    J. Matrix Anal. Appl. 13.
    """
    return (math.log(1.648 * math.sqrt(n_rows) / MISS_PROBABILITY) / (2 * n_steps - 1)) ** 2


def _ends(diagonal: list[float], side: list[float]) -> tuple[float, float, float]:
    """Return a lower bound of the spectrum, its largest Ritz value and residual."""
    n, sides = len(diagonal), side[1:-1]
    if n <= MOST_STEPS:
        values, vectors = eigh_tridiagonal(diagonal, sides)
    else:  # all vectors would need gigabytes
        both = [
            eigh_tridiagonal(diagonal, sides, select="i", select_range=(i, i)) for i in (0, n - 1)
        ]
        values, vectors = map(np.hstack, zip(*both, strict=True))
    # There is an eigenvalue within the residual of each Ritz value.
    residuals = np.abs(side[-1] * vectors[-1])
    return values[0] - 2 * residuals[0] - 0.01, values[-1], residuals[-1]


def _interval(low: float, largest: float, residual: float, end: float) -> Interval:
    """Return the interval between the ends, rounded outwards."""
    # Zero is included, since it is the eigenvalue of the stationary direction after deflation.
    low = min(max(math.floor(low * GRID) / GRID, -1.0), 0.0)
    # A Ritz value is below its eigenvalue by about residual**2 / gap.
    gap = end - largest - residual * min(max(SETTLED, residual / (end - largest)), 1.0)
    if gap <= 2 * (end - 1):  # the slowest direction exceeds the horizon
        return Interval(low, 1.0)
    octave, quarter = divmod(math.floor(4 * math.log2(gap)), 4)
    return Interval(low, min(end - math.ldexp(QUARTERS[quarter], octave), 1.0))


def _products(x: Any, y: Any) -> np.ndarray:
    """Return ``x @ x``, ``x @ y`` and ``y @ y``, identical for any row partition."""
    return piece_sums(_products_of_piece, x, y)


def _products_of_piece(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = x.astype(float), y.astype(float)
    return np.array([(x * x).sum(), (x * y).sum(), (y * y).sum()])


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

    @staticmethod
    def label(K: Any) -> tuple[int, Any]:
        """Return the number of components of an affinity, and the component of each row."""
        return label_components(K)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths of the stationary directions."""
        v = self.A.stationary[:, np.newaxis]
        return np.sqrt(self._sums(v, v)[:, 0])

    def directions(self, S: Any) -> np.ndarray:
        """Return the coefficients of the stationary directions in the columns of a block."""
        return self._sums(self.A.stationary[:, np.newaxis], S) / self.lengths[:, np.newaxis]

    def offsets(self, directions: np.ndarray, embedding: Any) -> np.ndarray:
        r"""Return the offset added to all rows of each component, to separate them.

        The sum over all times of the stationary part of a component diverges. Instead, components
        are moved in the directions of these sums, by eight times the root mean square row of the
        embedding. They are then far apart, unless rows have very different lengths, but distances
        within components remain visible. The largest component is not moved.

        Parameters
        ----------
        directions : array of shape (n_components, k)
            Of the block of which the embedding is the sum over all times.
        embedding : array of shape (n, k)
            Without offsets.

        Returns
        -------
        array of shape (n_components, k)
        """
        v = self.A.stationary[:, np.newaxis]
        distance = SEPARATION * frobenius_norm(embedding) / math.sqrt(embedding.shape[0])
        ones = v * 0 + 1
        largest = np.argmax(self._sums(ones, ones)[:, 0])
        return ((directions - directions[largest]) * (distance or 1.0)).astype(embedding.dtype)

    def deflate(self, block: Any) -> Any:
        """Return a block without the stationary direction of each component."""
        v = self.A.stationary[:, np.newaxis]
        coefficients = self._sums(v, block) / self.lengths[:, np.newaxis] ** 2
        return by_rows(_deflated, block, v, self.labels[:, np.newaxis], coefficients=coefficients)

    def _sums(self, v: Any, block: Any) -> np.ndarray:
        """Return ``v @ block`` by component, identical for any row partition."""
        blocks = from_each_block(_component_sums, block, v, self.labels[:, np.newaxis])
        pieces = [piece for pieces in blocks for piece in pieces]
        n_components = 1 + max(int(labels[-1]) for labels, _ in pieces)
        totals = np.zeros((n_components, block.shape[1]))
        for labels, sums in pieces:
            totals[labels] += sums
        return totals


def add_offsets(block: Any, labels: Any, offsets: np.ndarray) -> Any:
    """Return a block with the offset of its component added to each row."""
    return by_rows(_moved, block, labels[:, np.newaxis], offsets=offsets)


def without_stationary(
    A: Any, block: Any, components: Components | None, *, out: Any = None
) -> Any:
    """Remove stationary directions from a block; ``out`` may be the block itself."""
    return A.deflate(block, out=out) if components is None else components.deflate(block)


def _component_sums(
    block: np.ndarray, v: np.ndarray, labels: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the sorted labels and their sums, for every ``PIECE`` rows."""
    pieces = []
    for start in range(0, len(block), PIECE):
        rows = slice(start, start + PIECE)
        present, places = np.unique(labels[rows, 0], return_inverse=True)
        n_rows = len(places)
        entries = v[rows, 0].astype(np.float64), (places, np.arange(n_rows))
        pieces.append((present, sparse.csr_array(entries, (len(present), n_rows)) @ block[rows]))
    return pieces


def _moved(block: np.ndarray, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return block + offsets.astype(block.dtype)[labels[:, 0]]


def _deflated(
    block: np.ndarray, v: np.ndarray, labels: np.ndarray, coefficients: np.ndarray
) -> np.ndarray:
    out, coefficients = np.empty_like(block), coefficients.astype(block.dtype)
    for start in range(0, len(block), PIECE):  # in pieces, which avoids a third block in memory
        rows = slice(start, start + PIECE)
        out[rows] = block[rows] - v[rows] * coefficients[labels[rows, 0]]
    return out
