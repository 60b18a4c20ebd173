"""Distances that follow the shape of the data, with error bars, for points and graphs.

The estimators are here. Their building blocks are in :mod:`heatsketch.diffusion` and
:mod:`heatsketch.graph`.
"""

from heatsketch._core.row_names import row_numbers
from heatsketch.diffusion import (
    Comparison,
    DiffusionNeighbors,
    DistanceEstimate,
    Drift,
    components_needed,
)
from heatsketch.engines import DaskEngine, Engine, LocalEngine
from heatsketch.estimators import (
    DiffusionMap,
    HeatSketch,
    NearIsometry,
    estimate_memory,
    load,
    model_info,
)

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "DaskEngine",
    "DiffusionMap",
    "DiffusionNeighbors",
    "DistanceEstimate",
    "Drift",
    "Engine",
    "HeatSketch",
    "LocalEngine",
    "NearIsometry",
    "__version__",
    "components_needed",
    "estimate_memory",
    "load",
    "model_info",
    "row_numbers",
]
