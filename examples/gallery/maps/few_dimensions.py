"""
Near isometry: few dimensions with the least distortion
=======================================================

A torus is sketched in 128 components. A linear map to a few dimensions distorts the worst pair as
little as possible; two other maps are shown for comparison.
:doc:`/background/near_isometry` explains.
"""

import numpy as np

from heatsketch import HeatGraph, NearIsometry, plot, sketch

u, v = np.random.default_rng(0).uniform(0, 2 * np.pi, (2, 400))
X = np.column_stack([np.cos(u), np.sin(u), 3.5 * np.cos(v), 3.5 * np.sin(v)])
graph = HeatGraph.from_points(X, weights=0.5, n_neighbors=None)
Z = sketch(graph, 128, power=32).embedding
SIZES = [2, 4, 8]


def distances(Y):
    i, j = np.triu_indices(len(Y), 1)
    return np.linalg.norm(Y[i] - Y[j], axis=1)


def distortion(Y):
    ratios = distances(Y) / distances(Z)
    return ratios.max() / ratios.min()


axes = Z @ np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[2].T
curves = {
    "leading axes": [distortion(axes[:, :k]) for k in SIZES],
    "sketch": [distortion(Z[:, :k]) for k in SIZES],
    "near isometry": [distortion(NearIsometry(k).fit_transform(Z)) for k in SIZES],
}
for name, values in curves.items():
    print(f"{name:>14}", *(f"{value:10.1f}" for value in values))
plot.distortion({name: (SIZES, [values]) for name, values in curves.items()})
