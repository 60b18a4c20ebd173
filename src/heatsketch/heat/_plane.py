"""Two-dimensional coordinates of embeddings, for plots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Plane(NamedTuple):
    """Points in two dimensions.

    Attributes
    ----------
    points : array of shape (n, 2)
    eigenvalues : array of shape (at most 2,)
        Eigenvalues of the heat operator for the two axes.
    """

    points: np.ndarray
    eigenvalues: np.ndarray


def diffusion_plane(made: Any) -> Plane:
    """Return the diffusion map in two dimensions, by Ritz vectors of the sketch.

    If the sketch has too few components, missing dimensions are filled with zeros.
    """
    n_samples, n_components = made.embedding.shape
    points = np.zeros((n_samples, 2), made.embedding.dtype)
    known = min(2, n_components, n_samples - made.graph.n_connected_components)
    points[:, :known], eigenvalues, _ = made.diffusion_map(known)
    return Plane(points, eigenvalues)


def principal_plane(Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the first two principal components, and their shares of the variance.

    The second is zero if there is only one column.
    """
    Y = Y.astype(np.float64) - Y.mean(axis=0, dtype=np.float64)
    unit = np.abs(Y).max() or 1.0  # squares of very small entries would underflow
    Y /= unit
    values, directions = np.linalg.eigh(Y.T @ Y)
    first = directions[:, :-3:-1]
    # The sign is arbitrary: choose the one that makes the largest entry positive.
    first = first * np.sign(first[np.argmax(np.abs(first), axis=0), np.arange(first.shape[1])])
    points = np.zeros((len(Y), 2))
    points[:, : first.shape[1]] = Y @ first * unit
    return points, values[:-3:-1] / (values.sum() or 1.0)
