"""A check for custom engines."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.diffusion._affinity import gaussian_affinity
from heatsketch.engines import Engine

__all__ = ["check_engine"]


def check_engine(engine: Engine, *, seed: int = 0, metric: Any = "euclidean") -> None:
    r"""Check an engine's distances, and that training points keep their rows.

    An engine that passes works wherever :class:`LocalEngine` does. An ``AssertionError`` names the
    property that does not hold.

    .. math:: d^2_{ij} \text{ kept if } d_{ij} < r_i \text{ or } d_{ij} < r_j,
              \text{ and only if } d_{ij} \le r_i \text{ or } d_{ij} \le r_j

    Parameters
    ----------
    engine : Engine
    seed : int, default=0
        Seed of the test points, which include duplicates.
    metric : str, default="euclidean"

    Examples
    --------
    >>> from heatsketch import LocalEngine
    >>> from heatsketch.testing import check_engine
    >>> check_engine(LocalEngine())
    """
    X = np.random.default_rng(seed).standard_normal((60, 3))
    X[50:] = X[:10]
    full = np.asarray(engine.neighbors(X, metric=metric, n_neighbors=None)[1])
    _require_close(full, full.T, 0, "distances are not symmetric to the last bit")
    _require_close(full.diagonal(), np.zeros(60), 0, "a point is not at distance 0 from itself")
    if metric == "euclidean":
        direct = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
        _require_close(
            full, direct, 16 * np.finfo(X.dtype).eps * full.max(), "not squared distances"
        )
    neighbors, graph = engine.neighbors(X, metric=metric, n_neighbors=7)
    full = full[neighbors.order][:, neighbors.order]
    radii = np.sort(full, axis=1)[:, 6]
    inside = (full < radii[:, np.newaxis]) | (full < radii)
    within = (full <= radii[:, np.newaxis]) | (full <= radii)
    again = neighbors.distances_to(X[neighbors.order[::-1]])
    fitted, new = (
        gaussian_affinity(sparse.csr_array(distances), epsilon=1.0).toarray()
        for distances in (graph, again)
    )
    assert ((fitted > 0).sum(axis=1) >= 7).all(), "some points have too few neighbours"
    # Among points exactly at the radius, an engine may choose some.
    affinities = gaussian_affinity(full, epsilon=1.0)
    wanted = np.where(inside | (within & (fitted > 0)), affinities, 0)
    for name, K, rows in (("fitted", fitted, wanted), ("new", new, wanted[::-1])):
        _require_close(K, rows, 0, f"{name} points do not have the neighbours that the rule names")


def _require_close(actual: Any, expected: Any, atol: float, message: str) -> None:
    error = float(np.max(np.abs(np.asarray(actual) - np.asarray(expected))))
    assert error <= atol, f"{message}: off by {error:.3g}, more than {atol:.3g}"
