"""Estimators with scikit-learn's interface, and functions that load models."""

from heatsketch.estimators._load import load, model_info
from heatsketch.estimators._resources import estimate_memory
from heatsketch.estimators.diffusion_map import DiffusionMap
from heatsketch.estimators.heat_clustering import HeatClustering
from heatsketch.estimators.heat_labels import HeatLabels, Suspects
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.estimators.near_isometry import NearIsometry

__all__ = [
    "DiffusionMap",
    "HeatClustering",
    "HeatLabels",
    "HeatSketch",
    "NearIsometry",
    "Suspects",
    "estimate_memory",
    "load",
    "model_info",
]
