"""Warnings about results that are well defined but may not be as intended."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heatsketch._core.warn import warn
from heatsketch.diffusion._affinity import isolated_fraction
from heatsketch.diffusion._all_times import HORIZONS
from heatsketch.exceptions import (
    AmbiguousRowWarning,
    DegenerateKernelError,
    DegenerateKernelWarning,
    DisconnectedGraphWarning,
    FarPointWarning,
    RareClassWarning,
    SaturationWarning,
    UnderflowWarning,
    ZeroDiagonalWarning,
)

DECAY_ROWS = 100_000  # most rows that are checked for decay
ROUNDING = 100  # machine epsilons; smaller relative differences of rows have hardly a correct digit
# Remedies for a disconnected graph, by the source of its edges. More neighbours do not help if the
# affinity to them is zero, nor does a larger epsilon if two points are not neighbours.
_IF_FAR = "to connect them, and a larger number for epsilon if they are far apart"
CONNECT = {
    "given": "Add edges between them, or embed each on its own",
    "stored": f"Store more neighbours of each point in X {_IF_FAR}",
    "all pairs": "Use a larger number for epsilon to connect them",
    "nearest": f"Use more neighbours than n_neighbors={{n_neighbors}} {_IF_FAR}",
}


def warn_about_isolated_points(K: Any, sums: Any, epsilon: float | None) -> None:
    """Warn that points without neighbours are embedded as noise."""
    isolated = isolated_fraction(K, sums, linked_only=epsilon is None)
    if isolated <= 0.05:
        return
    cause, remedy = f"epsilon={epsilon!r}", "use a larger epsilon"
    if epsilon is None:
        cause, remedy = "affinity='precomputed'", "drop them, or give X more than its diagonal"
    message = (
        f"{cause} leaves {isolated:.0%} of the {K.shape[0]} points without any "
        f"neighbour, and their embedding is noise; {remedy}."
    )
    if isolated > 0.5:
        raise DegenerateKernelError(message, **_given(epsilon))
    warn(DegenerateKernelWarning, message, **_given(epsilon))


def warn_about_zero_diagonal(K: Any) -> None:
    """Warn that a given affinity has no self-loops."""
    n_zeros = K.shape[0] - np.count_nonzero(K.diagonal())
    if n_zeros:
        warn(
            ZeroDiagonalWarning,
            f"affinity='precomputed': the diagonal of X has {n_zeros} zeros, so that a walk cannot "
            "stay where it is and may oscillate for ever; use self_loops=True.",
            affinity="precomputed",
        )


def warn_about_shared_rows(rows: np.ndarray) -> None:
    """Warn that rows may be those of several training nodes."""
    if len(rows):
        warn(
            AmbiguousRowWarning,
            f"affinity='precomputed': {len(rows)} rows of X, the first of them row {rows[0]}, have "
            "the links of several training nodes, and are embedded as new nodes, without a "
            "self-loop; for training nodes use embedding_, or rows of with_self_loops.",
            affinity="precomputed",
        )


def warn_about_components(n_components: int, *, edges: str, n_neighbors: Any) -> None:
    """Warn that the graph is not connected; ``edges`` is one of :data:`CONNECT`."""
    graph = "graph" if edges == "given" else "neighbour graph"
    warn(
        DisconnectedGraphWarning,
        f"The {graph} has {n_components} connected components: distances between components mean "
        f"no more than 'far'. {CONNECT[edges].format(n_neighbors=n_neighbors)}.",
        n_neighbors=n_neighbors,
    )


def warn_about_other_components(n_components: int, n_others: int) -> None:
    """Warn that two graphs fall into different parts, whose distance is not compared."""
    warn(
        DisconnectedGraphWarning,
        f"The graphs have {n_components} and {n_others} connected components. Distances between "
        "components are left out, so that parts that came together or fell apart count as drift. "
        "Use more neighbours, or one power such as power=8.",
    )


def warn_about_decay(
    A: Any, before: np.ndarray, last: np.ndarray, *, power: float, epsilon: float | None
) -> None:
    """Warn that the result of diffusion, or of its last step, is almost zero.

    The stationary direction is removed first: rounding errors add it again, and it would hide that
    everything else has decayed.
    """
    some = slice(None, None, -(-len(last) // DECAY_ROWS))
    before = before[some]
    after = last[some] - A.stationary[some, np.newaxis] * A.stationary_coefficients(last)
    largest_before, largest = (max(float(b.max()), -float(b.min())) for b in (before, after))
    if min(largest_before, largest) < np.finfo(after.dtype).tiny:
        warn(
            UnderflowWarning,
            f"power={power} makes the embedding too small for {after.dtype} (its largest entry is "
            f"{largest:.3g}); use a smaller power, float64 input, or a smaller epsilon. If all "
            "points of X are equal, there is nothing to embed.",
            power=power,
        )
    elif largest * np.sqrt(after.shape[1]) < 1e-3 * largest_before:
        cause = f"epsilon={epsilon!r} is so large that one"
        remedy = "use a smaller epsilon, unless all points of X are equal, with nothing to embed"
        if epsilon is None:
            cause, remedy = "affinity='precomputed': one", "make X fall off faster"
        warn(
            DegenerateKernelWarning,
            f"{cause} step of diffusion leaves {largest / largest_before:.1e} of all differences "
            f"between points; {remedy}.",
            **_given(epsilon),
        )


def warn_about_saturation() -> None:
    """Warn that the sum over all times ends before heat has spread over the graph."""
    warn(
        SaturationWarning,
        f"Heat needs more than {HORIZONS[-1]:,} steps to spread over the graph. Pseudotime hardly "
        "grows beyond a part of its length, or between parts that are almost disconnected. Use "
        "more neighbours or fewer points.",
    )


def warn_about_rounding(embedding: Any, *, power: float) -> None:
    """Warn that rows with a stationary part differ little more than by rounding."""
    some = slice(None, None, -(-len(embedding) // DECAY_ROWS))
    rows = np.asarray(embedding[some], dtype=np.float64)
    length, spread = np.linalg.norm(rows), np.linalg.norm(rows - rows.mean(axis=0))
    if len(rows) > 1 and spread < ROUNDING * np.finfo(embedding.dtype).eps * length:
        warn(
            UnderflowWarning,
            f"stationary='keep' at power={power}: rows differ by {spread / length:.1e} of their "
            f"length, which is rounding in {embedding.dtype}, and so are their distances and "
            "intervals; use stationary='drop', where nothing hides what heat has left, or a "
            "smaller power.",
            power=power,
        )


def warn_about_unreached_rows(found: np.ndarray) -> None:
    """Warn that walks from some rows never reach any of the given rows."""
    n_unreached = int(np.isnan(found).reshape(len(found), -1).any(axis=1).sum())
    if n_unreached:
        warn(
            DisconnectedGraphWarning,
            f"rows has none in the connected components of {n_unreached} of {len(found)} points, "
            "whose values are NaN; give a row in each component, or fit with a larger n_neighbors.",
        )


def warn_about_unlabelled_components(n_rows: int, n_all: int) -> None:
    """Warn that the connected components of some rows have no label."""
    if n_rows:
        warn(
            DisconnectedGraphWarning,
            f"y has no label in the connected components of {n_rows} of {n_all} rows of X, for "
            "which all classes are equally probable; label a row of each component, or fit with "
            "a larger n_neighbors.",
        )


def warn_about_rare_classes(coverage: float) -> None:
    """Warn that sets must hold all classes to reach a coverage."""
    warn(
        RareClassWarning,
        f"coverage={coverage!r} is only reached by sets of all classes, because too many classes "
        "have only held-out labels, and points of classes without any label are in no set; label "
        "more rows, or use a smaller coverage.",
        coverage=coverage,
    )


def warn_about_far_points(
    nearest_squares: np.ndarray, *, bandwidth: float, epsilon: Any, first_row: int
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
            f"{first_row + int(np.argmax(far))}, "
            f"are so far from all training points (more than {np.sqrt(limit):.3g} at "
            f"epsilon={epsilon!r}) that only their nearest one counts; check their scale, or "
            "fit with them.",
            epsilon=epsilon,
        )


def _given(epsilon: Any) -> dict[str, Any]:
    """Return the parameter that determines the affinities."""
    return {"affinity": "precomputed"} if epsilon is None else {"epsilon": epsilon}
