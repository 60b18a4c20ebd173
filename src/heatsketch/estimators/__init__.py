"""Estimators with scikit-learn's interface."""

from heatsketch.estimators._resources import estimate_memory
from heatsketch.estimators.diffusion_map import DiffusionMap
from heatsketch.estimators.heat_clustering import HeatClustering
from heatsketch.estimators.heat_labels import HeatLabels, Suspects
from heatsketch.estimators.heat_sketch import HeatSketch

__all__ = [
    "DiffusionMap",
    "HeatClustering",
    "HeatLabels",
    "HeatSketch",
    "Suspects",
    "estimate_memory",
]
