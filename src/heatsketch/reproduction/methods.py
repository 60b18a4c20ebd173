"""Embeddings that are compared, by abbreviation; NIS, NIB and NISW are new.

The other abbreviations are those of the paper. A method maps a heat operator to one embedding for
each requested (dimension, power). To compare another method, add it here and to the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from heatsketch.diffusion._adapted_matrix import adapted_matrix
from heatsketch.diffusion._distortion import least_distortion_map
from heatsketch.diffusion._operator import HeatOperator
from heatsketch.diffusion._random_matrix import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._sketch import sketch, sketch_path
from heatsketch.diffusion._spectral import eigenvalue_powers, leading_eigenpairs

__all__ = ["METHODS", "Grid", "Method"]

Grid = Sequence[tuple[int, int]]
MOST_COLUMNS = 256  # of a wide sketch


@dataclass(frozen=True)
class Method:
    """An embedding of a heat operator.

    Attributes
    ----------
    label : str
        For legends.
    normalization : {"symmetric", "bistochastic"}
        Normalization of the heat operator.
    embed : callable
        ``(A, grid, seed) -> [embedding, ...]``, one for each ``(dimension, power)`` of the grid.
    """

    label: str
    normalization: str
    embed: Callable[[HeatOperator, Grid, int], list[np.ndarray]]


def diffusion_maps(A: HeatOperator, grid: Grid, seed: int) -> list[np.ndarray]:
    """Diffusion maps, from eigenvectors shared by all dimensions and powers."""
    values, vectors = leading_eigenpairs(A, max(k for k, _ in grid))
    return [vectors[:, :k] * eigenvalue_powers(values[:k], power) for k, power in grid]


def gaussian_processes(
    A: HeatOperator, grid: Grid, seed: int, *, block: Callable[..., np.ndarray]
) -> list[np.ndarray]:
    """Gaussian processes: a sketch of ``k`` columns is the start of a wide one.

    The stationary direction is kept, as in the paper.
    """
    widest = max(k for k, _ in grid)
    G = block(A.shape[0], widest, seed=seed)
    stationary = A.stationary_part(A.stationary_coefficients(G))
    sketches = sketch_path(A, G, powers=[power for _, power in grid])
    return [
        (np.sqrt(widest) * Y + stationary)[:, :k] / np.sqrt(k)
        for Y, (k, _) in zip(sketches, grid, strict=True)
    ]


def near_isometries(
    A: HeatOperator, grid: Grid, seed: int, *, wide: Callable[[HeatOperator, int, int], np.ndarray]
) -> list[np.ndarray]:
    """Maps of least distortion of wide coordinates with the stationary direction."""
    coordinates = {power: wide(A, power, seed) for power in {power for _, power in grid}}
    maps = ((least_distortion_map(coordinates[power], k, seed=seed), power) for k, power in grid)
    return [coordinates[power] @ found.components for found, power in maps]


def heat_kernel_rows(A: HeatOperator, power: int, seed: int) -> np.ndarray:
    """Return ``A**p``, whose rows have exact diffusion distances."""
    return np.sqrt(A.shape[0]) * _with_stationary(A, np.eye(A.shape[0]), power)


def wide_sketch(A: HeatOperator, power: int, seed: int) -> np.ndarray:
    """Return a sketch of at most 256 columns, adapted to a first sketch."""
    shape = A.shape[0], min(MOST_COLUMNS, A.shape[0] // 2)
    first = _with_stationary(A, gaussian_matrix(*shape, seed=seed), power)
    block = adapted_matrix(first, gaussian_matrix(*shape, seed=seed + 1))
    return _with_stationary(A, block, power)


def _with_stationary(A: HeatOperator, block: np.ndarray, power: int) -> np.ndarray:
    stationary = A.stationary_part(A.stationary_coefficients(block))
    return sketch(A, block, power=power) + stationary / np.sqrt(block.shape[1])


_gaussian = partial(gaussian_processes, block=gaussian_matrix)
_bernoulli = partial(gaussian_processes, block=rademacher_matrix)
_of_rows = partial(near_isometries, wide=heat_kernel_rows)
_of_sketch = partial(near_isometries, wide=wide_sketch)

METHODS = {
    "DMS": Method("diffusion map, symmetric", "symmetric", diffusion_maps),
    "DMB": Method("diffusion map, bistochastic", "bistochastic", diffusion_maps),
    "GPS": Method("Gaussian process, symmetric", "symmetric", _gaussian),
    "GPB": Method("Gaussian process, bistochastic", "bistochastic", _gaussian),
    "GPSBS": Method("random signs, symmetric", "symmetric", _bernoulli),
    "GPSBB": Method("random signs, bistochastic", "bistochastic", _bernoulli),
    "NIS": Method("near isometry, symmetric", "symmetric", _of_rows),
    "NIB": Method("near isometry, bistochastic", "bistochastic", _of_rows),
    "NISW": Method("near isometry of a sketch, symmetric", "symmetric", _of_sketch),
}
