"""Building blocks of the method: affinities, operators, sketches, distances."""

from heatsketch.diffusion._adapted_matrix import adapted_matrix
from heatsketch.diffusion._affinity import gaussian_affinity, local_scales, with_self_loops
from heatsketch.diffusion._all_times import sketch_all_times
from heatsketch.diffusion._bandwidth import EpsilonEstimate, estimate_epsilon
from heatsketch.diffusion._compare import Comparison, compare_groups
from heatsketch.diffusion._confidence import DistanceEstimate, components_needed
from heatsketch.diffusion._distances import (
    DiffusionNeighbors,
    bilipschitz_constant,
    diffusion_distances,
    diffusion_neighbors,
    exact_diffusion_distances,
)
from heatsketch.diffusion._distortion import (
    Distortion,
    DistortionMap,
    certified_distortion,
    least_distortion_map,
)
from heatsketch.diffusion._drift import Drift, drift
from heatsketch.diffusion._harmonic import harmonic_extension
from heatsketch.diffusion._heat_trace import HeatTrace, heat_trace
from heatsketch.diffusion._labels import poisson_learning
from heatsketch.diffusion._normalization import (
    Scaling,
    bistochastic_scaling,
    degree_scaling,
    symmetric_scaling,
)
from heatsketch.diffusion._operator import HeatOperator, heat_operator
from heatsketch.diffusion._random_matrix import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._sketch import sketch, sketch_heat, sketch_path
from heatsketch.diffusion._smoothing import Smoothing, smooth
from heatsketch.diffusion._spectral import (
    DiffusionCoordinates,
    diffusion_coordinates,
    ritz_pairs,
)

__all__ = [
    "Comparison",
    "DiffusionCoordinates",
    "DiffusionNeighbors",
    "DistanceEstimate",
    "Distortion",
    "DistortionMap",
    "Drift",
    "EpsilonEstimate",
    "HeatOperator",
    "HeatTrace",
    "Scaling",
    "Smoothing",
    "adapted_matrix",
    "bilipschitz_constant",
    "bistochastic_scaling",
    "certified_distortion",
    "compare_groups",
    "components_needed",
    "degree_scaling",
    "diffusion_coordinates",
    "diffusion_distances",
    "diffusion_neighbors",
    "drift",
    "estimate_epsilon",
    "exact_diffusion_distances",
    "gaussian_affinity",
    "gaussian_matrix",
    "harmonic_extension",
    "heat_operator",
    "heat_trace",
    "least_distortion_map",
    "local_scales",
    "poisson_learning",
    "rademacher_matrix",
    "ritz_pairs",
    "sketch",
    "sketch_all_times",
    "sketch_heat",
    "sketch_path",
    "smooth",
    "symmetric_scaling",
    "with_self_loops",
]
