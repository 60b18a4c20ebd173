"""Embeddings that are compared, by abbreviation; NIS, NIB and NISW are not in the paper.

To compare another method, add it here and to the catalogue.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from heatsketch.diffusion import (
    HeatOperator,
    diffusion_coordinates,
    gaussian_matrix,
    rademacher_matrix,
    sketch,
)
from heatsketch.near_isometry import least_distortion_map
from paper.adapted_matrix import adapted_matrix

Grid = Sequence[tuple[int, int]]
MOST_COLUMNS = 256  # of a wide sketch


class Method(NamedTuple):
    """An embedding of a heat operator.

    Attributes
    ----------
    label : str
        For legends.
    normalization : {"symmetric", "bistochastic"}
        Normalization of the heat operator.
    style : tuple of str
        Colour, safe for colour-blind readers; marker and dashes, for greyscale prints.
    embed : callable
        ``(A, grid, seed) -> [embedding, ...]``, one for each ``(dimension, power)`` of the grid.
    """

    label: str
    normalization: str
    style: tuple[str, str, str]
    embed: Callable[[HeatOperator, Grid, int], list[np.ndarray]]


def diffusion_maps(A: HeatOperator, grid: Grid, seed: int) -> list[np.ndarray]:
    """Diffusion maps; one in ``k`` dimensions is the start of a wider one."""
    widest = max(k for k, _ in grid)
    wide = {p: diffusion_coordinates(A, widest, power=p) for p in {p for _, p in grid}}
    return [wide[power][:, :k] for k, power in grid]


def gaussian_processes(
    A: HeatOperator, grid: Grid, seed: int, *, block: Callable[..., np.ndarray]
) -> list[np.ndarray]:
    """Gaussian processes: a sketch of ``k`` columns is the start of a wide one.

    The stationary direction is kept, as in the paper.
    """
    widest = max(k for k, _ in grid)
    G = block(A.shape[0], widest, seed=seed)
    stationary = A.stationary_part(A.stationary_coefficients(G))
    sketches = {power: sketch(A, G, power=power) for power in {power for _, power in grid}}
    return [
        (np.sqrt(widest) * sketches[power] + stationary)[:, :k] / np.sqrt(k) for k, power in grid
    ]


def near_isometries(
    A: HeatOperator, grid: Grid, seed: int, *, wide: Callable[[HeatOperator, int, int], np.ndarray]
) -> list[np.ndarray]:
    """Maps of least distortion of wide coordinates with the stationary direction."""
    Z = {power: wide(A, power, seed) for power in {power for _, power in grid}}
    return [Z[power] @ least_distortion_map(Z[power], k, seed=seed).components for k, power in grid]


def heat_kernel_rows(A: HeatOperator, power: int, seed: int) -> np.ndarray:
    """Return ``A**p``, whose rows have exact diffusion distances."""
    return np.sqrt(A.shape[0]) * with_stationary(A, np.eye(A.shape[0]), power)


def wide_sketch(A: HeatOperator, power: int, seed: int) -> np.ndarray:
    """Return a sketch of at most 256 columns, adapted to a first sketch."""
    shape = A.shape[0], min(MOST_COLUMNS, A.shape[0] // 2)
    first = with_stationary(A, gaussian_matrix(*shape, seed=seed), power)
    block = adapted_matrix(first, gaussian_matrix(*shape, seed=seed + 1))
    return with_stationary(A, block, power)


def with_stationary(A: HeatOperator, block: np.ndarray, power: int) -> np.ndarray:
    """Return a sketch with the stationary direction, as in the paper."""
    stationary = A.stationary_part(A.stationary_coefficients(block))
    return sketch(A, block, power=power) + stationary / np.sqrt(block.shape[1])


_gaussian = partial(gaussian_processes, block=gaussian_matrix)
_signs = partial(gaussian_processes, block=rademacher_matrix)
_of_rows = partial(near_isometries, wide=heat_kernel_rows)
_of_sketch = partial(near_isometries, wide=wide_sketch)
_S, _B = "symmetric", "bistochastic"

METHODS = {
    "DMS": Method("diffusion map, symmetric", _S, ("#0072B2", "o", "-"), diffusion_maps),
    "DMB": Method("diffusion map, bistochastic", _B, ("#56B4E9", "s", "--"), diffusion_maps),
    "GPS": Method("Gaussian process, symmetric", _S, ("#D55E00", "^", "-"), _gaussian),
    "GPB": Method("Gaussian process, bistochastic", _B, ("#E69F00", "v", "--"), _gaussian),
    "GPSBS": Method("random signs, symmetric", _S, ("#000000", "x", ":"), _signs),
    "GPSBB": Method("random signs, bistochastic", _B, ("#999999", "+", "-."), _signs),
    "NIS": Method("near isometry, symmetric", _S, ("#009E73", "D", "-"), _of_rows),
    "NIB": Method("near isometry, bistochastic", _B, ("#CC79A7", "d", "--"), _of_rows),
    "NISW": Method("near isometry of a sketch, symmetric", _S, ("#000000", "1", ":"), _of_sketch),
}
