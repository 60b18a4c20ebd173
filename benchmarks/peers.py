"""Embed real data with what people use today, side by side.

Each method runs in a process of its own, on the same points, after a small run that compiles what
it compiles; its time, its peak memory and what its embedding knows of the labels are kept. Then
the embedding stages run alone, each on our graph and in turn with ours.
"""

import argparse
import json
import subprocess
import sys
import warnings
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

import numpy as np
from data import DATA
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.manifold import SpectralEmbedding, spectral_embedding
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from timing import read, seconds, write

from heatsketch import HeatSketch, gaussian_block, heat_operator, sketch, symmetric_scaling

N_NEIGHBORS = 15
N_COMPONENTS = 32
HOUR = 3600


def heatsketch(X):
    return HeatSketch(N_COMPONENTS, n_neighbors=N_NEIGHBORS).fit_transform(X)


def spectral_amg(X):
    return _spectral(X, "amg")


def spectral_lobpcg(X):
    return _spectral(X, "lobpcg")


def _spectral(X, solver):
    model = SpectralEmbedding(
        N_COMPONENTS, affinity="nearest_neighbors", n_neighbors=N_NEIGHBORS, eigen_solver=solver,
        random_state=0, n_jobs=2,
    )  # fmt: skip
    return model.fit_transform(X)


def diffusion_map_eigsh(X):
    """Diffusion map as one writes it: scikit-learn's graph, Gaussian kernel, scipy's eigsh."""
    d = kneighbors_graph(X, N_NEIGHBORS, mode="distance", include_self=True, n_jobs=2)
    d.data = np.exp(-(d.data**2) / np.mean(d.data**2))
    K = sparse.csr_array(d.maximum(d.T))
    q = sparse.diags_array(1 / K.sum(axis=1))
    K = q @ K @ q
    s = sparse.diags_array(1 / np.sqrt(K.sum(axis=1)))
    values, vectors = eigsh(s @ K @ s, N_COMPONENTS + 1, which="LA")
    return vectors[:, -2::-1] * values[-2::-1] ** 8


def umap(X):
    from umap import UMAP

    return UMAP(n_neighbors=N_NEIGHBORS, n_components=N_COMPONENTS).fit_transform(X)


def umap_2d(X):
    from umap import UMAP

    return UMAP(n_neighbors=N_NEIGHBORS).fit_transform(X)


def random_projection(X):
    """scikit-network's embedding of a graph, on scikit-learn's graph of neighbours."""
    from sknetwork.embedding import RandomProjection

    graph = kneighbors_graph(X, N_NEIGHBORS, n_jobs=2)
    return RandomProjection(N_COMPONENTS).fit_transform(sparse.csr_matrix(graph.maximum(graph.T)))


def opentsne_2d(X):
    from openTSNE import TSNE

    return np.asarray(TSNE(n_jobs=2).fit(X))


METHODS = {
    "heatsketch": heatsketch,
    "scikit-learn SpectralEmbedding, amg": spectral_amg,
    "scikit-learn SpectralEmbedding, lobpcg": spectral_lobpcg,
    "diffusion map, scipy eigsh": diffusion_map_eigsh,
    "UMAP": umap,
    "UMAP, 2 dimensions": umap_2d,
    "scikit-network RandomProjection": random_projection,
    "openTSNE, 2 dimensions": opentsne_2d,
}


def label_accuracy(Y, labels):
    """Return how well the 10 nearest neighbours in one half tell the labels of the other."""
    if labels is None:
        return None
    half = np.random.default_rng(0).permutation(len(Y)) < len(Y) // 2
    classifier = KNeighborsClassifier(10, n_jobs=2).fit(Y[half], labels[half])
    return round(float(classifier.score(Y[~half], labels[~half])), 4)


def run_method(method, name):
    """Run one method on one data set, and return what it took."""
    X, labels = DATA[name]()
    METHODS[method](X[:: max(1, len(X) // 1500)])
    start = perf_counter()
    Y = METHODS[method](X)
    took = perf_counter() - start
    peak = getrusage(RUSAGE_SELF).ru_maxrss * 1024
    result = {"seconds": round(took, 2), "peak MiB": round(peak / 2**20)}
    return result | {"accuracy": label_accuracy(Y, labels)}


def run_stage(stage, name):
    """Time one embedding stage against ours, both on our graph."""
    X, _ = DATA[name]()
    # One epsilon for all, so that the affinity is easily made again for the others.
    model = HeatSketch(N_COMPONENTS, n_neighbors=N_NEIGHBORS, power=8, epsilon="auto").fit(X)
    d2 = model.neighbors_.distances_to(X[model.order_])
    K = sparse.csr_array((np.exp(-d2.data / model.epsilon_), d2.indices, d2.indptr), d2.shape)
    A = heat_operator(K, symmetric_scaling(K))
    G = gaussian_block(len(X), N_COMPONENTS, seed=0, dtype=A.dtype)

    def ours():
        return seconds(lambda: sketch(A, G, power=8))

    ours()  # compile
    before, theirs, after = ours(), seconds(lambda: STAGES[stage](K, A, G)), ours()
    return {"seconds": round(theirs, 3), "over ours": round(2 * theirs / (before + after), 1)}


def _sklearn_stage(solver):
    return lambda K, A, G: spectral_embedding(
        sparse.csr_matrix(K), n_components=N_COMPONENTS, eigen_solver=solver, random_state=0
    )


STAGES = {
    "heatsketch: A^8 G": lambda K, A, G: sketch(A, G, power=8),
    "scipy eigsh": lambda K, A, G: eigsh(sparse.csr_matrix(A.matrix), N_COMPONENTS + 1, which="LA"),
    "scikit-learn spectral_embedding, lobpcg": _sklearn_stage("lobpcg"),
    "scikit-learn spectral_embedding, amg": _sklearn_stage("amg"),
}
KINDS = {"whole": (METHODS, run_method), "embedding stage": (STAGES, run_stage)}


def run_apart(kind, what, name, timeout):
    call = [sys.executable, __file__, "--kind", kind, "--what", what, "--data", name]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {timeout} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=DATA)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--what")
    parser.add_argument("--timeout", type=int, default=HOUR)
    parser.add_argument("--missing", action="store_true", help="run only what is not there yet")
    options = parser.parse_args()
    if options.what:
        warnings.simplefilter("ignore")
        return print(json.dumps(KINDS[options.kind][1](options.what, options.data)))
    for name in [options.data] if options.data else DATA:
        results = read(f"peers-{name}") if options.missing else {kind: {} for kind in KINDS}
        for kind, (things, _) in KINDS.items():
            for what in things:
                if what not in results[kind]:
                    results[kind][what] = run_apart(kind, what, name, options.timeout)
                    write(f"peers-{name}", results)  # each time: these are hours
    return None


if __name__ == "__main__":
    main()
