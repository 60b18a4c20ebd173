"""How often intervals of neighbours cover that the sketch itself has chosen, and what that costs.

Three ways are compared. "plain" takes the interval of any pair. "allowed for" is what
`diffusion_neighbors` does: it multiplies the probability of a miss by the share of points chosen.
"halves" chooses by one half of the components and estimates by the other. The truth is dense: rows
of the heat kernel's power 2, and of the sum over all times from the first power of one fit on.
"""

import argparse
import warnings

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_blobs
from timing import write

from heatsketch import HeatGraph, sketch
from heatsketch.diffusion import diffusion_neighbors, gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._all_times import all_times_weights
from heatsketch.diffusion._confidence import scale_interval, simultaneous_confidence

BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}
N_NEIGHBORS, N_ROWS, COMPONENTS = 15, 25, (16, 32, 64)
SETTINGS = [("gaussian", "all"), ("gaussian", 2), ("rademacher", 2)]
SIZES = (500, 800, 10_000, 1_000_000)


def normal(n_points, dimension):
    return np.random.default_rng(0).standard_normal((n_points, dimension))


DATA = {
    "normal, 2 dimensions": lambda: normal(500, 2),
    "normal, 10 dimensions": lambda: normal(500, 10),
    "normal, 64 dimensions": lambda: normal(500, 64),
    "normal, 10 dimensions, 800 points": lambda: normal(800, 10),
    "normal, 64 dimensions, 800 points": lambda: normal(800, 64),
    "5 clusters, 10 dimensions": lambda: make_blobs(
        500, 10, centers=5, cluster_std=4.0, random_state=0
    )[0],
    "digits": lambda: load_digits().data[:500],
}


def kernel(X, power):
    """Return the dense matrix that a sketch multiplies by random numbers, and how far off it is."""
    graph = HeatGraph.from_points(X)
    if graph.n_connected_components > 1:
        raise ValueError(f"distances of {graph.n_connected_components} components are meaningless")
    made, A = sketch(graph, 64, power=power, n_leading=0), graph.operator
    values, vectors = np.linalg.eigh(A @ np.eye(len(X)))
    values, vectors = values[:-1], vectors[:, :-1]  # the last one is stationary
    weights = all_times_weights(values, made.first_power) if power == "all" else values**power
    F = (vectors * weights) @ vectors.T * (graph.stationary_length / A.stationary)[:, np.newaxis]
    wanted = F @ gaussian_matrix(len(X), 64, seed=0) / 8
    return F, np.linalg.norm(made.embedding - wanted) / np.linalg.norm(wanted)


def nearest(Y, rows):
    """Return the nearest others of some rows."""
    apart = cdist(Y[rows], Y)
    apart[np.arange(len(rows)), rows] = np.inf
    return np.argsort(apart, axis=1, kind="stable")[:, :N_NEIGHBORS]


def recall(found, wanted):
    return np.mean((found[:, :, np.newaxis] == wanted[:, np.newaxis]).any(axis=2))


def covers(distance, interval, truth):
    low, high = interval
    return (low * distance <= truth) & (truth <= high * distance)


def trial(known, k, seed, random_matrix):
    """Return what one sketch covers and recalls."""
    F, rows, exact, wanted = known
    Y = F @ BLOCKS[random_matrix](len(F), k, seed=seed) / np.sqrt(k)
    options = {"n_neighbors": N_NEIGHBORS, "random_matrix": random_matrix}
    found = diffusion_neighbors(Y, rows, **options)
    truth = np.take_along_axis(exact, found.indices, axis=1)
    half = k // 2
    chosen = nearest(Y[:, :half], rows)
    apart = Y[chosen][:, :, half:] - Y[rows][:, np.newaxis, half:]
    other = np.linalg.norm(apart, axis=-1) * np.sqrt(2)
    plain, halved = (
        scale_interval(columns, 0.95, random_matrix=random_matrix) for columns in (k, half)
    )
    level = simultaneous_confidence(0.95, len(F) - 1)  # 15 of the others, and all 15 at once
    at_once = scale_interval(k, level, random_matrix=random_matrix)
    return {
        "plain": covers(found.distance, plain, truth),
        "allowed for": (found.low <= truth) & (truth <= found.high),
        "halves": covers(other, halved, np.take_along_axis(exact, chosen, axis=1)),
        "at once": covers(found.distance, at_once, truth).all(axis=1),
        "wrong order": (found.confidence[:, :-1] > 0.95) & (truth[:, :-1] > truth[:, 1:]),
        "recall": recall(found.indices, wanted),
        "recall of halves": recall(chosen, wanted),
    }


def measured(name, power, random_matrix, n_seeds):
    F, error = kernel(DATA[name](), power)
    rows = np.random.default_rng(1).choice(len(F), N_ROWS, replace=False)
    known = F, rows, cdist(F[rows], F), nearest(F, rows)
    for k in COMPONENTS:
        trials = [trial(known, k, seed, random_matrix) for seed in range(n_seeds)]
        parts = {part: np.array([one[part] for one in trials]) for part in trials[0]}
        yield {
            "data": name,
            "power": power,
            "random matrix": random_matrix,
            "k": k,
            "error of the kernel": float(f"{error:.1g}"),
            **{part: round(float(values.mean()), 4) for part, values in parts.items()},
            "worst neighbour": round(float(parts["allowed for"].mean(axis=(0, 1)).min()), 4),
        }


def widths():
    """Return widths of intervals, in units of the plain one's."""
    for n_points in SIZES:
        for k in COMPONENTS:
            n_others = n_points - 1
            chosen = simultaneous_confidence(0.95, n_others / N_NEIGHBORS)
            ends = {
                "plain": scale_interval(k, 0.95),
                "allowed for": scale_interval(k, chosen),
                "at once": scale_interval(k, simultaneous_confidence(0.95, n_others)),
                "halves": scale_interval(k // 2, 0.95),
            }
            width = {way: high - low for way, (low, high) in ends.items()}
            yield {"points": n_points, "k": k, "plain, relative": round(width["plain"], 3)} | {
                way: round(width[way] / width["plain"], 2) for way in list(width)[1:]
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    n_seeds = parser.parse_args().seeds
    warnings.simplefilter("error")
    rows = []
    for random_matrix, power in SETTINGS:
        for name in DATA:
            for row in measured(name, power, random_matrix, n_seeds):
                print(row, flush=True)
                rows.append(row)
    about = {"neighbours": N_NEIGHBORS, "rows": N_ROWS, "seeds": n_seeds, "confidence": 0.95}
    write("selection", {**about, "coverage": rows, "widths": list(widths())}, quiet=True)


if __name__ == "__main__":
    main()
