"""Checks of points, weights and ids, and warnings about graphs and sketches."""

from __future__ import annotations

import math
import reprlib
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.checks import (
    as_array,
    check_finite,
    check_integer,
    check_nonnegative,
    is_graph,
    native_numbers,
)
from heatsketch._core.partitioned import is_lazy
from heatsketch._core.row_names import row_numbers
from heatsketch._core.warn import warn
from heatsketch.diffusion._affinity import isolated_fraction
from heatsketch.diffusion._all_times import HORIZONS
from heatsketch.exceptions import (
    AffinityError,
    AmbiguousRowWarning,
    DegenerateKernelError,
    DegenerateKernelWarning,
    DisconnectedGraphWarning,
    FarPointWarning,
    HeatSketchError,
    SaturationWarning,
    ScaleError,
    UnderflowWarning,
    ZeroDiagonalWarning,
)

N_NEIGHBORS = 15
LARGEST_SUM = 1e100  # of a row of weights; its square and inverse are in the range of floats
DECAY_ROWS = 100_000  # most rows that are checked for decay
ROUNDING = 100  # machine epsilons; smaller relative differences of rows are mostly rounding


def check_weights(weights: Any) -> None:
    """Raise unless ``weights`` is "local", "gaussian" or a positive number."""
    is_name = isinstance(weights, str) and weights in ("local", "gaussian")
    is_number = isinstance(weights, Real) and not isinstance(weights, bool)
    if not is_name and not (is_number and 0 < float(weights) < np.inf):
        raise HeatSketchError(
            "weights must be 'local', 'gaussian' or a positive bandwidth of squared distances, got "
            f"{weights!r}."
        )


def check_number_of_neighbors(n_neighbors: Any, X: Any, metric: Any) -> int | None:
    """Return the number of neighbours to search, None for all pairs or given ones."""
    if metric == "precomputed" and sparse.issparse(X):
        if n_neighbors not in (None, N_NEIGHBORS):
            raise HeatSketchError(
                f"n_neighbors={n_neighbors} is ignored when X is a sparse matrix of distances, "
                "whose stored entries are the neighbours; remove it."
            )
        return None
    if n_neighbors is None:
        return None
    return min(check_integer("n_neighbors", n_neighbors, least=2), X.shape[0])


def is_affinity(X: Any, metric: Any) -> bool:
    """Return True for graphs of other libraries and square symmetric sparse matrices.

    A square sparse matrix that is not symmetric is an error: it may hold distances of neighbours.
    """
    if is_graph(X):
        return True
    if metric == "precomputed" or not sparse.issparse(X) or X.shape != X.shape[:1] * 2:
        return False
    X = sparse.csr_array(native_numbers(X))
    check_finite(X)
    if not abs(X - X.T).max():
        return True
    raise HeatSketchError(
        f"X is a square sparse matrix of shape {X.shape} that is not symmetric. Use "
        "metric='precomputed' if it holds distances of neighbours, HeatGraph.from_affinity(X + "
        "X.T) if it holds weights of links, or X.toarray() if its rows are points."
    )


def check_affinities(W: Any) -> None:
    """Raise for negative affinities, rows of zeros, and sums out of range."""
    check_nonnegative(W, "weights", "weights of links must be >= 0")
    with np.errstate(over="ignore"):
        sums = W @ np.ones(W.shape[1])
    if not sums.all():
        raise AffinityError(
            f"Row {int(np.argmin(sums))} of the weights sums to zero; put a positive number on its "
            "diagonal, or drop it."
        )
    is_far = (sums < 1 / LARGEST_SUM) | (sums > LARGEST_SUM)
    if is_far.any():
        row = int(np.argmax(is_far))
        raise ScaleError(
            f"Row {row} of the weights sums to {sums[row]:.3g}, and products would leave the range "
            "of floats; divide all weights by the largest first."
        )


def check_ids(ids: Any, X: Any) -> tuple[Any, Any]:
    """Return ids and the numbers that random numbers depend on; positions by default.

    Both are None for rows on storage, which are numbered from 0.
    """
    n_rows = X.shape[0]
    if ids is None:
        return None, None if is_lazy(X) else np.arange(n_rows)
    if is_lazy(X):
        raise HeatSketchError(
            "ids is not supported for rows in storage, which are numbered from 0, got "
            f"{reprlib.repr(ids)}; remove it, or sort the rows by their ids."
        )
    names = as_array(ids, "ids")
    if names.shape != (n_rows,):
        raise HeatSketchError(
            f"ids must have one entry for each of the {n_rows} rows, got shape {names.shape}."
        )
    return names, row_numbers(names)


# --- warnings -------------------------------------------------------------------------------


def warn_about_isolated_points(K: Any, sums: Any, bandwidth: float | None) -> None:
    """Warn that points without neighbours are embedded as noise."""
    isolated = isolated_fraction(K, sums, linked_only=bandwidth is None)
    remedy = "add links" if bandwidth is None else f"use larger weights than {bandwidth!r}"
    message = (
        f"{isolated:.0%} of the {K.shape[0]} rows have no neighbours, and are embedded as noise; "
        f"drop them, or {remedy}."
    )
    if isolated > 0.5:
        raise DegenerateKernelError(message)
    if isolated > 0.05:
        warn(DegenerateKernelWarning, message)


def warn_about_zero_diagonal(K: Any) -> None:
    """Warn that given weights have no self-loops."""
    n_zeros = K.shape[0] - np.count_nonzero(K.diagonal())
    if n_zeros:
        warn(
            ZeroDiagonalWarning,
            f"The diagonal of the weights has {n_zeros} zeros, so that a walk must leave these "
            "nodes and may oscillate; use self_loops=True.",
        )


def warn_about_shared_rows(rows: np.ndarray) -> None:
    """Warn that rows may be those of several nodes."""
    if len(rows):
        warn(
            AmbiguousRowWarning,
            f"{len(rows)} rows of X, the first of them row {rows[0]}, have the links of several "
            "nodes of the graph, and are embedded as new nodes without self-loops. For nodes of "
            "the graph, use embedding_ or rows of with_self_loops.",
        )


def warn_about_components(n_components: int, rule: Any) -> None:
    """Warn that the graph is not connected."""
    remedy = "Add links between them, or embed each on its own"
    if rule.neighbors is not None:
        remedy = "Use a larger bandwidth to connect them"
        if rule.neighbors.n_neighbors is not None:
            remedy = f"Use more neighbours than n_neighbors={rule.neighbors.n_neighbors}"
    warn(
        DisconnectedGraphWarning,
        f"The graph has {n_components} connected components. Distances between components are not "
        f"meaningful. {remedy}.",
    )


def warn_about_decay(
    A: Any, before: np.ndarray, last: np.ndarray, *, power: Any, bandwidth: Any
) -> None:
    """Warn that the result of diffusion, or of its last step, is almost zero.

    The stationary direction is removed first, since rounding adds it again, and it does not decay.
    """
    some = slice(None, None, -(-len(last) // DECAY_ROWS))
    before = before[some]
    after = last[some] - A.stationary[some, np.newaxis] * A.stationary_coefficients(last)
    largest_before, largest = (max(float(b.max()), -float(b.min())) for b in (before, after))
    if min(largest_before, largest) < np.finfo(after.dtype).tiny:
        warn(
            UnderflowWarning,
            f"power={power} makes the embedding too small for {after.dtype}: its largest entry is "
            f"{largest:.3g}. Use a smaller power, float64 input, or a smaller bandwidth, unless "
            "all points of X are equal.",
        )
    elif largest * np.sqrt(after.shape[1]) < 1e-3 * largest_before:
        cause, remedy = "The weights are so similar that", "Use weights that differ more"
        if bandwidth is not None:
            cause = f"weights={bandwidth!r} is such a large bandwidth that"
            remedy = "Use a smaller one, unless all points of X are equal"
        warn(
            DegenerateKernelWarning,
            f"{cause} one step of diffusion leaves {largest / largest_before:.1e} of all "
            f"differences between points. {remedy}.",
        )


def warn_about_saturation() -> None:
    """Warn that the sum over all times ends before heat has spread over the graph."""
    warn(
        SaturationWarning,
        f"Heat needs more than {HORIZONS[-1]:,} steps to spread over the graph, so that pseudotime "
        "hardly grows far from the root, or between parts that are almost disconnected. Use more "
        "neighbours or fewer points.",
    )


def warn_about_rounding(embedding: Any, *, power: Any) -> None:
    """Warn that rows with a stationary part differ little more than by rounding."""
    some = slice(None, None, -(-len(embedding) // DECAY_ROWS))
    rows = np.asarray(embedding[some], dtype=np.float64)
    length, spread = np.linalg.norm(rows), np.linalg.norm(rows - rows.mean(axis=0))
    if len(rows) > 1 and spread < ROUNDING * np.finfo(embedding.dtype).eps * length:
        warn(
            UnderflowWarning,
            f"With stationary='keep' and power={power}, rows differ by {spread / length:.1e} of "
            f"their length, which is rounding in {embedding.dtype}, as are distances and "
            "intervals. Use stationary='drop' or a smaller power.",
        )


def warn_about_far_points(
    nearest_squares: np.ndarray, bandwidth: float, named_bandwidth: Any, *, first_row: int
) -> None:
    """Warn of new points far from all training points.

    Rows are numbered from ``first_row``.
    """
    # Beyond this limit the affinity to every training point would be zero.
    limit = -math.log(float(np.finfo(nearest_squares.dtype).tiny)) * bandwidth
    far = nearest_squares > np.float64(limit)  # the limit may overflow float32
    if far.any():
        warn(
            FarPointWarning,
            f"{far.sum()} of {len(far)} rows of X, the first of them row "
            f"{first_row + int(np.argmax(far))}, are more than {np.sqrt(limit):.3g} from all "
            f"training points, so that with weights={named_bandwidth!r} only the nearest one "
            "counts. Check their scale, or fit with them.",
        )
