"""Eigenvectors of graphs in several connected components, against those of each component."""

import networkx as nx
import numpy as np
import pytest
from registry import SEEDS
from scipy import linalg, sparse

from heatsketch import DiffusionMap, HeatGraph, sketch
from heatsketch.diffusion._all_times import all_times_weights
from heatsketch.exceptions import HeatSketchError

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")

KINDS = 5  # of planted labels


def with_dust(n=600, n_small=91, seed=0, dtype="float64"):
    """A block model of five kinds, with many components of two to four nodes, in random order."""
    kinds = np.repeat(np.arange(KINDS), n // KINDS)
    rng = np.random.default_rng(seed)
    p = np.where(np.equal.outer(kinds, kinds), 30, 5) / n
    giant = np.triu(rng.random((n, n)) < p, k=1)
    giant[np.arange(n - 1), np.arange(1, n)] = True  # connected
    small = [nx.to_numpy_array(nx.path_graph(2 + i % 3)) for i in range(n_small)]
    W = sparse.block_diag([giant + giant.T, *small]).tocsr().astype(dtype)
    order = rng.permutation(W.shape[0])
    labels = np.concatenate([kinds, np.full(W.shape[0] - n, -1)])[order]
    return sparse.csr_array(W[order][:, order]), labels


def pairs_of_each_component(A, labels):
    """Return all nonstationary eigenvalues of the components, in descending order."""
    dense = A @ np.eye(A.shape[0])
    parts = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    values = [linalg.eigvalsh(dense[np.ix_(rows, rows)])[:-1] for rows in parts]
    return np.sort(np.concatenate(values))[::-1]


def check_pairs(A, labels, vectors, values, tolerance):
    wanted = pairs_of_each_component(A, labels)[: len(values)]
    np.testing.assert_allclose(values, wanted, atol=tolerance)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=10 * tolerance)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=10 * tolerance)


@pytest.mark.parametrize("n", [100, 600])  # below and above the size of dense linear algebra
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", ["all", 3, 60])
def test_diffusion_map_has_the_eigenvectors_within_components(power, dtype, n):
    W, _ = with_dust(n, dtype=dtype)
    graph = HeatGraph.from_affinity(W)
    made = sketch(graph, power=power)
    coordinates, values, _ = made.diffusion_map(32)
    weights = all_times_weights(values, made.first_power) if power == "all" else values**power
    A = graph.operator
    tolerance = 1e-6 if dtype == "float64" else 1e-4
    coordinates *= (A.stationary / graph.stationary_length)[:, np.newaxis]
    check_pairs(A, graph.components, coordinates / weights, values, tolerance)


@pytest.mark.parametrize("n", [100, 600])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_diffusion_maps_have_the_eigenvectors_within_components(dtype, n):
    W, _ = with_dust(n, dtype=dtype)
    model = DiffusionMap(32, weighting="symmetric").fit(W)
    vectors, values = model.embedding_ / model.eigenvalues_, model.eigenvalues_
    tolerance = 1e-8 if dtype == "float64" else 1e-4
    check_pairs(model.graph_.operator, model.graph_.components, vectors, values, tolerance)
    np.testing.assert_array_equal(model.transform(W), model.embedding_)


@pytest.mark.parametrize("seed", SEEDS)
def test_diffusion_map_of_a_component_ignores_all_others(seed):
    W, labels = with_dust(seed=seed)
    giant = np.flatnonzero(labels >= 0)
    graphs = map(HeatGraph.from_affinity, (W, W[giant][:, giant]))
    found, wanted = (
        sketch(graph, power=4).diffusion_map(4).coordinates / graph.stationary_length
        for graph in graphs
    )
    np.testing.assert_allclose(found[labels < 0], 0, atol=1e-6)
    np.testing.assert_allclose(np.abs(found[giant]), np.abs(wanted), atol=1e-6)


def test_diffusion_map_has_as_many_dimensions_as_there_are_within_components():
    graph = HeatGraph.from_affinity(nx.disjoint_union(nx.path_graph(5), nx.empty_graph(25)))
    made = sketch(graph, 8)
    vectors = DiffusionMap(4, power=0, weighting="symmetric").fit(graph).embedding_
    values = made.diffusion_map(4).eigenvalues
    check_pairs(graph.operator, graph.components, vectors, values, 1e-6)
    with pytest.raises(HeatSketchError, match="n_components"):
        made.diffusion_map(5)
    with pytest.raises(HeatSketchError, match="n_components"):
        DiffusionMap(5).fit(graph)
