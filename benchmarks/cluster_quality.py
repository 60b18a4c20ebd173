"""Adjusted Rand index of HeatClustering, beside others that know the number of clusters.

    python benchmarks/cluster_quality.py               # resumes where it was stopped
    python benchmarks/cluster_quality.py --million     # 1e6 points in 20 clusters, beside faiss

SpectralClustering has the same number of neighbours. Leiden, which chooses the number of clusters
itself, is given where leidenalg or igraph is installed. Ten seeds of the method, and of the points
where they are drawn.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from timing import read, write
from usefulness_data import digits, mnist, standardized

from heatsketch import HeatClustering, HeatGraph

N_SEEDS = 10


def known(load):
    found = standardized(load)
    return found["X"], found["labels"]


DATA = {
    "moons": lambda seed: make_moons(500, noise=0.05, random_state=seed),
    "circles": lambda seed: make_circles(500, factor=0.5, noise=0.05, random_state=seed),
    "varied blobs": lambda seed: make_blobs(
        500, cluster_std=[1.0, 2.5, 0.5], random_state=170 + seed
    ),
    "iris": lambda seed: known(load_iris),
    "wine": lambda seed: known(load_wine),
    "breast cancer": lambda seed: known(load_breast_cancer),
    "digits": lambda seed: digits(),
    "MNIST, 5,000": lambda seed: mnist(),
}


def spectral(X, n_clusters, seed):
    options = {"affinity": "nearest_neighbors", "n_neighbors": 15, "random_state": seed}
    return SpectralClustering(n_clusters, **options).fit_predict(X)


def k_means(X, n_clusters, seed):
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(X)


def ours(X, n_clusters, seed):
    return HeatClustering(n_clusters, random_state=seed).fit_predict(X)


def leiden(X, n_clusters, seed):
    import random

    import igraph

    random.seed(seed)
    graph = kneighbors_graph(X, 15).tocoo()
    edges = list(zip(graph.row.tolist(), graph.col.tolist(), strict=True))
    found = igraph.Graph(len(X), edges).simplify()
    return found.community_leiden("modularity", n_iterations=-1).membership


METHODS = {
    "HeatClustering": ours,
    "SpectralClustering": spectral,
    "k-means": k_means,
    "Leiden": leiden,
}


def measured(name, method):
    found, seconds = [], []
    for seed in range(N_SEEDS):
        X, labels = DATA[name](seed)
        start = perf_counter()
        clusters = METHODS[method](X, len(np.unique(labels)), seed)
        seconds.append(perf_counter() - start)
        found.append(adjusted_rand_score(labels, clusters))
    return {
        "mean": float(np.mean(found)),
        "standard deviation": float(np.std(found)),
        "seeds": N_SEEDS,
        "seconds": float(np.median(seconds)),
    }


def million(n_points, n_clusters=20):
    """Return time and agreement on clusters that are long curves, beside k-means of faiss."""
    import faiss

    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_clusters, n_points)
    along = rng.uniform(0, 1, (n_points, 1))
    ends = rng.normal(0, 1, (2, n_clusters, 16))
    X = (1 - along) * ends[0][labels] + along * ends[1][labels]
    X = (X + rng.normal(0, 0.15, X.shape)).astype(np.float32)
    start = perf_counter()
    graph = HeatGraph.from_points(X)
    fitted = perf_counter()
    found = HeatClustering(n_clusters).fit(graph).labels_
    clustered = perf_counter()
    means = faiss.Kmeans(16, n_clusters, niter=25, nredo=5, seed=0)
    means.train(X)
    other = means.index.search(X, 1)[1].ravel()
    done = perf_counter()
    return {
        "points": n_points,
        "clusters": n_clusters,
        "seconds": {
            "fit": fitted - start,
            "clusters": clustered - fitted,
            "faiss": done - clustered,
        },
        "HeatClustering": float(adjusted_rand_score(labels, found)),
        "faiss k-means": float(adjusted_rand_score(labels, other)),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--data", nargs="*", default=list(DATA))
    options = parser.parse_args()
    if options.million:
        write("cluster_million", million(options.points))
        return
    warnings.simplefilter("ignore")  # several components are what some of these have
    results = read("cluster_quality", {})
    for name in options.data:
        for method in METHODS:
            if method in results.setdefault(name, {}):
                continue
            try:
                results[name][method] = measured(name, method)
            except ImportError as error:
                print(f"{method}: {error}")
                continue
            print(name, method, results[name][method], flush=True)
            write("cluster_quality", results, quiet=True)


if __name__ == "__main__":
    main()
