"""Search by `vectors`, by raw cosines and by others: how much of what belongs together is found.

    python benchmarks/search.py                    # resumes where it was stopped
    python benchmarks/search.py --data digits
    python benchmarks/search.py --million          # 1e6 vectors through an HNSW index of faiss

Every point is a query, or 2000 of them are, and those of its class are what belongs together. The
others get the raw features: cosines, UMAP to 16 dimensions, k-reciprocal re-ranking (Zhong et al.,
2017: 20 neighbours, lambda 0.3; up to 10,000 points), and exact diffusion for each query on the
same graph (power 32).
"""

import argparse
from time import perf_counter

import numpy as np
from data import manifold
from timing import read, write
from usefulness_data import POINTS

from heatsketch import HeatGraph, sketch, vectors
from heatsketch.diffusion._sketch import diffuse

DATA = ("digits", "MNIST, 5,000", "Fashion-MNIST, 70,000", "Debian descriptions")
N_QUERIES, RERANK_ROWS = 2000, 10_000
COUNTS = (1, 10)  # first hits whose precision is measured
KNN, LAMBDA = 20, 0.3  # of re-ranking


def unit(X):
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return (X / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def by_products(u, queries):
    """Yield the order of all points for each query, by inner products."""
    for start in range(0, len(queries), 100):
        some = queries[start : start + 100]
        yield from zip(some, np.argsort(-(u[some] @ u.T), axis=1, kind="stable"), strict=True)


def scores(orders, labels):
    """Return mean average precision, and precisions of the first hits, the query left out."""
    precisions, firsts = [], {count: [] for count in COUNTS}
    for query, order in orders:
        hits = labels[order[order != query]] == labels[query]
        n_hits = np.cumsum(hits)
        at = np.flatnonzero(hits)
        precisions.append(np.mean(n_hits[at] / (at + 1)) if len(at) else 0.0)
        for count in COUNTS:
            firsts[count].append(hits[:count].mean())
    found = {f"P@{count}": float(np.mean(values)) for count, values in firsts.items()}
    return {"mAP": float(np.mean(precisions)), **found}


def raw(X, queries):
    return by_products(unit(X), queries)


def sketched(X, metric="euclidean"):
    return sketch(HeatGraph.from_points(X, metric=metric))


def with_features(X, queries):
    return by_products(vectors(sketched(X), append=X), queries)


def embedding_alone(X, queries):
    return by_products(vectors(sketched(X)), queries)


def cosine_graph(X, queries):
    return by_products(vectors(sketched(X, "cosine"), append=X), queries)


def umap_16(X, queries):
    from umap import UMAP

    Y = UMAP(n_components=16, random_state=0, n_jobs=1).fit_transform(X)
    for start in range(0, len(queries), 100):
        some = queries[start : start + 100]
        apart = ((Y[some][:, np.newaxis] - Y) ** 2).sum(axis=2)
        yield from zip(some, np.argsort(apart, axis=1, kind="stable"), strict=True)


def diffusion(X, queries):
    """Yield the order by heat that a query sends out: A**32 applied to one indicator each."""
    graph = HeatGraph.from_points(X)
    A = graph.operator
    for start in range(0, len(queries), 64):
        some = queries[start : start + 64]
        block = np.zeros((len(X), len(some)), A.dtype)
        block[some, np.arange(len(some))] = 1
        heat = graph.outer(diffuse(A, graph.inner(block), power=32) / A.stationary[:, np.newaxis])
        yield from zip(some, np.argsort(-heat.T, axis=1, kind="stable"), strict=True)


def reranked(X, queries):
    """Yield the order by k-reciprocal neighbours, Jaccard distance and raw distance."""
    if len(X) > RERANK_ROWS:
        return
    u = unit(X)
    order = np.argsort(-(u @ u.T), axis=1, kind="stable")[:, : KNN + 1]
    nearest = np.zeros((len(X), len(X)), bool)
    np.put_along_axis(nearest, order, True, axis=1)
    weights = np.where(nearest & nearest.T, np.exp(u @ u.T - 1), 0).astype(np.float32)
    # Query expansion, as published: the mean over the first six neighbours.
    weights = weights[order[:, :6]].mean(axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    for query in queries:
        least = np.minimum(weights[query], weights).sum(axis=1)
        jaccard = 1 - least / (2 - least)
        apart = (1 - LAMBDA) * jaccard + LAMBDA * (1 - u @ u[query])
        yield query, np.argsort(apart, kind="stable")


METHODS = {
    "raw cosine": raw,
    "vectors(append=X)": with_features,
    "vectors()": embedding_alone,
    "vectors(append=X), cosine graph": cosine_graph,
    "UMAP, 16 dimensions": umap_16,
    "diffusion for each query": diffusion,
    "k-reciprocal re-ranking": reranked,
}


def measured(method, X, labels):
    rng = np.random.default_rng(0)
    queries = np.sort(rng.permutation(len(X))[:N_QUERIES])
    start = perf_counter()
    found = scores(METHODS[method](X, queries), labels)
    return {**found, "queries": len(queries), "seconds": perf_counter() - start}


def million(n_points):
    """Return time of a query and recall of an HNSW index of faiss over the vectors."""
    import faiss

    X = manifold(n_points, 32)
    start = perf_counter()
    u = vectors(sketched(X), append=X)
    fitted = perf_counter()
    index = faiss.index_factory(u.shape[1], "HNSW32")
    index.hnsw.efConstruction, index.hnsw.efSearch = 80, 64
    index.add(u)
    built = perf_counter()
    queries = u[np.random.default_rng(0).choice(n_points, 1000, replace=False)]
    faiss.omp_set_num_threads(1)
    asked = perf_counter()
    _, found = index.search(queries, 11)
    answered = perf_counter()
    brute = faiss.IndexFlatL2(u.shape[1])
    brute.add(u)
    _, exact = brute.search(queries, 11)
    common = [len(np.intersect1d(a, b)) for a, b in zip(found, exact, strict=True)]
    return {
        "points": n_points,
        "seconds": {"fit": fitted - start, "index": built - fitted},
        "milliseconds a query, one thread": (answered - asked) / len(queries) * 1000,
        "recall of 11 neighbours": float(np.mean(common)) / 11,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="*", default=DATA)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--points", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.million:
        write("search_million", million(options.points))
        return
    results = read("search", {})
    for name in options.data:
        known = results.setdefault(name, {})
        missing = [method for method in options.methods if method not in known]
        if not missing:
            continue
        data = POINTS[name]()
        for method in missing:
            if method == "k-reciprocal re-ranking" and len(data["X"]) > RERANK_ROWS:
                continue
            known[method] = measured(method, data["X"], data["labels"])
            print(name, method, known[method], flush=True)
            write("search", results, quiet=True)


if __name__ == "__main__":
    main()
