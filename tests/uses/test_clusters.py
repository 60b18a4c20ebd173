"""The parts of HeatClustering: eigenvectors against dense ones, centres against the rows."""

import numpy as np
import pytest
from registry import cloud, graph_of

from heatsketch.uses import _clusters as module
from heatsketch.uses._clusters import cluster_centers, cluster_vectors


@pytest.mark.parametrize("n_clusters", [1, 3])
@pytest.mark.parametrize("n_neighbors", [None, 30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cluster_vectors_are_the_leading_eigenvectors(n_clusters, n_neighbors, dtype):
    graph = graph_of(cloud(80, 2).astype(dtype), 0.5, n_neighbors)
    found = cluster_vectors(graph, n_clusters)
    assert found.shape == (80, n_clusters + 1)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    wanted = np.linalg.eigh(graph.operator @ np.eye(80, dtype=dtype))[1][:, ::-1]
    products = np.sum(wanted[:, 1 : n_clusters + 2] * found, axis=0)
    np.testing.assert_allclose(np.abs(products), 1, atol=1e-3)
    np.testing.assert_array_equal(found, cluster_vectors(graph, n_clusters))


def test_centres_come_from_some_rows_which_the_seed_chooses(monkeypatch):
    """With as many clusters as rows that are taken, centres are these rows."""
    monkeypatch.setattr(module, "KMEANS_ROWS", 20)
    rows = np.arange(60.0)[:, np.newaxis] ** 2
    seeds = [0, 1, 2**32 + 1]
    taken = [np.sort(cluster_centers(rows, 20, seed).ravel()) for seed in seeds]
    for some in taken:
        assert len(np.unique(some)) == 20
        assert np.isin(some, rows).all()
    assert not np.array_equal(taken[0], taken[1])
    np.testing.assert_array_equal(np.sort(cluster_centers(rows, 20, 1).ravel()), taken[1])
    all_rows = np.sort(cluster_centers(rows[:20], 20, 0).ravel())
    np.testing.assert_array_equal(all_rows, rows[:20, 0])
