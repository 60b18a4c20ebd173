"""Contents of a page besides the points: components and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch.heat import HeatGraph, Sketch


def components_by_size(graph: HeatGraph) -> np.ndarray | None:
    """Return the connected component of each row, numbered from the largest, if there are more."""
    if graph.n_connected_components == 1:
        return None
    components = graph.components
    largest_first = np.argsort(-np.bincount(components), kind="stable")
    return np.argsort(largest_first)[components]


def parameters(made: Sketch, graph: HeatGraph) -> list[tuple[str, str]]:
    """Return the parameters, with the values that were chosen automatically."""
    texts = {name: _text(value) for name, value in made.how().items()}
    if made.times is not None:
        texts["power"] = f"all, from {made.first_power} on"
    if texts.get("weights") == "gaussian":
        texts["weights"] = f"gaussian, epsilon = {graph.epsilon:.4g}"
    return [*texts.items(), ("numbers", str(made.embedding.dtype))]


def _text(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        return str(value)
    return getattr(value, "__name__", type(value).__name__)  # a metric that is a function
