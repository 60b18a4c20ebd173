from . import diffusion, exceptions, graph, io, near_isometry, plot, report, scanpy, testing
from ._core.row_names import row_numbers
from ._load import load, model_info
from .diffusion._confidence import DistanceEstimate
from .diffusion._distances import DiffusionNeighbors
from .engines import DaskEngine, Engine, LocalEngine
from .estimators import (
    DiffusionMap,
    HeatClustering,
    HeatLabels,
    HeatSketch,
    Suspects,
    estimate_memory,
)
from .heat import HeatGraph, Sketch, sketch
from .near_isometry import NearIsometry
from .uses import (
    Comparison,
    Drift,
    Smoothing,
    compare,
    compare_to,
    drift,
    harmonic,
    smooth,
    vectors,
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
    "HeatGraph",
    "HeatLabels",
    "HeatSketch",
    "LocalEngine",
    "NearIsometry",
    "Sketch",
    "Smoothing",
    "Suspects",
    "__version__",
    "compare",
    "compare_to",
    "diffusion",
    "drift",
    "estimate_memory",
    "exceptions",
    "graph",
    "harmonic",
    "io",
    "load",
    "model_info",
    "near_isometry",
    "plot",
    "report",
    "row_numbers",
    "scanpy",
    "sketch",
    "smooth",
    "testing",
    "vectors",
]
