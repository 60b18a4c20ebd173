"""
A sketch as the start of UMAP
=============================

UMAP moves points in the plane until neighbours are near. It starts from eigenvectors of its graph,
whose solver may fail to converge. The diffusion map out of a sketch is a start of the same kind,
and its residuals are known.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from heatsketch import HeatSketch, plot

warnings.simplefilter("ignore")  # UMAP's: a seed allows it one thread only
from umap import UMAP  # noqa: E402

X, digit = load_digits(return_X_y=True)
X, digit = X[:1000], digit[:1000]
found = HeatSketch(32).fit(X).diffusion_map(2)
start = 10 * found.coordinates / np.abs(found.coordinates).max()  # the size that UMAP expects
print("residuals of the two eigenvectors:", *(f"{value:.1e}" for value in found.residuals))

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
