"""Functions of graphs and sketches, one in each file."""

from heatsketch.uses._compare import Comparison, compare, compare_to
from heatsketch.uses._drift import Drift, drift
from heatsketch.uses._harmonic import harmonic
from heatsketch.uses._smooth import Smoothing, smooth
from heatsketch.uses._vectors import vectors

__all__ = [
    "Comparison",
    "Drift",
    "Smoothing",
    "compare",
    "compare_to",
    "drift",
    "harmonic",
    "smooth",
    "vectors",
]
