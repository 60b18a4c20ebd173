"""Neighbour graphs of equal recall: ours, pynndescent's, faiss's inverted lists, hnswlib's.

Each of the others takes the cheapest setting of a few whose recall is at least ours less 0.005, or
the dearest if none is. All use two threads. Seconds are of one run in turn, by stage; recall is
that of the 15 nearest points, the point itself among them, of 1000 rows.
"""

import argparse
from time import perf_counter

import faiss
import hnswlib
import numpy as np
from data import fashion, manifold
from pynndescent import NNDescent
from timing import read, write

from heatsketch import LocalEngine
from heatsketch._core import kernels
from heatsketch.engines._recall import choose_probes
from heatsketch.graph._ivf import NeighborLists, grow_tree

N_NEIGHBORS, N_TESTED, THREADS = 15, 1000, 2
TOLERANCE = LocalEngine().graph_tolerance
faiss.omp_set_num_threads(THREADS)

DATA = {
    "manifold, 1,000,000 x 32": lambda: manifold(1_000_000, 32),
    "manifold, 200,000 x 128": lambda: manifold(200_000, 128),
    "Fashion-MNIST, 70,000 x 784": lambda: fashion()[0],
}


class Stages(dict):
    """Seconds of one stage after the other."""

    def __init__(self):
        super().__init__()
        self.start = perf_counter()

    def end(self, name):
        """Give the time since the last end to a stage."""
        now = perf_counter()
        self[name] = round(now - self.start, 2)
        self.start = now


def nearest(X, tested):
    """Return the true neighbours of some rows."""
    squares = np.empty((len(tested), len(X)), X.dtype)
    kernels.all_squares(X[tested], X, squares)
    return np.argpartition(squares, N_NEIGHBORS - 1, axis=1)[:, :N_NEIGHBORS]


def recall(found, truth):
    """Return the share of the true neighbours that was found."""
    shared = [len(np.intersect1d(*both)) for both in zip(found, truth, strict=True)]
    return round(float(np.mean(shared)) / N_NEIGHBORS, 4)


def ours(X, tested):
    stages = Stages()
    tree = grow_tree(X)
    stages.end("tree")
    n_probes = choose_probes(X, tree, n_neighbors=N_NEIGHBORS, tolerance=TOLERANCE)
    stages.end("choice of probes")
    lists = NeighborLists.arrange(X, tree, n_probes)
    stages.end("lists of each point")
    graph, *_ = lists.graph(N_NEIGHBORS)
    stages.end("search and union")
    place = np.argsort(lists.order)
    rows = [graph[[row]] for row in place[tested]]
    found = [lists.order[row.indices[np.argsort(row.data)[:N_NEIGHBORS]]] for row in rows]
    return {"probes": int(n_probes)}, stages, found


def by_pynndescent(X, tested, metric):
    stages = Stages()
    found = NNDescent(X, metric=metric, n_neighbors=N_NEIGHBORS, n_jobs=THREADS).neighbor_graph[0]
    stages.end("graph")
    return {}, stages, found[tested]


def by_faiss(X, tested, n_probes):
    stages = Stages()
    n_lists = int(4 * np.sqrt(len(X)))
    index = faiss.index_factory(X.shape[1], f"IVF{n_lists},Flat")
    index.train(X[:: max(1, len(X) // (64 * n_lists))])
    stages.end("training")
    index.add(X)
    stages.end("lists of each point")
    index.nprobe = n_probes
    _, found = index.search(X, N_NEIGHBORS)
    stages.end("search")
    return {"lists": n_lists, "probes": n_probes}, stages, found[tested]


def by_hnsw(X, tested, ef):
    stages = Stages()
    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), M=16, ef_construction=ef)
    index.add_items(X, num_threads=THREADS)
    stages.end("index")
    index.set_ef(ef)
    found, _ = index.knn_query(X, N_NEIGHBORS, num_threads=THREADS)
    stages.end("search")
    return {"M": 16, "ef": ef}, stages, found[tested]


def enough(run, settings, truth, least):
    """Return the first of some settings whose recall is enough, or the last."""
    for setting in settings:
        options, stages, found = run(setting)
        reached = recall(found, truth)
        if reached >= least:
            break
    return row(options, stages, reached)


def row(options, stages, reached):
    return {**options, "seconds": round(sum(stages.values()), 2), **stages, "recall": reached}


def compare(X, metric):
    if metric == "cosine":  # squared distances of unit rows rank as cosines do
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    tested = np.linspace(0, len(X) - 1, N_TESTED).astype(int)
    truth = nearest(X, tested)
    ours(X[:20_000], tested[:0]), by_pynndescent(X[:20_000], tested[:0], metric)  # compile
    options, stages, found = ours(X, tested)
    result = {"heatsketch": row(options, stages, recall(found, truth))}
    least = result["heatsketch"]["recall"] - 0.005
    options, stages, found = by_pynndescent(X, tested, metric)
    result["pynndescent"] = row(options, stages, recall(found, truth))
    result["faiss, inverted lists"] = enough(
        lambda n: by_faiss(X, tested, n), (4, 8, 16, 32), truth, least
    )
    result["hnswlib"] = enough(lambda ef: by_hnsw(X, tested, ef), (30, 60, 120), truth, least)
    options, stages, found = ours(X, tested)
    result["heatsketch, once more"] = row(options, stages, recall(found, truth))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="parts of names of data sets")
    wanted = parser.parse_args().only
    results = read("graphs", {})
    for name, load in DATA.items():
        if wanted and not any(part in name for part in wanted):
            continue
        X = load()
        for metric in ("euclidean", "cosine") if X.shape[1] > 32 else ("euclidean",):
            results[f"{name}, {metric}"] = compare(X, metric)
            write("graphs", results)


if __name__ == "__main__":
    main()
