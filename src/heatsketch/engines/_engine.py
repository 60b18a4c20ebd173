"""The whole of an engine: one verb."""

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
    >>> X = np.array([[0.0], [2.0]])
    >>> neighbors, d2 = LocalEngine().neighbors(
    ...     X, metric="euclidean", n_neighbors=None, n_columns=1)
    >>> d2
    array([[0., 4.],
           [4., 0.]])
    >>> neighbors.distances_to(X[1:])
    array([[4., 0.]])
    """

    @abstractmethod
    def neighbors(
        self, X: Any, *, metric: Any, n_neighbors: int | None, n_columns: int
    ) -> tuple[Any, Any]:
        """Find who is near whom among the rows of ``X``.

        ``n_columns`` tells how wide the blocks will be that are multiplied, for those who have to
        find room for them.

        Returns what remembers it, as :class:`heatsketch.graph.Neighbors` does: its ``order`` of
        the rows, and ``distances_to(X_new)``; and the squared distances in that order.
        """
