r"""``heat_pseudotime`` against scanpy's ``dpt``, on the same graphs.

krumsiek11 (in scanpy's wheel) are four simulated runs whose clock is known; the order is looked
for within each run, and over all cells of all runs together. The embryos of Guo et al. (2010), in
Debian's r-bioc-destiny, have a stage, from 2 to 64 cells; each cell of the first is a root in
turn. Of pbmc68k_reduced no time is known, only kinds of cells: the figure is the probability
that a cell of the root's kind comes before one of another kind, and the root is the middle cell of
each kind in turn. That is not an order.

``dpt``, as it is computed, takes eigenvalues from 0.9994 on for stationary ones. So a third line
has its formula with every eigenvector of the same matrix, and none taken out but the first.

::

    apt-get download r-bioc-destiny && dpkg -x r-bioc-destiny_*.deb destiny
    pip install rdata
    python benchmarks/pseudotime.py \
        --guo destiny/usr/lib/R/site-library/destiny/data/guo_norm.rda
    python benchmarks/pseudotime.py --time      # instead: the time of 50,000 cells
"""

import argparse
import warnings
from pathlib import Path

import anndata
import numpy as np
import scanpy as sc
from data import manifold
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from timing import read, time_ratio, write

import heatsketch.scanpy as hs

N_NEIGHBORS = 10, 15, 20, 30
SEEDS = 0, 1, 2
N_CELLS = 50_000  # whose order is timed
N_STEPS = 160  # of each of the four runs of krumsiek11


# --- who finds an order ---------------------------------------------------------------------


def ours(adata, roots, seed):
    return [
        hs.tl.heat_pseudotime(adata, int(root), rng=seed, copy=True).obs["heat_pseudotime"]
        for root in roots
    ]


def dpt(adata, roots):
    sc.tl.diffmap(adata)
    found = []
    for root in roots:
        adata.uns["iroot"] = int(root)
        sc.tl.dpt(adata)
        found.append(adata.obs["dpt_pseudotime"].copy())
    return found


def full_formula(adata, roots):
    """Return dpt's distances with all eigenvectors of its matrix."""
    walk = sc.Neighbors(adata)
    walk.compute_transitions()
    values, vectors = np.linalg.eigh(walk.transitions_sym.toarray())
    M = vectors[:, :-1] * (values[:-1] / (1 - values[:-1]))
    return [np.linalg.norm(M - M[root], axis=1) for root in roots]


def compared(adata, roots, judge):
    """Return the judgement of each method, each seed of ours apart."""
    found = {f"heat_pseudotime, seed {seed}": ours(adata, roots, seed) for seed in SEEDS}
    found |= {"dpt": dpt(adata, roots), "dpt's formula in full": full_formula(adata, roots)}
    return {name: round(float(judge(times)), 4) for name, times in found.items()}


# --- on what --------------------------------------------------------------------------------


def runs():
    adata = sc.datasets.krumsiek11()
    adata.obs_names_make_unique()
    clock = np.tile(np.arange(N_STEPS), 4)

    def within(times):
        each = zip(np.reshape(times[0], (4, -1)), clock.reshape(4, -1), strict=True)
        return np.mean([spearmanr(*run).statistic for run in each])

    def together(times):
        return spearmanr(times[0], clock).statistic

    root = [adata.uns["iroot"]]
    return {"each run": (adata, "X", root, within), "all runs": (adata, "X", root, together)}


def blood():
    adata = sc.datasets.pbmc68k_reduced()
    kinds = adata.obs["bulk_labels"].to_numpy(str)
    points, roots = adata.obsm["X_pca"], []
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        middle = np.median(points[rows], axis=0)
        roots.append(rows[np.argmin(np.linalg.norm(points[rows] - middle, axis=1))])

    def kin_first(times):
        pairs = zip(times, roots, strict=True)
        return np.mean([roc_auc_score(kinds != kinds[root], time) for time, root in pairs])

    return {"kinds of blood": (adata, "X_pca", roots, kin_first)}


def embryos(path):
    import rdata

    cells = rdata.conversion.convert(rdata.parser.parse_file(path))["guo_norm"]
    adata = anndata.AnnData(np.asarray(cells.assayData["exprs"], np.float32).T)
    stage = cells.phenoData.data["num_cells"].to_numpy(float)

    def staged(times):
        return np.mean([spearmanr(time, stage).statistic for time in times])

    return {"stages of embryos": (adata, "X", np.flatnonzero(stage == stage.min()), staged)}


def time_of_many_cells():
    """Return the time of an order over that of scanpy's, both from the same graph."""
    adata = anndata.AnnData(manifold(N_CELLS, 32))
    # pynndescent 0.7 fails in this scanpy: 'csr_array' object has no attribute 'getnnz'
    sc.pp.neighbors(adata, 15, use_rep="X", transformer="sklearn")
    ratio = time_ratio(lambda: ours(adata, [0], 0), lambda: dpt(adata, [0]), n_pairs=5)
    control = time_ratio(lambda: dpt(adata, [0]), lambda: dpt(adata, [0]), n_pairs=3)
    return {
        "cells": N_CELLS,
        "heat_pseudotime / diffmap and dpt": round(ratio, 3),
        "control: diffmap and dpt / themselves": round(control, 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guo", type=Path, help="guo_norm.rda of r-bioc-destiny")
    parser.add_argument("--time", action="store_true", help="time 50,000 cells instead")
    options = parser.parse_args()
    path = options.guo
    if options.time:
        return write("pseudotime_time", time_of_many_cells())
    warnings.simplefilter("ignore")  # scanpy's, of an old file and of names that repeat
    cases = runs() | blood() | (embryos(path) if path else {})
    rows = [row for row in read("pseudotime") if row["data"] not in cases]  # if not asked for now
    for name, (data, use_rep, roots, judge) in cases.items():
        for n_neighbors in N_NEIGHBORS:
            adata = data.copy()
            sc.pp.neighbors(adata, n_neighbors, use_rep=use_rep)
            row = {"data": name, "neighbours": n_neighbors} | compared(adata, roots, judge)
            rows.append(row)
    return write("pseudotime", rows)


if __name__ == "__main__":
    main()
