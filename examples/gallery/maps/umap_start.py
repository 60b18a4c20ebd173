"""
Initialize UMAP with a sketch
=============================

UMAP moves points in the plane until neighbours are near. It starts from eigenvectors of its graph,
and the eigensolver may fail to converge. The diffusion map computed from a sketch is a start of the
same kind, with known residuals.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from heatsketch import HeatGraph, plot, sketch

warnings.simplefilter("ignore")  # UMAP warns that a seed limits it to one thread
from umap import UMAP  # noqa: E402

X, digit = load_digits(return_X_y=True)
X, digit = X[:1000], digit[:1000]
coordinates, eigenvalues, residuals = sketch(HeatGraph.from_points(X), 32).diffusion_map(2)
start = 10 * coordinates / np.abs(coordinates).max()  # the size that UMAP expects
print("residuals of the two eigenvectors:", *(f"{value:.1e}" for value in residuals))

# %%
# The same data, the same seed, two starts:

pictures = {
    "start: the sketch": start,
    "UMAP from the sketch": UMAP(init=start, random_state=0).fit_transform(X),
    "UMAP from its own start": UMAP(random_state=0).fit_transform(X),
}
_, axes = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
for ax, (name, Y) in zip(axes, pictures.items(), strict=True):
    plot.embedding(Y, digit, label="digit", ax=ax)
    ax.set_title(f"{name}\ntrustworthiness {trustworthiness(X, Y, n_neighbors=15):.3f}")
