"""What a fit will take, before it starts."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from heatsketch.estimators import HeatSketch
from heatsketch.heat_embedding import N_NEIGHBORS
from heatsketch.memory import all_pairs_bytes, neighbors_bytes, physical_memory, tiles_bytes
from heatsketch.validation import check_whole

__all__ = ["N_TRIED", "Resources", "bent_surface", "estimate_memory", "estimate_resources"]

# Points of the short runs that tell how fast this machine is.
N_TRIED, N_TRIED_IN_PAIRS = 60_000, 3000
TILE_FACTOR = 5.6  # time of a product whose matrix is made anew, over one in memory; measured


class Resources(NamedTuple):
    r"""What a fit takes: :math:`O(n)` with neighbours, :math:`O(n^2)` time with all pairs.

    Attributes
    ----------
    bytes : float
        Peak memory besides ``X``; usually within a quarter of the truth.
    seconds : float
        Time on this machine; within a factor of two, since it depends on the data, too.

    Examples
    --------
    >>> from heatsketch import Resources
    >>> Resources(bytes=2.0**30, seconds=60.0).seconds
    60.0
    """

    bytes: float
    seconds: float


def estimate_resources(
    n_points: int,
    n_features: int,
    *,
    n_components: int = 64,
    power: Any = "all",
    n_neighbors: Any = N_NEIGHBORS,
    dtype: Any = np.float32,
) -> Resources:
    r"""Memory and time of :meth:`HeatSketch.fit`, from formulas and from a short run.

    Both grow like :math:`n` with neighbours. With all pairs the time grows like :math:`n^2`, and
    so does the memory, as long as there is enough of it.

    Parameters
    ----------
    n_points, n_features : int
        Shape of ``X``.
    n_components, power, n_neighbors :
        As for :class:`HeatSketch`.
    dtype : dtype, default=float32
        Of ``X``.

    Returns
    -------
    Resources

    Examples
    --------
    >>> from heatsketch import estimate_resources
    >>> needed = estimate_resources(1_000_000, 8, n_components=32)
    >>> 0.5 < needed.bytes / 2**30 < 1
    True
    """
    n_points = check_whole("n_points", n_points, least=2)
    n_features = check_whole("n_features", n_features)
    n_components = check_whole("n_components", n_components)
    if n_neighbors is not None:
        n_neighbors = min(check_whole("n_neighbors", n_neighbors, least=2), n_points)
    size = n_points, n_features, n_components
    options = {"n_components": n_components, "power": power, "n_neighbors": n_neighbors}
    needed = estimate_memory(
        n_points, n_features, n_components=n_components, n_neighbors=n_neighbors, dtype=dtype
    )
    if n_neighbors is not None:
        n_tried = min(n_points, N_TRIED)
        took = _seconds(n_tried, n_features, dtype, options)
        return Resources(needed, took * n_points / n_tried)
    n_tried = min(n_points, N_TRIED_IN_PAIRS)
    took = _seconds(n_tried, n_features, dtype, options) * (n_points / n_tried) ** 2
    in_tiles = needed < all_pairs_bytes(*size, dtype)
    return Resources(needed, TILE_FACTOR * took if in_tiles else took)


def estimate_memory(
    n_points: int,
    n_features: int,
    *,
    n_components: int = 64,
    n_neighbors: Any = N_NEIGHBORS,
    dtype: Any = np.float32,
    memory_limit: float | None = None,
) -> float:
    """Bytes that :meth:`HeatSketch.fit` takes besides ``X``, from formulas alone.

    Parameters
    ----------
    n_points, n_features, n_components, n_neighbors, dtype :
        As for :func:`estimate_resources`.
    memory_limit : float or None, default=None
        As for :class:`LocalEngine`: all pairs that do not fit are made anew at every product.

    Examples
    --------
    >>> from heatsketch.resources import estimate_memory
    >>> estimate_memory(5000, 8) < estimate_memory(50_000, 8, n_neighbors=None)
    True
    """
    size = n_points, n_features, n_components
    if n_neighbors is not None:
        return neighbors_bytes(*size, n_neighbors, dtype)
    needed = all_pairs_bytes(*size, dtype)
    there = physical_memory() if memory_limit is None else memory_limit
    return needed if needed <= there else tiles_bytes(*size, dtype)


def bent_surface(n_points: int, n_features: int, dtype: Any) -> np.ndarray:
    """Return made-up points: a torus of dimension 4, bent into all features."""
    rng = np.random.default_rng(0)
    waves = rng.integers(-2, 3, (4, n_features))
    return np.cos(rng.uniform(0, 2 * np.pi, (n_points, 4)) @ waves).astype(dtype)


def _seconds(n_points: int, n_features: int, dtype: Any, options: dict) -> float:
    """Time a fit of points on a bent surface, the second time, when all is compiled."""
    model = HeatSketch(**options)
    X = bent_surface(n_points, n_features, dtype)
    model.fit(X[: n_points // 10 + (model.n_neighbors or 2)])
    start = perf_counter()
    model.fit(X)
    return perf_counter() - start
