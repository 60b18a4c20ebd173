"""The paper's point sets lie where they should, uniformly."""

import numpy as np
import pytest
from registry import SEEDS
from scipy import stats

from heatsketch import datasets
from heatsketch.exceptions import DtypeError, HeatSketchError


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
def test_the_klein_bottle_has_its_parametrization(seed):
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


def test_another_seed_gives_other_points():
    assert abs(datasets.circle(50, seed=0) - datasets.circle(50, seed=1)).max() > 0.1


SETS = [getattr(datasets, name) for name in datasets.__all__]


@pytest.mark.parametrize("points", SETS)
def test_integers_of_numpy_are_integers(points):
    wanted = points(200, seed=3)
    for number in (np.int64, np.uint8):
        np.testing.assert_array_equal(points(number(200), seed=number(3)), wanted)


@pytest.mark.parametrize("points", SETS)
def test_numbers_of_points_and_seeds_are_whole(points):
    for options in ({"n_points": 20.5}, {"n_points": True}, {"seed": 3.5}, {"seed": None}):
        ((name, value),) = options.items()
        with pytest.raises(DtypeError, match=rf"{name}={value} must be an integer of at least"):
            points(**{"n_points": 20, "seed": 0} | options)
    for name in ("n_points", "seed"):
        with pytest.raises(HeatSketchError, match=rf"{name}=-1 must be an integer of at least \d"):
            points(**{"n_points": 20, "seed": 0, name: -1})


def test_a_circle_with_outliers_has_two_points_for_them():
    with pytest.raises(HeatSketchError, match=r"n_points=1 must be an integer of at least 2"):
        datasets.circle_with_outliers(np.uint8(1), seed=0)


def test_clouds_have_a_dimension():
    with pytest.raises(HeatSketchError, match=r"dimension=0 must be an integer of at least 1"):
        datasets.gaussian_clouds(20, seed=0, dimension=0)
