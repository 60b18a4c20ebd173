"""Distances in a sketch against exact ones, on samples of the catalogue."""

import numpy as np

from heatsketch.diffusion import bilipschitz_constant, exact_diffusion_distances
from heatsketch.diffusion._sketch import sketch
from heatsketch.graph._neighbors import squared_distances
from paper.catalogue import CATALOGUE
from paper.runner import sample


def log_distortion(Y, Z):
    return np.log(bilipschitz_constant(Y, np.sqrt(squared_distances(Z, Z))))


def wide(name, seed):
    """Return an operator, its power, exact distances, and the seed of a wide sketch."""
    _, operators, block_seed = sample(name, seed, 0)
    A, (power,) = operators["symmetric"], CATALOGUE[name].powers
    distances = exact_diffusion_distances(A, power=power, stationary="keep")
    return A, power, distances, block_seed


def with_stationary(A, block, power):
    """Return a sketch with the stationary direction, as in the paper."""
    part = A.stationary_part(A.stationary_coefficients(block))
    return sketch(A, block, power=power) + part / np.sqrt(block.shape[1])
