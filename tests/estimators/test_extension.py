"""New points: the training points given again, and the ones that were never seen."""

import dask.array as da
import networkx as nx
import numpy as np
import pytest
from checks import check_extension
from models import ESTIMATORS, EXACT, INPUTS, fitted, new_result, training_result, with_copies
from registry import SEEDS, cloud
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from heatsketch import HeatGraph, HeatLabels, HeatSketch, sketch

apart = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")


@apart
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_training_rows_keep_their_results(estimator, name, seed):
    model = ESTIMATORS[estimator]
    make, options = INPUTS[name]
    if isinstance(model, HeatLabels) and name in ("all pairs", "distances"):
        options = {**options, "n_neighbors": 12}
    model, X = model.set_params(**{**DEFAULTS, **options}), make(with_copies(seed))
    if isinstance(X, nx.Graph):  # of all nodes only
        found = fitted(model, X)
        np.testing.assert_array_equal(new_result(found, X), training_result(found))
    else:
        check_extension(model, X, rtol=0 if name in EXACT else 1e-12)


DEFAULTS = {
    name: HeatSketch().get_params()[name]
    for name in ("n_neighbors", "metric", "weights", "normalization")
}
SKETCHES = {
    "kept": {"power": 4, "stationary": "keep"},
    "one step": {"power": 1, "random_matrix": "rademacher"},
    "symmetric": {"power": 4, "weighting": "symmetric"},
    "large power": {"power": 60},
    "all times": {},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_neighbors", [None, 9])
@pytest.mark.parametrize("weights", ["local", 2.0])
@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_extend_training_rows_to_their_embedding(name, weights, n_neighbors, dtype):
    X = with_copies(0).astype(dtype)
    made = sketch(
        HeatGraph.from_points(X, n_neighbors=n_neighbors, weights=weights), 8, **SKETCHES[name]
    )
    order = np.random.default_rng(0).permutation(len(X))
    found, wanted = made.extend(made.graph.rows(X[order])), made.embedding[order]
    rounding = 0 if n_neighbors else 100 * np.finfo(dtype).eps * np.linalg.norm(wanted)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rounding)


@pytest.mark.parametrize(
    "metric", ["chebyshev", "hamming", "jaccard", lambda x, y: abs(x - y).max()]
)
@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_training_points_keep_their_embedding_in_every_metric(metric, n_neighbors):
    X = np.round(with_copies(0), 1)
    estimator = HeatSketch(8, metric=metric, n_neighbors=n_neighbors, weights=2.0)
    check_extension(estimator, X, rtol=1e-12 if n_neighbors is None else 0)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "hamming"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_points_keep_every_bit_where_many_tie(metric, dtype):
    X = np.random.default_rng(0).permutation(np.indices((5, 5, 5)).reshape(3, -1).T)
    for points in (X, np.unique(X // 3, axis=0), np.eye(40)):
        estimator = HeatSketch(4, n_neighbors=7, metric=metric, weights=2.0, power=3)
        check_extension(estimator, points.astype(dtype), rtol=0)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_sparse_points_are_embedded_like_dense_ones(container, metric, n_neighbors):
    X = sparse.random_array((80, 200), density=0.1, rng=np.random.default_rng(0))
    model = HeatSketch(8, metric=metric, n_neighbors=n_neighbors)
    dense = model.fit_transform(X.toarray())
    np.testing.assert_allclose(model.fit_transform(container(X)), dense, atol=1e-12)
    assert sparse.issparse(model.graph_.rule.neighbors.points)


def test_a_graph_of_neighbors_from_scikit_learn_is_taken_as_it_is():
    """Its rows are one-sided and have stored zeros, which are copies and not absences."""
    X = with_copies(2)
    distances = kneighbors_graph(X, 8, mode="distance", include_self=True)
    A = HeatGraph.from_points(distances, metric="precomputed", weights=0.8).operator
    linked = (distances.toarray() > 0) | (distances.T.toarray() > 0)
    stored = A.matrix.toarray() > 0
    # A tie at zero may leave some copies out of scikit-learn's graph, never the others.
    assert (stored <= linked | (pairwise_distances(X) == 0)).all()
    assert (stored >= linked).all()
    np.testing.assert_allclose(A.matrix.diagonal(), A.s**2, rtol=1e-15)
    assert abs(A.matrix - A.matrix.T).max() == 0


@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_new_points_of_dask_are_like_others(n_neighbors):
    X, new = cloud(90), cloud(30, seed=1)
    model = HeatSketch(8, power=4, n_neighbors=n_neighbors, weights=2.0).fit(X)
    lazy = da.from_array(new, chunks=(7, 2))
    np.testing.assert_array_equal(model.transform(lazy), model.transform(new))
    single = da.from_array(new.astype(np.float32), chunks=(30, 3))
    np.testing.assert_array_equal(model.transform(single), model.transform(new.astype(np.float32)))
