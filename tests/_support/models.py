"""Estimators and inputs for the laws of all of them: add an entry, and every law runs on it."""

import networkx as nx
import numpy as np
import pandas as pd
from registry import cloud
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from heatsketch import DiffusionMap, HeatClustering, HeatLabels, HeatSketch

ESTIMATORS = {
    "HeatSketch": HeatSketch(8),
    "HeatSketch, one power": HeatSketch(8, power=4, weighting="symmetric"),
    "DiffusionMap": DiffusionMap(3, power=4),
    "HeatLabels": HeatLabels(),
    "HeatClustering": HeatClustering(3),
}


def with_copies(seed, n=90):
    X = cloud(n, seed=seed)
    X[2 * n // 3 :] = X[np.random.default_rng(seed).integers(0, 20, n - 2 * n // 3)]
    return X


def near_distances(X):
    """The distances to 15 neighbours, symmetric, with zeros stored."""
    d = pairwise_distances(X)
    d = np.maximum(d, d.T)  # symmetric but for rounding
    near = d <= np.partition(d, 14, axis=1)[:, 14:15]
    rows, columns = np.nonzero(near | near.T)
    return sparse.csr_array((d[rows, columns], (rows, columns)), shape=d.shape)


def weights(X):
    return sparse.csr_array(np.round(np.exp(-pairwise_distances(X)), 1))


# How X is made of points, and parameters of the estimator. Products of dense matrices are rounded
# differently for other numbers of rows: "all pairs" and "distances" are not exact.
INPUTS = {
    "points": (np.asarray, {}),
    "float32": (lambda X: X.astype("float32"), {"n_neighbors": 9}),
    "sparse points": (lambda X: sparse.csr_array(np.maximum(X, 0.1)), {}),
    "frame": (lambda X: pd.DataFrame(X, columns=list("abc")), {}),
    "bistochastic": (np.asarray, {"normalization": "bistochastic", "n_neighbors": 9}),
    "one bandwidth": (np.asarray, {"weights": "gaussian"}),
    "cosine": (np.asarray, {"metric": "cosine"}),
    "manhattan": (np.round, {"metric": "manhattan"}),
    "all pairs": (np.asarray, {"n_neighbors": None}),
    "distances": (pairwise_distances, {"metric": "precomputed"}),
    "sparse distances": (near_distances, {"metric": "precomputed"}),
    "weights": (weights, {}),
    "networkx": (lambda X: nx.from_scipy_sparse_array(weights(X)), {}),
}
EXACT = [name for name in INPUTS if name not in ("all pairs", "distances")]


def labels_for(X, n_classes=3):
    """Return labels of twelve rows; -1 for the others."""
    n_rows = len(X) if hasattr(X, "nodes") else X.shape[0]
    y = np.full(n_rows, -1)
    y[np.random.default_rng(0).permutation(n_rows)[:12]] = np.arange(12) % n_classes
    return y


def fitted(estimator, X, **options):
    """Return a fitted clone."""
    model = clone(estimator)
    if isinstance(model, HeatLabels):
        return model.fit(X, labels_for(getattr(X, "ids", X)), **options)
    return model.fit(X, **options)


def training_result(model):
    """Return what an estimator has for each training row."""
    for name in ("embedding_", "label_distributions_", "labels_"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name))
    raise TypeError(model)


def new_result(model, X):
    """Return the same for new rows."""
    for name in ("transform", "predict_proba", "predict"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    raise TypeError(model)


def rows_of(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
