"""Point sets of the experiments.

All are computed from :func:`gaussian_matrix` with arithmetic and square roots only (a uniform angle
is the direction of two Gaussians), so a seed gives the same points on every machine.
"""

import numpy as np

from heatsketch.diffusion import gaussian_matrix

# Points must be independent of the random matrix that sketches them.
OTHER_SEEDS = 1 << 127


def directions(n_points: int, which: int, seed: int) -> np.ndarray:
    """Return uniform points on the unit circle, independent for each ``which``."""
    pair = gaussian_matrix(n_points, 2, seed=seed ^ OTHER_SEEDS, first_column=2 * which)
    return pair / np.sqrt(pair[:, :1] ** 2 + pair[:, 1:] ** 2)


def circle(n_points: int, *, seed: int) -> np.ndarray:
    r"""Return uniform points :math:`(\cos u, \sin u)`."""
    return directions(n_points, 0, seed)


def stretched_torus(n_points: int, *, seed: int, stretch: float = 3.5) -> np.ndarray:
    r"""Return uniform points :math:`(\cos u, \sin u, r \cos v, r \sin v)`."""
    return np.hstack([directions(n_points, 0, seed), stretch * directions(n_points, 1, seed)])


def klein_bottle(
    n_points: int, *, seed: int, radius: float = 10.0, tube: float = 5.0
) -> np.ndarray:
    r"""Return points on the Klein bottle, uniform in both angles.

    .. math::

        ((a + b \cos v) \cos u,\ (a + b \cos v) \sin u,\
         b \sin v \cos (u/2),\ b \sin v \sin (u/2))
    """
    cos_half, sin_half = directions(n_points, 0, seed).T
    sin_half = np.abs(sin_half)  # half of u lies between 0 and pi
    cos_v, sin_v = directions(n_points, 1, seed).T
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
    """Return uniform points on the unit circle, and then the outliers (0, 3) and (3, 0)."""
    return np.vstack([circle(n_points - 2, seed=seed), [[0.0, 3.0], [3.0, 0.0]]])


def gaussian_clouds(
    n_points: int, *, seed: int, dimension: int = 3, separation: float = 4.0
) -> np.ndarray:
    """Return Gaussian clouds of unit variance, one along each axis."""
    X = gaussian_matrix(n_points, dimension, seed=seed ^ OTHER_SEEDS)
    rows = np.arange(n_points)
    X[rows, rows % dimension] += separation / np.sqrt(2)
    return X
