"""heatsketch: diffusion distances for points and graphs, by sketching the heat kernel."""

from heatsketch.affinity import EpsilonEstimate, estimate_epsilon, gaussian_affinity
from heatsketch.distances import bilipschitz_constant, exact_diffusion_distances
from heatsketch.engines import Engine, LocalEngine
from heatsketch.estimators import DiffusionMap, HeatSketch
from heatsketch.graph import neighbor_graph
from heatsketch.heat_operator import HeatOperator, heat_operator
from heatsketch.normalization import Scaling, bistochastic_scaling, symmetric_scaling
from heatsketch.random_block import gaussian_block, rademacher_block
from heatsketch.resources import Resources, estimate_resources
from heatsketch.sketch import sketch, sketch_heat, sketch_path
from heatsketch.spectral import diffusion_coordinates

__version__ = "0.1.0"

__all__ = [
    "DiffusionMap",
    "Engine",
    "EpsilonEstimate",
    "HeatOperator",
    "HeatSketch",
    "LocalEngine",
    "Resources",
    "Scaling",
    "__version__",
    "bilipschitz_constant",
    "bistochastic_scaling",
    "diffusion_coordinates",
    "estimate_epsilon",
    "estimate_resources",
    "exact_diffusion_distances",
    "gaussian_affinity",
    "gaussian_block",
    "heat_operator",
    "neighbor_graph",
    "rademacher_block",
    "sketch",
    "sketch_heat",
    "sketch_path",
    "symmetric_scaling",
]
