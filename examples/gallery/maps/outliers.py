"""
Outliers: a diffusion map and a sketch
======================================

A circle, and a dozen outliers far from it and from each other. Heat hardly leaves an outlier, so
each has an eigenvector with an eigenvalue near one, and these come first in a diffusion map. A
sketch has the same relative error for all pairs.
"""

import numpy as np
from matplotlib import pyplot as plt

from heatsketch import DiffusionMap, HeatGraph, plot, sketch
from heatsketch.diffusion import (
    exact_diffusion_distances,
    gaussian_affinity,
    heat_operator,
    symmetric_scaling,
)
from heatsketch.graph import neighbor_graph

N_OUTLIERS, POWER, SIZES = 12, 8, [2, 4, 8, 16, 32]
angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
circle = np.column_stack([np.cos(angles), np.sin(angles)])
angles = np.linspace(0, 2 * np.pi, N_OUTLIERS, endpoint=False)
outliers = 2.2 * np.column_stack([np.cos(angles), np.sin(angles)])
X = np.concatenate([circle, outliers])
graph = HeatGraph.from_points(X, n_neighbors=None, weights=0.25)
options = {"power": POWER, "weighting": "symmetric"}  # distances between rows of A**8

_, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].scatter(*X.T, s=8)
axes[0].set(title="the points", aspect="equal")
plot.embedding(DiffusionMap(2, **options).fit_transform(graph), ax=axes[1])
axes[1].set_title("diffusion map, 2 components")

# %%
# The distortion is the largest ratio of an embedded to an exact distance, divided by the smallest,
# over all pairs:

K = gaussian_affinity(neighbor_graph(X), epsilon=0.25)  # all pairs
pairs = np.column_stack(np.triu_indices(len(X), 1))
exact = exact_diffusion_distances(heat_operator(K, symmetric_scaling(K)), pairs, power=POWER)


def distortion(Y):
    ratios = np.linalg.norm(Y[pairs[:, 0]] - Y[pairs[:, 1]], axis=1) / exact
    return ratios.max() / ratios.min()


maps = [[distortion(DiffusionMap(k, **options).fit_transform(graph)) for k in SIZES]]
sketches = [
    [distortion(sketch(graph, k, random_state=seed, **options).embedding) for k in SIZES]
    for seed in range(5)
]
plot.distortion({"diffusion map": (SIZES, maps), "sketch": (SIZES, sketches)})

# %%
# A sketch improves with every component. The map gains nothing from 2 to 8 components, since these
# represent outliers only. With 16 some represent the circle, which needs few, and the map is nearly
# exact. How many it needs is not known in advance.
