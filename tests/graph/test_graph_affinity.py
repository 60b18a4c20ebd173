"""Graphs of other libraries: the same affinities, and the names of the nodes."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from heatsketch import DiffusionMap, HeatGraph, HeatSketch, drift, load, sketch
from heatsketch.diffusion import with_self_loops
from heatsketch.graph import graph_affinity

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")


def people():
    """A weighted graph with two nodes that have no edges."""
    graph = nx.les_miserables_graph()
    graph.add_nodes_from(["Nobody", "Somebody"])
    return graph


def of_igraph(graph):
    igraph = pytest.importorskip("igraph")
    found = igraph.Graph.from_networkx(graph)
    found.vs["name"] = found.vs["_nx_name"]
    return graph_affinity(found)


def of_frame(graph, frame):
    return graph_affinity(frame(nx.to_pandas_edgelist(graph)))


FORMS = {
    "networkx": graph_affinity,
    "networkx, twice": lambda graph: graph_affinity(graph_affinity(graph)),
    "multigraph": lambda graph: graph_affinity(nx.MultiGraph(graph)),
    "igraph": of_igraph,
    "pandas": lambda graph: of_frame(graph, lambda edges: edges),
    "polars": lambda graph: of_frame(graph, pl.from_pandas),
    "both directions": lambda graph: of_frame(
        graph, lambda e: pd.concat([e, e.rename(columns={"source": "target", "target": "source"})])
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_graph_is_the_same_graph(form):
    graph = people()
    affinity, ids = FORMS[form](graph)
    # An edge list has no isolated nodes, and sorts the others.
    names = list(graph) if len(ids) == len(graph) else sorted(nx.les_miserables_graph())
    assert ids.tolist() == names
    np.testing.assert_array_equal(affinity.toarray(), nx.to_numpy_array(graph, names))
    assert isinstance(affinity, sparse.csr_array)


@pytest.mark.parametrize("model", [HeatSketch(16), HeatSketch(16, power=4), DiffusionMap(3)])
def test_a_graph_is_embedded_with_its_isolated_nodes_and_names(model):
    graph = people()
    model.fit(graph)
    assert model.graph_.ids.tolist() == list(graph)
    assert model.graph_.n_connected_components == 3
    assert np.isfinite(model.embedding_).all()
    assert model.embedding_.shape[0] == len(graph)
    rows = with_self_loops(graph_affinity(graph).affinity)  # as the fit completes them
    np.testing.assert_array_equal(model.transform(rows), model.embedding_)


def test_random_numbers_depend_on_names_and_not_on_order():
    graph = people()
    other = nx.Graph()
    other.add_nodes_from(reversed(list(graph)))
    other.add_edges_from(graph.edges(data=True))
    one, two = (sketch(HeatGraph.from_affinity(g), 16, power=3) for g in (graph, other))
    place = {name: i for i, name in enumerate(two.ids)}
    same = two.embedding[[place[name] for name in one.ids]]
    np.testing.assert_allclose(same, one.embedding, atol=1e-12)
    assert drift(one, two).rows.distance.max() < 1e-10


def test_ids_are_names_of_nodes_and_random_numbers_those_of_text_and_integers():
    path = nx.relabel_nodes(nx.path_graph(4), {0: 7})
    graph = HeatGraph.from_affinity(path)
    assert graph.ids.tolist() == graph.numbers.tolist() == [7, 1, 2, 3]
    grid = HeatGraph.from_affinity(nx.grid_2d_graph(2, 3))
    assert grid.ids.tolist() == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert grid.numbers.tolist() == list(range(6))
    given = HeatGraph.from_affinity(path, ids=[4, 5, 6, 7])
    assert given.numbers.tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("graph", [people(), nx.karate_club_graph()], ids=["text", "numbers"])
def test_names_are_saved_with_and_without_the_graph(graph, tmp_path):
    made = sketch(HeatGraph.from_affinity(graph), 8)
    for name, with_graph in (("a", True), ("b", False)):
        made.save(tmp_path / name, graph=with_graph)
        again = load(tmp_path / name)
        assert again.ids.tolist() == list(graph)
        assert again.ids.dtype == made.ids.dtype


def test_weights_are_an_attribute_a_column_or_one():
    edges = pd.DataFrame({"a": [1, 2], "b": [2, 3], "w": [0.5, 4.0]})
    named = {"source": "a", "target": "b"}
    assert graph_affinity(edges, weight="w", **named).affinity.sum() == 9
    assert graph_affinity(edges, **named).affinity.sum() == 4  # no column "weight"
    assert graph_affinity(edges, weight=None, **named).affinity.sum() == 4
    graph = nx.from_pandas_edgelist(edges, "a", "b", "w")
    assert graph_affinity(graph, weight="w").affinity.sum() == 9
    assert graph_affinity(graph).affinity.sum() == 4
    multigraph = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert graph_affinity(multigraph).affinity[0, 1] == 2
    loops = nx.Graph([(0, 0, {"weight": 3.0}), (0, 1)])
    assert graph_affinity(loops).affinity.toarray().tolist() == [[3, 1], [1, 0]]
