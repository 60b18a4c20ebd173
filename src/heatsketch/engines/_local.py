"""LocalEngine: computation in the memory of this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.memory import all_pairs_bytes, neighbors_bytes, physical_memory
from heatsketch.diffusion._duplicates import distinct_points, share_rows
from heatsketch.engines._base import Engine
from heatsketch.engines._recall import choose_probes
from heatsketch.exceptions import HeatSketchError, MemoryBudgetError
from heatsketch.graph._neighbors import LIST_METRICS, Neighbors, find_neighbors

EXACT_COMPARISONS = 5e10  # pairs times coordinates that are compared in a second or two
SELECTION = 20  # time to select the nearest points, per pair, in units of one coordinate
COLUMNS = 64  # of a sketch, in estimates of memory


@dataclass(frozen=True, repr=False)
class LocalEngine(Engine):
    r"""Compute distances in the memory of this machine.

    Neighbours are exact if comparing all pairs takes no more than a second or two. Otherwise they
    are searched in inverted lists (:mod:`heatsketch.graph._ivf`), and some of them are missed. The
    number of lists to search is chosen in trials on parts of the data, so that the standard
    deviation of relative changes of diffusion distances is at most ``graph_tolerance``. If points
    have many duplicates, a graph of distinct points is used
    (:mod:`heatsketch.diffusion._duplicates`).

    Parameters
    ----------
    graph_tolerance : float, default=0.05
        Typical relative change of distances allowed due to missed neighbours. 0 means an exact
        search, which may be slow.
    memory_limit : int or None, default=None
        Bytes that a fit may use in addition to ``X``; None allows all memory of this machine. A
        fit that needs more raises an error before it starts.

    Examples
    --------
    >>> from heatsketch import HeatSketch, LocalEngine
    >>> HeatSketch(engine=LocalEngine(graph_tolerance=0))
    HeatSketch(engine=LocalEngine(graph_tolerance=0))
    """

    graph_tolerance: float = 0.05
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("graph_tolerance", 0), ("memory_limit", 1)):
            value = getattr(self, name)
            if (name, value) != ("memory_limit", None) and not (
                isinstance(value, int | float | np.integer | np.floating)
                and least <= value < math.inf
            ):
                raise HeatSketchError(f"{name} must be a number >= {least}, got {value!r}.")

    def __repr__(self) -> str:
        """Show parameters that differ from their defaults, as scikit-learn does."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        chosen = (f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({', '.join(chosen)})"

    def neighbors(self, X: Any, *, metric: Any, n_neighbors: int | None) -> tuple[Neighbors, Any]:
        """Find the neighbours of each row of ``X``."""
        n_points, n_features = X.shape
        size = n_points, n_features, COLUMNS
        if n_neighbors is not None:
            needed = neighbors_bytes(*size, n_neighbors, X.dtype)
            self._check_budget(needed, n_neighbors, "use fewer, or a larger memory_limit")
            return self._nearest(X, metric, n_neighbors)
        if metric != "precomputed":
            needed = all_pairs_bytes(*size, X.dtype)
            self._check_budget(needed, None, "set n_neighbors=15, for instance")
        return find_neighbors(X, metric=metric)

    def _nearest(self, X: Any, metric: Any, n_neighbors: int) -> tuple[Neighbors, Any]:
        """Find nearest neighbours, among distinct points if many have copies."""
        distinct = distinct_points(X, n_neighbors)
        if distinct is None:
            return self._searched(X, metric, n_neighbors)
        points = distinct.points
        if metric == "precomputed":  # points with equal rows of distances are copies
            firsts = distinct.by_point[distinct.starts[:-1]]
            neighbors, d2 = self._searched(points[:, firsts], metric, distinct.n_neighbors)
            return share_rows(distinct, replace(neighbors, points=points), d2)
        return share_rows(distinct, *self._searched(points, metric, distinct.n_neighbors))

    def _searched(self, X: Any, metric: Any, n_neighbors: int) -> tuple[Neighbors, Any]:
        n_probes = None
        if self.graph_tolerance and self._is_long(X, metric):
            n_probes = partial(
                choose_probes, n_neighbors=n_neighbors, tolerance=self.graph_tolerance
            )
        return find_neighbors(X, metric=metric, n_neighbors=n_neighbors, n_probes=n_probes)

    def _check_budget(self, needed: float, n_neighbors: int | None, remedy: str) -> None:
        available = physical_memory() if self.memory_limit is None else self.memory_limit
        if needed > available:
            raise MemoryBudgetError(
                f"n_neighbors={n_neighbors} needs about {needed / 2**30:.1f} GiB, but only "
                f"{available / 2**30:.1f} GiB are available; {remedy}."
            )

    def _is_long(self, X: Any, metric: Any) -> bool:
        if sparse.issparse(X) or metric not in LIST_METRICS:
            return False
        return X.shape[0] ** 2 * (X.shape[1] + SELECTION) > EXACT_COMPARISONS
