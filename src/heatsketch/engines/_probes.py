"""How many lists to look into: as many as make no difference to the embedding.

Twice as many lists find a few more neighbours. Whether they matter is asked of the sketch itself:
small parts of the data are embedded with either graph and the same random block, and their
distances compared. No exact graph is needed for that.
"""

from __future__ import annotations

import numpy as np

from heatsketch.affinity import gaussian_affinity
from heatsketch.heat_operator import heat_operator
from heatsketch.metrics import squared_distances_to
from heatsketch.neighbor_lists import POINTS_PER_LIST, ListTree, NeighborLists
from heatsketch.normalization import symmetric_scaling
from heatsketch.random_block import gaussian_block
from heatsketch.sketch import sketch

__all__ = ["choose_probes", "movement"]

FEWEST, MOST = 4, 64
N_PARTS, PART = 4, 5000  # parts of the data that are tried, and their size
N_COMPONENTS, POWER, N_PAIRS = 32, 8, 5000


def choose_probes(points: np.ndarray, tree: ListTree, *, n_neighbors: int, tolerance: float) -> int:
    """Return how many lists to probe for distances to move by no more than a tolerance."""
    # As many candidates as neighbours would leave nothing to choose from.
    n_probes = max(FEWEST, -(-4 * n_neighbors // POINTS_PER_LIST))
    parts = [_part(points, i) for i in range(N_PARTS)]
    while n_probes < min(MOST, tree.n_lists):
        moved = [movement(part, tree, n_probes, n_neighbors=n_neighbors) for part in parts]
        if np.mean(moved) <= tolerance:
            break
        n_probes *= 2
    return min(n_probes, tree.n_lists)


def movement(points: np.ndarray, tree: ListTree, n_probes: int, *, n_neighbors: int) -> float:
    """Spread of the ratio of sketched distances between two numbers of probes, one the double."""
    few, more = (
        _distances(points, NeighborLists.arrange(points, tree, n), n_neighbors)
        for n in (n_probes, 2 * n_probes)
    )
    apart = more > 0  # duplicates are not
    return float(np.std(few[apart] / more[apart])) if apart.any() else 0.0


def _part(points: np.ndarray, i: int) -> np.ndarray:
    """Return points around one of them, in their order: a part as dense as the whole."""
    center = (2 * i + 1) * len(points) // (2 * N_PARTS)
    squares = squared_distances_to(points, "euclidean")(points[center : center + 1])[0]
    size = min(PART, len(points))
    return points[np.sort(np.argpartition(squares, size - 1)[:size])]


def _distances(points: np.ndarray, lists: NeighborLists, n_neighbors: int) -> np.ndarray:
    """Return sketched diffusion distances between random points, in the order given."""
    d2, radii = lists.graph(n_neighbors)
    K = gaussian_affinity(d2, epsilon=float(np.mean(radii[np.isfinite(radii)])))
    A = heat_operator(K, symmetric_scaling(K))
    Y = np.empty((len(points), N_COMPONENTS), A.dtype)
    Y[lists.order] = sketch(A, gaussian_block(lists.order, N_COMPONENTS, seed=0), power=POWER)
    lots = np.argsort(gaussian_block(len(points), 2, seed=1), axis=0)
    pairs = lots[np.arange(N_PAIRS) % len(points)]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.linalg.norm(Y[pairs[:, 0]] - Y[pairs[:, 1]], axis=1)
