"""Graphs, sketches and estimators of every kind, for the laws about files and pickles.

Add a case, and every law runs on it.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from heatsketch import (
    DiffusionMap,
    HeatClustering,
    HeatGraph,
    HeatLabels,
    HeatSketch,
    NearIsometry,
    Sketch,
    sketch,
)
from heatsketch.engines import _local
from heatsketch.exceptions import DisconnectedGraphWarning
from heatsketch.graph._metrics import METRICS

X, NEW = cloud(150), cloud(40, seed=1)
N, PAIRS = len(X), [[0, 1], [5, 99], [7, 7]]
Y = np.where(np.arange(N) < 40, np.arange(N) % 3, -1)


def distances(points):
    return pairwise_distances(points, X)


def near_distances(points):
    d = distances(points)
    return sparse.csr_array(np.where(d <= np.partition(d, 20, axis=1)[:, 20:21], d, 0))


def weights(points):
    return np.exp(-(distances(points) ** 2))


def sparse_weights(points):
    return sparse.csr_array(np.round(weights(points), 2))


def from_lists(points, **options):
    d, indices = NearestNeighbors(n_neighbors=12).fit(points).kneighbors(points)
    return HeatGraph.from_neighbors(indices, d, points, **options)


def of_networkx(points, names):
    import networkx as nx

    return HeatGraph.from_affinity(
        nx.relabel_nodes(nx.from_scipy_sparse_array(sparse_weights(points)), names.__getitem__)
    )


def table(points):
    import pandas as pd

    return pd.DataFrame(points, columns=["a", "b", "column c"])


POINTS, AFFINITY = HeatGraph.from_points, HeatGraph.from_affinity
NAMES = np.array([f"row {i} \N{GREEK SMALL LETTER ALPHA}" for i in range(N)])
SHUFFLED = np.random.default_rng(0).permutation(N) * 10
same, f32 = np.asarray, np.float32
# How a graph is made, its options, and how training points and new points are changed before.
GRAPHS = {
    "plain": (POINTS, {}, same),
    "float32": (POINTS, {}, f32),
    "gaussian": (POINTS, {"weights": "gaussian", "normalization": "degree"}, same),
    "bistochastic": (POINTS, {"normalization": "bistochastic", "n_neighbors": 12}, same),
    "lists": (POINTS, {"n_neighbors": 9}, same),
    "lists, cosine": (POINTS, {"n_neighbors": 9, "metric": "cosine"}, f32),
    "all pairs": (POINTS, {"n_neighbors": None}, f32),
    "all pairs, bandwidth": (POINTS, {"n_neighbors": None, "weights": f32(1.5)}, same),
    "sparse points": (POINTS, {}, lambda points: sparse.csr_matrix(points * (points > -0.5))),
    "copies": (POINTS, {"n_neighbors": 9}, np.round),
    "copies, manhattan": (POINTS, {"n_neighbors": 9, "metric": "manhattan"}, np.round),
    "two clusters": (POINTS, {}, lambda points: points + 100 * (points[:, :1] > 0)),
    "text ids": (POINTS, {"ids": NAMES}, same),
    "object ids": (POINTS, {"ids": NAMES.astype(object)}, same),
    "shuffled ids": (POINTS, {"ids": SHUFFLED}, same),
    "distances": (POINTS, {"metric": "precomputed", "n_neighbors": None}, distances),
    "distances, neighbours": (POINTS, {"metric": "precomputed"}, distances),
    "sparse distances": (POINTS, {"metric": "precomputed"}, near_distances),
    "lists of another library": (from_lists, {"ids": SHUFFLED}, same),
    "weights": (AFFINITY, {}, weights),
    "sparse weights": (AFFINITY, {"self_loops": False}, sparse_weights),
    "without loops": (
        AFFINITY,
        {},
        lambda points: sparse_weights(points) * (distances(points) > 0),
    ),
    "text nodes": (of_networkx, {"names": NAMES}, same),
    "integer nodes": (of_networkx, {"names": SHUFFLED}, same),
} | {
    f"{metric}, {n}": (POINTS, {"metric": metric, "n_neighbors": n}, lambda x: np.round(abs(x), 1))
    for metric in METRICS
    for n in (None, 20)
}
# Everything else that can be saved: a graph from above, and what is made of it.
MADE = {
    "Sketch": ("plain", lambda g: sketch(g, 8)),
    "Sketch, one power": ("float32", lambda g: sketch(g, 8, power=4, stationary="keep")),
    "Sketch, symmetric": ("all pairs", lambda g: sketch(g, 3, power=2, weighting="symmetric")),
    "Sketch, components": ("two clusters", lambda g: sketch(g, 8, random_matrix="rademacher")),
    "Sketch, copies": ("copies", lambda g: sketch(g, 1, random_state=None)),
    "Sketch, names": ("text nodes", lambda g: sketch(g, 4)),
    "Sketch, lists": ("lists", lambda g: sketch(g, 4, random_state=2**40)),
    "HeatSketch, graph": ("two clusters", lambda g: HeatSketch(4).fit(g)),
    "HeatLabels, graph": (
        "plain",
        lambda g: HeatLabels(unknown="-1").fit(g, Y.astype(str)),
    ),
    "HeatClustering, graph": ("copies", lambda g: HeatClustering(3).fit(g)),
    "DiffusionMap, graph": ("weights", lambda g: DiffusionMap(2, power=2.5).fit(g)),
}
FITTED = {
    "HeatSketch": lambda: HeatSketch(np.int64(8), engine=None, n_jobs=1).fit(X),
    "HeatSketch, table": lambda: HeatSketch(4, n_neighbors=None).fit(table(X)),
    "DiffusionMap": lambda: DiffusionMap(3).fit(f32(X)),
    "HeatLabels": lambda: HeatLabels(priors=[0.2, 0.3, 0.5]).fit(X, Y),
    "HeatLabels, floats": lambda: HeatLabels(unknown=-1.0).fit(X, Y.astype(float)),
    "HeatClustering, table": lambda: HeatClustering(3).fit(table(X)),
    "NearIsometry": lambda: NearIsometry(2).fit(X),
    "NearIsometry, float32": lambda: NearIsometry(2).fit(f32(X)),
}
CASES = [*GRAPHS, *MADE, *FITTED]


@cache
def fitted(name):
    """Return a value, made once for all laws, and new points for it."""
    if name in FITTED:
        value = FITTED[name]()
        return value, table(NEW) if "table" in name else NEW
    if name in MADE:
        source, make = MADE[name]
        graph, new = fitted(source)
        return make(graph), new
    make, options, changed = GRAPHS[name]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        if "lists" in name:
            patch.setattr(_local, "EXACT_COMPARISONS", 0)
        graph = make(changed(X), **options)
    is_weights = name.endswith("nodes")
    return graph, sparse_weights(NEW) if is_weights else changed(NEW)


def results(value, new):
    """Return what a value gives, to be compared bit by bit."""
    if isinstance(value, HeatGraph):
        made = sketch(value, 4, power=3)
        about = [value.components, value.ids, value.numbers, value.epsilon, repr(value)]
        return [value.settings, *about, made.embedding, made.extend(value.rows(new))]
    if isinstance(value, Sketch):
        grown = value.grow(value.n_components + 2).embedding
        about = [value.how(), value.times, value.ids, value.numbers, repr(value), grown]
        extended = value.extend(value.graph.rows(new))
        return [*about, value.distances(PAIRS), value.embedding, extended, value.path([3])]
    names = ("transform", "predict", "predict_proba")
    found = [getattr(value, name)(new) for name in names if hasattr(value, name)]
    public = {name: part for name, part in vars(value).items() if name.endswith("_")}
    inner = [results(public.pop("sketch_"), new)] if "sketch_" in public else []
    if hasattr(value, "suspects"):
        inner += [value.suspects(), value.predict_set(new, coverage=0.5)]
    public.pop("graph_", None)
    return [*found, *inner, dict(sorted(public.items()))]


def assert_same(one, two):
    """Assert that type, dtype, shape and bits are the same."""
    one, two = (part.item() if isinstance(part, np.generic) else part for part in (one, two))
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.tobytes() == two.tobytes() or (one.dtype == object and (one == two).all())
    elif isinstance(one, dict):
        assert one.keys() == two.keys()
        assert_same(list(one.values()), list(two.values()))
    elif isinstance(one, tuple | list):
        for left, right in zip(one, two, strict=True):
            assert_same(left, right)
    else:
        np.testing.assert_equal(one, two)
