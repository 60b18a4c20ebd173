"""Neighbour graphs of points, and graphs from other libraries."""

from heatsketch.graph._graph_affinity import Graph, graph_affinity
from heatsketch.graph._neighbors import neighbor_graph

__all__ = ["Graph", "graph_affinity", "neighbor_graph"]
