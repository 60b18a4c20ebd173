r"""Harmonic extension of values given at some rows to all other rows.

.. math:: h_i = g_i \quad (i \in B), \qquad h_i = \sum_j P_{ij} h_j \quad (i \notin B)

``P`` is the random walk of the heat operator. So :math:`h_i` is the mean of ``g`` at the first
given row that a walk from ``i`` reaches. If ``g`` is an indicator, this is the probability that
this row is in the indicated set. If the rows of ``g`` sum to one, all rows do.

With symmetric weights ``W`` of the links and their sums ``D`` this is the linear system

.. math:: (D - W)_{II} \, h_I = W_{IB} \, g

of all other rows ``I``, which is solved by conjugate gradients. These stop by a bound of the error:
if ``r`` is the residual of ``h``, the error is at most :math:`\max t \, \max |D^{-1} r|`. Here
``t`` is the mean number of steps until a given row is reached, which solves
:math:`(D - W)_{II} \, t = D` and is computed along with ``h``.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsketch._core.checks import as_array, check_finite, plain_floats
from heatsketch._core.partitioned import from_each_block, piece_sums
from heatsketch._core.progress import steps
from heatsketch._core.warn import warn
from heatsketch.exceptions import (
    DisconnectedGraphWarning,
    DtypeError,
    HeatSketchError,
    SpectrumError,
)
from heatsketch.graph._neighbors import label_components
from heatsketch.heat._graph import graph_of
from heatsketch.uses._links import link_weights

TOLERANCE = 1e-6
MOST_STEPS, MOST_RESTARTS = 20_000, 5
CHECKED = 8  # steps between two computations of the error bound


def harmonic(graph: Any, values: Any, rows: Any, *, tolerance: float = TOLERANCE) -> np.ndarray:
    """Extend values at some rows to all rows by averaging random walks.

    The value of a row is the expected value at the first of ``rows`` that a random walk from it
    reaches. With one indicator column for each terminal state, the results are fate probabilities,
    and sum to one.

    Parameters
    ----------
    graph : HeatGraph, or anything that has one
    values : array of shape (m,) or (m, k)
        Values at the given rows.
    rows : array of int of shape (m,)
        The given rows, all distinct.
    tolerance : float, default=1e-6
        Bound on the error, relative to the largest absolute value.

    Returns
    -------
    array of shape (n,) or (n, k), of float64
        NaN in rows of connected components without a given row, with a warning.

    Raises
    ------
    SpectrumError
        If walks to a given row take so many steps that the tolerance is not reached.

    Examples
    --------
    On a path between two given ends the values are linear:

    >>> import networkx as nx
    >>> from heatsketch import HeatGraph, harmonic
    >>> harmonic(HeatGraph.from_affinity(nx.path_graph(5)), [0.0, 1.0], rows=[0, 4]).round(6)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    graph = graph_of(graph)
    n_rows = graph.n_samples
    rows = checked_rows(rows, n_rows)
    values = _checked_values(values, len(rows))
    columns = values.reshape(len(rows), -1)
    largest = float(np.abs(columns).max()) or 1.0
    # The last column is for the mean number of steps.
    extended = np.zeros((n_rows, columns.shape[1] + 1))
    extended[rows, :-1] = columns / largest
    with graph.engine.working():
        W = link_weights(graph, of_walk=True)
        labels = graph.gathered(label_components(W)[1])
        is_reached = np.isin(labels, labels[rows])
        is_free = is_reached.copy()
        is_free[rows] = False
        given, free = graph.inner(extended), graph.inner(is_free[:, np.newaxis].astype(np.float64))
        extended += graph.gathered(_solution(W, given, free, tolerance))
    extended = extended[:, :-1] * largest
    extended[~is_reached] = np.nan
    if not is_reached.all():
        warn(
            DisconnectedGraphWarning,
            f"The connected components of {np.sum(~is_reached)} of {n_rows} points have none of "
            "the given rows, and their values are NaN. Add a row of each component to rows, or use "
            "more neighbours.",
        )
    return extended.reshape(n_rows, *values.shape[1:])


def checked_rows(rows: Any, n_rows: int) -> np.ndarray:
    """Return ``rows`` if they are valid and distinct, and raise otherwise."""
    shown, rows = reprlib.repr(rows), as_array(rows, "rows")
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or not len(rows):
        raise DtypeError(f"rows must be one or more integers, got {shown}.")
    if rows.min() < 0 or rows.max() >= n_rows or len(np.unique(rows)) < len(rows):
        raise HeatSketchError(f"rows must be distinct and from 0 to {n_rows - 1}, got {shown}.")
    return rows


def _checked_values(values: Any, n_given: int) -> np.ndarray:
    values = as_array(values, "values")
    if values.ndim not in (1, 2) or len(values) != n_given or not values.size:
        raise HeatSketchError(
            f"values must have one row of numbers for each of the {n_given} rows, got shape "
            f"{values.shape}."
        )
    numbers = plain_floats(values, "values").astype(np.float64)
    check_finite(numbers.reshape(n_given, -1), name="values")
    return numbers


@dataclass(frozen=True)
class _System:
    """The linear system of the free rows; the last column is the mean number of steps."""

    W: Any
    sums: Any
    free: Any
    tolerance: float

    def laplacian(self, block: Any) -> Any:
        return self.free * (self.sums * block - self.W.product(block))


def _solution(W: Any, given: Any, free: Any, tolerance: float) -> Any:
    """Return the harmonic values of the free rows, and zeros elsewhere."""
    system = _System(W, (W @ W.ones())[:, np.newaxis], free, tolerance)
    is_steps = np.arange(given.shape[1]) == given.shape[1] - 1
    right = W.keep(free * (W.product(given) + system.sums * is_steps))
    solution, n_left, error = W.keep(0 * right), MOST_STEPS, np.inf
    # Rounding makes the residual of conjugate gradients drift, so it is computed again.
    for _ in range(MOST_RESTARTS):
        residual = W.keep(right - system.laplacian(solution))
        error, longest = _bound(solution, residual / system.sums)
        if error <= tolerance:
            return solution * ~is_steps
        solution, n_left = _conjugate_gradients(system, solution, residual, n_left)
    raise SpectrumError(
        f"tolerance={tolerance} is not reached: values have an error of up to {error:.1e}, since "
        f"a walk takes up to {longest:.1e} steps to one of the given rows. Use more rows, or a "
        "larger tolerance."
    )


def _conjugate_gradients(
    system: _System, solution: Any, residual: Any, n_left: int
) -> tuple[Any, int]:
    """Return the columns once the error bound is within the tolerance, and the steps left."""
    keep, sums = system.W.keep, system.sums
    scaled = keep(residual / sums)
    direction, length = scaled, piece_sums(_column_products, residual, scaled)
    done = steps("harmonic extension", n_left)
    while n_left > 0:
        if n_left % CHECKED == 0 and _bound(solution, scaled)[0] <= system.tolerance:
            break
        product = system.laplacian(direction)
        step = _ratios(length, piece_sums(_column_products, direction, product))
        solution = keep(solution + step * direction)
        residual = keep(residual - step * product)
        scaled = keep(residual / sums)
        before, length = length, piece_sums(_column_products, residual, scaled)
        direction = keep(scaled + direction * _ratios(length, before))
        n_left -= 1
        done()
    return solution, n_left


def _bound(solution: Any, scaled: Any) -> tuple[float, float]:
    """Bound the error of all columns but the last, from scaled residuals, and the steps."""
    largest = from_each_block(_largest, solution, scaled)
    longest = max(float(steps) for steps, _ in largest)
    rest = np.max([rest for _, rest in largest], axis=0)
    # If the residual of t is at most rest < 1, then t is at most longest / (1 - rest).
    n_steps = longest / (1 - rest[-1]) if rest[-1] < 1 else np.inf
    return float(n_steps * rest[:-1].max()) if rest[:-1].any() else 0.0, longest


def _largest(solution: np.ndarray, scaled: np.ndarray) -> tuple[float, np.ndarray]:
    return float(solution[:, -1].max()), np.abs(scaled).max(axis=0)


def _column_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", x, y)


def _ratios(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Divide, with a ratio of zero for columns that have converged."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
