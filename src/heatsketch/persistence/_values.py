"""Reading of neighbours, heat operators and their scaling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.diffusion._affinity import gaussian_affinity, locally_scaled
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._normalization import Scaling
from heatsketch.diffusion._operator import HeatOperator, Scaled
from heatsketch.graph._ivf import Level, ListTree, NeighborLists
from heatsketch.graph._metrics import LIST_METRICS, METRICS
from heatsketch.graph._neighbors import Neighbors, squared_distances
from heatsketch.persistence._parts import FLOATS, Part


def read_neighbors(part: Part, n: int, dtype: str) -> Neighbors:
    """Return the neighbours of ``n`` points, whose coordinates have a dtype."""
    metric = part.plain("metric", str)
    is_given = metric == "precomputed"
    part.check(is_given or metric in METRICS, "metric", f"is {metric!r:.50}")
    starts = _copies(part, n) if part.has("starts") else None
    n_points = n if starts is None else len(starts) - 1
    points = part.matrix("points", dtype, (n_points, n if is_given else None))
    neighbors = Neighbors(points, part.permutation("order", n), metric, starts=starts)
    if not part.has("n_neighbors"):
        part.check(starts is None, "starts")
        return neighbors
    lists = None
    if part.has("lists"):
        part.check(metric in LIST_METRICS and not sparse.issparse(points), "lists")
        lists = read_lists(part["lists"], points.shape, dtype)
    ties = None
    if part.has("ties"):
        ties = part.array("ties", ("float64",), (n_points,), finite=False)
    return replace(
        neighbors,
        n_neighbors=part.count("n_neighbors", most=n_points),
        radii=part.array("radii", (dtype,), (n_points,), finite=False),
        lists=lists,
        ties=ties,
    )


def _copies(part: Part, n: int) -> np.ndarray:
    """Return where the copies of each distinct point start."""
    starts = part.starts("starts", end=n)
    part.check((starts[1:] > starts[:-1]).all(), "starts", "has a point without a copy")
    return starts


def read_lists(part: Part, shape: tuple[int, int], dtype: str) -> NeighborLists:
    """Return inverted lists of points of a shape."""
    tree = part["tree"]["levels"]
    levels: list[Level] = []
    n_nodes = 1
    while tree.has(str(len(levels))):
        level = tree[str(len(levels))]
        starts = level.starts("starts", n_nodes)
        n_nodes = int(starts[-1])
        level.check(n_nodes > 0, "starts")
        levels.append(Level(level.array("centroids", (dtype,), (n_nodes, shape[1])), starts))
    probes = part.indices("probes", ("int32",), (shape[0], None), n_nodes, start=-1)
    own = probes[:, 0]
    part.check(own[0] >= 0 and (own[1:] >= own[:-1]).all(), "probes", "is not sorted by list")
    points = part.array("points", (dtype,), shape)
    return NeighborLists(
        ListTree(tuple(levels)), points, part.permutation("order", shape[0]), probes
    )


def read_scaling(part: Part, n: int) -> Scaling:
    """Return the scaling of ``n`` rows."""
    f64 = ("float64",)
    return Scaling(
        previous=part.array("previous", f64, (n,)) if part.has("previous") else None,
        current=part.array("current", f64, (n,)),
        n_iter=part.count("n_iter"),
        residual=part.plain("residual", float),
    )


def read_operator(part: Part, rule: Any) -> HeatOperator:
    """Return a heat operator; all pairs of points are computed again by their rule."""
    stationary = part.array("stationary", FLOATS, (None,))
    n, dtype = len(stationary), stationary.dtype.name
    matrix = part["matrix"]
    if "starts" in matrix.tree:
        starts = _copies(matrix, n)
        distinct = matrix.csr("matrix", dtype, (len(starts) - 1, len(starts) - 1))
        rows: Any = SharedRows(distinct, starts)
    elif "K" in matrix.tree:
        K: Any = matrix.tree.get("K")
        if isinstance(K, str):
            points = getattr(rule.neighbors, "points", np.empty(0))
            matrix.check(K == DENSE and points.shape[0] == n, "K")
        else:
            K = matrix.array("K", (dtype,), (n, n))
        left, right = (matrix.array(name, (dtype,), (n,)) for name in ("left", "right"))
        rows = Scaled(K, left, right)
    else:
        rows = part.csr("matrix", dtype, (n, n))
    A = HeatOperator(rows, part.array("s", ("float64",), (n,)), stationary)
    return with_pairs(A, rule)


# --- all pairs of points ------------------------------------------------------------------------

DENSE = "dense"  # in place of affinities of all pairs


def without_pairs(A: Any, rule: Any) -> Any:
    """Leave out what can be computed from points: the affinities of all pairs."""
    K = getattr(getattr(A, "matrix", None), "K", None)
    if not isinstance(K, np.ndarray) or type(rule.neighbors) is not Neighbors:
        return A
    return HeatOperator(replace(A.matrix, K=DENSE), A.s, A.stationary)


def with_pairs(A: Any, rule: Any) -> Any:
    """Compute what :func:`without_pairs` left out, with the same bits."""
    if not isinstance(getattr(getattr(A, "matrix", None), "K", None), str):
        return A
    points = rule.neighbors.points
    d2 = squared_distances(points, points, metric=rule.neighbors.metric)
    if rule.scales is not None:
        d2 = locally_scaled(d2, rule.scales, rule.scales)
    K = gaussian_affinity(d2, epsilon=rule.bandwidth)
    return HeatOperator(replace(A.matrix, K=K), A.s, A.stationary)
