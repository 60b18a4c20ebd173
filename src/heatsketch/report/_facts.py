"""Contents of a page besides the points: curves, components, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch.diffusion._bandwidth import EpsilonEstimate, estimate_epsilon
from heatsketch.diffusion._heat_trace import trace_of_block
from heatsketch.estimators.heat_sketch import DIRECTIONS_PER_COMPONENT, HeatSketch
from heatsketch.exceptions import HeatSketchError

CURVE_POINTS = 200
BINS = 40  # of the histogram of local scales
POINTS_OF_CURVE = 5000  # points for estimating a curve if the model has none

CITATION = """\
@article{gilbert2024sketching,
  title  = {Sketching the Heat Kernel: Using Gaussian Processes to Embed Data},
  author = {Gilbert, Anna C. and O'Neill, Kevin},
  year   = {2024},
  note   = {arXiv:2403.07929}
}

@software{heatsketch,
  title   = {heatsketch: diffusion distances by sketching the heat kernel},
  author  = {{The heatsketch developers}},
  version = {VERSION}
}"""


def trace(
    model: HeatSketch, powers: list[Any], sketches: list[np.ndarray]
) -> dict[str, Any] | None:
    """Return the model's heat trace, extended by estimates from the sketches."""
    k = model.n_components
    if k < 2:
        return None  # one component cannot estimate it
    seen = {}
    if model.stationary == "drop":
        single = ((p, Y) for p, Y in zip(powers, sketches, strict=True) if p != "all")
        for power, Y in single:
            size, error, directions = trace_of_block(_unweighted(model, Y))  # over sqrt(k)
            seen[power] = (k * size, k * error, directions)
    own = getattr(model, "heat_trace_", None)
    if own is not None:
        seen |= dict(zip(own.powers.tolist(), zip(*own[1:], strict=True), strict=True))
    # Zeros cannot be shown on a logarithmic scale.
    found = [(power, *seen[power]) for power in sorted(seen) if min(seen[power]) > 0]
    if not found:
        return None
    times, trace, error, directions = np.array(found).T
    return {
        "powers": _plain(times),
        "trace": _plain(trace),
        "low": _plain(np.maximum(trace - 2 * error, trace / 10)),
        "high": _plain(trace + 2 * error),
        "directions": _plain(directions),
        "allowed": DIRECTIONS_PER_COMPONENT * k,
        "chosen": own is not None,
    }


def _unweighted(model: HeatSketch, Y: np.ndarray) -> np.ndarray:
    """Return rows of the heat kernel from rows with the weighting of the model."""
    if model.weighting == "symmetric":
        return Y
    stationary = model._training_operator("report").stationary / model.stationary_length_
    return Y * model._in_given_order(stationary)[:, np.newaxis]


def bandwidth(model: HeatSketch) -> dict[str, Any]:
    """Return plot data of the bandwidth: a curve, or a histogram of local scales."""
    if model.affinity == "precomputed":
        return {"kind": "none"}
    if isinstance(model.epsilon_, np.ndarray):
        scales = model.epsilon_[model.epsilon_ > 0]
        edges = np.geomspace(scales.min(), scales.max() * (1 + 1e-9), BINS + 1)
        counts = np.histogram(scales, edges)[0]
        middle = float(np.median(scales))
        return {"kind": "local", "edges": _plain(edges), "counts": _plain(counts), "median": middle}
    curve = getattr(model, "epsilon_estimate_", None) or _curve(model)
    found = {"kind": "fixed" if model.epsilon != "auto" else "auto", "epsilon": model.epsilon_}
    if curve is None:
        return found
    some = slice(None, None, max(1, len(curve.epsilons) // CURVE_POINTS))
    curves = {
        "epsilons": _plain(curve.epsilons[some]),
        "dimensions": _plain(curve.dimensions[some]),
    }
    return {**found, **curves, "dimension": curve.dimension}


def _curve(model: HeatSketch) -> EpsilonEstimate | None:
    """Return the curve for choosing a bandwidth; None if it cannot be estimated."""
    if model.metric == "precomputed":
        return None
    points = model.neighbors_.points
    rows = np.unique(np.linspace(0, points.shape[0] - 1, POINTS_OF_CURVE).astype(int))
    try:
        return estimate_epsilon(points[rows], metric=model.metric)
    except HeatSketchError:  # the model did not need one
        return None


def component_of_each(model: HeatSketch) -> np.ndarray | None:
    """Return the connected component of each row, or None if unknown.

    Components are numbered from the largest to the smallest.
    """
    matrix = getattr(model.heat_operator_, "matrix", None)
    if model.n_connected_components_ == 1 or not sparse.issparse(matrix):
        return None
    n_components, components = connected_components(matrix, directed=False)
    if n_components != model.n_connected_components_:
        return None  # scipy also counts links that are too weak to transport heat
    sizes = np.bincount(components)
    rank = np.empty(n_components, dtype=np.intp)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(n_components)
    found = np.empty_like(rank, shape=len(components))
    found[model.order_] = rank[components]
    return found


def parameters(model: HeatSketch) -> list[tuple[str, str]]:
    """Return the parameters, with the values that were chosen automatically."""
    found = {name: _word(value) for name, value in model.get_params(deep=False).items()}
    if model.power == "all":
        found["power"] = f"all, from {model.power_} on"
    if model.epsilon == "auto":
        found["epsilon"] = f"{model.epsilon_:.4g} (auto)"
    if model.random_state != model.seed_:
        found["random_state"] = f"{found['random_state']} (seed {model.seed_})"
    return [*found.items(), ("numbers", str(model.embedding_.dtype))]


def _word(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        return str(value)
    return getattr(value, "__name__", type(value).__name__)  # an engine, a metric, a generator


def _plain(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]
