"""heatsketch: diffusion distances for points and graphs, by sketching the heat kernel."""

from heatsketch.adapted_block import adapted_block
from heatsketch.affinity import gaussian_affinity, local_scales, with_self_loops
from heatsketch.all_times import sketch_all_times
from heatsketch.bandwidth import EpsilonEstimate, estimate_epsilon
from heatsketch.confidence import DistanceEstimate, components_needed
from heatsketch.distances import (
    DiffusionNeighbors,
    bilipschitz_constant,
    diffusion_distances,
    diffusion_neighbors,
    exact_diffusion_distances,
)
from heatsketch.drift import Drift, drift
from heatsketch.engines import DaskEngine, Engine, LocalEngine
from heatsketch.estimators import DiffusionMap, HeatSketch
from heatsketch.graph import neighbor_graph
from heatsketch.graph_affinity import Graph, graph_affinity
from heatsketch.heat_operator import HeatOperator, heat_operator
from heatsketch.heat_trace import HeatTrace, heat_trace
from heatsketch.least_distortion import (
    Distortion,
    DistortionMap,
    certified_distortion,
    least_distortion_map,
)
from heatsketch.near_isometry import NearIsometry
from heatsketch.normalization import (
    Scaling,
    bistochastic_scaling,
    degree_scaling,
    symmetric_scaling,
)
from heatsketch.random_block import gaussian_block, rademacher_block
from heatsketch.resources import estimate_memory
from heatsketch.sketch import sketch, sketch_heat, sketch_path
from heatsketch.spectral import DiffusionCoordinates, diffusion_coordinates, ritz_pairs
from heatsketch.storage import load, model_info

__version__ = "0.1.0"

__all__ = [
    "DaskEngine",
    "DiffusionCoordinates",
    "DiffusionMap",
    "DiffusionNeighbors",
    "DistanceEstimate",
    "Distortion",
    "DistortionMap",
    "Drift",
    "Engine",
    "EpsilonEstimate",
    "Graph",
    "HeatOperator",
    "HeatSketch",
    "HeatTrace",
    "LocalEngine",
    "NearIsometry",
    "Scaling",
    "__version__",
    "adapted_block",
    "bilipschitz_constant",
    "bistochastic_scaling",
    "certified_distortion",
    "components_needed",
    "degree_scaling",
    "diffusion_coordinates",
    "diffusion_distances",
    "diffusion_neighbors",
    "drift",
    "estimate_epsilon",
    "estimate_memory",
    "exact_diffusion_distances",
    "gaussian_affinity",
    "gaussian_block",
    "graph_affinity",
    "heat_operator",
    "heat_trace",
    "least_distortion_map",
    "load",
    "local_scales",
    "model_info",
    "neighbor_graph",
    "rademacher_block",
    "ritz_pairs",
    "sketch",
    "sketch_all_times",
    "sketch_heat",
    "sketch_path",
    "symmetric_scaling",
    "with_self_loops",
]
