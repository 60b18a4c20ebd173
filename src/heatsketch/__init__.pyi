from . import datasets, diffusion, exceptions, graph, io, plot, report, scanpy, testing
from ._core.row_names import row_numbers
from .diffusion import (
    Comparison,
    DiffusionNeighbors,
    DistanceEstimate,
    Drift,
    Smoothing,
    components_needed,
)
from .engines import DaskEngine, Engine, LocalEngine
from .estimators import (
    DiffusionMap,
    HeatClustering,
    HeatLabels,
    HeatSketch,
    NearIsometry,
    Suspects,
    estimate_memory,
    load,
    model_info,
)

__version__: str

__all__ = [
    "Comparison",
    "DaskEngine",
    "DiffusionMap",
    "DiffusionNeighbors",
    "DistanceEstimate",
    "Drift",
    "Engine",
    "HeatClustering",
    "HeatLabels",
    "HeatSketch",
    "LocalEngine",
    "NearIsometry",
    "Smoothing",
    "Suspects",
    "__version__",
    "components_needed",
    "datasets",
    "diffusion",
    "estimate_memory",
    "exceptions",
    "graph",
    "io",
    "load",
    "model_info",
    "plot",
    "report",
    "row_numbers",
    "scanpy",
    "testing",
]
