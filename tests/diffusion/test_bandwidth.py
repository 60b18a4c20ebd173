"""The bandwidth of the kernel, and the dimension that it sees."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy import sparse
from sklearn.datasets import load_digits, make_swiss_roll

from heatsketch import HeatSketch, datasets
from heatsketch.diffusion import _bandwidth as bandwidth
from heatsketch.diffusion import estimate_epsilon
from heatsketch.diffusion._bandwidth import FOOT, _hill, sampled_squares
from heatsketch.exceptions import (
    AffinityError,
    DegenerateKernelError,
    HeatSketchError,
    MissingValueError,
)
from heatsketch.graph import neighbor_graph
from heatsketch.graph._metrics import METRICS
from heatsketch.graph._neighbors import squared_distances
from heatsketch.reproduction import CATALOGUE, run_trial
from heatsketch.reproduction.runner import sample


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


def test_a_grid_has_its_dimension():
    line = np.arange(40.0)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    assert abs(estimate(line[:, np.newaxis]).dimension - 1) <= 0.1
    assert abs(estimate(grid).dimension - 2) <= 0.2


def test_digits_have_more_than_two_dimensions_and_far_fewer_than_pixels():
    assert 3 < estimate(load_digits().data).dimension < 12


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05])
def test_noise_does_not_hide_the_dimension(noise, seed):
    X = datasets.circle(500, seed=seed)
    assert abs(estimate(X + noise * cloud(500, 2, seed)).dimension - 1) <= 0.2


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


@pytest.mark.parametrize("n_clouds", [2, 3, 10])
def test_clouds_far_apart_have_the_bandwidth_of_one(n_clouds):
    X = cloud(40 * n_clouds, 2)
    apart = X + 100 * cloud(n_clouds, 2, seed=1).repeat(40, axis=0)
    assert 1 / 3 < estimate(apart).epsilon / estimate(X[:40]).epsilon < 3


def test_a_kernel_does_not_reach_from_sheet_to_sheet():
    X = make_swiss_roll(1500, random_state=0)[0]
    assert (
        np.exp(-((2 * np.pi) ** 2) / estimate(X).epsilon) < 0.1
    )  # the roll's turns are 2 pi apart


# --- invariances ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MANIFOLDS)
def test_the_bandwidth_scales_with_the_square_of_the_points(name):
    d2 = neighbor_graph(MANIFOLDS[name][0](200, seed=0))
    wanted, found = estimate_epsilon(d2), estimate_epsilon(9 * d2)
    np.testing.assert_allclose(found.epsilon, 9 * wanted.epsilon, rtol=1e-9)
    np.testing.assert_allclose(found.dimension, wanted.dimension, rtol=1e-4)  # bins are rounded


def test_two_of_every_point_change_nothing():
    wanted, found = estimate(CIRCLE), estimate(np.vstack([CIRCLE, CIRCLE]))
    np.testing.assert_allclose(found[:2], wanted[:2], rtol=1e-9)


def test_the_order_of_the_distances_does_not_matter():
    d2 = neighbor_graph(cloud(200))
    rng = np.random.default_rng(0)
    found = estimate_epsilon(d2[rng.permutation(200)][:, rng.permutation(200)])
    for one, other in zip(found, estimate_epsilon(d2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_graph_may_leave_out_the_zeros_of_its_diagonal():
    stored = neighbor_graph(cloud(100), n_neighbors=100)
    without = sparse.csr_array(neighbor_graph(cloud(100)))
    assert without.nnz == stored.nnz - 100
    assert estimate_epsilon(without)[:2] == estimate_epsilon(stored)[:2]
    assert estimate_epsilon(stored)[:2] == estimate_epsilon(neighbor_graph(cloud(100)))[:2]


def test_the_curve_is_low_at_both_ends():
    epsilon, dimension, epsilons, dimensions = estimate(CIRCLE)
    assert epsilons[0] < epsilon < epsilons[-1]
    assert max(dimensions[0], dimensions[-1]) < 0.1 < dimension <= dimensions.max()


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


HILLS = {  # heights, where the highest hill begins, where its last rise ends
    "one peak": ([0, 8, 10, 8, 0], 1, 2),
    "two peaks": ([0, 8, 9, 8, 10, 9, 0], 1, 4),
    "noise, then the signal": ([0, 8, 10, 8, 9, 8, 0], 1, 4),
    "another hill": ([0, 0, 8, 10, 1, 0, 8, 9, 0], 2, 3),
    "as high as its foot": ([0, 10, 10 * FOOT, 8, 0], 1, 3),
    "downhill": ([10, 9, 0, 1, 0], 0, 0),
    "uphill": ([0, 1, 0, 9, 10], 3, 4),
    "a plain": ([5, 5, 5], 0, 0),
}


@pytest.mark.parametrize("name", HILLS)
def test_a_peak_is_the_last_of_the_highest_hill(name):
    heights, first, peak = HILLS[name]
    assert _hill(np.array(heights, float)) == (first, peak)


# --- points, and samples of them ------------------------------------------------------------


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


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_points_are_points(metric):
    X = np.maximum(cloud(60, 8), 0)
    X[:, 0] += 1
    found = estimate_epsilon(sparse.csr_array(X), metric=metric)
    np.testing.assert_allclose(found[:2], estimate_epsilon(X, metric=metric)[:2], rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_distances_may_be_given(form):
    X = form(np.sqrt(neighbor_graph(cloud(60))))
    found = estimate_epsilon(X, metric="precomputed")
    np.testing.assert_allclose(found[:2], estimate(cloud(60))[:2], rtol=1e-9)


def test_of_many_rows_every_fourth_is_used(monkeypatch):
    monkeypatch.setattr(bandwidth, "MOST_ROWS", 30)
    d2 = neighbor_graph(cloud(100))[:, :20]
    for form in (np.asarray, sparse.csr_array):
        found, wanted = estimate_epsilon(form(d2)), estimate_epsilon(form(d2[::4]))
        assert found[:2] == wanted[:2]


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(bandwidth, "EPSILON_POINTS", 100)
    monkeypatch.setattr(bandwidth, "EPSILON_ENTRIES", 3000)
    monkeypatch.setattr(bandwidth, "CHUNK_ENTRIES", 700)


@pytest.mark.usefixtures("small_samples")
def test_of_many_points_those_with_the_smallest_lots_are_drawn():
    X, keys = cloud(400), np.random.default_rng(0).random(400)
    drawn = np.argsort(keys)
    d2 = sampled_squares(X, metric="euclidean", keys=keys)
    wanted = squared_distances(X[np.sort(drawn[:30])], X[np.sort(drawn[:100])])
    np.testing.assert_array_equal(d2, wanted)
    assert (d2 == 0).any(axis=1).all()  # each is among those that distances are taken to


@pytest.mark.usefixtures("small_samples")
def test_the_order_of_the_points_does_not_matter_to_a_sample():
    X, keys = cloud(400), np.random.default_rng(0).random(400)
    order = np.random.default_rng(1).permutation(400)
    d2 = sampled_squares(X, metric="euclidean", keys=keys)
    shuffled = sampled_squares(X[order], metric="euclidean", keys=keys[order])
    found, wanted = estimate_epsilon(shuffled), estimate_epsilon(d2)
    np.testing.assert_allclose(found[:2], wanted[:2], rtol=1e-12)


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_of_many_distances_some_rows_are_drawn(form):
    distances, keys = (
        np.sqrt(neighbor_graph(cloud(400))),
        np.random.default_rng(0).random(400),
    )
    d2 = sampled_squares(form(distances), metric="precomputed", keys=keys)
    assert type(d2) is type(form(distances))
    found = d2.toarray() if sparse.issparse(d2) else d2
    np.testing.assert_array_equal(found, distances[np.sort(np.argsort(keys)[:30])] ** 2)


def test_a_sample_will_do():
    X = datasets.klein_bottle(4000, seed=0)
    few, all_of_them = estimate(X), estimate_epsilon(neighbor_graph(X))
    assert few[:2] == estimate(X)[:2]  # always the same sample
    np.testing.assert_allclose(few.epsilon, all_of_them.epsilon, rtol=0.1)
    np.testing.assert_allclose(few.dimension, all_of_them.dimension, rtol=0.02)


def test_the_bandwidth_does_not_depend_on_how_many_neighbors_are_kept():
    X = cloud(200)
    few, many = (HeatSketch(epsilon="auto", n_neighbors=n).fit(X).epsilon_ for n in (10, None))
    assert few == many


# --- errors ---------------------------------------------------------------------------------


def test_equal_points_have_no_bandwidth():
    with pytest.raises(DegenerateKernelError, match=r"X of shape \(5, 5\).*give epsilon"):
        estimate_epsilon(np.zeros((5, 5)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_distance_is_rejected(value):
    d2 = neighbor_graph(cloud(5))
    d2[1, 2] = value
    with pytest.raises(MissingValueError, match=f"X gives {value}.* 1 such values of 25; correct"):
        estimate_epsilon(d2)
    with pytest.raises(MissingValueError, match=r"X gives .*metric if it is your own"):
        estimate_epsilon(cloud(5), metric=lambda x, y: value)


def test_a_missing_coordinate_is_rejected_by_its_place():
    X = cloud(20)
    X[3, 1] = np.nan
    for form in (np.asarray, sparse.csr_array, sparse.coo_array):
        with pytest.raises(MissingValueError, match=r"X contains NaN in row 3, column 1, .*; fill"):
            estimate_epsilon(form(X), metric="euclidean")


@pytest.mark.parametrize("metric", [None, "precomputed"])
def test_what_is_no_distance_is_rejected(metric):
    d2 = neighbor_graph(cloud(20))
    for form in (d2, sparse.csr_array(d2)):
        form[3, 1] = -1
        with pytest.raises(AffinityError, match=f"metric={metric!r}: X holds -1, .*; correct X"):
            estimate_epsilon(form, metric=metric)
    graph = neighbor_graph(cloud(20), n_neighbors=5)
    for form in (graph.tobsr((2, 2)), graph.todia()):
        with pytest.raises(AffinityError, match=r"X is in (BSR|DIA) format, .*; give the CSR"):
            estimate_epsilon(form, metric=metric)


@pytest.mark.parametrize(
    ("dtype", "becomes"), [("f2", "f8"), (">f4", "f4"), (">f8", "f8"), (np.longdouble, "f8")]
)
def test_numbers_of_any_width_have_a_bandwidth(dtype, becomes):
    X = cloud(40).astype(dtype)
    assert estimate(X)[:2] == estimate(X.astype(becomes))[:2]
    d2 = neighbor_graph(X).astype(dtype)
    assert estimate_epsilon(d2)[:2] == estimate_epsilon(d2.astype(becomes))[:2]


def test_numbers_in_a_row_are_not_points():
    with pytest.raises(HeatSketchError, match=r"X of shape \(5,\) .*use X.reshape\(-1, 1\)"):
        estimate(np.arange(5.0))


def test_an_unknown_metric_is_rejected():
    with pytest.raises(HeatSketchError, match=r"metric='crow' is unknown; use one of"):
        estimate_epsilon(cloud(5), metric="crow")


def test_a_point_without_a_direction_is_rejected():
    with pytest.raises(AffinityError, match=r"row 0 of X, which is all zeros; drop"):
        estimate_epsilon(np.eye(5) - np.eye(5)[0], metric="cosine")


# --- what it is for -------------------------------------------------------------------------


def mean_log_distortion(name, number, epsilon):
    """Run a trial with another epsilon, on the same points and with the same random block."""
    with patch.dict(CATALOGUE, {name: replace(CATALOGUE[name], epsilon=epsilon)}):
        return np.mean(list(run_trial(name, number, seed=0).log_L.values()))


@pytest.mark.parametrize("name", ["circle", "outliers", "clouds", "multiscale-circle"])
def test_distortion_is_about_that_of_the_epsilon_of_the_paper(name):
    """The other experiments, and more trials, are in benchmarks/epsilon.py."""
    found = wanted = 0.0
    for number in range(4):
        chosen = estimate(sample(name, number, seed=0)[0]).epsilon
        found += mean_log_distortion(name, number, chosen)
        wanted += mean_log_distortion(name, number, CATALOGUE[name].epsilon)
    assert found <= 1.15 * wanted
