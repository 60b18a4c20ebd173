"""All pairs beyond memory: a product whose matrix is recomputed, and a whole fit."""

import argparse

import numpy as np
from data import manifold
from timing import memory, seconds, time_ratio, write

from heatsketch import HeatSketch, LocalEngine
from heatsketch.diffusion import gaussian_affinity
from heatsketch.graph._neighbors import neighbor_graph
from heatsketch.graph._pairwise import DistanceTiles

N_FEATURES, N_COMPONENTS = 16, 32


def factor(n_points):
    """Time of a product whose matrix is recomputed, over one whose matrix is in memory."""
    X = manifold(n_points, N_FEATURES)
    tiles = gaussian_affinity(DistanceTiles(X, "euclidean"), epsilon=1.0)
    matrix = gaussian_affinity(neighbor_graph(X), epsilon=1.0)
    block = np.random.default_rng(0).standard_normal((n_points, N_COMPONENTS), np.float32)
    return time_ratio(lambda: tiles @ block, lambda: matrix @ block, n_pairs=5)


def fit(n_points, gib):
    """Embed points by all their pairs, within a limit of memory that these would break."""
    HeatSketch(4, n_neighbors=None).fit(manifold(500, N_FEATURES))  # compile
    X = manifold(n_points, N_FEATURES)
    before, engine = memory("VmRSS"), LocalEngine(memory_limit=int(gib * 2**30))
    model = HeatSketch(N_COMPONENTS, n_neighbors=None, power=8, engine=engine)
    took = seconds(lambda: model.fit(X))
    again = model.transform(X[:100])
    return {
        "points": n_points,
        "seconds": round(took),
        "limit GiB": gib,
        "all pairs GiB": round(4 * n_points**2 / 2**30, 1),
        "taken GiB": round((memory("VmHWM") - before) / 2**30, 2),
        "training points given again, error": float(
            np.abs(again / model.embedding_[:100] - 1).max()
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--gib", type=float, default=2.0)
    options = parser.parse_args()
    results = {"fit": fit(options.points, options.gib)}
    write("tiles", results | {"recomputed / in memory, 10,000 points": round(factor(10_000), 2)})


if __name__ == "__main__":
    main()
