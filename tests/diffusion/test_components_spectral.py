"""Eigenvectors of graphs in several connected components, against those of each component."""

import networkx as nx
import numpy as np
import pytest
from registry import SEEDS
from scipy import linalg, sparse
from sklearn.base import clone

from heatsketch import DiffusionMap, HeatSketch
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
    model = HeatSketch(affinity="precomputed", power=power).fit(W)
    coordinates, values, _ = model.diffusion_map(32)
    weights = all_times_weights(values, model.power_) if power == "all" else values**power
    A = model.heat_operator_
    tolerance = 1e-6 if dtype == "float64" else 1e-4
    coordinates *= (A.stationary / model.stationary_length_)[:, np.newaxis]
    check_pairs(A, model.component_labels_, coordinates / weights, values, tolerance)


@pytest.mark.parametrize("n", [100, 600])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_diffusion_maps_have_the_eigenvectors_within_components(dtype, n):
    W, _ = with_dust(n, dtype=dtype)
    model = DiffusionMap(32, affinity="precomputed", weighting="symmetric").fit(W)
    vectors, values = model.embedding_ / model.eigenvalues_, model.eigenvalues_
    tolerance = 1e-8 if dtype == "float64" else 1e-4
    check_pairs(model.heat_operator_, model.component_labels_, vectors, values, tolerance)
    np.testing.assert_array_equal(model.transform(W), model.embedding_)


@pytest.mark.parametrize("seed", SEEDS)
def test_diffusion_map_of_a_component_ignores_all_others(seed):
    W, labels = with_dust(seed=seed)
    giant = np.flatnonzero(labels >= 0)
    model = HeatSketch(affinity="precomputed", power=4)
    whole, alone = clone(model).fit(W), model.fit(W[giant][:, giant])
    found, wanted = (m.diffusion_map(4).coordinates / m.stationary_length_ for m in (whole, alone))
    np.testing.assert_allclose(found[labels < 0], 0, atol=1e-6)
    np.testing.assert_allclose(np.abs(found[giant]), np.abs(wanted), atol=1e-6)


def accuracy(rows, labels):
    """Share of rows whose kind has the nearest centre, that of its first ten rows."""
    centers = [rows[np.flatnonzero(labels == kind)[:10]].mean(axis=0) for kind in range(KINDS)]
    found = ((rows[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
    return np.mean(found[labels >= 0] == labels[labels >= 0])


def test_diffusion_map_tells_planted_kinds_apart_despite_small_components():
    W, labels = with_dust()
    sketch = HeatSketch(affinity="precomputed").fit(W)
    for rows in (
        sketch.diffusion_map(4).coordinates,
        sketch.diffusion_map(32).coordinates,
        DiffusionMap(4, affinity="precomputed").fit_transform(W),
    ):
        assert accuracy(rows, labels) > 0.9  # by chance 0.2


def test_diffusion_map_has_as_many_dimensions_as_there_are_within_components():
    graph = nx.disjoint_union(nx.path_graph(5), nx.empty_graph(25))
    sketch = HeatSketch(8, affinity="precomputed").fit(graph)
    check_pairs(
        sketch.heat_operator_,
        sketch.component_labels_,
        DiffusionMap(4, affinity="precomputed", power=0, weighting="symmetric")
        .fit(graph)
        .embedding_,
        sketch.diffusion_map(4).eigenvalues,
        1e-6,
    )
    with pytest.raises(HeatSketchError, match="n_components=5"):
        sketch.diffusion_map(5)
    with pytest.raises(HeatSketchError, match=r"n_components=5 .* 4 besides"):
        DiffusionMap(5, affinity="precomputed").fit(graph)
