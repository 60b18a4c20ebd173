"""LocalEngine: computation in the memory of this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.memory import (
    all_pairs_bytes,
    neighbors_bytes,
    physical_memory,
    tiles_bytes,
)
from heatsketch.diffusion._duplicates import find_with_shared_rows
from heatsketch.engines._base import Engine
from heatsketch.engines._recall import choose_probes
from heatsketch.exceptions import HeatSketchError, MemoryBudgetError
from heatsketch.graph._neighbors import LIST_METRICS, Neighbors, find_neighbors
from heatsketch.graph._pairwise import DistanceTiles

# Coordinates that can be compared over all pairs in a second or two, and the cost of selecting the
# nearest for one pair, in coordinates.
EXACT_COMPARISONS = 5e10
SELECTION = 20
# With more points, recomputing all pairs in every product would take hours.
MOST_POINTS_IN_PAIRS = 200_000


@dataclass(frozen=True, repr=False)
class LocalEngine(Engine):
    r"""Compute distances in the memory of this machine.

    Neighbours are exact if comparing all pairs takes no more than a second or two. Otherwise they
    are searched in inverted lists (:mod:`heatsketch.graph._ivf`), which miss some of them. The
    number of lists searched is chosen from trials on parts of the data, so that the standard
    deviation of relative changes of diffusion distances is at most ``graph_tolerance``. If points
    have many duplicates, the graph is one of distinct points
    (:mod:`heatsketch.diffusion._duplicates`).

    All pairs (``n_neighbors=None``) are stored in memory if they fit, and otherwise recomputed in
    every product.

    Parameters
    ----------
    graph_tolerance : float, default=0.05
        Typical relative change of distances that is allowed for missed neighbours; for comparison,
        a sketch of 64 components has an error of 0.09. 0 searches exactly, however long it takes.
    memory_limit : int or None, default=None
        Bytes that a fit may use besides ``X``; None allows all memory of this machine. A fit that
        would need more is rejected before it starts.

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
                raise HeatSketchError(f"{name}={value!r} must be a number of at least {least}.")

    def __repr__(self) -> str:
        """Show parameters that differ from their defaults, as scikit-learn does."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        chosen = (f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({', '.join(chosen)})"

    def neighbors(
        self, X: Any, *, metric: Any, n_neighbors: int | None, n_columns: int
    ) -> tuple[Neighbors, Any]:
        """Find the neighbours of each row of ``X``."""
        if n_neighbors is None and metric != "precomputed" and self._is_large(X, n_columns):
            return Neighbors(X, np.arange(X.shape[0]), metric), DistanceTiles(X, metric)
        if n_neighbors is not None:
            self._check_budget(
                neighbors_bytes(X.shape[0], X.shape[1], n_columns, n_neighbors, X.dtype),
                "use fewer of either, or raise the memory limit",
                n_neighbors=n_neighbors,
                n_components=n_columns,
            )
            find, are_distances = partial(self._nearest, metric), metric == "precomputed"
            return find_with_shared_rows(find, X, n_neighbors, are_distances=are_distances)
        return find_neighbors(X, metric=metric, n_neighbors=n_neighbors)

    def _nearest(self, metric: Any, X: Any, n_neighbors: int) -> tuple[Neighbors, Any]:
        n_probes = None
        if self.graph_tolerance and self._is_long(X, metric):
            n_probes = partial(
                choose_probes, n_neighbors=n_neighbors, tolerance=self.graph_tolerance
            )
        return find_neighbors(X, metric=metric, n_neighbors=n_neighbors, n_probes=n_probes)

    def _is_large(self, X: Any, n_columns: int) -> bool:
        """Return True if all pairs do not fit in memory; raise if it is infeasible."""
        size = *X.shape, n_columns, X.dtype
        needed = all_pairs_bytes(*size)
        if needed <= self._memory():
            return False
        remedy = "use 15 neighbours or so"
        if X.shape[0] > MOST_POINTS_IN_PAIRS:  # too slow to recompute in every product
            self._check_budget(needed, remedy, n_neighbors=None)
        self._check_budget(tiles_bytes(*size), remedy, n_neighbors=None)
        return True

    def _check_budget(self, needed: float, remedy: str, **parameters: Any) -> None:
        if needed > self._memory():
            what = " and ".join(f"{name}={value}" for name, value in parameters.items())
            raise MemoryBudgetError(
                f"{what} would take about {needed / 2**30:.1f} GiB of the "
                f"{self._memory() / 2**30:.1f} GiB allowed; {remedy}.",
                **parameters,
            )

    def _memory(self) -> float:
        return physical_memory() if self.memory_limit is None else self.memory_limit

    def _is_long(self, X: Any, metric: Any) -> bool:
        if sparse.issparse(X) or metric not in LIST_METRICS:
            return False
        return X.shape[0] ** 2 * (X.shape[1] + SELECTION) > EXACT_COMPARISONS
