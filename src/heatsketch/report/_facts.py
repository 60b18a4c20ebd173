"""What a page tells of a model beside its points: curves, pieces, parameters, how to cite it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from heatsketch.bandwidth import EpsilonEstimate, estimate_epsilon
from heatsketch.estimators import DIRECTIONS_PER_COLUMN, HeatSketch
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat_trace import heat_trace
from heatsketch.random_block import gaussian_block

__all__ = ["CITATION", "bandwidth", "parameters", "piece_of_each", "trace"]

TRACE_COLUMNS = 64
CURVE_POINTS = 200
BINS = 40  # of the histogram of local scales
POINTS_OF_CURVE = 5000  # that a curve is estimated from, where the model has none

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


def trace(model: HeatSketch, largest: int) -> dict[str, Any]:
    """Return the heat trace that the power was read from; a fresh one if it was given."""
    found = getattr(model, "heat_trace_", None)
    chosen = found is not None and len(found.powers) > 1
    if not chosen:
        k = min(TRACE_COLUMNS, model.n_components)
        G = gaussian_block(model.row_ids_, k, seed=model.seed_, dtype=model.embedding_.dtype)
        found = heat_trace(model.heat_operator_, G, largest=largest)
    return {
        "powers": _plain(found.powers),
        "trace": _plain(found.trace),
        "low": _plain(np.maximum(found.trace - 2 * found.error, 0)),
        "high": _plain(found.trace + 2 * found.error),
        "directions": _plain(found.directions),
        "allowed": DIRECTIONS_PER_COLUMN * model.n_components,
        "chosen": model.power == "auto",
    }


def bandwidth(model: HeatSketch) -> dict[str, Any]:
    """Return what there is to see of the bandwidth: a curve, or the scales of the points."""
    if model.affinity == "precomputed":
        return {"kind": "none"}
    if isinstance(model.epsilon_, np.ndarray):
        scales = model.epsilon_[model.epsilon_ > 0]
        edges = np.geomspace(scales.min(), scales.max() * (1 + 1e-9), BINS + 1)
        counts = np.histogram(scales, edges)[0]
        middle = float(np.median(scales))
        return {"kind": "local", "edges": _plain(edges), "counts": _plain(counts), "median": middle}
    curve = getattr(model, "epsilon_estimate_", None) or _curve(model)
    told = {"kind": "fixed" if model.epsilon != "auto" else "auto", "epsilon": model.epsilon_}
    if curve is None:
        return told
    some = slice(None, None, max(1, len(curve.epsilons) // CURVE_POINTS))
    curves = {
        "epsilons": _plain(curve.epsilons[some]),
        "dimensions": _plain(curve.dimensions[some]),
    }
    return {**told, **curves, "dimension": curve.dimension}


def _curve(model: HeatSketch) -> EpsilonEstimate | None:
    """Return the curve that a bandwidth could have been read from, where points allow one."""
    if model.metric == "precomputed":
        return None
    points = model.neighbors_.points
    rows = np.unique(np.linspace(0, points.shape[0] - 1, POINTS_OF_CURVE).astype(int))
    try:
        return estimate_epsilon(points[rows], metric=model.metric)
    except HeatSketchError:  # the model did not need one
        return None


def piece_of_each(model: HeatSketch) -> np.ndarray | None:
    """Return the piece of the graph of each row, the largest first; None where it is not known."""
    matrix = getattr(model.heat_operator_, "matrix", None)
    if model.n_connected_components_ == 1 or not sparse.issparse(matrix):
        return None
    n_pieces, pieces = connected_components(matrix, directed=False)
    if n_pieces != model.n_connected_components_:
        return None  # links too weak to carry heat have been counted
    sizes = np.bincount(pieces)
    rank = np.empty(n_pieces, dtype=np.intp)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(n_pieces)
    found = np.empty_like(rank, shape=len(pieces))
    found[model.order_] = rank[pieces]
    return found


def parameters(model: HeatSketch) -> list[tuple[str, str]]:
    """Return the parameters, with what was made of those that say "auto"."""
    found = {name: _word(value) for name, value in model.get_params(deep=False).items()}
    if model.power == "auto":
        found["power"] = f"{model.power_} (auto)"
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
