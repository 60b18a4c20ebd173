"""The sketch at several times, and its two-dimensional coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from heatsketch._core.checks import check_integer
from heatsketch.estimators._plane import Plane, diffusion_plane
from heatsketch.estimators.heat_sketch import HeatSketch

LARGEST_TIME = 64  # on the slider, unless twice the model's power is larger


def times(model: HeatSketch, powers: Iterable[int] | None) -> list[Any]:
    """Return sorted diffusion times, including the model's own, with "all" last."""
    if powers is None:
        powers = [2**i for i in range(12) if 2**i <= max(LARGEST_TIME, 2 * model.power_)]
    single = {check_integer("powers", power) for power in powers}
    if model.power == "all":
        return [*sorted(single), "all"]
    return sorted({*single, model.power_})


def own_time(model: HeatSketch) -> Any:
    """Return the diffusion time of the model's own embedding."""
    return "all" if model.power == "all" else model.power_


def sketches(model: HeatSketch, powers: list[Any]) -> list[np.ndarray]:
    """Return the sketch at each time, from one pass, and the model's embedding."""
    found: dict[Any, np.ndarray] = {own_time(model): model.embedding_}
    others = [power for power in powers if power not in found]
    if others:
        found.update(zip(others, model.path(others), strict=True))
    return [found[power] for power in powers]


def plane_of(model: HeatSketch) -> Plane:
    """Return the plotted points: the diffusion map, or principal components.

    An eigenvector is zero outside of one connected component. With several components, principal
    components are plotted, which show all of them apart.
    """
    if model.n_connected_components_ > 1:
        return Plane(principal_plane(model.embedding_), np.array([]))
    return diffusion_plane(model)


def principal_plane(Y: np.ndarray) -> np.ndarray:
    """Return the first two principal components of a sketch.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.report._pictures import principal_plane
    >>> principal_plane(np.array([[0.0, 0.0, 1.0], [0.0, 3.0, 1.0]])).tolist()
    [[-1.5, 0.0], [1.5, 0.0]]
    """
    Y = Y.astype(np.float64) - Y.mean(axis=0, dtype=np.float64)
    unit = np.abs(Y).max() or 1.0  # squares of very small entries would underflow
    Y /= unit
    _, directions = np.linalg.eigh(Y.T @ Y)
    first = directions[:, :-3:-1]
    # The sign is arbitrary: choose the one that makes the largest entry positive.
    first = first * np.sign(first[np.argmax(np.abs(first), axis=0), np.arange(first.shape[1])])
    points = np.zeros((len(Y), 2))
    points[:, : first.shape[1]] = Y @ first * unit
    return points
