"""Smoothing against MAGIC: how near it comes to values without noise, on simulated counts.

    python benchmarks/smooth.py                    # two simulations of 15,000 cells, 1500 genes
    python benchmarks/smooth.py --magic PYTHON     # with magic-impute, from another environment
    python benchmarks/smooth.py --million          # 1e6 cells, 2000 genes, time and memory only

A score is the median over genes of the correlation between smoothed and true expression. MAGIC is
given what its own tutorial gives it: counts divided by the sum of a cell, and their square roots.
Each of its settings is compared with the truth on its own scale. Our graph is that of 50 principal
components of the square roots; MAGIC takes 100 of what it is given.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from timing import memory, read, write

from heatsketch import HeatGraph, smooth

N_CELLS, N_GENES = 15_000, 1500
TIMES = (0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)
MAGIC = [{"t": 3}, {"t": "auto"}, {"t": 3, "solver": "approximate"}]


def branching(rng, n_cells, n_genes):
    """Return expression along a stem and three branches, smooth in time."""
    time, branch = rng.uniform(0, 1, n_cells), rng.integers(0, 3, n_cells)
    knots = np.linspace(0, 1, 8)
    bumps = np.exp(-((time[:, np.newaxis] - knots) ** 2) / 0.02)
    stem = rng.normal(0, 1, (8, n_genes))
    late = rng.normal(0, 1, (3, 8, n_genes)) * (knots[:, np.newaxis] > 0.4)
    # A stem that all share, until time 0.4; one gene in two knows the branch.
    late *= rng.random(n_genes) < 0.5
    log_rates = bumps @ stem
    for which in range(3):
        log_rates[branch == which] += bumps[branch == which] @ late[which]
    return log_rates


def clustered(rng, n_cells, n_genes, n_clusters=12):
    """Return expression of clusters of uneven sizes, each with a gradient within."""
    shares = rng.dirichlet(np.full(n_clusters, 2.0))
    cluster = rng.choice(n_clusters, n_cells, p=shares)
    means = rng.normal(0, 1, (n_clusters, n_genes)) * (rng.random((n_clusters, n_genes)) < 0.3)
    slopes = rng.normal(0, 1, (n_clusters, n_genes)) * (rng.random((n_clusters, n_genes)) < 0.2)
    return means[cluster] + rng.uniform(-1, 1, (n_cells, 1)) * slopes[cluster]


SIMULATIONS = {"branching": branching, "clustered": clustered}


def simulate(name, n_cells=N_CELLS, n_genes=N_GENES, seed=0):
    """Return counts, and the expression that they were drawn from, a share of the cell's sum."""
    rng = np.random.default_rng(seed)
    rates = np.exp(SIMULATIONS[name](rng, n_cells, n_genes) + rng.normal(-1, 1, n_genes))
    truth = rates / rates.sum(axis=1, keepdims=True)
    depth = rng.lognormal(np.log(n_genes), 0.3, (n_cells, 1))
    return rng.poisson(truth * depth), truth


def principal_components(counts):
    scaled = np.sqrt(1e4 * counts / counts.sum(axis=1, keepdims=True))
    return PCA(50, random_state=0).fit_transform(scaled).astype(np.float32)


def median_correlation(found, truth):
    x, y = (block - block.mean(axis=0) for block in (found.astype(float), truth))
    lengths = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    return float(np.median((x * y).sum(axis=0) / np.where(lengths > 0, lengths, np.inf)))


def ours(counts, truth):
    """Return scores at many times, and at the time that was chosen, with seconds."""
    start = perf_counter()
    graph = HeatGraph.from_points(principal_components(counts))
    fitted = perf_counter()
    found = smooth(graph, counts, sizes="sum")
    seconds = {"graph": fitted - start, "smooth": perf_counter() - fitted}
    by_time = {
        t: median_correlation(smooth(graph, counts, time=t, sizes="sum").values, truth)
        for t in TIMES
    }
    return {
        "chosen time": found.time,
        "score at the chosen time": median_correlation(found.values, truth),
        "best score": max(by_time.values()),
        "score by time": by_time,
        "held-out score by time": dict(
            zip(found.times.tolist(), found.scores.tolist(), strict=True)
        ),
        "seconds": seconds,
    }


MAGIC_SCRIPT = """
import sys, json, time, warnings, numpy as np
warnings.simplefilter("ignore")
import magic
counts = np.load(sys.argv[1] + "/counts.npy")
data = counts / counts.sum(axis=1, keepdims=True) * np.median(counts.sum(axis=1))
data = np.sqrt(data) if sys.argv[2] == "sqrt" else data
start = time.perf_counter()
options = {"random_state": 0, "n_jobs": 2, "verbose": 0, **json.loads(sys.argv[3])}
found = magic.MAGIC(**options).fit_transform(data)
print(json.dumps({"seconds": time.perf_counter() - start}))
np.save(sys.argv[1] + "/found.npy", np.asarray(found, np.float32))
"""


def magics(python, counts, truth):
    for scale, turned in (("plain", lambda x: x), ("sqrt", np.sqrt)):
        for setting in MAGIC:
            with tempfile.TemporaryDirectory() as folder:
                np.save(Path(folder, "counts.npy"), counts)
                command = [python, "-c", MAGIC_SCRIPT, folder, scale, json.dumps(setting)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found = np.load(Path(folder, "found.npy"))
            score = median_correlation(found, turned(truth))
            seconds = json.loads(done.stdout.splitlines()[-1])["seconds"]
            yield {"scale": scale, **setting, "score": score, "seconds": seconds}


def million(n_cells, n_genes):
    """Return seconds and memory of sparse counts of many cells, written to a scratch file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_cells, 16)).astype(np.float32)
    columns = [
        sparse.csc_array(rng.poisson(0.07, (n_cells, 50)).astype(np.float32))
        for _ in range(n_genes // 50)
    ]
    counts = sparse.hstack(columns, format="csc")
    del columns
    start = perf_counter()
    graph = HeatGraph.from_points(X)
    fitted = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.npy")
        out = np.lib.format.open_memmap(path, "w+", "float32", counts.shape, fortran_order=True)
        found = smooth(graph, counts, sizes="sum", out=out)
    return {
        "cells": n_cells,
        "genes": n_genes,
        "stored counts": counts.nnz,
        "time": found.time,
        "seconds": {"graph": fitted - start, "smooth": perf_counter() - fitted},
        "GiB at most, mapped files included": memory("VmHWM") / 2**30,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--magic", metavar="PYTHON")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--cells", type=int)
    parser.add_argument("--genes", type=int)
    options = parser.parse_args()
    if options.million:
        size = options.cells or 1_000_000, options.genes or 2000
        found = million(*size)
        write("smooth_million", found)
        return
    size = options.cells or N_CELLS, options.genes or N_GENES
    results = read("smooth", {}) | {"cells": size[0], "genes": size[1]}
    for name in SIMULATIONS:
        counts, truth = simulate(name, *size)
        kept = results.get(name, {})
        kept["ours"] = ours(counts, truth)
        if options.magic:
            kept["magic-impute"] = list(magics(options.magic, counts, truth))
        results[name] = kept
        write("smooth", results)


if __name__ == "__main__":
    main()
