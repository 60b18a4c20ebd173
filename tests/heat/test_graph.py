"""HeatGraph: the order of its rows, training points as new points, and what it is made of."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from checks import check_heat_operator
from registry import affinity, circle, cloud
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

from heatsketch import (
    DiffusionMap,
    HeatClustering,
    HeatGraph,
    HeatLabels,
    HeatSketch,
    compare,
    drift,
    harmonic,
    sketch,
    smooth,
)
from heatsketch.diffusion import with_self_loops
from heatsketch.exceptions import (
    HeatSketchError,
)

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")

N = 120


def far(x, y):
    return np.abs(x - y).max()


def points(X):
    return X


def distances(X):
    return cdist(X, X)


def listed_distances(X):
    graph = kneighbors_graph(X, 9, mode="distance", include_self=True)
    rows, columns = ((graph + graph.T) > 0).nonzero()
    exact = cdist(X, X)
    places = np.append(rows, np.arange(len(X))), np.append(columns, np.arange(len(X)))
    keep = np.unique(places[0] * len(X) + places[1])
    rows, columns = np.divmod(keep, len(X))
    return sparse.csr_array((exact[rows, columns], (rows, columns)), shape=exact.shape)


def links(X):
    return sparse.csr_array(affinity(X, 0.5, n_neighbors=8))


def links_without_loops(X):
    K = links(X).tolil()
    K.setdiag(0)
    K = sparse.csr_array(K)
    K.eliminate_zeros()
    return K


def made_of_points(**options):
    return lambda rows, ids: HeatGraph.from_points(rows, ids=ids, **options)


def made_of_links(**options):
    return lambda rows, ids: HeatGraph.from_affinity(rows, ids=ids, **options)


# How the rows are made of points, and how the graph is made of the rows.
WAYS = {
    "points": (points, made_of_points()),
    "float32": (lambda X: X.astype(np.float32), made_of_points()),
    "bistochastic": (points, made_of_points(normalization="bistochastic", n_neighbors=9)),
    "gaussian": (points, made_of_points(weights="gaussian", normalization="degree")),
    "cosine": (points, made_of_points(metric="cosine")),
    "manhattan": (points, made_of_points(metric="l1", weights=0.5)),
    "function": (points, made_of_points(metric=far)),
    "all pairs": (points, made_of_points(n_neighbors=None, weights=0.5)),
    "sparse": (lambda X: sparse.csr_array(np.maximum(X, 0.1)), made_of_points()),
    "duplicates": (lambda X: X[np.arange(N) // 8], made_of_points(n_neighbors=7)),
    "distances": (distances, made_of_points(metric="precomputed")),
    "distances of all pairs": (distances, made_of_points(metric="precomputed", n_neighbors=None)),
    "distances of neighbours": (listed_distances, made_of_points(metric="precomputed")),
    "links": (links, made_of_links()),
    "dense links": (lambda X: links(X).toarray(), made_of_links(normalization="symmetric")),
    "links, self-loops": (links_without_loops, made_of_links()),
    "links, none": (links_without_loops, made_of_links(self_loops=False)),
}
SQUARE = ("distances", "links")


def taken(rows, order, way):
    some = rows[order]
    return some[:, order] if any(word in way for word in SQUARE) else some


def example(way):
    X = 3 + cloud(N)
    X[90:] += 50  # another component, if it is not linked
    shape, make = WAYS[way]
    return shape(X), make


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.ZeroDiagonalWarning")
@pytest.mark.parametrize("way", WAYS)
def test_training_points_keep_their_rows(way):
    rows, make = example(way)
    graph = make(rows, None)
    check_heat_operator(graph.operator)
    assert (graph.n_samples, graph.n_features_in) == rows.shape
    made = sketch(graph, 8, power=4)
    limit = 1e-12 * np.abs(made.embedding).max()
    for order in (np.arange(N), np.random.default_rng(0).permutation(N)[:30], [7]):
        found = made.extend(graph.rows(rows[order]))
        np.testing.assert_allclose(found, made.embedding[order], rtol=0, atol=limit)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.ZeroDiagonalWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_text", [False, True])
def test_everything_public_is_in_the_order_of_the_rows(way, is_text):
    """Whatever the order of the operator: rows permuted with their ids permute all results."""
    rows, make = example(way)
    order = np.random.default_rng(1).permutation(N)
    ids = np.random.default_rng(2).permutation(N) + 7
    ids = np.array([f"row {i}" for i in ids]) if is_text else ids
    one, other = make(rows, ids), make(taken(rows, order, way), ids[order])
    np.testing.assert_array_equal(one.ids, ids)
    np.testing.assert_array_equal(other.ids, ids[order])
    np.testing.assert_array_equal(other.numbers, one.numbers[order])
    parts = one.components[order]
    assert one.n_connected_components == other.n_connected_components == len(np.unique(parts))
    same = parts[:, np.newaxis] == parts
    np.testing.assert_array_equal(other.components[:, np.newaxis] == other.components, same)
    if isinstance(one.epsilon, np.ndarray):
        np.testing.assert_allclose(other.epsilon, one.epsilon[order], rtol=1e-6)
    else:
        assert other.epsilon == one.epsilon
    made, again = sketch(one, 8, power=4), sketch(other, 8, power=4)
    limit = 1e-5 if one.dtype == np.float32 else 1e-10
    np.testing.assert_allclose(
        again.embedding, made.embedding[order], rtol=0, atol=limit * np.abs(made.embedding).max()
    )
    np.testing.assert_array_equal(again.ids, made.ids[order])
    assert drift(made, again).rows.distance.max() < 1e-4 * np.abs(made.embedding).max()


def test_a_graph_does_not_change_with_its_points():
    X = cloud(60)
    graph = HeatGraph.from_points(X)
    before = sketch(graph, 4).extend(graph.rows(X[:9]))
    X_new = X[:9].copy()
    X[:] = 0
    np.testing.assert_array_equal(sketch(graph, 4).extend(graph.rows(X_new)), before)


# --- rows of nodes ------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [nx.les_miserables_graph(), nx.star_graph(9)])
def test_rows_of_a_networkx_graph_are_in_the_order_of_its_nodes(graph):
    made = sketch(HeatGraph.from_affinity(graph), 8)
    other = nx.Graph()
    other.add_nodes_from(reversed(list(graph)))
    other.add_edges_from(graph.edges(data=True))
    for given in (graph, other, with_self_loops(nx.to_scipy_sparse_array(graph))):
        np.testing.assert_array_equal(made.extend(made.graph.rows(given)), made.embedding)


def test_a_new_node_gets_no_self_loop():
    W = links_without_loops(cloud(60))
    graph = HeatGraph.from_affinity(W)
    made = sketch(graph, 8, power=3, weighting="symmetric")
    new = np.random.default_rng(1).uniform(size=(4, 60))
    A = new / np.sqrt(np.outer(new.sum(axis=1), with_self_loops(W).sum(axis=1)))
    wanted = A @ made.before_last / np.sqrt(8)
    np.testing.assert_allclose(made.extend(graph.rows(new)), wanted, rtol=1e-9)


# --- one graph in many forms --------------------------------------------------------------------


def igraph_of(W):
    library = pytest.importorskip("igraph")
    return library.Graph.Weighted_Adjacency(W.toarray(), mode="undirected", loops="once")


X = circle(N)
Y = np.where(np.arange(N) % 10 == 0, np.arange(N) // 60, -1)
NODES = {
    "HeatGraph": HeatGraph.from_affinity,
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "coo_array": sparse.coo_array,
    "networkx": lambda W: nx.from_scipy_sparse_array(W),
    "igraph": igraph_of,
}
POINTS = {
    "HeatGraph": HeatGraph.from_points,
    "array": np.asarray,
    "frame": pd.DataFrame,
    "lists": np.ndarray.tolist,
}
ESTIMATORS = {
    "HeatSketch": lambda given: HeatSketch(8).fit(given).embedding_,
    "HeatSketch, power": lambda given: HeatSketch(8, power=4).fit(given).embedding_,
    "DiffusionMap": lambda given: DiffusionMap(2).fit(given).embedding_,
    "HeatLabels": lambda given: HeatLabels().fit(given, Y).label_distributions_,
    "HeatClustering": lambda given: HeatClustering(3).fit(given).labels_,
}


@pytest.mark.parametrize("form", NODES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_take_all_forms_of_a_graph_alike(estimator, form):
    W = links_without_loops(X)
    wanted = ESTIMATORS[estimator](HeatGraph.from_affinity(W))
    np.testing.assert_allclose(ESTIMATORS[estimator](NODES[form](W)), wanted, atol=1e-10)


@pytest.mark.parametrize("form", POINTS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_take_all_forms_of_points_alike(estimator, form):
    wanted = ESTIMATORS[estimator](HeatGraph.from_points(X))
    np.testing.assert_array_equal(ESTIMATORS[estimator](POINTS[form](X)), wanted)


SOURCES = {
    "sketch": lambda graph: sketch(graph, 4),
    "HeatSketch": lambda graph: HeatSketch(4).fit(graph),
    "DiffusionMap": lambda graph: DiffusionMap(2).fit(graph),
    "HeatLabels": lambda graph: HeatLabels().fit(graph, Y),
    "HeatClustering": lambda graph: HeatClustering(3).fit(graph),
}
USES = {
    "sketch": lambda source: sketch(source, 4).embedding,
    "compare": lambda source: compare(source, np.arange(N) % 2, n_permutations=19).z,
    "smooth": lambda source: smooth(source, X, time=2).values,
    "harmonic": lambda source: harmonic(source, [0.0, 1.0], [0, 60]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", SOURCES)
def test_uses_take_whatever_has_a_graph(source, use):
    graph = HeatGraph.from_points(X)
    np.testing.assert_array_equal(USES[use](SOURCES[source](graph)), USES[use](graph))
    with pytest.raises(HeatSketchError, match="HeatGraph"):
        USES[use](X)


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix])
def test_a_square_sparse_matrix_that_is_not_symmetric_is_an_error(estimator, form):
    with pytest.raises(HeatSketchError, match="metric='precomputed'"):
        ESTIMATORS[estimator](form(kneighbors_graph(X, 5, mode="distance")))


def test_ids_beside_a_graph_are_an_error():
    with pytest.raises(HeatSketchError, match="ids"):
        HeatSketch().fit(HeatGraph.from_points(X), ids=np.arange(N))


def test_rows_of_another_width_are_an_error():
    for graph in (HeatGraph.from_points(X), HeatGraph.from_affinity(links(X))):
        with pytest.raises(HeatSketchError, match=r"columns|features"):
            graph.rows(np.ones((4, 5)))
