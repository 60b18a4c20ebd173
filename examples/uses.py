"""Draw the pictures of the how-to guides for search, smoothing and clusters.

    python examples/uses.py [search] [smooth] [clusters]

The search needs Fashion-MNIST (the Debian package dataset-fashion-mnist), smoothing needs scanpy.
"""

import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from one_graph import images
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons

from heatsketch import HeatClustering, HeatGraph, sketch, vectors

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
N_IMAGES, N_NEAR, N_QUERIES = 10_000, 10, 4


def nearest(u, queries):
    """Return the nearest others of some rows, by inner products."""
    products = u[queries] @ u.T
    products[np.arange(len(queries)), queries] = -np.inf
    return np.argsort(-products, axis=1)[:, :N_NEAR]


def search():
    """Show queries for which the two searches differ most, with their neighbours by both."""
    X, labels = images("t10k")
    X, labels = X[:N_IMAGES], labels[:N_IMAGES]
    candidates = np.random.default_rng(0).choice(len(X), 2000, replace=False)
    raw = X / np.linalg.norm(X, axis=1, keepdims=True)
    by_raw = nearest(raw, candidates)
    by_vectors = nearest(vectors(sketch(HeatGraph.from_points(X)), append=X), candidates)
    both = by_raw, by_vectors
    same = [(labels[near] == labels[candidates, np.newaxis]).sum(axis=1) for near in both]
    gains = np.argsort(same[0] - same[1], kind="stable")[:N_QUERIES]
    figure, axes = plt.subplots(2 * N_QUERIES, N_NEAR + 1, figsize=(8, 6.4))
    for place, which in enumerate(gains):
        for line, (near, name) in enumerate(zip(both, ("pixels", "vectors"), strict=True)):
            row = axes[2 * place + line]
            show(row[0], X[candidates[which]], "black" if line == 0 else None)
            row[0].set_ylabel(name, rotation=0, ha="right", va="center")
            for axis, image in zip(row[1:], near[which], strict=True):
                wrong = labels[image] != labels[candidates[which]]
                show(axis, X[image], "#D55E00" if wrong else "lightgrey")
    for axis, title in zip(axes[0], ("query", *range(1, N_NEAR + 1)), strict=True):
        axis.set_title(title, loc="center", fontsize=10, weight="normal", pad=5)
    figure.get_layout_engine().set(h_pad=0.02, w_pad=0.02)
    figure.savefig(PICTURES / "search.png", dpi=130)
    counts = [int(values.sum()) for values in same]
    print(f"of {len(candidates) * N_NEAR} neighbours {counts} are of the same class")


def show(axis, image, color):
    """Draw an image in a frame."""
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set(
        visible=True, color=color or "white", linewidth=2 if color == "#D55E00" else 1
    )
    axis.imshow(image.reshape(28, 28), cmap="Greys")
    if color is None:  # the query is in the row above
        axis.images[0].set_visible(False)


def smooth():
    """Show a gene before and after smoothing, and the curve from which the time was chosen."""
    import scanpy as sc

    import heatsketch.scanpy as hs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file in an old format
        adata = sc.datasets.pbmc68k_reduced()
    expression = adata.raw.to_adata()
    expression.obsp, expression.uns = adata.obsp, adata.uns
    hs.pp.heat_smooth(expression)
    gene = "CD79A"
    before = expression[:, gene].X.toarray().ravel()
    after = expression[:, gene].layers["heat_smooth"].ravel()
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3), width_ratios=[1, 1.2, 0.9])
    for axis, values, title in ((axes[0], before, "as measured"), (axes[1], after, "smoothed")):
        points = axis.scatter(
            *adata.obsm["X_umap"].T, c=values, s=7, vmin=0, vmax=before.max(), lw=0
        )
        axis.set(title=f"{gene} {title}", xticks=[], yticks=[], xlabel="UMAP 1", ylabel="UMAP 2")
    figure.colorbar(points, ax=axes[1], label="logarithm of counts")
    found = expression.uns["heat_smooth"]
    axes[2].plot(found["times"], found["scores"], "o-")
    axes[2].axvline(found["time"], color="0.5", lw=1, ls="--")
    axes[2].set(title="Choice of the time", xlabel="steps", ylabel="held-out correlation")
    figure.savefig(PICTURES / "smooth.png", dpi=130)
    print(f"time {found['time']} of {found['times']}: {np.round(found['scores'], 3)}")


def clusters():
    """Show k-means and HeatClustering on two moons and two circles."""
    moons = make_moons(500, noise=0.05, random_state=0)[0]
    circles = make_circles(500, factor=0.5, noise=0.05, random_state=0)[0]
    figure, axes = plt.subplots(1, 4, figsize=(10, 3))
    models = {"k-means": KMeans(2, n_init=10, random_state=0), "HeatClustering": HeatClustering(2)}
    for pair, X in zip((axes[:2], axes[2:]), (moons, circles), strict=True):
        for axis, (name, model) in zip(pair, models.items(), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the graph has two components, as it should
                labels = model.fit_predict(X)
            axis.scatter(*X.T, c=np.array(["#0072B2", "#E69F00"])[labels], s=6, linewidths=0)
            axis.set(title=name, xticks=[], yticks=[])
            axis.set_aspect("equal", adjustable="datalim")
            axis.spines[:].set_visible(False)
    figure.savefig(PICTURES / "clusters.png", dpi=130)


if __name__ == "__main__":
    mpl.use("Agg")
    plt.style.use("heatsketch.plot.heatsketch")
    for name in sys.argv[1:] or ("search", "smooth", "clusters"):
        {"search": search, "smooth": smooth, "clusters": clusters}[name]()
