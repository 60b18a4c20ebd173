"""Heat graphs, and sketches of them."""

from heatsketch.heat._graph import HeatGraph
from heatsketch.heat._sketch import Sketch, sketch

__all__ = ["HeatGraph", "Sketch", "sketch"]
