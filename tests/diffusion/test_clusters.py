"""The parts of HeatClustering: eigenvectors against dense ones, centres against the rows."""

import numpy as np
import pytest
from registry import affinity, cloud

from heatsketch.diffusion import _clusters as module
from heatsketch.diffusion import heat_operator, symmetric_scaling
from heatsketch.diffusion._clusters import cluster_centers, cluster_vectors, nearest_centers


def operator_of(n_points, dtype="float64"):
    K = affinity(cloud(n_points, 2).astype(dtype), 0.5)
    return heat_operator(K, symmetric_scaling(K))


@pytest.mark.parametrize("width", [1, 12, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_are_the_leading_ones_whatever_the_search_starts_from(width, dtype):
    A = operator_of(80, dtype)
    block = np.random.default_rng(1).normal(size=(80, width)).astype(dtype)
    found = cluster_vectors(A, block, 3)
    assert found.shape == (80, 4)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    wanted = np.linalg.eigh(A @ np.eye(80, dtype=dtype))[1][:, ::-1][:, 1:5]
    np.testing.assert_allclose(np.abs(np.sum(wanted * found, axis=0)), 1, atol=1e-3)
    np.testing.assert_array_equal(found, cluster_vectors(A, block, 3))


def test_there_are_no_more_vectors_than_rows():
    A = operator_of(6)
    assert cluster_vectors(A, np.ones((6, 1)), 6).shape == (6, 5)


def test_centres_are_found_from_some_rows_which_the_seed_chooses(monkeypatch):
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


@pytest.mark.parametrize("entries", [1, 12, 100, 2**22])
def test_chunks_change_no_nearest_centre(monkeypatch, entries):
    monkeypatch.setattr(module, "ENTRIES", entries)
    rows, centers = cloud(50, 3), cloud(4, 3, seed=9)
    distances = np.linalg.norm(rows[:, np.newaxis] - centers, axis=2)
    np.testing.assert_array_equal(nearest_centers(rows, centers), distances.argmin(axis=1))
