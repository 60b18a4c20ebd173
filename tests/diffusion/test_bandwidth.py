"""The bandwidth of the kernel, and the dimension that it sees."""

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy import sparse
from sklearn.datasets import make_swiss_roll

from heatsketch.diffusion import _bandwidth as bandwidth
from heatsketch.diffusion import estimate_epsilon
from heatsketch.diffusion._bandwidth import sampled_squares
from heatsketch.graph import neighbor_graph
from heatsketch.graph._metrics import METRICS
from heatsketch.graph._neighbors import squared_distances
from paper import datasets


def estimate(X):
    return estimate_epsilon(X, metric="euclidean")


# --- the dimension --------------------------------------------------------------------------

MANIFOLDS = {
    "circle": (datasets.circle, 1),
    "regular circle": (circle, 1),
    "torus": (datasets.stretched_torus, 2),
    "round torus": (lambda n, seed: datasets.stretched_torus(n, seed=seed, stretch=1), 2),
    "Klein bottle": (datasets.klein_bottle, 2),
    "swiss roll": (lambda n, seed: make_swiss_roll(n, random_state=seed)[0], 2),
    "square": (lambda n, seed: np.random.default_rng(seed).uniform(size=(n, 2)), 2),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_points", [400, 1500])
@pytest.mark.parametrize("name", MANIFOLDS)
def test_the_dimension_is_found_within_a_fifth(name, n_points, seed):
    sampler, dimension = MANIFOLDS[name]
    assert abs(estimate(sampler(n_points, seed=seed)).dimension / dimension - 1) <= 0.2


# --- robustness -----------------------------------------------------------------------------

CIRCLE = datasets.circle(400, seed=0)
ODDITIES = {
    "an outlier": lambda X: np.vstack([X, [[1000.0, 0.0]]]),
    "ten outliers": lambda X: np.vstack([X, 100 * cloud(10, 2)]),
    "a second circle, far away": lambda X: np.vstack([X, X + 100]),
    "some points twice": lambda X: np.vstack([X, X[:100]]),
    "points almost twice": lambda X: np.vstack([X, X + 1e-6 * cloud(400, 2)]),
    "one point a hundred times": lambda X: np.vstack([X, np.repeat(X[:1], 100, axis=0)]),
}


@pytest.mark.parametrize("name", ODDITIES)
def test_oddities_hardly_change_the_bandwidth(name):
    wanted, found = estimate(CIRCLE), estimate(ODDITIES[name](CIRCLE))
    assert abs(np.log(found.epsilon / wanted.epsilon)) <= np.log(1.5)
    assert abs(found.dimension - wanted.dimension) <= 0.1


# --- invariances ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MANIFOLDS)
def test_the_bandwidth_scales_with_the_square_of_the_points(name):
    d2 = neighbor_graph(MANIFOLDS[name][0](200, seed=0))
    wanted, found = estimate_epsilon(d2), estimate_epsilon(9 * d2)
    np.testing.assert_allclose(found.epsilon, 9 * wanted.epsilon, rtol=1e-9)
    np.testing.assert_allclose(found.dimension, wanted.dimension, rtol=1e-4)  # bins are rounded


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rows_at_a_time", [7, 1000])
def test_the_curve_is_the_mean_slope_of_kernel_sums(rows_at_a_time, form, monkeypatch):
    monkeypatch.setattr(bandwidth, "ROWS_AT_A_TIME", rows_at_a_time)
    d2 = neighbor_graph(cloud(60))
    if form is not np.asarray:
        d2[d2 > np.quantile(d2, 0.6)] = 0  # rows of different lengths
    given = form(d2)
    found = estimate_epsilon(given)
    links = (d2 > 0) | np.eye(60, dtype=bool) if sparse.issparse(given) else np.ones((60, 60))
    scaled = d2 / found.epsilons[:, np.newaxis, np.newaxis]
    affinities = links * np.exp(-scaled)
    slopes = (affinities * scaled).sum(axis=2) / affinities.sum(axis=2)
    np.testing.assert_allclose(found.dimensions, 2 * slopes.mean(axis=1), rtol=0.02, atol=1e-3)


# --- points, and samples of them ------------------------------------------------------------


CURVES = {  # heights, where the highest peak begins, where its last maximum is
    "one peak": ([0, 8, 10, 8, 0], 1, 2),
    "two maxima": ([0, 8, 9, 8, 10, 9, 0], 1, 4),
    "noise, then the signal": ([0, 8, 10, 8, 9, 8, 0], 1, 4),
    "another peak": ([0, 0, 8, 10, 1, 0, 8, 9, 0], 2, 3),
    "decreasing": ([10, 9, 0, 1, 0], 0, 0),
    "increasing": ([0, 1, 0, 9, 10], 3, 4),
    "constant": ([5, 5, 5], 0, 0),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_peak_is_the_last_maximum_of_the_highest_one(name):
    heights, first, peak = CURVES[name]
    assert bandwidth._peak(np.array(heights, float)) == (first, peak)


def half(x, y):
    return np.abs(x - y).sum() / 2


@pytest.mark.parametrize("metric", [*METRICS, half])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_few_points_are_all_used(metric, dtype):
    X = np.maximum(10 * cloud(60, 6), 0).astype(dtype)
    X[:, 0] += 1  # no row of zeros
    d2 = squared_distances(X, X, metric=metric)
    np.testing.assert_array_equal(sampled_squares(X, metric=metric, keys=np.arange(60)), d2)
    assert estimate_epsilon(X, metric=metric)[:2] == estimate_epsilon(d2)[:2]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_distances_may_be_given(form):
    X = form(np.sqrt(neighbor_graph(cloud(60))))
    found = estimate_epsilon(X, metric="precomputed")
    np.testing.assert_allclose(found[:2], estimate(cloud(60))[:2], rtol=1e-9)


def test_a_sample_will_do():
    X = datasets.klein_bottle(4000, seed=0)
    few, all_of_them = estimate(X), estimate_epsilon(neighbor_graph(X))
    assert few[:2] == estimate(X)[:2]  # always the same sample
    np.testing.assert_allclose(few.epsilon, all_of_them.epsilon, rtol=0.1)
    np.testing.assert_allclose(few.dimension, all_of_them.dimension, rtol=0.02)
