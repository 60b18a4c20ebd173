"""Fates against CellRank, on the same graph of scanpy and from the same terminal cells.

    python benchmarks/fates.py           # installs CellRank in build/cellrank
    python benchmarks/fates.py PYTHON    # of an environment that has CellRank

CellRank weighs edges by the connectivities of scanpy, and solves with its own defaults. We weigh
them by a Gaussian of the distances. Data: four simulated runs (krumsiek11 of scanpy), and three
branches of 20,000 points. Results go to docs/benchmarks/fates.json.
"""

import argparse
import json
import subprocess
import tempfile
import venv
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import scanpy as sc
from anndata import AnnData
from labels import branches
from timing import write

import heatsketch.scanpy as hs

CELLRANK = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import anndata, cellrank, numpy as np
folder = sys.argv[1]
cells = anndata.read_h5ad(folder + "/cells.h5ad")
start = time.perf_counter()
kernel = cellrank.kernels.ConnectivityKernel(cells).compute_transition_matrix()
estimator = cellrank.estimators.GPCCA(kernel)
of = cells.obs["terminal"]
estimator.set_terminal_states({name: of.index[of == name].tolist() for name in of.cat.categories})
estimator.compute_fate_probabilities(show_progress_bar=False)
seconds = time.perf_counter() - start
np.save(folder + "/found.npy", np.asarray(estimator.fate_probabilities.X))
print(json.dumps({"seconds": seconds, "version": cellrank.__version__}))
"""


def simulated_runs():
    cells = sc.datasets.krumsiek11()
    cells.obs_names_make_unique()
    del cells.uns["highlights"]
    time, run = np.arange(640) % 160, np.arange(640) // 160
    return cells, run, time >= 150


def three_branches(n_points=20_000):
    X, arm, is_end = branches(n_points)
    return AnnData(X), arm, is_end


DATA = {"krumsiek11, 640 cells": simulated_runs, "three branches, 20,000 points": three_branches}


def compared(name, python):
    cells, state, is_end = DATA[name]()
    sc.pp.neighbors(cells, n_neighbors=15, use_rep="X")
    states = np.array([f"state {i}" for i in range(state.max() + 1)])[state]
    cells.obs["terminal"] = pd.Categorical(np.where(is_end, states, None))
    start = perf_counter()
    hs.tl.fate(cells, "terminal")
    seconds, ours = perf_counter() - start, np.asarray(cells.obsm["fate"])
    with tempfile.TemporaryDirectory() as folder:
        AnnData(cells.X, obs=cells.obs[["terminal"]], obsp=dict(cells.obsp), uns=cells.uns).write(
            Path(folder, "cells.h5ad")
        )
        done = subprocess.run(
            [python, "-c", CELLRANK, folder], capture_output=True, text=True, check=True
        )
        theirs = np.load(Path(folder, "found.npy"))
    other = json.loads(done.stdout.splitlines()[-1])
    right = [np.mean(found.argmax(axis=1) == state) for found in (ours, theirs)]
    sums = [np.abs(found.sum(axis=1) - 1).max() for found in (ours, theirs)]
    return {
        "correlation": round(float(np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]), 4),
        "same most probable state": round(float(np.mean(ours.argmax(1) == theirs.argmax(1))), 3),
        "most probable state is the true one": dict(zip(SIDES, np.round(right, 3), strict=True)),
        "largest error of a row's sum": {
            side: float(f"{e:.1e}") for side, e in zip(SIDES, sums, strict=True)
        },
        "seconds": dict(zip(SIDES, np.round([seconds, other["seconds"]], 2), strict=True)),
        "CellRank": other["version"],
    }


SIDES = ("fate", "CellRank")


def environment_of_cellrank():
    folder = Path(__file__).parents[1] / "build" / "cellrank"
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "cellrank==2.0.7"], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", nargs="?")
    python = parser.parse_args().python or environment_of_cellrank()
    warnings.simplefilter("ignore")  # about several connected components
    write("fates", {name: compared(name, python) for name in DATA})


if __name__ == "__main__":
    main()
