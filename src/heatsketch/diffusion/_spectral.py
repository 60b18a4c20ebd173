r"""Leading eigenpairs of the heat operator, and the diffusion map.

.. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

with :math:`A v_l = \lambda_l v_l` and the stationary :math:`v_0` left out. In a graph of several
connected components each has its own stationary direction, and all of them are left out: these are
indicators of the components, and would replace the directions within.

The iteration starts from a sketch: its columns are mostly in the span of the leading eigenvectors.
A few rounds of Chebyshev polynomials, which are large above the least eigenvalue of the block and
small below it, filter out the rest.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.partitioned import as_block, check_not_lazy
from heatsketch._core.progress import steps
from heatsketch.diffusion._all_times import Components, without_stationary
from heatsketch.diffusion._chebyshev import Interval, lower_end
from heatsketch.exceptions import HeatSketchError, SpectrumError

# Below this size the whole spectrum costs less than an iterative solver.
DENSE_ROWS = 500


MOST_ROUNDS = 100
LARGEST_DEGREE = 40
SPARE = 16  # columns beyond the number of eigenvectors


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, and their eigenvectors as columns."""

    values: np.ndarray
    vectors: np.ndarray


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
    >>> coordinates, eigenvalues, residuals = HeatSketch(n_neighbors=15).fit(X).diffusion_map(2)
    >>> coordinates.shape, bool((residuals < 1e-6).all())
    ((1797, 2), True)
    """

    coordinates: np.ndarray
    eigenvalues: np.ndarray
    residuals: np.ndarray


def leading_eigenpairs(A: Any, n_pairs: int, *, components: Components | None = None) -> Eigenpairs:
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
    Eigenpairs
        Vectors have length one; the largest entry of each is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch.diffusion._spectral import leading_eigenpairs
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> leading_eigenpairs(heat_operator(K, symmetric_scaling(K)), 1).values.round(6)
    array([0.333333])
    """
    n_rows, n_pairs = A.shape[0], int(n_pairs)  # -n_pairs of a numpy integer may be positive
    most = n_rows - _n_stationary(components)
    if not 1 <= n_pairs <= most:
        raise HeatSketchError(
            f"n_components={n_pairs} eigenvectors cannot be had from {n_rows} points, which have "
            f"{most} besides the stationary one of each connected component; use n_components=1 "
            f"to {most}."
        )
    if n_rows <= DENSE_ROWS or n_pairs > n_rows // 4:
        values, vectors = _dense_eigenpairs(A, n_pairs, components)
        return Eigenpairs(values, vectors * _signs(vectors))
    start = np.random.default_rng(0).standard_normal((n_rows, n_pairs + SPARE), A.dtype)
    options: dict[str, Any] = {"tolerance": 1e-10, "components": components}
    values, vectors, residuals = ritz_pairs(A, start, n_pairs, **options)
    if residuals.max() > 1e-3:
        raise SpectrumError(
            f"n_components={n_pairs} eigenvectors were not found (residual {residuals.max():.1e}); "
            "ask for fewer, or use HeatSketch, which needs none."
        )
    return Eigenpairs(values, vectors)


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
    """Return powers of eigenvalues, and raise if they do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._spectral import eigenvalue_powers
    >>> eigenvalue_powers(np.array([0.9, -0.5]), 2)
    array([0.81, 0.25])
    """
    if not np.isfinite(power):
        raise SpectrumError(f"power={power} is no diffusion time; use a finite number.")
    smallest = float(np.min(values))
    if smallest < 0 and power != int(power):
        raise SpectrumError(
            f"power={power} of the eigenvalue {smallest:.3g} is not a real number; use an integer "
            "power, fewer components, or n_neighbors=None, whose kernel has no negative ones.",
            power=power,
            n_neighbors=None,
        )
    if power < 0 and np.min(np.abs(values)) < np.sqrt(np.finfo(values.dtype).eps):
        raise SpectrumError(
            f"an eigenvalue of {np.min(np.abs(values)):.3g} cannot be divided by; "
            "use power=1 or more, or fewer components."
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
    # Stationary directions are moved below the spectrum, which lies in [-1, 1].
    if components is None:
        matrix -= 2 * A.stationary_part(A.stationary / (A.stationary @ A.stationary))
    else:
        matrix -= 2 * (eye - components.deflate(eye))
    # All of them: with a subset, LAPACK misses eigenvalues in a cluster.
    values, vectors = eigh((matrix + matrix.T) / 2, driver="evd")
    return values[: -n_pairs - 1 : -1], vectors[:, : -n_pairs - 1 : -1]


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

    An eigenvalue of ``A`` lies within :math:`r_l` of :math:`\lambda_l` (usually much nearer).

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
        and ``residuals``. These are above the tolerance if the iteration did not converge, because
        eigenvalues within the block are hardly larger than those beyond it.

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
    check_not_lazy("eigenvectors", block)
    block = as_block(A, block).astype(A.dtype, copy=False)
    n_others = A.shape[0] - _n_stationary(components)
    if not 1 <= n_pairs <= min(block.shape[1], n_others):
        raise HeatSketchError(
            f"n_pairs={n_pairs} eigenvectors cannot be had from a block of {block.shape[1]} "
            f"columns and {A.shape[0]} rows; use fewer pairs, or another n_components."
        )
    if block.shape[1] >= A.shape[0]:  # the block spans all directions
        values, vectors = _dense_eigenpairs(A, n_pairs, components)
        residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
        return RitzPairs(values, vectors * _signs(vectors), residuals)
    block = block[:, :n_others]
    tolerance = max(tolerance, 100 * float(np.finfo(A.dtype).eps))
    low, done = lower_end(A), steps("eigenvectors", MOST_ROUNDS)
    block = without_stationary(A, block, components)
    values, vectors, residuals = _rayleigh_ritz(A, block, n_pairs, components)
    for _ in range(MOST_ROUNDS):
        done()
        if (residuals <= tolerance).all():
            break
        unwanted = Interval(low, max(values[-1], low + 0.01))
        # Rounding adds stationary directions again, which must not outgrow all others.
        largest = values[0] if components is None else 1.0
        block = _filtered(A, vectors, unwanted, largest)
        block = without_stationary(A, block, components, out=block)
        values, vectors, residuals = _rayleigh_ritz(A, block, n_pairs, components)
    values, vectors = values[:n_pairs], vectors[:, :n_pairs]
    return RitzPairs(values, vectors * _signs(vectors), residuals)


def _rayleigh_ritz(
    A: Any, block: np.ndarray, n_pairs: int, components: Components | None
) -> RitzPairs:
    """Return all Ritz pairs of a block, with the first ``n_pairs`` residuals."""
    basis, _ = np.linalg.qr(block)
    if components is not None:
        # Columns that are almost dependent on others have rounding errors as large as themselves.
        basis, _ = np.linalg.qr(components.deflate(basis))
    product = A @ basis
    values, turn = np.linalg.eigh(basis.T @ product)
    values, turn = values[::-1], np.ascontiguousarray(turn[:, ::-1])
    vectors, some = basis @ turn, slice(n_pairs)
    rest = product @ turn[:, some] - vectors[:, some] * values[some]
    return RitzPairs(values, vectors, np.linalg.norm(rest, axis=0))


def _filtered(A: Any, block: np.ndarray, unwanted: Interval, largest: float) -> np.ndarray:
    """Multiply by a Chebyshev polynomial, at most one on the unwanted interval.

    The block is overwritten.
    """
    slope = 2 / (unwanted.high - unwanted.low)
    shift = -slope * (unwanted.high + unwanted.low) / 2
    # It grows as exp(degree * growth): the degree is limited to avoid overflow.
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
