"""
Outliers
========

A circle, and a few points far from it and from each other. A diffusion map spends its first
eigenvectors on those: each outlier is nearly a piece of its own, and its eigenvalue is nearly one.
A sketch treats all pairs alike.
"""

import numpy as np
from matplotlib import pyplot as plt

from heatsketch import DiffusionMap, HeatSketch, datasets, plot

X = datasets.circle_with_outliers(300, seed=0)
options = {"power": 8, "epsilon": 0.25, "n_neighbors": None}
SIZES = [2, 4, 8, 16, 32]

_, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot.embedding(DiffusionMap(2, **options).fit_transform(X), ax=axes[0])
axes[0].set_title("diffusion map, 2 components")
plot.embedding(HeatSketch(32, **options).fit_transform(X), ax=axes[1])
axes[1].set_title("sketch, 32 components")

# %%
# The largest over the least ratio of an embedded to an exact distance, over all pairs. (It is the
# paper's experiment, of which :doc:`/reproduction` has the full form.)


def exact_distances(model):
    A = model.heat_operator_ @ np.eye(len(X))
    rows = np.linalg.matrix_power(A, options["power"])
    rows -= rows @ np.outer(*2 * [model.heat_operator_.stationary]) / model.stationary_length_**2
    return distances(rows)


def distances(Y):
    i, j = np.triu_indices(len(Y), 1)
    return np.linalg.norm(Y[i] - Y[j], axis=1)


def distortion(Y, exact):
    ratios = distances(Y) / exact
    return ratios.max() / ratios.min()


exact = exact_distances(HeatSketch(2, **options).fit(X))
maps = [[distortion(DiffusionMap(k, **options).fit_transform(X), exact) for k in SIZES]]
sketches = [
    [distortion(HeatSketch(k, random_state=seed, **options).fit_transform(X), exact) for k in SIZES]
    for seed in range(5)
]
plot.distortion({"diffusion map": (SIZES, maps), "sketch": (SIZES, sketches)})
