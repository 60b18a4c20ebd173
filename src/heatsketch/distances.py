r"""Diffusion distances, exact, and how much an embedding distorts a distance.

.. math:: d_p(i, j) = |(A^p)_i - (A^p)_j|

compares how heat spreads from two points in ``p`` steps. It is what a sketch estimates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from heatsketch.exceptions import HeatSketchError

__all__ = ["bilipschitz_constant", "exact_diffusion_distances"]


def exact_diffusion_distances(
    A: Any, pairs: Any = None, *, power: int, stationary: str = "drop"
) -> np.ndarray:
    r"""Diffusion distances :math:`d_p(i, j) = |(A^p)_i - (A^p)_j|`, from the rows of ``A^p``.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    pairs : array of int of shape (m, 2), optional
        Pairs of points; all of them if left out. The cost is that of a sketch with one column
        for each point that occurs.
    power : int
        Diffusion time ``p``.
    stationary : {"drop", "keep"}, default="drop"
        Whether the stationary direction counts. For the bistochastic normalization it makes
        no difference; for the symmetric one it adds a term that compares densities.

    Returns
    -------
    array of shape (m,), or (n, n) without ``pairs``

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import exact_diffusion_distances, heat_operator, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> exact_diffusion_distances(A, [[0, 1]], power=1).round(6)
    array([0.471405])
    """
    if stationary not in ("drop", "keep"):
        raise HeatSketchError(f"stationary={stationary!r} is unknown; use 'drop' or 'keep'.")
    if not power >= 0:
        raise HeatSketchError(f"power={power} is negative; use a whole number of at least 0.")
    if pairs is None:
        return squareform(pdist(_rows(A, np.arange(A.shape[0]), power, stationary)))
    if np.ndim(pairs) != 2 or np.shape(pairs)[1] != 2:
        raise HeatSketchError(
            f"pairs has shape {np.shape(pairs)}, not (m, 2); give two points in each row."
        )
    points, places = np.unique(pairs, return_inverse=True)
    rows = _rows(A, points, power, stationary)
    first, second = places.reshape(np.shape(pairs)).T
    return np.linalg.norm(rows[first] - rows[second], axis=1)


def _rows(A: Any, points: np.ndarray, power: int, stationary: str) -> np.ndarray:
    """Return some rows of ``A^p``, which are its columns, since it is symmetric."""
    block = np.zeros((A.shape[0], len(points)), A.dtype)
    block[points, np.arange(len(points))] = 1
    coefficients = A.stationary_coefficients(block)
    for _ in range(power):
        block = A @ A.deflate(block)
    if stationary == "keep":
        block = block + A.stationary_part(coefficients)
    return block.T.astype(np.float64)


def bilipschitz_constant(Y: Any, distances: Any) -> float:
    r"""Distortion of an embedding, whatever its scale.

    .. math::

        L = \max_{i \ne j} \frac{|y_i - y_j|}{d_{ij}} \Big/
            \min_{i \ne j} \frac{|y_i - y_j|}{d_{ij}}

    One means that all distances are kept up to a common factor; infinity that two
    different points fell together, or that two points at distance zero were torn apart.

    Parameters
    ----------
    Y : array of shape (n, k)
        The embedding.
    distances : array of shape (n, n)
        What the distances should be.

    Returns
    -------
    float
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import bilipschitz_constant, neighbor_graph
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> distances = np.sqrt(neighbor_graph(X))
    >>> round(bilipschitz_constant(5 * X, distances), 9)
    1.0
    >>> bilipschitz_constant(X[:, :1], distances) > 10
    True
    """
    wanted = squareform(np.asarray(distances, np.float64), checks=False)
    found = pdist(np.asarray(Y, np.float64))
    apart = wanted > 0
    if not apart.any():
        raise HeatSketchError(
            f"distances of {len(Y)} points are all zero, so no distortion is defined; "
            "give at least two different points."
        )
    if np.any(found[~apart] > 0):
        return float("inf")
    stretch = found[apart] / wanted[apart]
    return float(stretch.max() / stretch.min()) if stretch.min() > 0 else float("inf")
