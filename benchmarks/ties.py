"""Discrete data: what ties and copies of points take, against continuous data of the same size.

Each fit is a process of its own, since memory that was once taken is not all given back; those of
integers and of continuous ones take turns. The search among sparse points takes turns with
scikit-learn's.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import numpy as np
from scipy import sparse
from timing import forget_peak, memory, seconds, write

from heatsketch import HeatSketch, LocalEngine
from heatsketch._core.memory import neighbors_bytes
from heatsketch.graph import neighbor_graph

MIB = 2**20


def whole_numbers(n, d, most):
    return np.random.default_rng(0).integers(0, most, (n, d)).astype(np.float32)


POINTS = {
    "27 cells": lambda: whole_numbers(40_000, 3, 3),
    "25 cells": lambda: whole_numbers(60_000, 2, 5),
    "1000 cells": lambda: whole_numbers(1_000_000, 3, 10),
    "1e6 cells": lambda: whole_numbers(1_000_000, 3, 100),
    "30 truth values": lambda: whole_numbers(100_000, 30, 2),
    "a tenth is zero": lambda: np.where(
        np.arange(100_000)[:, np.newaxis] % 10, np.random.default_rng(0).random((100_000, 3)), 0
    ).astype(np.float32),
    "continuous": lambda: np.random.default_rng(0).random((1_000_000, 3), np.float32),
}
LIMITS = {"27 cells": 512 * MIB}


def fit(name):
    """Fit once in this process, and print what it took."""
    X = POINTS[name]()
    engine = LocalEngine(memory_limit=LIMITS.get(name))
    HeatSketch(64, engine=engine).fit(np.random.default_rng(1).random((3000, X.shape[1]), "f4"))
    HeatSketch(64, engine=engine).fit(whole_numbers(3000, X.shape[1], 2))
    forget_peak()
    before, cpu, start = memory("VmRSS"), time.process_time(), time.perf_counter()
    model = HeatSketch(64, engine=engine).fit(X)
    found = {
        "points": list(X.shape),
        "distinct": len(np.unique(X, axis=0)) if name != "continuous" else len(X),
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "mib": round((memory("VmHWM") - before) / MIB),
        "forecast_mib": round(neighbors_bytes(*X.shape, 64, 15, X.dtype) / MIB),
        "limit_mib": LIMITS[name] // MIB if name in LIMITS else None,
        "connected_components": model.graph_.n_connected_components,
    }
    print(json.dumps(found))


def in_a_process(name):
    command = [sys.executable, "-W", "ignore", __file__, "--fit", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(name, done.stdout.strip(), flush=True)
    return json.loads(done.stdout)


def sparse_search():
    """Return the times of neighbours in cosine distance, ours and scikit-learn's in turn."""
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(0)
    X = sparse.random_array((20_000, 5000), density=0.01, rng=rng, format="csr", dtype=np.float32)

    def ours():
        neighbor_graph(X, n_neighbors=15, metric="cosine")

    def theirs():
        search = NearestNeighbors(n_neighbors=15, metric="cosine", n_jobs=-1).fit(X)
        search.kneighbors_graph(mode="distance")

    ours(), theirs()
    times = [(seconds(ours), seconds(theirs)) for _ in range(3)]
    return {
        "points": list(X.shape),
        "stored": int(X.nnz),
        "seconds": [[round(one, 1) for one in pair] for pair in times],
        "ratio": round(statistics.median(a / b for a, b in times), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", choices=POINTS)
    if name := parser.parse_args().fit:
        fit(name)
        sys.exit()
    results = {name: in_a_process(name) for name in POINTS}
    turns = [[in_a_process(name) for name in ("1000 cells", "continuous")] for _ in range(3)]
    ratios = {
        kind: round(statistics.median(a[kind] / b[kind] for a, b in turns), 2)
        for kind in ("seconds", "cpu_seconds")
    }
    write(
        "ties",
        {
            "fits": results,
            "1000 cells over continuous": ratios,
            "sparse search over scikit-learn's": sparse_search(),
        },
    )
