"""One graph of 70,000 images, and eight things to do with it, one call each.

    python examples/one_graph.py            # neighbours found by heatsketch
    python examples/one_graph.py faiss      # neighbours found by an HNSW index of faiss
    python examples/one_graph.py networkx   # a networkx graph, without the images

Fashion-MNIST is the Debian package dataset-fashion-mnist. Each line prints a result and its time.
"""

import argparse
import gzip
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.metrics import adjusted_rand_score

from heatsketch import HeatClustering, HeatGraph, HeatLabels, compare, harmonic, sketch, smooth

FOLDER = Path("/usr/share/datasets/fashion-mnist")
N_TRAIN = 60_000


def images(part):
    """Return the images of a part, "train" or "t10k", and their classes."""
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        return X.astype(np.float32), np.frombuffer(file.read(), np.uint8, offset=8).astype(int)


def faiss_neighbors(X, n_neighbors=15):
    """Return the nearest neighbours of each row and their distances, by an HNSW index."""
    import faiss

    index = faiss.IndexHNSWFlat(X.shape[1], 32)
    index.hnsw.efConstruction = index.hnsw.efSearch = 64
    index.add(X)
    squares, indices = index.search(X, n_neighbors)
    return indices, np.sqrt(np.maximum(squares, 0))


def networkx_graph(X):
    """Return a networkx graph whose nodes are images, and whose weights are similarities."""
    import networkx as nx

    indices, distances = faiss_neighbors(X)
    nodes = np.repeat(np.arange(len(X)), indices.shape[1])
    weights = np.exp(-((distances / np.median(distances)) ** 2)).ravel()
    graph = nx.Graph()
    graph.add_nodes_from(range(len(X)))
    links = zip(nodes.tolist(), indices.ravel().tolist(), weights.tolist(), strict=True)
    graph.add_weighted_edges_from(link for link in links if link[0] != link[1])
    return graph


def timed(name, call):
    """Call a function, print how long it took, and return its result."""
    start = perf_counter()
    result = call()
    print(f"{perf_counter() - start:6.1f} s  {name}: ", end="", flush=True)
    return result


def main():
    """Make a graph, and use it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", nargs="?", choices=["faiss", "networkx"])
    parser.add_argument("--points", type=int, default=70_000, help="number of images")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    parts = [images(part) for part in ("train", "t10k")]
    X, classes = (np.concatenate(both) for both in zip(*parts, strict=True))
    rows = np.sort(rng.permutation(len(X))[: options.points])
    X, classes, is_test = X[rows], classes[rows], rows >= N_TRAIN

    if options.source == "networkx":
        given = networkx_graph(X)
        graph = timed("graph", lambda: HeatGraph.from_affinity(given))
    elif options.source == "faiss":
        graph = timed("graph", lambda: HeatGraph.from_neighbors(*faiss_neighbors(X)))
    else:
        graph = timed("graph", lambda: HeatGraph.from_points(X))
    print(graph)

    sketched = timed("sketch", lambda: sketch(graph))
    print(sketched)

    queries = rng.choice(len(X), 1000, replace=False)
    near = timed("neighbours", lambda: sketched.neighbors(queries, 100))
    same = classes[near.indices] == classes[queries, np.newaxis]
    print(f"{same.mean():.1%} of the 100 nearest images are of the same class")

    known = np.concatenate(
        [rng.choice(np.flatnonzero(classes == c), 5, replace=False) for c in range(10)]
    )
    y = np.full(len(X), -1)
    y[known] = classes[known]
    labels = timed("labels", lambda: HeatLabels().fit(graph, y)).transduction_
    print(f"{np.mean(labels == classes):.1%} right, from 50 labels")

    clusters = timed("clusters", lambda: HeatClustering(10).fit(graph)).labels_
    print(f"adjusted Rand index {adjusted_rand_score(classes, clusters):.3f} with the classes")

    comparison = timed("compare", lambda: compare(graph, np.where(is_test, "test", "train")))
    print(f"test against training images: {comparison.summary}")

    clean = X[:, rng.choice(np.flatnonzero(X.std(axis=0) > 50), 64, replace=False)]
    noisy = clean + rng.normal(0, 100, clean.shape).astype(np.float32)
    smoothed = timed("smooth", lambda: smooth(graph, noisy))
    errors = [np.sqrt(np.mean((values - clean) ** 2)) for values in (noisy, smoothed.values)]
    print(f"error of noisy pixels {errors[0]:.0f} before and {errors[1]:.0f} after")

    known = rng.choice(len(X), len(X) // 70, replace=False)
    shares = timed("harmonic", lambda: harmonic(graph, np.eye(10)[classes[known]], known))
    print(f"{np.mean(shares.argmax(axis=1) == classes):.1%} right, from {len(known)} random labels")


if __name__ == "__main__":
    main()
