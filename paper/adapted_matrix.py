r"""Random matrix adapted to the heat kernel, for a more accurate sketch.

The columns of a first sketch ``Y`` lie along the directions in which the heat kernel is large. With
:math:`Q` an orthonormal basis of these directions, and :math:`G` random, the matrix

.. math:: B = \bigl( Q, \; (I - Q Q^T) \, G / \sqrt{m} \bigr)

replaces :math:`G`: the part along :math:`Q` is exact, and only the rest is random. Distances
between rows of :math:`A^p B` are still unbiased estimates of diffusion distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch.exceptions import HeatSketchError

# If the last quarter of the directions of a sketch has at most this share of its sum of squares,
# few random columns are enough for the rest. Some are needed, since two adjacent points may differ
# only in the rest.
NEGLIGIBLE = 0.01


def adapted_matrix(Y: Any, G: Any) -> np.ndarray:
    r"""Random matrix :math:`B = (Q, (I - Q Q^T) G / \sqrt m)` for a second sketch.

    It is as wide as the first sketch. If the last quarter of the directions of the first sketch is
    negligible, seven eighths of ``B`` are ``Q``, otherwise one half. Either way ``B`` is multiplied
    by the square root of its width, since :func:`sketch` divides by it.

    Parameters
    ----------
    Y : array of shape (n, k)
        A sketch, with the stationary part if distances are to include it.
    G : array of shape (n, k)
        A random matrix, independent of the one that ``Y`` was computed with.

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import diffusion_distances, exact_diffusion_distances
    >>> from heatsketch.diffusion import gaussian_affinity, gaussian_matrix, heat_operator, sketch
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> from heatsketch.graph import neighbor_graph
    >>> from paper.adapted_matrix import adapted_matrix
    >>> K = gaussian_affinity(neighbor_graph(np.arange(50.0)[:, np.newaxis]), epsilon=9.0)
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> first = sketch(A, gaussian_matrix(50, 20, seed=0), power=8)
    >>> second = sketch(A, adapted_matrix(first, gaussian_matrix(50, 20, seed=1)), power=8)
    >>> pairs = [[0, 1], [0, 49]]
    >>> exact = exact_diffusion_distances(A, pairs, power=8)
    >>> bool(np.abs(diffusion_distances(second, pairs).distance / exact - 1).max() < 0.01)
    True
    """
    Y, G = np.asarray(Y), np.asarray(G)
    if Y.shape != G.shape or Y.shape[1] > Y.shape[0]:
        raise HeatSketchError(
            f"Y and G must have the same shape, with no more columns than rows, got {Y.shape} and "
            f"{G.shape}."
        )
    width = Y.shape[1]
    basis, triangle = np.linalg.qr(Y)
    turn, sizes, _ = np.linalg.svd(triangle)
    left = np.sum(sizes[-(width // 4) :] ** 2) if width >= 4 else np.inf
    n_adapted = width - width // 8 if left <= NEGLIGIBLE * np.sum(sizes**2) else width // 2
    Q = basis @ turn[:, :n_adapted]
    rest = G[:, : width - n_adapted]
    rest = (rest - Q @ (Q.T @ rest)) / np.sqrt(max(1, width - n_adapted))
    return (np.hstack([Q, rest]) * np.sqrt(width)).astype(np.result_type(Y.dtype, 1.0), copy=False)
