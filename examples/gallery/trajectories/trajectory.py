"""
Pseudotime of cells, compared with the known time
=================================================

krumsiek11, in scanpy's wheel: four simulated runs from one progenitor to four kinds of blood cells.
The time of each cell is known, but the methods do not get it.
"""

import warnings

import numpy as np
import scanpy as sc
from matplotlib import pyplot as plt
from scipy.stats import spearmanr

import heatsketch.scanpy as hs

warnings.simplefilter("ignore")  # scanpy warns that names of cells are not unique
adata = sc.datasets.krumsiek11()
adata.obs_names_make_unique()
sc.pp.neighbors(adata, n_neighbors=20, use_rep="X")
clock = np.tile(np.arange(160), 4)
METHODS = "heat_pseudotime", "dpt_pseudotime"
COLORS = "#0072B2", "#E69F00", "#009E73", "#CC79A7"

# %%
# Pseudotime from the first cell, by a sketch and by scanpy's dpt, on the same graph:

hs.tl.heat_pseudotime(adata, root="0")
sc.tl.diffmap(adata)
sc.tl.dpt(adata)
for method in METHODS:
    runs = adata.obs[method].to_numpy().reshape(4, 160)
    each = [spearmanr(run, np.arange(160)).statistic for run in runs]
    pooled = spearmanr(adata.obs[method], clock).statistic
    print(f"{method}: rank correlation {np.mean(each):.3f} within runs, {pooled:.3f} over all")

# %%
# Bars on the left are intervals of the sketch. With fewer neighbours dpt is better on these runs:
# :doc:`/how_to/scanpy` has all the figures, and the reason.

_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True, sharey=True)
for ax, method in zip(axes, METHODS, strict=True):
    times = adata.obs[method].to_numpy()
    for run, (mark, color) in enumerate(zip("os^D", COLORS, strict=True)):
        rows = slice(160 * run, 160 * run + 160, 4)
        ax.plot(clock[rows], times[rows], mark, ms=4, color=color, label=f"run {run + 1}")
    ax.set(xlabel="known time", ylabel="pseudotime", title=method)
low, high = (adata.obs[f"heat_pseudotime_{end}"] for end in ("low", "high"))
axes[0].vlines(clock[::4], low[::4], high[::4], color="0.75", zorder=0)
axes[1].legend()
