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
from heatsketch.graph._graph_affinity import is_graph
from heatsketch.io import Graph, read_graph

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")


def people():
    """A weighted graph with two nodes that have no edges."""
    graph = nx.les_miserables_graph()
    graph.add_nodes_from(["Nobody", "Somebody"])
    return graph


class LikeIgraph:
    """The part of igraph's interface that is used; igraph itself where it is installed."""

    def __init__(self, graph, directed=False, is_bare=False):
        names = list(graph)
        edges = [(names.index(i), names.index(j), w) for i, j, w in graph.edges(data="weight")]
        self.vs = Attributes({} if is_bare else {"name": names}, len(names))
        self.es = Attributes({} if is_bare else {"weight": [w for *_, w in edges]}, len(edges))
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


def test_without_weights_each_edge_weighs_one_and_without_names_nodes_are_numbered():
    graph = people()
    links = (nx.to_numpy_array(graph) > 0).astype(float)
    for form in (graph, LikeIgraph(graph)):
        np.testing.assert_array_equal(graph_affinity(form, weight=None).affinity.toarray(), links)
    bare = graph_affinity(LikeIgraph(graph, is_bare=True))
    np.testing.assert_array_equal(bare.affinity.toarray(), links)
    assert bare.ids.tolist() == graph_affinity(links).ids.tolist() == list(range(len(graph)))
    assert is_graph(LikeIgraph(graph)) and is_graph(bare) and not is_graph(links)


def test_a_graph_may_have_no_edges():
    frame = pd.DataFrame({"source": [], "target": []})
    empty = nx.Graph()
    empty.add_nodes_from("ab")
    for found in (graph_affinity(frame, nodes=["a", "b"]), graph_affinity(empty)):
        assert found.affinity.toarray().tolist() == [[0, 0], [0, 0]]
        assert found.ids.tolist() == ["a", "b"]


def test_names_are_sorted_within_their_type_and_integers_are_int64():
    frame = pd.DataFrame({"source": ["b", 20, "1"], "target": [3, "1", 20]}, dtype=object)
    assert graph_affinity(frame).ids.tolist() == [20, 3, "1", "b"]
    numbers = pd.DataFrame({"source": [9, 10], "target": [1, 9], "weight": [1, 2]})
    affinity, ids = graph_affinity(numbers.astype(np.int8))
    assert ids.tolist() == [1, 9, 10] and ids.dtype == np.int64 and affinity.dtype == np.float64
    assert graph_affinity(np.ones((2, 2)), nodes=[2**70, 1]).ids.tolist() == [2**70, 1]


def edges(source="ab", target="bc", **columns):
    ends = {"source": list(source), "target": list(target)}
    return pd.DataFrame(ends, dtype=object).assign(**columns)


ONE = "by which each edge weighs 1."
NO_COLUMN = (
    "is none of the columns ['source', 'target'] of the edge list; name the two columns that hold "
    "the nodes, source= and target=. If the frame is a matrix of weights, pass it as an array."
)
NO_NAME = "fill in the name of the node, or drop the row."
NO_NUMBER = f"which is no finite number; correct it, or use weight=None, {ONE}"
NO_ATTRIBUTE = "weight='w' is no attribute of the edges of this"


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (
            nx.DiGraph([(0, 1)]),
            {},
            "the graph is directed (a DiGraph of networkx), and affinities are symmetric; pass "
            "graph.to_undirected().",
        ),
        (LikeIgraph(people(), directed=True), {}, "symmetric; pass graph.as_undirected()."),
        (
            nx.path_graph(3),
            {"weight": "w"},
            f"{NO_ATTRIBUTE} Graph of networkx; name one, or use weight=None, {ONE}",
        ),
        (LikeIgraph(people()), {"weight": "w"}, f"; name one, or use weight=None, {ONE}"),
        (
            edges(),
            {"weight": "w"},
            f"{NO_ATTRIBUTE} DataFrame of pandas; name one, or use weight=None, {ONE}",
        ),
        (
            nx.path_graph(3),
            {"nodes": [0, 1, 2]},
            "nodes=[0, 1, 2] is not for a Graph of networkx, which has nodes already; leave it "
            "out.",
        ),
        (edges(), {"source": "from"}, f"source='from' {NO_COLUMN}"),
        (edges(), {"target": "to"}, f"target='to' {NO_COLUMN}"),
        (
            edges(),
            {"nodes": ["a", "b"]},
            "nodes=['a', 'b'] lacks 'c', the end of an edge; give each node once, or leave nodes "
            "out.",
        ),
        (
            edges(),
            {"nodes": ["a", "b", "c", "c"]},
            "nodes=['a', 'b', 'c', 'c'] repeats a name; give each node once, or leave nodes out.",
        ),
        (
            edges(source=["a", None]),
            {},
            f"row 1 of the edge list is an edge between None and 'c'; {NO_NAME}",
        ),
        (edges(target=[np.nan, "c"]), {}, f"an edge between 'a' and nan; {NO_NAME}"),
        (edges(target=["b", None]), {}, f"an edge between 'b' and None; {NO_NAME}"),
        (
            edges(weight=[1.0, np.nan]),
            {},
            f"the edge between nodes 'b' and 'c' has the weight nan, {NO_NUMBER}",
        ),
        (
            edges(weight=["1", "x"]),
            {},
            f"the edge between nodes 'a' and 'b' has the weight '1', {NO_NUMBER}",
        ),
        (
            nx.Graph([("a", "b", {"weight": "heavy"})]),
            {},
            f"the edge between nodes 'a' and 'b' has the weight 'heavy', {NO_NUMBER}",
        ),
        (
            edges("abc", "bcb", weight=[1.0, 2.0, 3.0]),
            {},
            "the edge between nodes b and c has the weights 2 and 3; list each edge once, or with "
            "the same weight in both directions.",
        ),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), {}, "graph needs a symmetric X"),
        (np.ones((2, 3)), {}, "graph makes X a square matrix"),
        (
            np.ones((2, 2)),
            {"nodes": ["a"]},
            "nodes=['a'] has 1 names, 1 of them different, for a matrix of shape (2, 2); give each "
            "row a name of its own.",
        ),
        (
            np.ones((2, 2)),
            {"nodes": ["a", "a"]},
            "nodes=['a', 'a'] has 2 names, 1 of them different",
        ),
    ],
)
def test_what_is_no_undirected_graph_is_rejected(graph, options, message):
    with pytest.raises(HeatSketchError) as caught:
        graph_affinity(graph, **options)
    assert message in str(caught.value)


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
