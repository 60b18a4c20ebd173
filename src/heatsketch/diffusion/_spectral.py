r"""Leading eigenpairs of the heat operator, and the diffusion map.

.. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

with :math:`A v_l = \lambda_l v_l`, without the stationary :math:`v_0`. In a graph of several
connected components each has its own stationary direction, and all of them are removed: they are
indicators of the components, and would replace the directions within components.

The iteration starts from a sketch, whose columns are mostly in the span of the leading
eigenvectors. A few rounds of Chebyshev polynomials, which are large above the smallest eigenvalue
of the block and small below it, filter out the rest.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.partitioned import as_block
from heatsketch._core.progress import steps
from heatsketch.diffusion._all_times import Components, without_stationary
from heatsketch.diffusion._chebyshev import Interval, lower_end
from heatsketch.exceptions import HeatSketchError, SpectrumError

DENSE_ROWS = 500  # up to this size the whole spectrum takes less time than the iteration
MOST_ROUNDS = 100  # of the iteration
LARGEST_DEGREE = 40  # of the Chebyshev polynomials
SPARE = 16  # columns in addition to the number of eigenvectors


class RitzPairs(NamedTuple):
    """Eigenvalues in descending order, eigenvectors as columns, and residuals."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray


class DiffusionCoordinates(NamedTuple):
    r"""Diffusion map :math:`\lambda_l^p v_l` computed from a sketch.

    Attributes
    ----------
    coordinates : array of shape (n_samples, n_components)
        Eigenvectors times eigenvalues to the power of the sketch, with rows in the order of ``X``.
    eigenvalues : array of shape (n_components,)
        In descending order.
    residuals : array of shape (n_components,)
        Norm of the residual of each eigenpair.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatSketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HeatSketch(n_neighbors=15).fit(X)
    >>> coordinates, eigenvalues, residuals = model.sketch_.diffusion_map(2)
    >>> coordinates.shape, bool((residuals < 1e-6).all())
    ((1797, 2), True)
    """

    coordinates: np.ndarray
    eigenvalues: np.ndarray
    residuals: np.ndarray


def leading_eigenpairs(
    A: Any, n_pairs: int, *, components: Components | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Largest nonstationary eigenvalues of ``A``, with eigenvectors.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    n_pairs : int
        At most ``n - 1``.
    components : Components, optional
        Connected components, ``c`` of them, to leave out the stationary direction of each; then
        ``n_pairs`` is at most ``n - c``.

    Returns
    -------
    values : array of shape (n_pairs,)
        In descending order.
    vectors : array of shape (n, n_pairs)
        Of length one; the largest entry of each is positive.
    """
    n_rows, n_pairs = A.shape[0], int(n_pairs)  # -n_pairs of a numpy integer may be positive
    most = n_rows - _n_stationary(components)
    if not 1 <= n_pairs <= most:
        raise HeatSketchError(
            f"n_components={n_pairs} eigenvectors cannot be computed from {n_rows} points, which "
            f"have {most} besides the stationary ones of connected components; n_components must "
            f"be from 1 to {most}."
        )
    is_small = n_rows <= DENSE_ROWS or n_pairs > n_rows // 4
    shape = n_rows, n_rows if is_small else n_pairs + SPARE
    start = np.random.default_rng(0).standard_normal(shape, A.dtype)
    values, vectors, residuals = ritz_pairs(
        A, start, n_pairs, tolerance=1e-10, components=components
    )
    if residuals.max() > 1e-3:
        raise SpectrumError(
            f"n_components={n_pairs} eigenvectors did not converge (residual "
            f"{residuals.max():.1e}); use fewer, or HeatSketch, which needs no eigenvectors."
        )
    return values, vectors


def diffusion_coordinates(A: Any, n_components: int, *, power: float = 1.0) -> np.ndarray:
    r"""Algorithm 3: the diffusion map of leading eigenpairs.

    .. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    n_components : int
        Dimension ``k`` of the map.
    power : float, default=1.0
        Diffusion time ``t``.

    Returns
    -------
    array of shape (n, n_components)

    Examples
    --------
    A circle stays a circle:

    >>> import numpy as np
    >>> from heatsketch.diffusion import diffusion_coordinates, gaussian_affinity, heat_operator
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> from heatsketch.graph import neighbor_graph
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> K = gaussian_affinity(neighbor_graph(X), epsilon=0.25)
    >>> Y = diffusion_coordinates(heat_operator(K, symmetric_scaling(K)), 2, power=8)
    >>> radii = np.linalg.norm(Y, axis=1)
    >>> bool(np.ptp(radii) < 1e-10)
    True
    """
    values, vectors = leading_eigenpairs(A, n_components)
    return vectors * eigenvalue_powers(values, power)


def eigenvalue_powers(values: np.ndarray, power: float) -> np.ndarray:
    """Return powers of eigenvalues, and raise if they do not exist."""
    if not np.isfinite(power):
        raise SpectrumError(f"power must be a finite number, got {power}.")
    smallest = float(np.min(values))
    if smallest < 0 and power != int(power):
        raise SpectrumError(
            f"power={power} of the negative eigenvalue {smallest:.3g} is not a real number; use an "
            "integer power, fewer components, or n_neighbors=None, which has no negative ones."
        )
    if power < 0 and np.min(np.abs(values)) < np.sqrt(np.finfo(values.dtype).eps):
        raise SpectrumError(
            f"power={power} divides by an eigenvalue that is almost zero, "
            f"{np.min(np.abs(values)):.3g}; use power >= 1, or fewer components."
        )
    return values**power


def _n_stationary(components: Components | None) -> int:
    return 1 if components is None else len(components.lengths)


def _dense_eigenpairs(
    A: Any, n_pairs: int, components: Components | None
) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import eigh

    eye = np.eye(A.shape[0], dtype=A.dtype)
    matrix = without_stationary(A, A @ eye, components)
    # Move stationary directions below the spectrum, which is in [-1, 1].
    if components is None:
        matrix -= 2 * A.stationary_part(A.stationary / (A.stationary @ A.stationary))
    else:
        matrix -= 2 * (eye - components.deflate(eye))
    # Compute all eigenvalues: for a subset, LAPACK may miss some in a cluster.
    values, vectors = eigh((matrix + matrix.T) / 2, driver="evd")
    vectors = vectors[:, : -n_pairs - 1 : -1]
    return values[: -n_pairs - 1 : -1], vectors * _signs(vectors)


def ritz_pairs(
    A: Any,
    block: Any,
    n_pairs: int,
    *,
    tolerance: float = 1e-6,
    components: Components | None = None,
) -> RitzPairs:
    r"""Leading eigenpairs of ``A``, started from a block such as a sketch.

    .. math:: A v_l \approx \lambda_l v_l, \qquad r_l = |A v_l - \lambda_l v_l|

    An eigenvalue of ``A`` is within :math:`r_l` of :math:`\lambda_l`, and usually much closer.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    block : array of shape (n, k)
        Not modified. The more columns beyond ``n_pairs``, the fewer products are needed.
    n_pairs : int
        At most ``k``, and at most ``n - 1``.
    tolerance : float, default=1e-6
        Residual at which to stop. In float32 it is at least 1e-5.
    components : Components, optional
        As for :func:`leading_eigenpairs`.

    Returns
    -------
    RitzPairs
        ``values`` in descending order, ``vectors`` of length one whose largest entry is positive,
        and ``residuals``. If the iteration did not converge, residuals are above the tolerance:
        the eigenvalues of the block are then hardly larger than the next ones.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import gaussian_matrix, heat_operator, ritz_pairs, sketch
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> K = np.exp(-np.subtract.outer(np.arange(90), np.arange(90)) ** 2 / 9.0)
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> Y = sketch(A, gaussian_matrix(90, 16, seed=0), power=8)
    >>> (ritz_pairs(A, Y, 4).residuals < 1e-6).all()
    np.True_
    """
    block = as_block(A, block).astype(A.dtype, copy=False)
    n_others = A.shape[0] - _n_stationary(components)
    if not 1 <= n_pairs <= min(block.shape[1], n_others):
        raise HeatSketchError(
            f"n_pairs={n_pairs} eigenvectors cannot be computed from a block of {block.shape[1]} "
            f"columns and {A.shape[0]} rows; use fewer pairs, or more columns."
        )
    if block.shape[1] >= A.shape[0]:  # the block spans all directions
        values, vectors = _dense_eigenpairs(A, n_pairs, components)
        residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
        return RitzPairs(values, vectors, residuals)
    block = block[:, :n_others]
    tolerance = max(tolerance, 100 * float(np.finfo(A.dtype).eps))
    low, done = lower_end(A), steps("eigenvectors", MOST_ROUNDS)
    block = without_stationary(A, block, components)
    values, vectors, residuals = _rayleigh_ritz(A, block, n_pairs, components)
    for _ in range(MOST_ROUNDS):
        done()
        if (residuals <= tolerance).all():
            break
        damped = Interval(low, max(values[-1], low + 0.01))
        # Rounding adds the stationary directions of components again, which must not overflow.
        largest = values[0] if components is None else 1.0
        block = _filtered(A, vectors, damped, largest)
        block = without_stationary(A, block, components, out=block)
        values, vectors, residuals = _rayleigh_ritz(A, block, n_pairs, components)
    values, vectors = values[:n_pairs], vectors[:, :n_pairs]
    return RitzPairs(values, vectors * _signs(vectors), residuals)


def _rayleigh_ritz(
    A: Any, block: np.ndarray, n_pairs: int, components: Components | None
) -> RitzPairs:
    """Return all Ritz pairs of a block, but only ``n_pairs`` residuals."""
    basis, _ = np.linalg.qr(block)
    if components is not None:
        # Almost dependent columns have large relative rounding errors.
        basis, _ = np.linalg.qr(components.deflate(basis))
    product = A @ basis
    values, turn = np.linalg.eigh(basis.T @ product)
    values, turn = values[::-1], np.ascontiguousarray(turn[:, ::-1])
    vectors, some = basis @ turn, slice(n_pairs)
    rest = product @ turn[:, some] - vectors[:, some] * values[some]
    return RitzPairs(values, vectors, np.linalg.norm(rest, axis=0))


def _filtered(A: Any, block: np.ndarray, damped: Interval, largest: float) -> np.ndarray:
    """Multiply by a Chebyshev polynomial that is at most one on an interval.

    The block is overwritten.
    """
    slope = 2 / (damped.high - damped.low)
    shift = -slope * (damped.high + damped.low) / 2
    # The polynomial grows as exp(degree * growth); a limited degree avoids overflow.
    growth = math.acosh(max(slope * largest + shift, 1.0))
    degree = int(min(LARGEST_DEGREE, max(2, 18 / max(growth, 0.01))))
    coefficients = A.stationary_coefficients(block)
    current, coefficients = A.step(block, coefficients, factors=(slope, shift, 0.0))
    previous = block
    for _ in range(degree - 1):
        factors = 2 * slope, 2 * shift, 1.0
        following, coefficients = A.step(current, coefficients, factors=factors, out=previous)
        previous, current = current, following
    return current


def _signs(vectors: np.ndarray) -> np.ndarray:
    """Return the signs that make the largest entry of each vector positive."""
    places = np.abs(vectors).argmax(axis=0)[np.newaxis]
    return np.sign(np.take_along_axis(vectors, places, axis=0))
