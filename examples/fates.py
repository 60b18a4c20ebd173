"""Draw docs/pictures/fates.png: when cells of four simulated runs are committed to a fate.

::

    python examples/fates.py
"""

import warnings
from pathlib import Path

import numpy as np
import scanpy as sc
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA

import heatsketch.scanpy as hs

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "fates.png"
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
N_STEPS = 160  # of each run


def cells():
    """Return the four runs, with their graph of neighbours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of cells that repeat themselves
        adata = sc.datasets.krumsiek11()
        adata.obs_names_make_unique()
        sc.pp.neighbors(adata, n_neighbors=15, use_rep="X")
    return adata


def draw():
    """Draw it."""
    plt.style.use("heatsketch.plot.heatsketch")
    adata = cells()
    ends = {}
    for run in range(4):
        last = range((run + 1) * N_STEPS - 10, (run + 1) * N_STEPS)
        ends[f"run {run}"] = list(last)
    hs.tl.fate(adata, ends)
    shares = adata.obsm["fate"]
    flat = PCA(2).fit_transform(adata.X)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
    rgb = np.array([plt.matplotlib.colors.to_rgb(color) for color in COLORS])
    left.scatter(*flat.T, s=9, c=shares @ rgb, linewidths=0)
    terminal = np.concatenate(list(ends.values()))
    left.scatter(*flat[terminal].T, s=30, facecolors="none", edgecolors="black", linewidths=0.6)
    left.set(xticks=[], yticks=[], xlabel="PC 1", ylabel="PC 2")
    left.set_title("Colours mixed by probability, ends circled")
    for run, color in enumerate(COLORS):
        own = shares[run * N_STEPS : (run + 1) * N_STEPS, run]
        right.plot(np.arange(N_STEPS), own, color=color, label=f"run {run}")
    right.axhline(0.25, color="0.5", linestyle="--", linewidth=1)
    right.set(xlabel="simulated time", ylabel="probability", ylim=(0, 1.02))
    right.set_title("Probability of its own fate")
    right.legend()
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    draw()
