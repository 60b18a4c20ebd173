"""Graphs of neighbours that others have found."""

import numpy as np
import pytest
from registry import SEEDS, circle
from scipy import sparse
from sklearn.neighbors import (
    KNeighborsTransformer,
    RadiusNeighborsTransformer,
)
from sklearn.pipeline import make_pipeline

from heatsketch import HeatGraph, HeatSketch, sketch
from heatsketch.diffusion import (
    bistochastic_scaling,
    gaussian_affinity,
    heat_operator,
    symmetric_scaling,
)
from heatsketch.exceptions import HeatSketchError
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
    model = make_pipeline(TRANSFORMERS[name], HeatSketch(16, metric="precomputed", weights=0.05))
    Y = model.fit_transform(X)
    new = model.transform(circle(50, seed=1) + 3)
    assert Y.shape == (400, 16)
    assert np.isfinite(new).all()
    # Points that are next to each other on the circle are next to each other in the embedding.
    steps, far = np.linalg.norm(Y - np.roll(Y, 1, 0), axis=1), np.linalg.norm(Y - Y[::-1], axis=1)
    assert steps.mean() < far.mean() / 3


@pytest.mark.parametrize("weights", ["local", 0.05])
@pytest.mark.parametrize("seed", SEEDS)
def test_our_own_neighbors_given_are_our_own_embedding(seed, weights):
    X, new = circle(300, seed), circle(40, seed + 9)
    wanted = sketch(HeatGraph.from_points(X, n_neighbors=10, weights=weights), 8)
    search = KNeighborsTransformer(n_neighbors=9, mode="distance").fit(X)  # and the point itself
    distances = HeatGraph.from_points(search.transform(X), metric="precomputed", weights=weights)
    d, indices = search.kneighbors(X, n_neighbors=10)
    listed = HeatGraph.from_neighbors(indices, d, X, weights=weights)
    for graph in (distances, listed):
        np.testing.assert_allclose(sketch(graph, 8).embedding, wanted.embedding, atol=1e-9)
    found = sketch(listed, 8)
    # The neighbours of new points are all whose own neighbours would be farther.
    assert np.isfinite(found.extend(listed.rows(new))).all()
    np.testing.assert_allclose(found.extend(listed.rows(X)), found.embedding, atol=1e-9)


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
    "weights": HeatGraph.from_affinity,
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
    with pytest.raises(HeatSketchError, match=r"[XKd2]\.ind|BSR format"):
        ENTRIES[entry](K)
