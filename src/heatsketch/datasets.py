r"""Point sets of the paper's experiments.

All are computed from :func:`gaussian_matrix` with arithmetic and square roots only (a uniform angle
is the direction of two Gaussians), so a seed gives the same points on every machine.
"""

from __future__ import annotations

import numpy as np

from heatsketch._core.checks import check_integer
from heatsketch.diffusion._random_matrix import gaussian_matrix

__all__ = ["circle", "circle_with_outliers", "gaussian_clouds", "klein_bottle", "stretched_torus"]


def circle(n_points: int, *, seed: int) -> np.ndarray:
    r"""Uniform points :math:`(\cos u, \sin u)` on the unit circle.

    Parameters
    ----------
    n_points : int
    seed : int

    Returns
    -------
    array of shape (n_points, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.datasets import circle
    >>> bool(np.allclose(np.linalg.norm(circle(300, seed=0), axis=1), 1))
    True
    """
    return _directions(n_points, 0, seed)


def stretched_torus(n_points: int, *, seed: int, stretch: float = 3.5) -> np.ndarray:
    r"""Uniform points on a stretched flat torus in four dimensions.

    .. math:: (\cos u, \sin u, r \cos v, r \sin v)

    Parameters
    ----------
    n_points : int
    seed : int
    stretch : float, default=3.5
        The radius ``r`` of the longer circle.

    Returns
    -------
    array of shape (n_points, 4)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.datasets import stretched_torus
    >>> X = stretched_torus(500, seed=0)
    >>> bool(np.allclose(np.linalg.norm(X[:, 2:], axis=1), 3.5))
    True
    """
    return np.hstack([_directions(n_points, 0, seed), stretch * _directions(n_points, 1, seed)])


def klein_bottle(
    n_points: int, *, seed: int, radius: float = 10.0, tube: float = 5.0
) -> np.ndarray:
    r"""Points on the Klein bottle in four dimensions, uniform in both angles.

    .. math::

        ((a + b \cos v) \cos u,\ (a + b \cos v) \sin u,\
         b \sin v \cos (u/2),\ b \sin v \sin (u/2))

    Parameters
    ----------
    n_points : int
    seed : int
    radius, tube : float, default=10 and 5
        ``a`` and ``b``.

    Returns
    -------
    array of shape (n_points, 4)

    Examples
    --------
    >>> from heatsketch.datasets import klein_bottle
    >>> klein_bottle(500, seed=0).shape
    (500, 4)
    """
    cos_half, sin_half = _directions(n_points, 0, seed).T
    sin_half = np.abs(sin_half)  # half of u lies between 0 and pi
    cos_v, sin_v = _directions(n_points, 1, seed).T
    distance = radius + tube * cos_v
    return np.column_stack(
        [
            distance * (cos_half**2 - sin_half**2),
            distance * (2 * sin_half * cos_half),
            tube * sin_v * cos_half,
            tube * sin_v * sin_half,
        ]
    )


def circle_with_outliers(n_points: int, *, seed: int) -> np.ndarray:
    r"""Uniform points on the unit circle, followed by two outliers.

    The last two points are :math:`(0, 3)` and :math:`(3, 0)`.

    Parameters
    ----------
    n_points : int
        Number of points, including the two outliers.
    seed : int

    Returns
    -------
    array of shape (n_points, 2)

    Examples
    --------
    >>> from heatsketch.datasets import circle_with_outliers
    >>> circle_with_outliers(200, seed=0)[-2:]
    array([[0., 3.],
           [3., 0.]])
    """
    n_points = check_integer("n_points", n_points, least=2)
    return np.vstack([circle(n_points - 2, seed=seed), [[0.0, 3.0], [3.0, 0.0]]])


def gaussian_clouds(
    n_points: int, *, seed: int, dimension: int = 3, separation: float = 4.0
) -> np.ndarray:
    r"""Gaussian clouds of unit variance, one for each dimension.

    Their centres are :math:`c e_1, c e_2, \ldots`.

    Parameters
    ----------
    n_points : int
    seed : int
    dimension : int, default=3
    separation : float, default=4.0
        Distance between any two centres.

    Returns
    -------
    array of shape (n_points, dimension)

    Examples
    --------
    >>> from heatsketch.datasets import gaussian_clouds
    >>> gaussian_clouds(300, seed=0).shape
    (300, 3)
    """
    n_points = check_integer("n_points", n_points, least=0)
    dimension = check_integer("dimension", dimension, least=1)
    X = gaussian_matrix(n_points, dimension, seed=_apart(seed))
    rows = np.arange(n_points)
    X[rows, rows % dimension] += separation / np.sqrt(2)
    return X


def _directions(n_points: int, which: int, seed: int) -> np.ndarray:
    """Return uniform points on the unit circle, independent for each ``which``."""
    n_points = check_integer("n_points", n_points, least=0)
    pair = gaussian_matrix(n_points, 2, seed=_apart(seed), first_column=2 * which)
    return pair / np.sqrt(pair[:, :1] ** 2 + pair[:, 1:] ** 2)


def _apart(seed: int) -> int:
    """Return a seed that users do not use.

    Points must be independent of the random matrix that sketches them.
    """
    return check_integer("seed", seed, least=0) ^ (1 << 127)
