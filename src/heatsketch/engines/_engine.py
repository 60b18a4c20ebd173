"""The whole of an engine: two verbs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Engine"]


class Engine(ABC):
    r"""Whoever finds the distances :math:`d^2_{ij}` between neighbours and holds them.

    What it returns must go through :func:`gaussian_affinity` and then answer ``K @ block``;
    all else is floor one of the house, the same for every engine.
    :func:`heatsketch.testing.check_engine` tells whether an engine keeps the laws.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.engines import Engine, LocalEngine
    >>> isinstance(LocalEngine(), Engine)
    True
    >>> LocalEngine().distances(np.array([[0.0], [2.0]]), metric="euclidean", n_neighbors=None)
    array([[0., 4.],
           [4., 0.]])
    """

    @abstractmethod
    def distances(self, X: Any, *, metric: Any, n_neighbors: int | None) -> Any:
        """Squared distances between the points of ``X`` that are neighbours."""

    @abstractmethod
    def distances_to(
        self, X_new: Any, X: Any, *, metric: Any, n_neighbors: int | None, radii: Any
    ) -> Any:
        """Squared distances from new points (rows) to the points of ``X`` (columns)."""
