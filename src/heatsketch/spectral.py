r"""Leading eigenpairs of the heat operator, and the diffusion map made of them.

.. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

(Algorithm 3), with :math:`A v_l = \lambda_l v_l` and the stationary :math:`v_0` left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heatsketch.exceptions import HeatSketchError, SpectrumError

__all__ = ["Eigenpairs", "diffusion_coordinates", "eigenvalue_powers", "leading_eigenpairs"]

# Below this size the whole spectrum costs less than the set-up of an iterative solver.
DENSE_ROWS = 500


class Eigenpairs(NamedTuple):
    """Eigenvalues from the largest down, and their eigenvectors as columns."""

    values: np.ndarray
    vectors: np.ndarray


def leading_eigenpairs(A: Any, n_pairs: int) -> Eigenpairs:
    """Largest eigenvalues of ``A`` after the stationary one, with their eigenvectors.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    n_pairs : int
        At most ``n - 1``.

    Returns
    -------
    Eigenpairs
        Vectors have length one; the largest entry of each is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import heat_operator, symmetric_scaling
    >>> from heatsketch.spectral import leading_eigenpairs
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> leading_eigenpairs(heat_operator(K, symmetric_scaling(K)), 1).values.round(6)
    array([0.333333])
    """
    n_rows = A.shape[0]
    if n_pairs >= n_rows:
        raise HeatSketchError(
            f"n_components={n_pairs} eigenvectors cannot be had from {n_rows} points, which "
            f"have {n_rows - 1} besides the stationary one; use n_components={n_rows - 1} or less."
        )
    if n_rows <= DENSE_ROWS or n_pairs > n_rows // 4:
        values, vectors = _dense_eigenpairs(A, n_pairs)
    else:
        values, vectors = _iterative_eigenpairs(A, n_pairs)
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[np.newaxis], axis=0)
    return Eigenpairs(values, vectors * np.sign(largest))


def diffusion_coordinates(A: Any, n_components: int, *, power: float = 1.0) -> np.ndarray:
    r"""Diffusion map :math:`y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)`: Algorithm 3.

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
    >>> from heatsketch import (
    ...     diffusion_coordinates, gaussian_affinity, heat_operator, neighbor_graph,
    ...     symmetric_scaling)
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
    """Return eigenvalues to a power, or say why it does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.spectral import eigenvalue_powers
    >>> eigenvalue_powers(np.array([0.9, -0.5]), 2)
    array([0.81, 0.25])
    """
    smallest = float(np.min(values))
    if smallest < 0 and power != int(power):
        raise SpectrumError(
            f"power={power} of the eigenvalue {smallest:.3g} is not a real number; use a whole "
            "power, fewer components, or n_neighbors=None, whose kernel has no negative ones."
        )
    if power < 0 and np.min(np.abs(values)) < np.sqrt(np.finfo(values.dtype).eps):
        raise SpectrumError(
            f"an eigenvalue of {np.min(np.abs(values)):.3g} cannot be divided by; "
            "use power=1 or more, or fewer components."
        )
    return values**power


def _dense_eigenpairs(A: Any, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import eigh

    matrix = A.deflate(A @ np.eye(A.shape[0], dtype=A.dtype))
    # The stationary direction goes below the spectrum, which lies in [-1, 1].
    matrix -= 2 * A.stationary_part(A.stationary / (A.stationary @ A.stationary))
    # All of them: asked for some, LAPACK loses eigenvalues that lie in a cluster.
    values, vectors = eigh((matrix + matrix.T) / 2, driver="evd")
    return values[-n_pairs:], vectors[:, -n_pairs:]


def _iterative_eigenpairs(A: Any, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Search again beside what was found, until nothing larger turns up.

    A solver that starts from one vector sees one copy of a multiple eigenvalue, and a graph in
    pieces has the eigenvalue one once for each piece.
    """
    values, vectors = _search(A, n_pairs, np.empty((A.shape[0], 0), A.dtype))
    while True:
        more, beside = _search(A, min(n_pairs, 8), vectors)
        if more.max() <= values.min() + np.sqrt(np.finfo(values.dtype).eps):
            return values, vectors
        vectors, _ = np.linalg.qr(np.hstack([vectors, beside]))
        values, turn = np.linalg.eigh(vectors.T @ (A @ vectors))
        values, vectors = values[-n_pairs:], vectors @ turn[:, -n_pairs:]


def _search(A: Any, n_pairs: int, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenpairs of ``A`` beside the stationary one and the known ones."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def beside(vector: np.ndarray) -> np.ndarray:
        vector = A.deflate(vector[:, np.newaxis])[:, 0]
        return vector - known @ (known.T @ vector)

    def multiply(vector: np.ndarray) -> np.ndarray:
        return beside(A @ beside(np.ravel(vector)))

    operator = LinearOperator(A.shape, matvec=multiply, dtype=A.dtype)
    # A fixed start, another one each time: ARPACK would draw one from a state of its own.
    start = np.cos(np.arange(A.shape[0]) * (1 + known.shape[1])).astype(A.dtype)
    try:
        return eigsh(operator, n_pairs, which="LA", v0=start)
    except ArpackNoConvergence as error:
        raise SpectrumError(
            f"n_components={n_pairs} eigenvectors were not found ({error}); ask for fewer, or use "
            "HeatSketch, which needs none."
        ) from error
