"""Graphs of neighbours that others have found."""

import numpy as np
import pytest
from registry import SEEDS, circle
from scipy import sparse
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from sklearn.pipeline import make_pipeline

from heatsketch import HeatSketch
from heatsketch.diffusion import (
    bistochastic_scaling,
    gaussian_affinity,
    heat_operator,
    symmetric_scaling,
)
from heatsketch.exceptions import AffinityError, HeatSketchError, MissingValueError
from heatsketch.graph import neighbor_graph
from heatsketch.graph._neighbors import label_components

TRANSFORMERS = {
    "scikit-learn": KNeighborsTransformer(n_neighbors=9, mode="distance"),
    "scikit-learn, a metric that we lack": KNeighborsTransformer(
        n_neighbors=9, mode="distance", metric="braycurtis"
    ),
    "scikit-learn, by radius": RadiusNeighborsTransformer(radius=0.3, mode="distance"),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_any_transformer_to_neighbors_is_a_first_step(name):
    X = circle(400) + 3
    model = make_pipeline(TRANSFORMERS[name], HeatSketch(16, metric="precomputed", epsilon=0.05))
    Y = model.fit_transform(X)
    new = model.transform(circle(50, seed=1) + 3)
    assert Y.shape == (400, 16)
    assert np.isfinite(new).all()
    # Points that are next to each other on the circle are next to each other in the embedding.
    steps, far = np.linalg.norm(Y - np.roll(Y, 1, 0), axis=1), np.linalg.norm(Y - Y[::-1], axis=1)
    assert steps.mean() < far.mean() / 3


@pytest.mark.parametrize("seed", SEEDS)
def test_our_own_neighbors_given_as_a_graph_are_our_own_embedding(seed):
    X = circle(300, seed)
    graph = KNeighborsTransformer(n_neighbors=9, mode="distance").fit_transform(X)  # and itself
    given = HeatSketch(8, metric="precomputed", epsilon=0.05).fit_transform(graph)
    found = HeatSketch(8, n_neighbors=10, epsilon=0.05).fit_transform(X)
    np.testing.assert_allclose(given, found, atol=1e-12)


def graph_with(value):
    graph = sparse.csr_array(KNeighborsTransformer(n_neighbors=5).fit_transform(circle(30)))
    graph.data[7] = value
    return graph


def without_a_row():
    graph = sparse.lil_array(graph_with(0.1))
    graph[4] = 0
    return sparse.csr_array(graph)


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (graph_with(np.nan), MissingValueError, "NaN in row"),
        (graph_with(np.inf), MissingValueError, "infinity"),
        (graph_with(-1.0), AffinityError, "at least 0"),
        (without_a_row(), AffinityError, "row 4 of X stores no distance"),
    ],
    ids=["nan", "infinity", "negative, as where nothing was found", "a row without neighbours"],
)
def test_a_broken_graph_is_rejected(graph, error, message):
    with pytest.raises(error, match=message):
        HeatSketch(4, metric="precomputed").fit(graph)


def test_zeros_that_may_be_padding_are_rejected():
    graph = sparse.csr_array(KNeighborsTransformer(n_neighbors=5).fit_transform(circle(30)))
    model = HeatSketch(4, metric="precomputed", epsilon=0.05).fit(graph)
    for form in (graph.tobsr((2, 2)), graph.todia()):
        for step in (model.transform, HeatSketch(4, metric="precomputed").fit):
            with pytest.raises(AffinityError, match=r"X is in (BSR|DIA) format, .*; give the CSR"):
                step(form)


def index_beyond(X):
    X.indices[-1] = 10**7


def index_below(X):
    X.indices[-1] = -1


def ends_in_disorder(X):
    X.indptr[1] = X.indptr[2] + 1


def ends_beyond(X):
    X.indptr[-1] = 10**7


def circle_affinity():
    return sparse.csr_array(
        gaussian_affinity(neighbor_graph(circle(30), n_neighbors=5), epsilon=0.1)
    )


SCALED = symmetric_scaling(circle_affinity())
ENTRIES = {
    "fit": lambda K: HeatSketch(4).fit(K),
    "fit distances": lambda K: HeatSketch(4, metric="precomputed").fit(K),
    "fit affinities": lambda K: HeatSketch(4, affinity="precomputed").fit(K),
    "transform": lambda K: HeatSketch(4).fit(circle_affinity()).transform(K),
    "neighbor_graph": lambda K: neighbor_graph(K, n_neighbors=3),
    "gaussian_affinity": lambda K: gaussian_affinity(K, epsilon=1.0),
    "symmetric_scaling": symmetric_scaling,
    "bistochastic_scaling": bistochastic_scaling,
    "heat_operator": lambda K: heat_operator(K, SCALED),
    "label_components": label_components,
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("harm", [index_beyond, index_below, ends_in_disorder, ends_beyond])
@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_no_loop_follows_an_index_beyond_a_matrix(form, harm, entry):
    K = circle_affinity().asformat(form).copy()
    harm(K)
    message = r"[XKd2]\.ind.* shape \(30, 30\).*; build|BSR format"
    with pytest.raises(HeatSketchError, match=message):
        ENTRIES[entry](K)
