"""Fitted models of every kind, for the laws about files: add a case, and every law runs on it."""

import warnings
from functools import cache

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise_distances

from heatsketch import DiffusionMap, HeatSketch, LocalEngine, NearIsometry
from heatsketch.engines import _local
from heatsketch.exceptions import DisconnectedGraphWarning
from heatsketch.graph._metrics import METRICS
from heatsketch.graph._pairwise import DistanceTiles

X = cloud(150)
NEW = cloud(40, seed=1)


def distances(X_new, X=X):
    return pairwise_distances(X_new, X)


def near_distances(X_new, X=X):
    d = distances(X_new, X)
    return sparse.csr_array(np.where(d <= np.partition(d, 20, axis=1)[:, 20:21], d, 0))


def affinities(X_new, X=X):
    return np.exp(-(distances(X_new, X) ** 2))


def same(X_new):
    return X_new


# What a model is fitted to: training points, new points, and a way to make X of them.
SHAPES = {
    "points": same,
    "float32": lambda X_new: X_new.astype("float32"),
    "sparse points": lambda X_new: sparse.csr_matrix(np.where(X_new > -0.5, X_new, 0)),
    "positive": lambda X_new: np.round(abs(X_new), 1),
    "integers": np.round,
    "two clusters": lambda X_new: X_new + np.where(X_new[:, :1] > 0, 100.0, 0.0),
    "distances": distances,
    "sparse distances": near_distances,
    "affinities": affinities,
    "sparse affinities": lambda X_new: sparse.csr_array(np.round(affinities(X_new), 2)),
}
S, D = HeatSketch, DiffusionMap
CASES = {
    "plain": (S(8), "points"),
    "float32": (S(8), "float32"),
    "neighbors": (S(8, n_neighbors=10), "points"),
    "neighbors, float32": (S(8, n_neighbors=10), "float32"),
    "lists": (S(8, n_neighbors=10, engine=LocalEngine(graph_tolerance=0.3)), "points"),
    "lists, float32": (S(8, n_neighbors=10, engine=LocalEngine(graph_tolerance=0.2)), "float32"),
    "lists, cosine": (S(8, n_neighbors=10, metric="cosine", power=6), "points"),
    "tiles": (
        S(8, power=4, n_neighbors=None),
        "points",
    ),
    "tiles, local": (S(4, n_neighbors=None), "float32"),
    "bistochastic": (S(8, normalization="bistochastic", n_neighbors=12), "points"),
    "bistochastic, all pairs": (S(8, normalization="bistochastic", epsilon=2.0), "points"),
    "epsilon": (S(8, epsilon=1.5), "points"),
    "epsilon, numpy": (S(np.int64(8), epsilon=np.float32(1.5), power=np.int64(4)), "points"),
    "epsilon auto": (S(8, epsilon="auto"), "points"),
    "epsilon auto, neighbors": (S(8, epsilon="auto", n_neighbors=12), "float32"),
    "one column": (S(1), "points"),
    "rademacher": (S(8, random_matrix="rademacher"), "points"),
    "rademacher, neighbors": (S(8, random_matrix="rademacher", n_neighbors=9), "points"),
    "power": (S(8, power=5), "points"),
    "large power": (S(8, power=300, n_neighbors=12), "points"),
    "fraction": (S(8, power=6.5, epsilon=2.0, n_neighbors=None), "points"),
    "kept": (S(8, power=3, stationary="keep"), "points"),
    "kept, neighbors": (S(8, power=3, stationary="keep", n_neighbors=12), "float32"),
    "random walk": (S(8, weighting="random_walk"), "points"),
    "random walk, neighbors": (S(8, weighting="random_walk", n_neighbors=12), "points"),
    "all pairs": (S(8, n_neighbors=None), "points"),
    "one power": (S(8, power=4), "points"),
    "several components": (S(8, n_neighbors=9), "two clusters"),
    "copies": (S(8, n_neighbors=9), "integers"),
    "copies, one power": (S(8, n_neighbors=9, power=4, epsilon=3.0), "integers"),
    "copies, manhattan": (D(3, n_neighbors=9, metric="manhattan"), "integers"),
    "graph": (S(8, affinity="precomputed", normalization="degree"), "sparse affinities"),
    "any seed": (S(8, random_state=None), "points"),
    "large seed": (S(8, random_state=2**31 - 1), "points"),
    "sparse points": (S(8), "sparse points"),
    "sparse points, neighbors": (S(8, n_neighbors=12), "sparse points"),
    "distances": (S(8, metric="precomputed"), "distances"),
    "distances, neighbors": (S(8, metric="precomputed", n_neighbors=12), "distances"),
    "sparse distances": (S(8, metric="precomputed"), "sparse distances"),
    "affinities": (S(8, affinity="precomputed"), "affinities"),
    "sparse affinities": (S(8, affinity="precomputed"), "sparse affinities"),
    "map": (D(3), "points"),
    "map, neighbors": (D(3, n_neighbors=12, power=2.5), "points"),
    "map, float32": (D(3, n_neighbors=12, normalization="bistochastic"), "float32"),
    "map, affinities": (D(3, affinity="precomputed", weighting="random_walk"), "affinities"),
    "near isometry": (NearIsometry(2), "points"),
    "near isometry, float32": (NearIsometry(2, random_state=3), "float32"),
} | {
    f"{metric}, {n_neighbors}": (S(4, metric=metric, n_neighbors=n_neighbors), "positive")
    for metric in METRICS
    for n_neighbors in (None, 30)
}


@cache
def fitted(name):
    """Fit a model once, for all laws; no test changes it."""
    model, shape = CASES[name]
    with pytest.MonkeyPatch.context() as patch:
        if "lists" in name:
            patch.setattr(_local, "EXACT_COMPARISONS", 0)
        if "tiles" in name:
            patch.setattr(_local, "all_pairs_bytes", lambda *size: np.inf)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedGraphWarning)
            model = clone(model).fit(SHAPES[shape](X))
    lists = getattr(getattr(model, "neighbors_", None), "lists", None)
    assert ("lists" in name) == (lists is not None and lists.tree.n_lists > 1)
    assert ("tiles" in name) == isinstance(
        getattr(getattr(getattr(model, "heat_operator_", None), "matrix", None), "K", None),
        DistanceTiles,
    )
    return model, SHAPES[shape](NEW)


def assert_same(one, two):
    """Type, dtype, shape and bits."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape
        assert one.tobytes() == two.tobytes() or (one.dtype == object and (one == two).all())
    elif isinstance(one, tuple | list):
        for left, right in zip(one, two, strict=True):
            assert_same(left, right)
    else:
        np.testing.assert_equal(one, two)
