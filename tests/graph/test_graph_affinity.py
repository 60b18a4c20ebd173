"""Graphs of other libraries: the same affinities, and the names of the nodes."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from heatsketch import DiffusionMap, HeatSketch, load
from heatsketch.diffusion import with_self_loops
from heatsketch.exceptions import (
    FileFormatError,
    HeatSketchError,
    NotStorableError,
)
from heatsketch.graph import graph_affinity
from heatsketch.io import Graph, read_graph

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")


def people():
    """A weighted graph with two nodes that have no edges."""
    graph = nx.les_miserables_graph()
    graph.add_nodes_from(["Nobody", "Somebody"])
    return graph


class LikeIgraph:
    """The part of igraph's interface that is used; igraph itself where it is installed."""

    def __init__(self, graph, directed=False):
        names = list(graph)
        edges = [(names.index(i), names.index(j), w) for i, j, w in graph.edges(data="weight")]
        self.vs = Attributes({"name": names}, len(names))
        self.es = Attributes({"weight": [w for *_, w in edges]}, len(edges))
        self.pairs, self.directed = [(i, j) for i, j, _ in edges], directed

    def get_edgelist(self):
        return self.pairs

    def is_directed(self):
        return self.directed


class Attributes:
    def __init__(self, values, size):
        self.values, self.size = values, size

    def __len__(self):
        return self.size

    def __getitem__(self, name):
        return self.values[name]

    def attributes(self):
        return list(self.values)


def of_igraph(graph):
    igraph = pytest.importorskip("igraph")
    found = igraph.Graph.from_networkx(graph)
    found.vs["name"] = found.vs["_nx_name"]
    return graph_affinity(found)


def of_frame(graph, frame):
    edges = nx.to_pandas_edgelist(graph)
    return graph_affinity(frame(edges), nodes=list(graph))


FORMS = {
    "networkx": graph_affinity,
    "networkx, twice": lambda graph: graph_affinity(graph_affinity(graph)),
    "multigraph": lambda graph: graph_affinity(nx.MultiGraph(graph)),
    "igraph": of_igraph,
    "like igraph": lambda graph: graph_affinity(LikeIgraph(graph)),
    "pandas": lambda graph: of_frame(graph, lambda edges: edges),
    "polars": lambda graph: of_frame(graph, pl.from_pandas),
    "both directions": lambda graph: of_frame(
        graph, lambda e: pd.concat([e, e.rename(columns={"source": "target", "target": "source"})])
    ),
    "scipy": lambda graph: graph_affinity(nx.to_scipy_sparse_array(graph), nodes=list(graph)),
    "numpy": lambda graph: graph_affinity(nx.to_numpy_array(graph), nodes=list(graph)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_graph_is_the_same_graph(form):
    graph = people()
    affinity, ids = FORMS[form](graph)
    np.testing.assert_array_equal(affinity.toarray(), nx.to_numpy_array(graph))
    assert isinstance(affinity, sparse.csr_array)
    assert ids.tolist() == list(graph)


@pytest.mark.parametrize("model", [HeatSketch(16), HeatSketch(16, power=4), DiffusionMap(3)])
def test_a_graph_is_embedded_with_its_isolated_nodes_and_names(model):
    graph = people()
    model.set_params(affinity="precomputed").fit(graph)
    assert model.row_names_.tolist() == list(graph)
    assert model.n_connected_components_ == 3
    assert np.isfinite(model.embedding_).all()
    assert model.embedding_.shape[0] == len(graph)
    rows = with_self_loops(graph_affinity(graph).affinity)  # as the fit completes them
    np.testing.assert_array_equal(model.transform(rows), model.embedding_)


def test_most_nodes_may_be_isolated():
    graph = nx.path_graph(5)
    graph.add_nodes_from(range(5, 30))
    model = HeatSketch(8, affinity="precomputed").fit(graph)
    assert model.n_connected_components_ == 26
    assert np.isfinite(model.embedding_).all()
    alone = HeatSketch(8, affinity="precomputed").fit(nx.path_graph(5))
    steps = [np.linalg.norm(np.diff(m.embedding_[:5], axis=0), axis=1) for m in (model, alone)]
    # Within a component nothing else matters but the unit, which is that of the whole walk.
    steps = [step / m.stationary_length_ for step, m in zip(steps, (model, alone), strict=True)]
    np.testing.assert_allclose(*steps, rtol=1e-6)


def test_random_numbers_depend_on_names_and_not_on_order():
    graph = people()
    other = nx.Graph()
    other.add_nodes_from(reversed(list(graph)))
    other.add_edges_from(graph.edges(data=True))
    one, two = (HeatSketch(16, power=3, affinity="precomputed").fit(g) for g in (graph, other))
    place = {name: i for i, name in enumerate(two.row_names_)}
    same = two.embedding_[[place[name] for name in one.row_names_]]
    np.testing.assert_allclose(same, one.embedding_, atol=1e-12)
    assert one.drift(two).rows.distance.max() < 1e-10


def test_integers_are_their_own_row_ids_and_other_names_are_numbered():
    path = nx.relabel_nodes(nx.path_graph(4), {0: 7})
    assert HeatSketch(4, affinity="precomputed").fit(path).row_ids_.tolist() == [7, 1, 2, 3]
    grid = HeatSketch(4, affinity="precomputed").fit(nx.grid_2d_graph(2, 3))
    assert grid.row_names_.tolist() == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert grid.row_ids_.tolist() == list(range(6))
    given = HeatSketch(4, affinity="precomputed").fit(path, row_ids=[4, 5, 6, 7])
    assert given.row_ids_.tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("graph", [people(), nx.karate_club_graph()], ids=["text", "numbers"])
def test_names_are_saved_with_the_training_data(graph, tmp_path):
    model = HeatSketch(8, affinity="precomputed").fit(graph)
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    assert again.row_names_.tolist() == list(graph)
    assert again.row_names_.dtype == model.row_names_.dtype
    model.save(tmp_path / "b", training_data=False)
    assert not hasattr(load(tmp_path / "b"), "row_names_")


def test_names_that_no_file_holds_are_rejected_in_saving(tmp_path):
    model = HeatSketch(4, affinity="precomputed").fit(nx.grid_2d_graph(2, 3))
    with pytest.raises(NotStorableError, match="row_names_"):
        model.save(tmp_path / "a")


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


EDGES = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (nx.DiGraph([(0, 1)]), {}, r"directed \(a DiGraph of networkx\).*graph.to_undirected"),
        (LikeIgraph(people(), directed=True), {}, "graph.as_undirected"),
        (nx.path_graph(3), {"weight": "w"}, "weight='w' is no attribute"),
        (LikeIgraph(people()), {"weight": "w"}, "weight='w' is no attribute"),
        (EDGES, {"weight": "w"}, "weight='w' is no attribute"),
        (nx.path_graph(3), {"nodes": [0, 1, 2]}, "nodes=.*has nodes already"),
        (EDGES, {"source": "from"}, "source='from' is none of the columns"),
        (EDGES, {"nodes": ["a", "b"]}, "lacks 'c', the end of an edge"),
        (EDGES, {"nodes": ["a", "b", "c", "c"]}, "repeats a name"),
        (EDGES.assign(source=["a", None]), {}, "row 1 of the edge list is an edge between None"),
        (EDGES.assign(weight=[1.0, np.nan]), {}, "between nodes 'b' and 'c' has the weight nan"),
        (EDGES.assign(weight=["1", "x"]), {}, "between nodes 'a' and 'b' has the weight '1'"),
        (
            pd.DataFrame({"source": ["a", "b"], "target": ["b", "a"], "weight": [1.0, 2.0]}),
            {},
            "between nodes a and b has the weights 1 and 2; list each edge once",
        ),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), {}, "symmetric"),
        (np.ones((2, 3)), {}, "square"),
        (np.ones((2, 2)), {"nodes": ["a"]}, "has 1 names"),
    ],
)
def test_what_is_no_undirected_graph_is_rejected(graph, options, message):
    with pytest.raises(HeatSketchError, match=message):
        graph_affinity(graph, **options)


def test_a_graph_is_not_taken_for_points():
    with pytest.raises(HeatSketchError, match=r"affinity='gaussian' is for points.*'precomputed'"):
        HeatSketch().fit(people())


def test_a_graph_from_a_file_keeps_its_names_in_a_fit(tmp_path):
    path = tmp_path / "a.edges"
    path.write_text("anna bert 2\nbert cleo 1")
    graph = read_graph(path)
    assert isinstance(graph, Graph)
    assert HeatSketch(4, affinity="precomputed").fit(graph).row_names_.tolist() == list(graph.ids)
    path.write_text("anna bert 2\nbert anna 1")
    with pytest.raises(FileFormatError, match=r"nodes 0 and 1 \(counted from 0\)|weights"):
        read_graph(path)


def test_no_library_of_graphs_is_imported():
    code = (
        "import sys, heatsketch, numpy as np; "
        "heatsketch.graph.graph_affinity(np.ones((2, 2))); "
        "print({'networkx', 'igraph', 'faiss', 'pynndescent'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
