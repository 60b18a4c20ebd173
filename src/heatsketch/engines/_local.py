"""The machine at hand: numpy, scipy and compiled loops in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy import sparse

from heatsketch.engines._engine import Engine
from heatsketch.graph import LIST_METRICS, Neighbors, find_neighbors

__all__ = ["LocalEngine"]

# Coordinates of pairs that are compared in a second or two.
EXACT_COMPARISONS = 3e10


@dataclass(frozen=True)
class LocalEngine(Engine):
    r"""Distances :math:`d^2_{ij}` of this machine, in memory.

    Neighbours are exact where comparing all pairs takes no more than a second or two.
    Beyond that each point looks for them among points that are near by
    :mod:`heatsketch.neighbor_lists`, and misses a few percent of them, which moves
    diffusion distances by less than a sketch does.

    Examples
    --------
    >>> from heatsketch import HeatSketch, LocalEngine
    >>> HeatSketch(engine=LocalEngine())
    HeatSketch(engine=LocalEngine())
    """

    def neighbors(self, X: Any, *, metric: Any, n_neighbors: int | None) -> tuple[Neighbors, Any]:
        """Find who is near whom among the rows of ``X``."""
        n_probes = 8 if self._is_long(X, metric) else None
        return find_neighbors(X, metric=metric, n_neighbors=n_neighbors, n_probes=n_probes)

    def _is_long(self, X: Any, metric: Any) -> bool:
        if sparse.issparse(X) or metric not in LIST_METRICS:
            return False
        return X.shape[0] ** 2 * X.shape[1] > EXACT_COMPARISONS
