"""The paper's point sets lie where they should, uniformly."""

import numpy as np
import pytest
from registry import SEEDS
from scipy import stats

from paper import datasets


@pytest.mark.parametrize("seed", SEEDS)
def test_circles_are_uniform(seed):
    for X in (
        datasets.circle(5000, seed=seed),
        datasets.stretched_torus(5000, seed=seed)[:, :2],
        datasets.stretched_torus(5000, seed=seed)[:, 2:] / 3.5,
    ):
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-14)
        turns = np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi) % 1
        assert stats.kstest(turns, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("seed", SEEDS)
def test_klein_bottle_has_its_parametrization(seed):
    X = datasets.klein_bottle(3000, seed=seed)
    u = np.arctan2(X[:, 1], X[:, 0]) % (2 * np.pi)
    distance = np.hypot(X[:, 0], X[:, 1])
    cos_v = (distance - 10) / 5
    sin_v = (X[:, 2] * np.cos(u / 2) + X[:, 3] * np.sin(u / 2)) / 5
    np.testing.assert_allclose(cos_v**2 + sin_v**2, 1, rtol=1e-9)
    np.testing.assert_allclose(X[:, 2], 5 * sin_v * np.cos(u / 2), atol=1e-9)
    np.testing.assert_allclose(X[:, 3], 5 * sin_v * np.sin(u / 2), atol=1e-9)
    for angle in (u, np.arctan2(sin_v, cos_v)):
        assert stats.kstest(angle / (2 * np.pi) % 1, "uniform").pvalue > 1e-4


def test_outliers_come_last():
    X = datasets.circle_with_outliers(200, seed=0)
    np.testing.assert_array_equal(X[:-2], datasets.circle(198, seed=0))
    np.testing.assert_array_equal(X[-2:], [[0, 3], [3, 0]])


@pytest.mark.parametrize("seed", SEEDS)
def test_clouds_have_their_centers(seed):
    X = datasets.gaussian_clouds(6000, seed=seed)
    centers = np.array([X[i::3].mean(axis=0) for i in range(3)])
    gaps = np.linalg.norm(centers[:, np.newaxis] - centers, axis=2)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(gaps, 4, atol=0.2)
