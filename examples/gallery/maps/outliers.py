"""
Outliers: a diffusion map and a sketch
======================================

A circle, and a dozen points off it, far from each other. A diffusion map spends one eigenvector on
each of those first: heat hardly leaves an outlier, so that its eigenvalue is nearly one. A sketch
treats all pairs alike.
"""

import numpy as np
from matplotlib import pyplot as plt

from heatsketch import DiffusionMap, HeatSketch, datasets, plot

N_OUTLIERS, SIZES = 12, [2, 4, 8, 16, 32]
angles = np.linspace(0, 2 * np.pi, N_OUTLIERS, endpoint=False)
outliers = 2.2 * np.column_stack([np.cos(angles), np.sin(angles)])
X = np.concatenate([datasets.circle(300, seed=0), outliers])
options = {"power": 8, "epsilon": 0.25, "n_neighbors": None}

_, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].scatter(*X.T, s=8)
axes[0].set(title="the points", aspect="equal")
plot.embedding(DiffusionMap(2, **options).fit_transform(X), ax=axes[1])
axes[1].set_title("diffusion map, 2 components")

# %%
# The largest over the least ratio of an embedded to an exact distance, over all pairs:


def exact_distances(model):
    A = model.heat_operator_
    rows = np.eye(len(X))
    for _ in range(options["power"]):
        rows = A @ A.deflate(rows)
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

# %%
# A sketch improves with every column. The map gains nothing from 2 to 8 components, since the
# outliers take them. With 16 it has some for the circle, too, and is nearly exact: a circle needs
# few. But how many it will take is not known beforehand.
