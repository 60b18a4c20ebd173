"""New points: the training points given again, and the ones that were never seen."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import SEEDS, affinity, circle, cloud
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from heatsketch import DiffusionMap, HeatSketch
from heatsketch.diffusion import gaussian_matrix
from heatsketch.exceptions import FarPointWarning
from heatsketch.graph import neighbor_graph
from heatsketch.testing import check_extension


def with_duplicates(seed):
    X = cloud(90, seed=seed)
    X[60:] = X[np.random.default_rng(seed).integers(0, 20, 30)]
    return X


MODELS = {
    "sketch": HeatSketch(8, power=4),
    "sketch, kept": HeatSketch(8, power=4, stationary="keep"),
    "sketch, one step": HeatSketch(8, power=1, random_matrix="rademacher"),
    "sketch, random walk": HeatSketch(8, power=4, weighting="random_walk"),
    "sketch, local": HeatSketch(8, power=4, epsilon="local"),
    "sketch, all times": HeatSketch(8),
    "map, random walk": DiffusionMap(3, power=4, weighting="random_walk"),
    "map": DiffusionMap(3, power=4),
    "map, at once": DiffusionMap(3, power=0.5),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
@pytest.mark.parametrize("model", MODELS)
def test_training_points_keep_their_embedding(model, normalization, seed):
    estimator = MODELS[model].set_params(normalization=normalization, n_neighbors=None)
    check_extension(estimator, with_duplicates(seed), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
@pytest.mark.parametrize("model", [name for name in MODELS if name != "map, at once"])
def test_training_points_keep_every_bit_on_a_neighbor_graph(model, normalization, seed, dtype):
    estimator = MODELS[model].set_params(normalization=normalization, n_neighbors=9)
    check_extension(estimator, with_duplicates(seed).astype(dtype), rtol=0)


@pytest.mark.parametrize(
    "metric",
    ["cosine", "manhattan", "chebyshev", "hamming", "jaccard", lambda x, y: abs(x - y).max()],
)
@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_training_points_keep_their_embedding_in_every_metric(metric, n_neighbors):
    X = np.round(with_duplicates(0), 1)
    estimator = HeatSketch(8, metric=metric, n_neighbors=n_neighbors, epsilon=2.0)
    check_extension(estimator, X, rtol=1e-12 if n_neighbors is None else 0)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "hamming"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_points_keep_every_bit_where_many_tie(metric, dtype):
    X = np.random.default_rng(0).permutation(np.indices((5, 5, 5)).reshape(3, -1).T)
    for points in (
        X.astype(dtype),
        np.unique(X // 3, axis=0).astype(dtype),
        np.eye(40).astype(dtype),
    ):
        estimator = HeatSketch(4, n_neighbors=7, metric=metric, epsilon=2.0, power=3)
        check_extension(estimator, points, rtol=0)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_sparse_points_are_embedded_like_dense_ones(container, metric, n_neighbors):
    X = sparse.random_array((80, 200), density=0.1, rng=np.random.default_rng(0))
    X = sparse.vstack([X, X.tocsr()[:10]], format="csr")
    model = HeatSketch(8, metric=metric, n_neighbors=n_neighbors)
    dense = model.fit_transform(X.toarray())
    np.testing.assert_allclose(model.fit_transform(container(X)), dense, atol=1e-12)
    assert sparse.issparse(model.neighbors_.points)
    check_extension(model, sparse.csr_array(X), rtol=1e-12 if n_neighbors is None else 0)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_the_layout_in_memory_does_not_matter(metric):
    X = cloud(80, 30)
    model = HeatSketch(8, n_neighbors=8, metric=metric).fit(np.asfortranarray(X))
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    one_by_one = np.vstack([model.transform(np.asfortranarray(X[i : i + 1])) for i in range(80)])
    np.testing.assert_array_equal(one_by_one, model.embedding_)


def test_a_fitted_model_keeps_its_points_and_its_width():
    X = cloud(40)
    model = HeatSketch(8, n_neighbors=8).fit(X)
    new = model.transform(X[:5])
    X *= 2
    model.set_params(n_components=32)
    np.testing.assert_array_equal(model.transform(X[:5] / 2), new)


def test_symmetric_rows_of_sparse_distances_are_embedded_like_training_rows():
    d2 = neighbor_graph(cloud(40), n_neighbors=8)
    d2.data = np.sqrt(d2.data)
    check_extension(HeatSketch(6, metric="precomputed", epsilon=0.8), d2, rtol=0)


@pytest.mark.parametrize("features", [100, 300])
def test_distances_of_scikit_learn_are_taken_with_their_rounding(features):
    X = 5 + cloud(200, features)
    graph = kneighbors_graph(X, 8, mode="distance", include_self=True)
    assert np.isfinite(HeatSketch(4, metric="precomputed").fit_transform(graph)).all()


@pytest.mark.parametrize("seed", SEEDS)
@given(data=st.data())
def test_any_subset_in_any_order_gives_the_same_rows(seed, data):
    X, new = with_duplicates(seed), cloud(30, seed=seed + 10)
    model = HeatSketch(4, power=3, n_neighbors=8).fit(X)
    rows = data.draw(st.lists(st.integers(0, 29), min_size=1, max_size=30))
    np.testing.assert_array_equal(model.transform(new[rows]), model.transform(new)[rows])


def test_a_new_point_follows_the_formula():
    """y = s (K (s W)), with s from the iterates of the training points, written out."""
    X, new = circle(100), circle(7, seed=5)
    options = {"power": 3, "epsilon": 0.3, "n_neighbors": None, "stationary": "keep"}
    model = HeatSketch(5, weighting="symmetric", **options).fit(X)
    K = affinity(X, 0.3)
    q = K.sum(axis=1)
    v = (K / q[:, np.newaxis] / q).sum(axis=1)
    A = K / q[:, np.newaxis] / q / np.sqrt(v)[:, np.newaxis] / np.sqrt(v)
    K_new = np.exp(-(pairwise_distances(new, X) ** 2) / 0.3)
    q_new = K_new.sum(axis=1)
    v_new = (K_new / q_new[:, np.newaxis] / q).sum(axis=1)
    A_new = K_new / q_new[:, np.newaxis] / q / np.sqrt(v_new)[:, np.newaxis] / np.sqrt(v)
    wanted = A_new @ A @ A @ gaussian_matrix(100, 5, seed=0) / np.sqrt(5)
    np.testing.assert_allclose(model.transform(new), wanted, rtol=1e-10)


@pytest.mark.parametrize("n_neighbors", [None, 10])
def test_precomputed_distances_are_the_distances(n_neighbors):
    X, new = with_duplicates(1), cloud(10, seed=9)
    points = HeatSketch(6, epsilon=0.8, n_neighbors=n_neighbors).fit(X)
    given_ones = HeatSketch(6, epsilon=0.8, n_neighbors=n_neighbors, metric="precomputed")
    given_ones.fit(pairwise_distances(X))
    np.testing.assert_allclose(given_ones.embedding_, points.embedding_, rtol=1e-10)
    found = given_ones.transform(pairwise_distances(new, X))
    np.testing.assert_allclose(found, points.transform(new), rtol=1e-10)


def test_precomputed_affinities_are_the_affinities():
    X, new = cloud(60), cloud(10, seed=9)
    for n_neighbors in (None, 10):
        points = HeatSketch(6, epsilon=0.8, n_neighbors=n_neighbors).fit(X)
        K = affinity(X, 0.8, n_neighbors)
        given_ones = HeatSketch(6, affinity="precomputed", normalization="symmetric").fit(K)
        np.testing.assert_array_equal(given_ones.embedding_, points.embedding_)
        np.testing.assert_array_equal(given_ones.transform(K[:5]), points.embedding_[:5])
    K_new = np.exp(-(pairwise_distances(new, X) ** 2) / 0.8)
    points = HeatSketch(6, epsilon=0.8, n_neighbors=None).fit(X)
    given_ones = HeatSketch(6, affinity="precomputed", normalization="symmetric")
    given_ones.fit(affinity(X, 0.8))
    np.testing.assert_allclose(given_ones.transform(K_new), points.transform(new), rtol=1e-9)


def test_a_graph_of_neighbors_from_scikit_learn_is_taken_as_it_is():
    """Its rows are one-sided and have stored zeros, which are duplicates and not absences."""
    X = with_duplicates(2)
    graph = kneighbors_graph(X, 8, mode="distance", include_self=True)
    model = HeatSketch(6, metric="precomputed", epsilon=0.8).fit(graph)
    A = model.heat_operator_.matrix
    either = (graph.toarray() > 0) | (graph.T.toarray() > 0) | (pairwise_distances(X) == 0)
    stored = A.toarray() > 0
    # A tie at zero may leave some duplicates out of scikit-learn's graph, never the others.
    assert (stored <= either).all()
    assert (stored >= ((graph.toarray() > 0) | (graph.T.toarray() > 0))).all()
    np.testing.assert_allclose(A.diagonal(), model.heat_operator_.s**2, rtol=1e-15)
    assert abs(A - A.T).max() == 0


@pytest.mark.parametrize("n_neighbors", [None, 10])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_points_stay_finite_and_are_reported(dtype, n_neighbors):
    X = cloud(60).astype(dtype)
    model = HeatSketch(4, epsilon=0.5, n_neighbors=n_neighbors).fit(X)
    with pytest.warns(FarPointWarning, match=r"1 of 2 rows of X, the first of them row 1"):
        Y = model.transform(np.vstack([X[:1], X[:1] + 1e6]).astype(dtype))
    assert np.isfinite(Y).all()
    np.testing.assert_allclose(Y[0], model.embedding_[0], rtol=1e-4)


def test_batches_do_not_matter(monkeypatch):
    X, new = cloud(60), cloud(50, seed=3)
    model = HeatSketch(4, n_neighbors=7).fit(X)
    whole = model.transform(new)
    monkeypatch.setattr("heatsketch.estimators._base.TRANSFORM_ENTRIES", 60 * 7)
    np.testing.assert_array_equal(model.transform(new), whole)


# --- what dask holds ------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_new_points_that_dask_holds_are_like_others(n_neighbors):
    X, new = cloud(90), cloud(30, seed=1)
    model = HeatSketch(8, power=4, n_neighbors=n_neighbors, epsilon=2.0).fit(X)
    lazy = da.from_array(new, chunks=(7, 2))
    np.testing.assert_array_equal(model.transform(lazy), model.transform(new))
    single = da.from_array(new.astype(np.float32), chunks=(30, 3))
    np.testing.assert_array_equal(model.transform(single), model.transform(new.astype(np.float32)))


@pytest.mark.parametrize(
    ("lazy", "says"),
    [
        (da.ones((5, 2)), "X has 2 features"),
        (da.ones((5, 64)), "X has 64 features"),
        (da.ones(3), "shape"),
        (da.ones((0, 3)), "shape"),
        (da.ones((5, 3))[da.arange(5) > 2], "compute_chunk_sizes"),
        (da.ones((5, 3), dtype=complex), "Complex"),
        (da.from_array(np.full((5, 3), "1")), "not a number"),
        (da.from_array(np.array([[0, 0, 0], [0, np.inf, 0]])), "row 1, column 1"),
    ],
)
def test_new_points_that_dask_holds_are_looked_at_like_others(lazy, says):
    model = HeatSketch(8, power=4, epsilon=2.0).fit(cloud(90))
    with pytest.raises(ValueError, match=says):
        model.transform(lazy)
    assert model.n_features_in_ == 3
