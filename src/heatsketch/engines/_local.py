"""The machine at hand: numpy and scipy in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heatsketch.engines._engine import Engine
from heatsketch.graph import neighbor_graph, neighbor_rows

__all__ = ["LocalEngine"]


@dataclass(frozen=True)
class LocalEngine(Engine):
    r"""Distances :math:`d^2_{ij}` of this machine, exact, in memory.

    Examples
    --------
    >>> from heatsketch import HeatSketch, LocalEngine
    >>> HeatSketch(engine=LocalEngine())
    HeatSketch(engine=LocalEngine())
    """

    def distances(self, X: Any, *, metric: Any, n_neighbors: int | None) -> Any:
        """Squared distances between the points of ``X`` that are neighbours."""
        return neighbor_graph(X, metric=metric, n_neighbors=n_neighbors)

    def distances_to(
        self, X_new: Any, X: Any, *, metric: Any, n_neighbors: int | None, radii: Any
    ) -> Any:
        """Squared distances from new points (rows) to the points of ``X`` (columns)."""
        return neighbor_rows(X_new, X, metric=metric, n_neighbors=n_neighbors, radii=radii)
