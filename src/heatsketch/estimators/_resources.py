"""Memory estimate for a fit.

Time is not estimated: it depends on the data, the metric and the machine, and extrapolations from
short runs on synthetic points were wrong by factors of 7 to 100. A fit shows its progress.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._core.checks import check_integer
from heatsketch._core.memory import all_pairs_bytes, neighbors_bytes
from heatsketch.heat._checks import N_NEIGHBORS


def estimate_memory(
    n_points: int,
    n_features: int,
    *,
    n_components: int = 64,
    n_neighbors: Any = N_NEIGHBORS,
    dtype: Any = np.float32,
) -> float:
    r"""Estimate the peak memory of :meth:`HeatSketch.fit` besides ``X``, in bytes.

    Memory is proportional to :math:`n` with neighbours, and to :math:`n^2` with all pairs.
    Estimates are usually within 25 %.

    Parameters
    ----------
    n_points, n_features : int
        Shape of ``X``.
    n_components, n_neighbors :
        As for :class:`HeatSketch`.
    dtype : dtype, default=float32
        Dtype of ``X``.

    Returns
    -------
    float

    Examples
    --------
    >>> from heatsketch import estimate_memory
    >>> 0.5 < estimate_memory(1_000_000, 8, n_components=32) / 2**30 < 1
    True
    """
    n_points = check_integer("n_points", n_points, least=2)
    n_features = check_integer("n_features", n_features)
    n_components = check_integer("n_components", n_components)
    size = n_points, n_features, n_components
    if n_neighbors is not None:
        n_neighbors = min(check_integer("n_neighbors", n_neighbors, least=2), n_points)
        return neighbors_bytes(*size, n_neighbors, dtype)
    return all_pairs_bytes(*size, dtype)
