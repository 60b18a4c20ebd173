"""Weights of links: affinities of the graph without self-loops, or those of its walk."""

import numpy as np
import pytest
from checks import tolerance
from registry import affinity, cloud
from scipy import sparse

from heatsketch import HeatGraph
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.exceptions import HeatSketchError
from heatsketch.uses._labels import label_sources, potentials
from heatsketch.uses._links import WEAKEST, link_weights


def graph_of_weights(K, normalization="degree"):
    return HeatGraph.from_affinity(K, self_loops=False, normalization=normalization)


@pytest.mark.parametrize("normalization", ["degree", "symmetric", "bistochastic"])
@pytest.mark.parametrize("exponent", [1, 8])
def test_links_are_those_of_the_affinity(normalization, exponent):
    K = affinity(cloud(60, 2), 0.5, n_neighbors=8)
    weakest = WEAKEST if exponent > 1 else 0
    links = np.where(K.toarray() > 0, np.maximum(K.toarray(), weakest) ** exponent, 0)
    np.fill_diagonal(links, 0)
    graph = graph_of_weights(K, normalization)
    found = link_weights(graph, exponent=exponent).matrix.toarray()
    np.testing.assert_allclose(found, links, rtol=1e-12)


def test_links_of_the_walk_have_its_transition_probabilities():
    graph = graph_of_weights(affinity(cloud(60, 2), 0.5, n_neighbors=8), "symmetric")
    W = link_weights(graph, of_walk=True).matrix.toarray()
    v = graph.operator.stationary
    walk = graph.operator @ np.diag(v) / v[:, np.newaxis]
    np.fill_diagonal(walk, 0)
    found = W / W.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, walk / walk.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(W, W.T)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
@pytest.mark.parametrize("exponent", [1, 8])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_only_points_without_links_keep_a_self_loop_of_weight_one(exponent, dtype):
    K = sparse.csr_array(np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, 1], [0, 0, 1, 2]], dtype))
    K = sparse.block_diag([K, np.array([[2]], dtype)], format="csr")
    graph = graph_of_weights(sparse.csr_array(K))
    A = graph.operator
    before = A.matrix.copy()
    found = link_weights(graph, exponent=exponent).matrix
    assert found.dtype == np.float64
    assert found.indices.dtype == A.matrix.indices.dtype
    wanted = np.zeros((5, 5))
    wanted[[0, 1, 2, 3, 4], [1, 0, 3, 2, 4]] = 1
    np.testing.assert_allclose(found.toarray(), wanted, rtol=tolerance(dtype))
    np.testing.assert_array_equal(A.matrix.toarray(), before.toarray())


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_a_point_of_weak_links_alone_gets_the_label_of_its_neighbor():
    """To the eighth power its affinity would be zero, and the point isolated."""
    K = sparse.csr_array(np.eye(4) + np.diag([0.5, 0.5, 1e-60], 1) + np.diag([0.5, 0.5, 1e-60], -1))
    links = link_weights(graph_of_weights(K), exponent=8)
    u = potentials(links, label_sources(np.array([0, -1, 1, -1]), 2))
    assert u.argmax(axis=1)[3] == 1
    assert np.isfinite(u).all()


def test_copies_that_share_rows_keep_the_links_between_them():
    X = np.repeat(cloud(40, 2), np.arange(40) % 9 + 1, axis=0)
    graph = HeatGraph.from_points(X, n_neighbors=6, weights=0.5)
    assert isinstance(graph.operator.matrix, SharedRows)
    A = graph.operator
    K = (A @ np.eye(len(X))) / A.s[:, np.newaxis] / A.s
    points = X[graph.order]
    is_copy = (points[:, np.newaxis] == points).all(axis=2).sum(axis=1) > 1
    np.fill_diagonal(K, np.where(is_copy, K.diagonal(), 0))
    np.testing.assert_allclose(link_weights(graph).product(np.eye(len(X))), K, atol=1e-12)


def test_a_graph_of_all_pairs_has_no_links():
    with pytest.raises(HeatSketchError, match="n_neighbors"):
        link_weights(HeatGraph.from_points(cloud(20), n_neighbors=None))
