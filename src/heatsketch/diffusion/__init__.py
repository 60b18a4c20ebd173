"""Building blocks of the method: affinities, operators, sketches, distances."""

from heatsketch.diffusion._affinity import gaussian_affinity, local_scales, with_self_loops
from heatsketch.diffusion._all_times import sketch_all_times
from heatsketch.diffusion._bandwidth import EpsilonEstimate, estimate_epsilon
from heatsketch.diffusion._distances import (
    bilipschitz_constant,
    diffusion_distances,
    diffusion_neighbors,
    exact_diffusion_distances,
)
from heatsketch.diffusion._heat_trace import HeatTrace, heat_trace
from heatsketch.diffusion._normalization import (
    Scaling,
    bistochastic_scaling,
    degree_scaling,
    symmetric_scaling,
)
from heatsketch.diffusion._operator import HeatOperator, heat_operator
from heatsketch.diffusion._random_matrix import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._sketch import sketch
from heatsketch.diffusion._spectral import DiffusionCoordinates, diffusion_coordinates, ritz_pairs

__all__ = [
    "DiffusionCoordinates",
    "EpsilonEstimate",
    "HeatOperator",
    "HeatTrace",
    "Scaling",
    "bilipschitz_constant",
    "bistochastic_scaling",
    "degree_scaling",
    "diffusion_coordinates",
    "diffusion_distances",
    "diffusion_neighbors",
    "estimate_epsilon",
    "exact_diffusion_distances",
    "gaussian_affinity",
    "gaussian_matrix",
    "heat_operator",
    "heat_trace",
    "local_scales",
    "rademacher_matrix",
    "ritz_pairs",
    "sketch",
    "sketch_all_times",
    "symmetric_scaling",
    "with_self_loops",
]
