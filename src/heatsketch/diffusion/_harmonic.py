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
from typing import Any

import numpy as np

from heatsketch._core.checks import as_array
from heatsketch._core.progress import steps
from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion._links import link_weights
from heatsketch.diffusion._operator import HeatOperator
from heatsketch.exceptions import DtypeError, HeatSketchError, MissingValueError, SpectrumError
from heatsketch.graph._neighbors import label_components

TOLERANCE = 1e-6
MOST_STEPS, MOST_RESTARTS = 20_000, 5


def harmonic_extension(
    A: Any, values: Any, rows: Any, *, tolerance: float = TOLERANCE
) -> np.ndarray:
    """Extend values given at some rows to all rows, as means over random walks.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
        Operator of a neighbour graph in memory.
    values : array of shape (m,) or (m, k)
        Values at the given rows.
    rows : array of int of shape (m,)
        The given rows, all distinct.
    tolerance : float, default=1e-6
        Bound of the error, relative to the largest absolute value.

    Returns
    -------
    array of shape (n,) or (n, k), of float64
        NaN in rows of connected components without a given row.

    Raises
    ------
    SpectrumError
        If walks to a given row take so many steps that the tolerance is not reached.

    Examples
    --------
    On a path between two given ends the values are linear:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch.diffusion import degree_scaling, harmonic_extension, heat_operator
    >>> K = sparse.csr_array(np.eye(5) + np.eye(5, k=1) + np.eye(5, k=-1))
    >>> A = heat_operator(K, degree_scaling(K))
    >>> harmonic_extension(A, [0.0, 1.0], rows=[0, 4]).round(6)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    n_rows = A.shape[0]
    rows = checked_rows(rows, n_rows)
    values = _checked_values(values, len(rows))
    W = link_weights(A, A.stationary.astype(np.float64))
    _, labels = label_components(W)
    is_reached = np.isin(labels, labels[rows])
    is_given = np.zeros(n_rows, bool)
    is_given[rows] = True
    columns = values.reshape(len(rows), -1)
    found = np.zeros((n_rows, columns.shape[1]))
    found[rows] = columns
    largest = float(np.abs(found).max())
    found /= largest or 1.0
    found += _solution(W, found, is_reached & ~is_given, tolerance)
    found *= largest or 1.0
    found[~is_reached] = np.nan
    return found.reshape(n_rows, *values.shape[1:])


def checked_rows(rows: Any, n_rows: int) -> np.ndarray:
    """Return ``rows`` if they are valid and distinct, and raise otherwise.

    Examples
    --------
    >>> from heatsketch.diffusion._harmonic import checked_rows
    >>> checked_rows([0, 4], 5)
    array([0, 4])
    """
    shown, rows = f"rows={reprlib.repr(rows)}", as_array(rows, "rows")
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or not len(rows):
        raise DtypeError(f"{shown} must be integers, one for each given row; give at least one.")
    if rows.min() < 0 or rows.max() >= n_rows or len(np.unique(rows)) < len(rows):
        raise HeatSketchError(
            f"{shown} must be different rows from 0 to {n_rows - 1}; leave out the others."
        )
    return rows


def _checked_values(values: Any, n_given: int) -> np.ndarray:
    values = as_array(values, "values")
    if values.dtype.kind not in "biuf":
        raise DtypeError(f"values has dtype {values.dtype}; give real numbers.")
    if values.ndim not in (1, 2) or len(values) != n_given or not values.size:
        raise HeatSketchError(
            f"values has shape {values.shape}, for {n_given} rows; give one row of numbers for "
            "each of them."
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).reshape(n_given, -1).all(axis=1)))
        raise MissingValueError(f"values has NaN or infinity in row {row}; leave that row out.")
    return values


def _solution(W: Any, given: np.ndarray, is_free: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the harmonic values of the free rows, and zeros elsewhere.

    The last column of the system is the mean number of steps; see the docstring of this module.
    """
    weights = HeatOperator(W, None, np.zeros(W.shape[0]))
    sums = multiply_vector(W, np.ones(W.shape[0]))[:, np.newaxis]
    free = is_free[:, np.newaxis].astype(np.float64)

    def laplacian(block: np.ndarray) -> np.ndarray:
        return free * (sums * block - weights @ block)

    right = np.hstack([free * (weights @ given), free * sums])
    found, n_left, error = np.zeros_like(right), MOST_STEPS, np.inf
    # Restarted from the true residual, from which that of conjugate gradients drifts away.
    for _ in range(MOST_RESTARTS):
        residual = right - laplacian(found)
        error = _bound(found, residual / sums)
        if error <= tolerance:
            return found[:, :-1]
        n_left = _conjugate_gradients(laplacian, found, residual, sums, tolerance, n_left)
    raise SpectrumError(
        f"tolerance={tolerance} is not reached: values have an error of up to {error:.1e}, since "
        f"a walk takes up to {found[:, -1].max():.1e} steps to one of the given rows; give more "
        "rows, or a larger tolerance."
    )


def _conjugate_gradients(
    laplacian: Any,
    found: np.ndarray,
    residual: np.ndarray,
    sums: np.ndarray,
    tolerance: float,
    n_left: int,
) -> int:
    """Update all columns in place until the error bound is within the tolerance."""
    scaled = residual / sums
    direction, length = scaled.copy(), _products(residual, scaled)
    done = steps("harmonic extension", n_left)
    while n_left > 0 and _bound(found, scaled) > tolerance:
        product = laplacian(direction)
        step = _ratios(length, _products(direction, product))
        found += step * direction
        residual -= step * product
        np.divide(residual, sums, out=scaled)
        before, length = length, _products(residual, scaled)
        direction *= _ratios(length, before)
        direction += scaled
        n_left -= 1
        done()
    return n_left


def _bound(found: np.ndarray, scaled: np.ndarray) -> float:
    """Bound the error of all columns but the last, from scaled residuals."""
    rest = np.abs(scaled).max(axis=0)
    # If the residual of t is at most rest < 1, then t is at most found / (1 - rest).
    n_steps = found[:, -1].max() / (1 - rest[-1]) if rest[-1] < 1 else np.inf
    return float(n_steps * rest[:-1].max()) if rest[:-1].any() else 0.0


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", x, y)


def _ratios(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Divide, with a ratio of zero for columns that have converged."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
