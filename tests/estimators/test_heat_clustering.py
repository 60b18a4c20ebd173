"""Clusters from one fit: laws of the estimator."""

import numpy as np
import pytest
from registry import circle
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances

from heatsketch import HeatClustering, HeatGraph
from heatsketch.uses._clusters import cluster_rows, cluster_vectors


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


def test_rows_are_those_of_dense_eigenvectors():
    K = np.exp(-(pairwise_distances(circle(60)) ** 2) / 0.05)
    graph = HeatGraph.from_affinity(K, normalization="symmetric")
    values, vectors = np.linalg.eigh(graph.operator @ np.eye(60))
    found = cluster_rows(graph.operator, cluster_vectors(graph, 3), graph.stationary_length)
    wanted = vectors[:, -5:] * values[-5:]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-3)
