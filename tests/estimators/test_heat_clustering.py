"""Clusters from one fit: laws of the estimator."""

import pickle

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import FOR_ALL

from heatsketch import DiffusionMap, HeatClustering, HeatSketch
from heatsketch.diffusion import heat_operator, symmetric_scaling
from heatsketch.diffusion._clusters import cluster_rows, cluster_vectors
from heatsketch.exceptions import HeatSketchError

IGNORED = (
    "ignore::heatsketch.exceptions.HeatSketchWarning",
    "ignore:X (has|does not have valid) feature names:UserWarning",
    "ignore:Number of distinct clusters",
)


@pytest.mark.filterwarnings(*IGNORED)
@parametrize_with_checks([HeatClustering()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings(*IGNORED)
@pytest.mark.parametrize("check", FOR_ALL, ids=lambda check: check.__name__)
def test_check_that_scikit_learn_does_not_generate(check):
    check("HeatClustering", HeatClustering(2))


MODELS = {
    "default": (None, np.asarray),
    "float32": (None, lambda X: X.astype("float32")),
    "sparse": (None, lambda X: sparse.csr_array(np.maximum(X, 0.1))),
    "few components": (HeatSketch(4, power=2), np.asarray),
    "all pairs": (HeatSketch(n_neighbors=None), np.asarray),
    "map": (DiffusionMap(3, n_neighbors=9), np.asarray),
    "bistochastic": (HeatSketch(32, normalization="bistochastic"), np.asarray),
    "given graph": (
        HeatSketch(4, affinity="precomputed"),
        lambda X: sparse.csr_array(np.round(np.exp(-pairwise_distances(X)), 1)),
    ),
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", SEEDS)
def test_training_points_keep_their_clusters(seed, model):
    graph, shape = MODELS[model]
    X = cloud(150, seed=seed)
    X[100:] = X[np.random.default_rng(seed).integers(0, 20, 50)]  # copies share rows
    X = shape(X)
    clusters = HeatClustering(4, graph).fit(X)
    np.testing.assert_array_equal(clusters.predict(X), clusters.labels_)
    few = np.arange(3, 150, 7)
    if "given" not in model:
        np.testing.assert_array_equal(clusters.predict(X[few]), clusters.labels_[few])


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("points", [make_moons, make_circles])
@pytest.mark.parametrize("noise", [0.02, 0.06])
def test_curves_are_told_apart(points, noise):
    """Connected or not: with little noise the graph has two components."""
    options = {"factor": 0.4} if points is make_circles else {}
    X, truth = points(400, noise=noise, random_state=0, **options)
    clusters = HeatClustering(2).fit(X[:300])
    assert adjusted_rand_score(truth[:300], clusters.labels_) > 0.98
    assert adjusted_rand_score(truth[300:], clusters.predict(X[300:])) > 0.95


def test_digits_are_found_better_than_by_spectral_clustering():
    """The adjusted Rand index of scikit-learn's SpectralClustering is .755."""
    X, truth = load_digits(return_X_y=True)
    assert adjusted_rand_score(truth, HeatClustering(10).fit_predict(X)) > 0.8


def test_a_fitted_model_serves_as_a_new_one_does():
    X = cloud(200)
    model = HeatSketch().fit(X)
    fresh = HeatClustering(5).fit(X)
    for clusters in (HeatClustering(5, model).fit(X), HeatClustering(5, model).fit(None)):
        np.testing.assert_array_equal(clusters.labels_, fresh.labels_)
        assert clusters.n_features_in_ == 3
    assert not hasattr(clone(clusters).model, "embedding_")
    again = pickle.loads(pickle.dumps(clusters))
    np.testing.assert_array_equal(again.predict(X[:50]), fresh.labels_[:50])


def test_rows_are_those_of_dense_eigenvectors():
    K = np.exp(-(pairwise_distances(circle(60)) ** 2) / 0.05)
    A = heat_operator(K, symmetric_scaling(K))
    values, vectors = np.linalg.eigh(A @ np.eye(60))
    start = np.random.default_rng(0).standard_normal((60, 40))
    found = cluster_rows(A, cluster_vectors(A, start, 3), np.sqrt(A.squared_length))
    wanted = vectors[:, -5:] * values[-5:]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-3)


@pytest.mark.parametrize("n_clusters", [13, 12])
def test_no_more_clusters_than_points(n_clusters):
    X = cloud(12)
    if n_clusters == 12:
        assert sorted(HeatClustering(12).fit_predict(X)) == list(range(12))
        return
    with pytest.raises(HeatSketchError, match="n_clusters=13 is more than the n_samples=12 poi"):
        HeatClustering(n_clusters).fit(X)


def test_a_model_of_other_rows_is_an_error():
    X = cloud(60)
    with pytest.raises(HeatSketchError, match="was fitted to other rows"):
        HeatClustering(2, HeatSketch(4).fit(X)).fit(X[1:])
