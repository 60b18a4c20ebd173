"""A million points: a whole fit against pynndescent's graph alone.

pynndescent is warm, our side too. The fits are one of a single power and one without arguments.
Also how far the distances move from those of the exact graph, on a tenth of the points, and what a
fit of a single power spends after its graph.
"""

import argparse
from time import perf_counter

import numpy as np
from data import manifold
from pynndescent import NNDescent
from timing import seconds, time_ratio, write

from heatsketch import HeatSketch, LocalEngine

N_NEIGHBORS, N_COMPONENTS, POWER = 15, 32, 8


def fit(X, **options):
    return HeatSketch(N_COMPONENTS, power=POWER, n_neighbors=N_NEIGHBORS, **options).fit(X)


def spread_against_exact(X):
    """Spread of the ratio of distances to those from the exact graph, with the same G."""
    listed = fit(X, weights="gaussian")
    exact = fit(X, weights=listed.graph_.epsilon, engine=LocalEngine(graph_tolerance=0))
    i, j = np.random.default_rng(0).permutation(len(X)).reshape(2, -1)
    Y, Z = listed.embedding_, exact.embedding_
    ours, wanted = np.linalg.norm(Y[i] - Y[j], axis=1), np.linalg.norm(Z[i] - Z[j], axis=1)
    return {"spread": float(np.std(ours / wanted)), "mean": float(np.mean(ours / wanted))}


class Timed(LocalEngine):
    """The local engine, which keeps the time that its graph took."""

    took = 0.0

    def neighbors(self, X, **options):
        """Find neighbours, and keep the time."""
        start = perf_counter()
        found = super().neighbors(X, **options)
        Timed.took = perf_counter() - start
        return found


def after_the_graph(X):
    """Time of all that follows the graph, over the time of the graph."""
    ratios = [seconds(lambda: fit(X, engine=Timed())) / Timed.took - 1 for _ in range(3)]
    return sorted(ratios)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=32)
    options = parser.parse_args()
    X = manifold(options.points, options.features)

    def theirs():
        NNDescent(X, n_neighbors=N_NEIGHBORS, n_jobs=2)

    default = HeatSketch()

    results = {
        "points": options.points,
        "features": options.features,
        "distances on a tenth, over those of the exact graph": spread_against_exact(X[::10]),
        "after the graph / graph": after_the_graph(X),
        "fit at power 8 / pynndescent graph": time_ratio(lambda: fit(X), theirs, n_pairs=3),
        "default fit / pynndescent graph": time_ratio(lambda: default.fit(X), theirs, n_pairs=3),
        "products of the default fit": default.sketch_.times.n_products,
        "control: pynndescent / pynndescent": time_ratio(theirs, theirs, n_pairs=2),
    }
    write("million", results)


if __name__ == "__main__":
    main()
