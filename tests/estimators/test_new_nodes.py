"""Rows of a graph in transform: those of training nodes and those of new nodes."""

import warnings

import networkx as nx
import numpy as np
import pytest
from registry import SEEDS
from scipy import sparse

from heatsketch import HeatGraph, sketch
from heatsketch.diffusion import with_self_loops
from heatsketch.exceptions import AffinityError, DisconnectedGraphWarning

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
OPTIONS = [{}, {"normalization": "symmetric"}, {"normalization": "bistochastic"}, {"power": 3}]


def made_of(W, *, power="all", k=8, **options):
    return sketch(HeatGraph.from_affinity(W, **options), k, power=power)


@pytest.mark.parametrize(
    ("form", "dtype"),
    [(np.asarray, "float64"), (sparse.csr_array, "float32"), (sparse.coo_array, "int64")],
)
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("W", [random_weights(), STAR, PATHS], ids=["random", "star", "paths"])
def test_rows_of_the_training_matrix_are_the_embedding(W, options, dtype, form):
    W = form((3 * W).astype(dtype))
    made = made_of(W, **options)
    for given in (W, with_self_loops(W)):
        np.testing.assert_array_equal(made.extend(made.graph.rows(given)), made.embedding)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", SEEDS)
def test_transform_recognizes_rows_of_training_nodes(seed, form, options):
    W = random_weights(seed)
    made = made_of(form(W), **options)
    order = np.random.default_rng(seed).permutation(len(W))
    # Products of dense matrices are rounded differently for other numbers of rows.
    tolerance = 1e-12 * np.abs(made.embedding).max() if form is np.asarray else 0
    for rows in (order, order[:7], order[:0:-3], *order[:, np.newaxis]):
        found = made.extend(made.graph.rows(form(W[rows])))
        np.testing.assert_allclose(found, made.embedding[rows], rtol=0, atol=tolerance)


def test_a_row_of_zeros_that_may_be_one_of_several_nodes_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        graph = HeatGraph.from_affinity(PATHS)  # with three nodes without links
    with pytest.raises(AffinityError, match="Row 0"):  # and no warning of shared rows
        graph.rows(PATHS[6:8])
