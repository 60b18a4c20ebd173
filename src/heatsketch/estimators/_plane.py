"""Two-dimensional coordinates of a sketch, for plots."""

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


def diffusion_plane(model: Any) -> Plane:
    """Return the diffusion map in two dimensions, by Ritz vectors of the sketch.

    If the sketch has too few components, missing dimensions are filled with zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import HeatSketch
    >>> from heatsketch.estimators._plane import diffusion_plane
    >>> model = HeatSketch(8).fit(np.random.default_rng(0).normal(size=(50, 3)))
    >>> diffusion_plane(model).points.shape
    (50, 2)
    """
    n_samples, n_components = model.embedding_.shape
    points = np.zeros((n_samples, 2), model.embedding_.dtype)
    known = min(2, n_components, n_samples - model.n_connected_components_)
    points[:, :known], eigenvalues, _ = model.diffusion_map(known)
    return Plane(points, eigenvalues)
