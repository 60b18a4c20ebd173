"""Smoothing over a graph: laws of the walk, and of the choice of its time."""

import numpy as np
import pytest
from checks import tolerance
from registry import SEEDS, circle, cloud, graph_of
from scipy import sparse

from heatsketch import HeatGraph, smooth
from heatsketch.exceptions import HeatSketchWarning
from heatsketch.uses import _smooth as module

VALUES = np.random.default_rng(5).normal(size=(80, 7))
GRAPHS = {
    "default": {},
    "bistochastic": {"normalization": "bistochastic"},
    "all pairs": {"n_neighbors": None},
}


def dense_walk(graph):
    """Return the random walk in the order of X, from the operator alone."""
    A, n_rows = graph.operator, graph.n_samples
    matrix, v = A @ np.eye(n_rows, dtype=A.dtype), A.stationary
    walk = np.empty((n_rows, n_rows))
    walk[np.ix_(graph.order, graph.order)] = matrix * v / v[:, np.newaxis]
    return walk


def shuffled_graph(**options):
    ids = np.random.default_rng(0).permutation(80)
    return HeatGraph.from_points(cloud(80)[::-1], ids=ids, **options)


@pytest.mark.parametrize("options", GRAPHS)
@pytest.mark.parametrize("time", [0, 1, 5])
def test_it_is_a_power_of_the_random_walk(options, time):
    graph = shuffled_graph(**GRAPHS[options])
    wanted = np.linalg.matrix_power(dense_walk(graph), time) @ VALUES
    found = smooth(graph, VALUES, time=time)
    np.testing.assert_allclose(found.values, wanted, atol=1e-12)
    assert found.time == time
    assert not len(found.times)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_stay_within_what_was_given_and_constants_stay(seed):
    graph = HeatGraph.from_points(cloud(80, seed=seed))
    found = smooth(graph, np.hstack([VALUES, np.full((80, 1), 3.0)]), time=9).values
    assert (found[:, :-1].max(axis=0) <= VALUES.max(axis=0)).all()
    assert (found[:, :-1].min(axis=0) >= VALUES.min(axis=0)).all()
    np.testing.assert_allclose(found[:, -1], 3, rtol=1e-10)
    # The mean by the stationary distribution is what a walk keeps.
    weights = graph.operator.stationary[np.argsort(graph.order)] ** 2
    np.testing.assert_allclose(weights @ found[:, :-1], weights @ VALUES, atol=1e-10)


def test_steps_add_up_and_copies_of_points_are_points():
    X = cloud(80)
    X[30:] = X[np.random.default_rng(0).integers(0, 10, 50)]
    graph = HeatGraph.from_points(X, n_neighbors=20)
    twice = smooth(graph, smooth(graph, VALUES, time=2).values, time=3).values
    np.testing.assert_allclose(twice, smooth(graph, VALUES, time=5).values, atol=1e-12)


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_matrix, np.asarray, np.asfortranarray]
)
@pytest.mark.parametrize("width", [1, 3, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_and_formats_change_nothing(monkeypatch, form, width, dtype):
    monkeypatch.setattr(module, "CHUNK_BYTES", width * 80 * np.dtype(dtype).itemsize)
    graph = HeatGraph.from_points(cloud(80).astype(dtype))
    counts = np.random.default_rng(0).poisson(1.0, (80, 7))
    plain = np.linalg.matrix_power(dense_walk(graph), 4) @ counts
    found = smooth(graph, form(counts), time=4).values
    assert found.dtype == dtype
    np.testing.assert_allclose(found, plain, atol=20 * tolerance(dtype))
    out = np.full((80, 7), np.nan, dtype)
    assert smooth(graph, form(counts), time=4, out=out).values is out
    np.testing.assert_array_equal(out, found)


NOISE = {
    "counts": lambda rng, truth: rng.poisson(truth),
    "overdispersed counts": lambda rng, truth: rng.negative_binomial(
        1 / 0.3, 1 / (1 + 0.3 * 10 * truth)
    ),  # of mean 10 and dispersion 0.3
    "numbers": lambda rng, truth: truth + rng.normal(0, 1, truth.shape),
}


def noisy_circle(kind, seed, n=400, n_columns=30):
    """Return a graph, values without noise and values with noise."""
    graph = graph_of(circle(n, seed), 0.01, 15)
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)[:, np.newaxis]
    rng = np.random.default_rng(seed)
    phases, waves = rng.uniform(0, 6, n_columns), rng.integers(1, 4, n_columns)
    truth = 1 + 0.8 * np.cos(angle * waves + phases)
    return graph, truth, NOISE[kind](rng, truth)


def median_correlation(found, truth):
    return np.median([np.corrcoef(x, y)[0, 1] for x, y in zip(found.T, truth.T, strict=True)])


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_chosen_time_is_nearly_the_best(kind, seed):
    graph, truth, noisy = noisy_circle(kind, seed)
    found = smooth(graph, noisy)
    by_time = [median_correlation(smooth(graph, noisy, time=t).values, truth) for t in found.times]
    assert median_correlation(found.values, truth) > max(by_time) - 0.005
    assert max(by_time) > by_time[0] + 0.1  # or else any time would do
    assert found.time >= found.times[found.scores.argmax()]


@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_neighbours_do_not_predict_stay_with_a_warning(seed):
    graph, _, _ = noisy_circle("numbers", seed)
    noise = np.random.default_rng(seed).negative_binomial(2, 0.2, (400, 10))
    with pytest.warns(HeatSketchWarning, match="time='auto'") as log:
        found = smooth(graph, noise)
    assert log[0].filename == __file__
    assert found.time == 0
    np.testing.assert_array_equal(found.values, noise)


def test_one_noisy_column_is_smoothed():
    """Only the correlation over all folds is above chance."""
    graph, _, noisy = noisy_circle("numbers", 0, 300, 20)
    assert min(smooth(graph, column).time for column in noisy.T) > 0


@pytest.mark.parametrize("kind", ["counts", "numbers"])
def test_how_deep_rows_are_measured_does_not_shorten_the_time(kind):
    graph, truth, _ = noisy_circle("counts", 0, n_columns=40)
    rng = np.random.default_rng(0)
    depths = rng.lognormal(0, 0.7, (len(truth), 1))
    values = rng.poisson(truth * depths)
    if kind == "numbers":
        values = truth * depths + rng.normal(0, np.sqrt(depths), truth.shape)
    found = smooth(graph, values, sizes=depths[:, 0])
    by_time = [
        median_correlation(smooth(graph, values, time=t, sizes=depths[:, 0]).values, truth)
        for t in found.times
    ]
    assert median_correlation(found.values, truth) > max(by_time) - 0.005
    # What the sizes are for: the same values without them are farther from the truth at any time.
    without = [median_correlation(smooth(graph, values, time=t).values, truth) for t in found.times]
    assert median_correlation(found.values, truth) > max(without)


@pytest.mark.parametrize("time", [0, 1, 5])
def test_smoothed_values_are_divided_by_smoothed_sizes(time):
    graph = shuffled_graph()
    counts = np.random.default_rng(1).poisson(3.0, (80, 7))
    sums = counts.sum(axis=1)
    walk = np.linalg.matrix_power(dense_walk(graph), time)
    wanted = sums.mean() * (walk @ counts) / (walk @ sums)[:, np.newaxis]
    for sizes in ("sum", sums, 3 * sums / 3):
        found = smooth(graph, counts, time=time, sizes=sizes).values
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), sums.mean(), rtol=1e-12)
    same = smooth(graph, counts, time=time, sizes=np.full(80, 7.0)).values
    np.testing.assert_allclose(same, smooth(graph, counts, time=time).values, atol=1e-12)


def test_the_order_of_rows_changes_no_choice():
    """The folds are those of the given rows, whatever the order of the operator."""
    X, _, noisy = circle(400), *noisy_circle("counts", 0)[1:]
    ids = np.random.default_rng(1).permutation(400)
    found = smooth(HeatGraph.from_points(X, ids=ids), noisy)
    wanted = smooth(HeatGraph.from_points(X), noisy)
    assert found.time == wanted.time
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-10)
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-10)
