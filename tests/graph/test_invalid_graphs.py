"""Invalid points, graphs and metrics: the type of the error, and whom or what it names."""

import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from registry import cloud
from scipy import sparse

from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MissingValueError,
    ScaleError,
)
from heatsketch.graph import graph_affinity, neighbor_graph
from heatsketch.graph._ivf import search_within
from heatsketch.graph._neighbors import find_neighbors, squared_distances

X = cloud(20)
DISTANCES = np.sqrt(neighbor_graph(X))
ZERO, SPARSE = np.zeros((1, 3)), sparse.csr_array(X)
FAR = np.vstack([X[:19], np.full((1, 3), 1e160)])


def with_entry(values, value, place=(3, 1)):
    changed = values.astype(type(value)) if isinstance(value, complex) else values.copy()
    changed[place] = value
    return changed


def to_the_left(x, y):
    return max(float(x[0] - y[0]), 0.0)


def given(X):
    return neighbor_graph(X, metric="precomputed")


def new_points(X_new, **options):
    return find_neighbors(X, **options)[0].distances_to(X_new)


def within(queries=(3, 2), probes=(3, 1), limits=3):
    parts = np.zeros(queries), np.zeros(probes, int), cloud(9, 2), np.array([0, 9])
    return search_within(*parts, np.ones(limits), np.ones(limits))


def edges(source="ab", target="bc", **columns):
    ends = {"source": list(source), "target": list(target)}
    return pd.DataFrame(ends, dtype=object).assign(**columns)


INVALID = [
    # --- points
    *[
        (neighbor_graph, (form(with_entry(X, bad)),), {}, MissingValueError, "X")
        for bad in (np.nan, np.inf)
        for form in (np.asarray, sparse.csr_array, sparse.coo_array)
    ],
    *[(neighbor_graph, (bad,), {}, DtypeError, "X") for bad in (X + 1j, X.astype(str))],
    (neighbor_graph, (np.ma.masked_equal(X, X[0, 0]),), {}, MissingValueError, "X"),
    *[(neighbor_graph, (bad,), {}, HeatSketchError, "X") for bad in (X[:, 0], X[:0], X[:, :0])],
    *[
        (neighbor_graph, (X,), {"n_neighbors": n}, HeatSketchError, "n_neighbors")
        for n in (0, -3, 5.5, "auto", True, [5])
    ],
    # --- metrics
    (neighbor_graph, (X,), {"metric": "euclid"}, HeatSketchError, "metric"),
    (neighbor_graph, (SPARSE,), {"metric": "l1"}, DtypeError, "metric"),
    (neighbor_graph, (X,), {"metric": to_the_left}, AffinityError, "metric"),
    (neighbor_graph, (np.vstack([X, ZERO]),), {"metric": "cosine"}, AffinityError, "cosine"),
    (new_points, (ZERO,), {"metric": "cosine", "n_neighbors": 5}, AffinityError, "cosine"),
    *[
        (neighbor_graph, (FAR,), {"metric": m, "n_neighbors": n}, ScaleError, "metric")
        for m in ("euclidean", "manhattan")
        for n in (None, 5)
    ],
    (neighbor_graph, (sparse.csr_array([[1e8], [1e8]]),), {}, ScaleError, "X"),
    (neighbor_graph, (sparse.csr_array([[1e6, 1e6], [1e6, 1e6 + 1]]),), {}, ScaleError, "X"),
    # --- shapes that do not fit, which compiled loops would read beyond
    *[
        (squared_distances, (form(X[:, :2]), form(X)), {"metric": metric}, HeatSketchError, "X_new")
        for form in (np.asarray, sparse.csr_array)
        for metric in ("euclidean", "cosine")
    ],
    (new_points, (X[:, :2],), {"n_neighbors": 5}, ValueError, "columns"),
    (within, (), {"queries": (3, 4)}, ValueError, "columns"),
    (within, (), {"probes": (2, 1)}, ValueError, "probes"),
    (within, (), {"limits": 2}, ValueError, "limits"),
    # --- distances
    *[
        (given, (form(with_entry(DISTANCES, value, place)),), {}, error, "X")
        for form in (np.asarray, sparse.csr_array)
        for place, value, error in [
            ((3, 1), np.nan, MissingValueError),
            ((3, 1), np.inf, MissingValueError),
            ((3, 1), -1.0, AffinityError),
            ((4, 4), 1.0, AffinityError),
        ]
    ],
    *[
        (given, (bad,), {}, AffinityError, "X")
        for bad in (with_entry(DISTANCES, 9.0), DISTANCES[5:])
    ],
    # --- graphs
    (graph_affinity, (nx.DiGraph([(0, 1)]),), {}, HeatSketchError, "directed"),
    *[
        (graph_affinity, (graph,), {"weight": "w"}, HeatSketchError, "weight")
        for graph in (nx.path_graph(3), edges())
    ],
    (graph_affinity, (edges(),), {"source": "from"}, HeatSketchError, "source"),
    (graph_affinity, (edges(),), {"target": "to"}, HeatSketchError, "target"),
    (graph_affinity, (edges(source=["a", None]),), {}, HeatSketchError, "row 1"),
    (graph_affinity, (edges(target=[np.nan, "c"]),), {}, HeatSketchError, "row 0"),
    (graph_affinity, (edges(weight=[1.0, np.nan]),), {}, MissingValueError, "weights"),
    (graph_affinity, (edges(weight=["1", "x"]),), {}, DtypeError, "weight"),
    (graph_affinity, (nx.Graph([(0, 1, {"weight": "much"})]),), {}, DtypeError, "weight"),
    (graph_affinity, (edges("abc", "bcb", weight=[1.0, 2, 3]),), {}, HeatSketchError, "weights"),
    (graph_affinity, (np.ones((2, 2)),), {}, DtypeError, "graph"),
]


@pytest.mark.parametrize(("function", "arguments", "options", "error", "name"), INVALID)
def test_an_invalid_argument_is_named(function, arguments, options, error, name):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert re.search(rf"\b{name}\b", str(caught.value))
