"""Rows of a graph in transform: those of training nodes and those of new nodes."""

import warnings

import networkx as nx
import numpy as np
import pytest
from registry import SEEDS
from scipy import sparse

from heatsketch import DiffusionMap, HeatClustering, HeatLabels, HeatSketch, load
from heatsketch.diffusion import with_self_loops
from heatsketch.exceptions import AffinityError, AmbiguousRowWarning, HeatSketchError
from heatsketch.graph import graph_affinity

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")


def random_weights(seed=0, n=60):
    """Weights of a random graph, all different, with an isolated node and a self-loop."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(1, 2, (n, n)) * (rng.random((n, n)) < 0.1), k=1)
    W[n // 2] = W[:, n // 2] = 0
    W = W + W.T
    W[5, 5] = 0.7
    return W


STAR = nx.to_numpy_array(nx.star_graph(9))
PATHS = nx.to_numpy_array(nx.disjoint_union(nx.path_graph(6), nx.empty_graph(3)))
MODELS = [HeatSketch(8), HeatSketch(8, power=3), DiffusionMap(2)]
OPTIONS = [{}, {"normalization": "symmetric"}, {"normalization": "bistochastic"}]


@pytest.mark.parametrize(
    ("form", "dtype"),
    [(np.asarray, "float64"), (sparse.csr_array, "float32"), (sparse.coo_array, "int64")],
)
@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("graph", ["random", "star", "paths"])
def test_transform_of_the_training_matrix_is_the_embedding(graph, model, dtype, form):
    W = {"random": random_weights(), "star": STAR, "paths": PATHS}[graph]
    W = form((3 * W).astype(dtype))
    model.set_params(affinity="precomputed").fit(W)
    np.testing.assert_array_equal(model.transform(W), model.embedding_)
    np.testing.assert_array_equal(model.transform(with_self_loops(W)), model.embedding_)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", SEEDS)
def test_transform_recognizes_rows_of_training_nodes(seed, form, options):
    W = random_weights(seed)
    model = HeatSketch(8, affinity="precomputed", **options).fit(form(W))
    order = np.random.default_rng(seed).permutation(len(W))
    # Products of dense matrices are rounded differently for other numbers of rows.
    tolerance = 1e-12 * np.abs(model.embedding_).max() if form is np.asarray else 0
    for rows in (order, order[:7], order[:0:-3], *order[:, np.newaxis]):
        found = model.transform(form(W[rows]))
        np.testing.assert_allclose(found, model.embedding_[rows], rtol=0, atol=tolerance)


def test_transform_of_a_new_node_adds_no_self_loop():
    W = random_weights()
    model = HeatSketch(8, affinity="precomputed").fit(sparse.csr_array(W))
    new = np.random.default_rng(1).uniform(size=(4, len(W)))
    degrees = new.sum(axis=1)
    A = new / np.sqrt(np.outer(degrees, with_self_loops(W).sum(axis=1)))
    wanted = A @ model.before_last_ / np.sqrt(8)
    wanted *= model.stationary_length_ / np.sqrt(degrees)[:, np.newaxis]
    wanted += model.component_offsets_[model.component_labels_[new.argmax(axis=1)]]
    found = model.transform(sparse.csr_array(new))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    mixed = model.transform(sparse.csr_array(np.concatenate([W[:3], new])))
    np.testing.assert_array_equal(mixed, np.concatenate([model.embedding_[:3], found]))


def test_transform_warns_of_a_row_that_several_nodes_share():
    model = HeatSketch(8, affinity="precomputed").fit(STAR)
    with pytest.warns(AmbiguousRowWarning, match=r"2 rows of X, the first of them row 1,"):
        found = model.transform(STAR[[0, 2, 1]])
    np.testing.assert_array_equal(found[0], model.embedding_[0])
    with_loops = with_self_loops(STAR)[[0, 2, 1]]
    np.testing.assert_array_equal(model.transform(with_loops), model.embedding_[[0, 2, 1]])


def test_transform_rejects_a_row_of_zeros_that_may_be_one_of_several_nodes():
    model = HeatSketch(8, affinity="precomputed").fit(PATHS)
    with pytest.raises(AffinityError, match="row 0 of X is all zeros"):
        model.transform(PATHS[6:8])


def test_transform_without_self_loops_takes_rows_as_they_are():
    W = nx.to_numpy_array(nx.complete_graph(5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HeatSketch(4, affinity="precomputed", self_loops=False).fit(W)
    np.testing.assert_array_equal(model.transform(W[[3, 1]]), model.embedding_[[3, 1]])


def test_predict_recognizes_rows_of_training_nodes():
    W = sparse.csr_array(random_weights())
    sketch = HeatSketch(16, affinity="precomputed")
    y = np.full(W.shape[0], -1)
    y[:10] = np.arange(10) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels, clusters = HeatLabels(sketch).fit(W, y), HeatClustering(3, sketch).fit(W)
    rows = [7, 30, 2]
    np.testing.assert_array_equal(labels.predict_proba(W[rows]), labels.label_distributions_[rows])
    np.testing.assert_array_equal(clusters.predict(W[rows]), clusters.labels_[rows])


def test_saved_models_recognize_rows_of_training_nodes(tmp_path):
    W = random_weights()
    HeatSketch(8, affinity="precomputed").fit(W).save(tmp_path / "a")
    model = load(tmp_path / "a")
    np.testing.assert_array_equal(model.transform(W[[4, 1]]), model.embedding_[[4, 1]])


# --- graphs with names --------------------------------------------------------------------------


def people():
    graph = nx.les_miserables_graph()
    graph.add_nodes_from(["Nobody", "Somebody"])
    return graph


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("graph", [people(), nx.star_graph(9)], ids=["text", "numbers"])
def test_transform_of_a_graph_is_in_the_order_of_the_training_nodes(graph, model):
    model.set_params(affinity="precomputed").fit(graph)
    other = nx.Graph()
    other.add_nodes_from(reversed(list(graph)))
    other.add_edges_from(graph.edges(data=True))
    for given in (graph, other, graph_affinity(other)):
        np.testing.assert_array_equal(model.transform(given), model.embedding_)


def test_transform_of_a_graph_with_other_nodes_is_rejected():
    model = HeatSketch(8, affinity="precomputed").fit(people())
    more, fewer = people(), people()
    more.add_edge("Marius", "Newcomer")
    fewer.remove_node("Marius")
    with pytest.raises(HeatSketchError, match=r"X has the node 'Newcomer', .*; "):
        model.transform(more)
    with pytest.raises(HeatSketchError, match=r"X lacks the node 'Marius', .*; "):
        model.transform(fewer)
    model.fit(nx.to_numpy_array(people()))
    with pytest.raises(HeatSketchError, match=r"X is a graph, .*names.*; "):
        model.transform(people())
    points = HeatSketch(8).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(HeatSketchError, match=r"affinity='gaussian' is for points.*"):
        points.transform(people())
