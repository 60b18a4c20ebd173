"""Number of inverted lists to probe, chosen by its effect on the embedding.

If twice as many lists are probed, the graph has a few more neighbours. To measure their effect,
small parts of the data are embedded with both graphs and the same random matrix, and distances are
compared. No exact graph is needed.
"""

from __future__ import annotations

import numpy as np

from heatsketch._core.progress import reporting_to
from heatsketch.diffusion._affinity import gaussian_affinity
from heatsketch.diffusion._normalization import symmetric_scaling
from heatsketch.diffusion._operator import heat_operator
from heatsketch.diffusion._random_matrix import Kind, random_block
from heatsketch.diffusion._sketch import sketch
from heatsketch.graph._ivf import POINTS_PER_LIST, ListTree, NeighborLists
from heatsketch.graph._metrics import squared_distances_to

FEWEST, MOST = 8, 64  # bounds of the number of lists to probe
N_PARTS, PART = 2, 10_000  # number of parts of the data for trials, and their size
N_COMPONENTS, POWER, N_PAIRS = 32, 8, 10_000  # of the sketch of a part


def choose_probes(points: np.ndarray, tree: ListTree, *, n_neighbors: int, tolerance: float) -> int:
    """Return how many lists to probe to keep changes of distances within a tolerance."""
    parts = [_part(points, i) for i in range(N_PARTS)]
    return probes_for_parts(parts, tree, n_neighbors=n_neighbors, tolerance=tolerance)


def probes_for_parts(
    parts: list[np.ndarray], tree: ListTree, *, n_neighbors: int, tolerance: float
) -> int:
    """Return how many lists to probe, estimated from parts of the points."""
    # There must be several times as many candidates as neighbours.
    n_probes = max(FEWEST, -(-4 * n_neighbors // POINTS_PER_LIST))
    more = _all_distances(parts, tree, n_probes, n_neighbors)
    while n_probes < min(MOST, tree.n_lists):
        few, more = more, _all_distances(parts, tree, 2 * n_probes, n_neighbors)
        if _spread(few, more) <= tolerance:
            break
        n_probes *= 2
    return min(n_probes, tree.n_lists)


def _spread(few: np.ndarray, more: np.ndarray) -> float:
    is_distinct = more > 0  # exclude duplicates
    ratios = few[is_distinct] / more[is_distinct]
    return float(np.std(ratios)) if len(ratios) else 0.0


def _all_distances(
    parts: list[np.ndarray], tree: ListTree, n_probes: int, n_neighbors: int
) -> np.ndarray:
    # Trials do not report progress, which would be mistaken for that of the search.
    with reporting_to(lambda name, n_steps: lambda: None):
        arranged = (NeighborLists.arrange(part, tree, n_probes) for part in parts)
        return np.concatenate([_distances(lists, n_neighbors) for lists in arranged])


def centers_of_parts(n_points: int) -> list[int]:
    """Return the indices of the points at the centres of the parts."""
    return [(2 * i + 1) * n_points // (2 * N_PARTS) for i in range(N_PARTS)]


def _part(points: np.ndarray, i: int) -> np.ndarray:
    """Return all points near a centre, in order, so that their density is that of the data."""
    center = centers_of_parts(len(points))[i]
    squares = squared_distances_to(points, "euclidean")(points[center : center + 1])[0]
    size = min(PART, len(points))
    return points[np.sort(np.argpartition(squares, size - 1)[:size])]


def _distances(lists: NeighborLists, n_neighbors: int) -> np.ndarray:
    """Return sketched diffusion distances between random pairs of points."""
    n_points = len(lists.points)
    d2, radii, _ = lists.graph(n_neighbors)
    within = radii[np.isfinite(radii)]
    # If all points are duplicates, epsilon has no effect.
    K = gaussian_affinity(d2, epsilon=float(within.sum() / max(1, len(within))) or 1.0)
    A = heat_operator(K, symmetric_scaling(K))
    Y = np.empty((n_points, N_COMPONENTS), A.dtype)
    drawn = random_block(Kind.TRIAL, n_points, N_COMPONENTS + 2, dtype=A.dtype)
    Y[lists.order] = sketch(A, drawn[lists.order, 2:], power=POWER)
    orders = np.argsort(drawn[:, :2], axis=0)
    pairs = orders[np.arange(N_PAIRS) % n_points]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.linalg.norm(Y[pairs[:, 0]] - Y[pairs[:, 1]], axis=1)
