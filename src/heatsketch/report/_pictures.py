"""The sketch at many times, each in the plane in which it extends most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.checks import check_integer
from heatsketch.estimators.heat_sketch import HeatSketch

LARGEST_TIME = 64  # on the slider, unless the model's own is larger


class Plane(NamedTuple):
    """Points in a plane.

    Attributes
    ----------
    points : array of shape (n, 2)
    share : float
        Of the variance of the sketch that lies in it.
    """

    points: np.ndarray
    share: float


def times(model: HeatSketch, powers: Iterable[int] | None) -> list[Any]:
    """Return diffusion times in order, the model's own among them, "all" as the last."""
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
    """Return the sketch at each time, from one pass; the model's own as it is."""
    found: dict[Any, np.ndarray] = {own_time(model): model.embedding_}
    others = [power for power in powers if power not in found]
    if others:
        found.update(zip(others, model.path(others), strict=True))
    return [found[power] for power in powers]


def plane_of(Y: np.ndarray) -> Plane:
    """Return the first two principal components.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.report._pictures import plane_of
    >>> plane_of(np.array([[0.0, 0.0, 1.0], [0.0, 3.0, 1.0]])).points.tolist()
    [[-1.5, 0.0], [1.5, 0.0]]
    """
    Y = Y.astype(np.float64) - Y.mean(axis=0, dtype=np.float64)
    unit = np.abs(Y).max() or 1.0  # of the smallest sketches squares would underflow
    Y /= unit
    values, directions = np.linalg.eigh(Y.T @ Y)
    first = directions[:, :-3:-1]
    # A sign is a matter of taste: take the one that makes the largest entry positive.
    first = first * np.sign(first[np.argmax(np.abs(first), axis=0), np.arange(first.shape[1])])
    points = np.zeros((len(Y), 2))
    points[:, : first.shape[1]] = Y @ first * unit
    total = values.sum()
    return Plane(points, float(values[:-3:-1].sum() / total) if total > 0 else 1.0)


def turned_like(points: np.ndarray, model: np.ndarray) -> np.ndarray:
    """Turn points of the plane, and mirror them, to be as near to others as that makes them.

    Which way up a plane is shown is up to us, and a slider should not make it jump.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.report._pictures import turned_like
    >>> corner = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> turned_like(corner @ [[0.0, 1.0], [1.0, 0.0]], corner).round(9).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    """
    left, _, right = np.linalg.svd(points.T @ model)
    return points @ (left @ right)


def aligned(planes: list[Plane], start: int) -> list[Any]:
    """Turn each plane like its neighbour, from one of them on to both sides."""
    turned: dict[int, np.ndarray] = {start: planes[start].points}
    for place in range(start + 1, len(planes)):
        turned[place] = turned_like(planes[place].points, turned[place - 1])
    for place in range(start - 1, -1, -1):
        turned[place] = turned_like(planes[place].points, turned[place + 1])
    return [turned[place] for place in range(len(planes))]
