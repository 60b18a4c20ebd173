r"""All diffusion times at once, without eigenvectors.

.. math:: M = \sum_{p \ge 1} \tilde A^p = (I - \tilde A)^{-1} \tilde A

with :math:`\tilde A` the heat operator without its stationary direction, for which the sum
converges. :math:`|M_i - M_j|` is the distance of diffusion pseudotime (Haghverdi et al., 2016): how
differently heat has spread from two points, all times taken together. Others cut the sum to a dozen
eigenvectors; a sketch ``M G`` needs none, only the solution of a linear system, by conjugate
gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch.exceptions import SpectrumError
from heatsketch.progress import steps
from heatsketch.row_blocks import as_block, refuse_lazy

__all__ = ["multiscale_sketch"]

MOST_PRODUCTS = 5000
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}


def multiscale_sketch(A: Any, G: Any) -> np.ndarray:
    r"""Embedding :math:`Y = \frac{1}{\sqrt k} \sum_{p \ge 1} \tilde A^p G`, all times together.

    Parameters
    ----------
    A : HeatOperator
        Of a graph in one piece: where no heat flows, its differences add up for ever.
    G : array of shape (n, k)
        A random block; see :func:`gaussian_block` and :func:`rademacher_block`.

    Returns
    -------
    array of shape (n, k)
        Its distances estimate :math:`|M_i - M_j|`, with the intervals of a sketch.

    Raises
    ------
    SpectrumError
        If heat flows so slowly somewhere that the sum was not found.

    Examples
    --------
    One direction is left here, of eigenvalue 1/3, and 1/3 + 1/9 + ... = 1/2:

    >>> import numpy as np
    >>> from heatsketch import heat_operator, multiscale_sketch, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> multiscale_sketch(A, np.array([[1.0], [-1.0]])).round(6)
    array([[ 0.5],
           [-0.5]])
    """
    refuse_lazy("a sum over all times", G)
    G = as_block(A, G)
    right, _ = A.step(G, A.stationary_coefficients(G))
    right = A.deflate(right, out=right)
    solution = _conjugate_gradients(A, right)
    solution = A.deflate(solution, out=solution)
    solution /= np.sqrt(solution.dtype.type(G.shape[1]))
    return solution


def _conjugate_gradients(A: Any, right: np.ndarray) -> np.ndarray:
    """Solve ``(I - A) x = right`` in each column, beside the stationary direction."""
    solution, residual, direction = np.zeros_like(right), right, right.copy()
    left = _squares(residual)
    wanted = TOLERANCE[right.dtype] ** 2 * left
    product, done = None, steps("all times", MOST_PRODUCTS)
    for _ in range(MOST_PRODUCTS):
        if (left <= wanted).all():
            return solution
        coefficients = A.stationary_coefficients(direction)
        product, _ = A.step(direction, coefficients, factors=(-1.0, 1.0, 0.0), out=product)
        length = _ratios(left, np.einsum("ij,ij->j", direction, product))
        solution += length * direction
        residual -= length * product
        before, left = left, _squares(residual)
        direction *= _ratios(left, before)
        direction += residual
        done()
    raise SpectrumError(
        f"the sum over all diffusion times was not found in {MOST_PRODUCTS} products: X falls into "
        "pieces, or nearly; use a larger n_neighbors or epsilon, or embed the pieces one by one."
    )


def _squares(block: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", block, block)


def _ratios(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Divide; a column that is already solved stays as it is."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
