"""Smoothing over a graph: laws of the walk, and of the choice of its time."""

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud
from scipy import sparse
from sklearn.metrics import pairwise_distances

from heatsketch import DiffusionMap, HeatSketch
from heatsketch.diffusion import _smoothing as module
from heatsketch.diffusion import degree_scaling, heat_operator, smooth, symmetric_scaling
from heatsketch.exceptions import (
    DtypeError,
    HeatSketchError,
    HeatSketchWarning,
    MissingValueError,
)
from heatsketch.testing import tolerance

VALUES = np.random.default_rng(5).normal(size=(80, 7))
MODELS = {
    "default": HeatSketch(2),
    "map": DiffusionMap(2),
    "bistochastic": HeatSketch(2, normalization="bistochastic"),
    "all pairs": HeatSketch(2, n_neighbors=None),
}


def dense_walk(model, n_rows):
    """Return the random walk in the order of X, from the operator alone."""
    A = model.heat_operator_
    matrix, v = A @ np.eye(n_rows, dtype=A.dtype), A.stationary
    walk = np.empty((n_rows, n_rows))
    walk[np.ix_(model.order_, model.order_)] = matrix * v / v[:, np.newaxis]
    return walk


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("time", [0, 1, 5])
def test_it_is_a_power_of_the_random_walk(model, time):
    X = cloud(80)[::-1]
    fitted = MODELS[model].fit(X, row_ids=np.random.default_rng(0).permutation(80))
    wanted = np.linalg.matrix_power(dense_walk(fitted, 80), time) @ VALUES
    found = fitted.smooth(VALUES, time=time)
    np.testing.assert_allclose(found.values, wanted, atol=1e-12)
    assert found.time == time
    assert not len(found.times)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_stay_within_what_was_given_and_constants_stay(seed):
    model = HeatSketch(2).fit(cloud(80, seed=seed))
    found = model.smooth(np.hstack([VALUES, np.full((80, 1), 3.0)]), time=9).values
    assert (found[:, :-1].max(axis=0) <= VALUES.max(axis=0)).all()
    assert (found[:, :-1].min(axis=0) >= VALUES.min(axis=0)).all()
    np.testing.assert_allclose(found[:, -1], 3, rtol=1e-10)
    # The mean by the stationary distribution is what a walk keeps.
    weights = model.heat_operator_.stationary[np.argsort(model.order_)] ** 2
    np.testing.assert_allclose(weights @ found[:, :-1], weights @ VALUES, atol=1e-10)


def test_steps_add_up_and_copies_of_points_are_points():
    X = cloud(80)
    X[30:] = X[np.random.default_rng(0).integers(0, 10, 50)]
    model = HeatSketch(2, n_neighbors=20).fit(X)
    twice = model.smooth(model.smooth(VALUES, time=2).values, time=3).values
    np.testing.assert_allclose(twice, model.smooth(VALUES, time=5).values, atol=1e-12)


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_matrix, np.asarray, np.asfortranarray]
)
@pytest.mark.parametrize("width", [1, 3, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_and_formats_change_nothing(monkeypatch, form, width, dtype):
    monkeypatch.setattr(module, "CHUNK_BYTES", width * 80 * np.dtype(dtype).itemsize)
    model = HeatSketch(2).fit(cloud(80).astype(dtype))
    counts = np.random.default_rng(0).poisson(1.0, (80, 7))
    plain = np.linalg.matrix_power(dense_walk(model, 80), 4) @ counts
    found = model.smooth(form(counts), time=4).values
    assert found.dtype == dtype
    np.testing.assert_allclose(found, plain, atol=20 * tolerance(dtype))
    out = np.full((80, 7), np.nan, dtype)
    assert model.smooth(form(counts), time=4, out=out).values is out
    np.testing.assert_array_equal(out, found)


def test_one_column_may_be_a_vector():
    model = HeatSketch(2).fit(cloud(80))
    found = model.smooth(VALUES[:, 0], time=2).values
    np.testing.assert_array_equal(found, model.smooth(VALUES[:, :1], time=2).values[:, 0])


NOISE = {
    "counts": lambda rng, truth: rng.poisson(truth),
    "overdispersed counts": lambda rng, truth: rng.negative_binomial(
        1 / 0.3, 1 / (1 + 0.3 * 10 * truth)
    ),  # of mean 10 and dispersion 0.3
    "numbers": lambda rng, truth: truth + rng.normal(0, 1, truth.shape),
}


def noisy_circle(kind, seed, n=400, n_columns=30):
    """Return a graph, values without noise and values with noise."""
    K = affinity(circle(n, seed), epsilon=0.01, n_neighbors=15)
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)[:, np.newaxis]
    rng = np.random.default_rng(seed)
    phases, waves = rng.uniform(0, 6, n_columns), rng.integers(1, 4, n_columns)
    truth = 1 + 0.8 * np.cos(angle * waves + phases)
    return heat_operator(K, symmetric_scaling(K)), truth, NOISE[kind](rng, truth)


def median_correlation(found, truth):
    return np.median([np.corrcoef(x, y)[0, 1] for x, y in zip(found.T, truth.T, strict=True)])


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_chosen_time_is_nearly_the_best(kind, seed):
    A, truth, noisy = noisy_circle(kind, seed)
    found = smooth(A, noisy)
    by_time = [median_correlation(smooth(A, noisy, time=t).values, truth) for t in found.times]
    assert median_correlation(found.values, truth) > max(by_time) - 0.005
    assert max(by_time) > by_time[0] + 0.1  # or else any time would do
    assert found.time >= found.times[found.scores.argmax()]


def correlations(x, y, where):
    found = np.zeros(x.shape[1])
    for j in range(x.shape[1]):
        a, b = x[where[:, j], j], y[where[:, j], j]
        if len(a) and a.std() > 1e-12 and b.std() > 1e-12:
            found[j] = np.corrcoef(a, b)[0, 1]
    return found


@pytest.mark.parametrize("has_sizes", [False, True])
@pytest.mark.parametrize(("n_columns", "n_scored"), [(5, 10), (64, 2), (70, 1)])
@pytest.mark.parametrize("graph", ["circle", "path"])
def test_scores_are_correlations_with_what_was_held_out(
    monkeypatch, graph, n_columns, n_scored, has_sizes
):
    n = 60
    n_used = min(n_columns, module.CHOICE_COLUMNS)
    monkeypatch.setattr(module, "SCORED_ENTRIES", n * n_used * (n_scored + 1) - 1)
    A, _, noisy = noisy_circle("numbers", 1, n, n_columns)
    if graph == "path":  # on which all near some entries are held out
        K = np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
        A = heat_operator(K, degree_scaling(K))
    order = np.random.default_rng(2).permutation(n)
    s = np.random.default_rng(3).uniform(0.2, 3, (n, 1)) if has_sizes else np.ones((n, 1))
    times, scores = module.time_scores(A, noisy, order, s if has_sizes else None)

    walk = np.empty((n, n))
    walk[np.ix_(order, order)] = (A @ np.eye(n)) * A.stationary / A.stationary[:, np.newaxis]
    rng = np.random.default_rng(module.SEED)
    if n_columns > n_used:
        noisy = noisy[:, np.sort(rng.choice(n_columns, n_used, replace=False))]
    fold = rng.integers(10, size=noisy.shape)
    for time, found in zip(times, scores, strict=True):
        P = np.linalg.matrix_power(walk, time)
        wanted = []
        for number in range(n_scored):
            is_out = fold == number
            shares = noisy / s
            shares = shares - shares.mean(axis=0, where=~is_out)
            weight = P @ (s * ~is_out)
            near = np.where(weight > 1e-9, P @ (s * ~is_out * shares) / np.maximum(weight, 1e-9), 0)
            wanted.append(correlations(near, shares, is_out))
        np.testing.assert_allclose(found, np.concatenate(wanted), atol=1e-9)
    last = min(scores.mean(axis=1).argmax() + module.PATIENCE, len(module.TIMES) - 1)
    np.testing.assert_array_equal(times, module.TIMES[: last + 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", [1e-30, 1e19, 1e30])
def test_the_scale_of_values_does_not_change_the_time(factor, dtype):
    """Also if counts exceed the largest integer, or squares the largest number."""
    model = HeatSketch(2).fit(circle(200, 0).astype(dtype))
    counts = np.random.default_rng(0).poisson(np.linspace(0, 9, 200)[:, np.newaxis] * [1, 1])
    found, wanted = model.smooth(counts * factor), model.smooth(counts)
    assert found.time == wanted.time > 0
    np.testing.assert_allclose(found.values, wanted.values * factor, rtol=tolerance(dtype))


@pytest.mark.parametrize("seed", SEEDS)
def test_values_that_neighbours_do_not_predict_stay_with_a_warning(seed):
    A, _, _ = noisy_circle("numbers", seed)
    noise = np.random.default_rng(seed).negative_binomial(2, 0.2, (400, 10))
    with pytest.warns(HeatSketchWarning, match="time='auto': values are not smoothed") as log:
        found = smooth(A, noise)
    assert log[0].filename == __file__
    assert found.time == 0
    np.testing.assert_array_equal(found.values, noise)


@pytest.mark.filterwarnings("ignore:time='auto'")
def test_noise_is_seldom_smoothed():
    A, _, _ = noisy_circle("numbers", 0, 100)
    noise = np.random.default_rng(0).normal(size=(100, 100, 10))
    assert np.mean([smooth(A, values).time > 0 for values in noise]) < 0.2


def test_one_noisy_column_is_smoothed():
    """Only the correlation over all folds is above chance."""
    A, _, noisy = noisy_circle("numbers", 0, 300, 20)
    assert min(smooth(A, column).time for column in noisy.T) > 0


def test_correlations_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(5, [1, 20, 0.1, 1], (30, 4)), rng.normal(-9, [3, 1, 0.2, 1], (30, 4))
    x[:, 3] = 7
    where = rng.random((30, 4)) < [1, 0.5, 0.1, 0.5]
    np.testing.assert_allclose(module._correlations(x, y, where), correlations(x, y, where))
    assert (module._correlations(x, y, np.zeros((30, 4), bool)) == 0).all()


@pytest.mark.parametrize(
    ("n_columns", "below", "is_taken"),
    [(5, 0.49, True), (5, 0.51, False), (2, 0.99, True), (2, 1.01, False), (1, 1e-9, False)],
)
def test_a_later_time_may_be_one_standard_error_below_the_best(n_columns, below, is_taken):
    """With a standard deviation of one over columns: 1/2 of five columns, and 1 of two."""
    apart = np.linspace(-1, 1, n_columns) if n_columns > 1 else np.zeros(1)
    apart = apart / (apart.std() or 1) + below
    best = np.linspace(0, 9, n_columns)
    scores = np.array([best - 9, best, best - apart])
    assert module.longest_of_the_best(np.array([1, 5, 7]), scores) == (7 if is_taken else 5)


@pytest.mark.parametrize(("width", "n_chunks"), [(0.5, 7), (1, 7), (3, 3), (7, 1), (100, 1)])
def test_columns_are_smoothed_in_chunks_that_fit(monkeypatch, width, n_chunks):
    begun, done = [], []
    monkeypatch.setattr(module, "CHUNK_BYTES", int(width * 80 * 8))
    monkeypatch.setattr(
        module, "steps", lambda *about: (begun.append(about), lambda: done.append(1))[1]
    )
    HeatSketch(2).fit(cloud(80)).smooth(VALUES, time=1)
    assert begun == [("smoothing", n_chunks)]
    assert len(done) == n_chunks


@pytest.mark.parametrize("kind", ["counts", "numbers"])
def test_how_deep_rows_are_measured_does_not_shorten_the_time(kind):
    A, truth, _ = noisy_circle("counts", 0, n_columns=40)
    rng = np.random.default_rng(0)
    depths = rng.lognormal(0, 0.7, (len(truth), 1))
    values = rng.poisson(truth * depths)
    if kind == "numbers":
        values = truth * depths + rng.normal(0, np.sqrt(depths), truth.shape)
    found = smooth(A, values, sizes=depths[:, 0])
    by_time = [
        median_correlation(smooth(A, values, time=t, sizes=depths[:, 0]).values, truth)
        for t in found.times
    ]
    assert median_correlation(found.values, truth) > max(by_time) - 0.005
    # What the sizes are for: the same values without them are farther from the truth at any time.
    without = [median_correlation(smooth(A, values, time=t).values, truth) for t in found.times]
    assert median_correlation(found.values, truth) > max(without)


@pytest.mark.parametrize("time", [0, 1, 5])
def test_smoothed_values_are_divided_by_smoothed_sizes(time):
    model = HeatSketch(2).fit(cloud(80), row_ids=np.random.default_rng(0).permutation(80))
    counts = np.random.default_rng(1).poisson(3.0, (80, 7))
    sums = counts.sum(axis=1)
    walk = np.linalg.matrix_power(dense_walk(model, 80), time)
    wanted = sums.mean() * (walk @ counts) / (walk @ sums)[:, np.newaxis]
    for sizes in ("sum", sums, 3 * sums / 3):
        found = model.smooth(counts, time=time, sizes=sizes).values
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), sums.mean(), rtol=1e-12)
    same = model.smooth(counts, time=time, sizes=np.full(80, 7.0)).values
    np.testing.assert_allclose(same, model.smooth(counts, time=time).values, atol=1e-12)


def test_an_empty_row_takes_the_shares_of_its_neighbours():
    model = HeatSketch(2).fit(cloud(80))
    counts = np.random.default_rng(1).poisson(30.0, (80, 7))
    counts[5] = 0
    found = model.smooth(counts, time=2, sizes="sum").values
    np.testing.assert_allclose(found[5].sum(), counts.sum(axis=1).mean(), rtol=0.05)


def test_without_noise_little_changes():
    A, truth, _ = noisy_circle("numbers", 0)
    assert median_correlation(smooth(A, truth).values, truth) > 0.999


def test_the_order_of_rows_changes_no_choice():
    A, _, noisy = noisy_circle("counts", 0)
    order = np.random.default_rng(1).permutation(len(noisy))
    turned = np.empty_like(noisy)
    turned[order] = noisy
    found = smooth(A, turned, order=order)
    np.testing.assert_allclose(
        found.values[order], smooth(A, noisy, time=found.time).values, atol=1e-10
    )


@pytest.mark.parametrize(
    ("values", "options", "error", "message"),
    [
        (VALUES[1:], {}, HeatSketchError, r"values has shape \(79, 7\), and the graph has 80"),
        (VALUES[:, :0], {}, HeatSketchError, r"values has shape \(80, 0\)"),
        (VALUES.astype(str), {}, DtypeError, "not a number"),
        (np.where(VALUES[3, 2] == VALUES, np.nan, VALUES), {}, MissingValueError, "row 3"),
        (VALUES, {"time": -1}, HeatSketchError, "time=-1 must be an integer of at least 0"),
        (VALUES, {"time": "soon"}, DtypeError, "time='soon' must be an integer"),
        (VALUES, {"time": 1.5}, DtypeError, "time=1.5 must be an integer"),
        (VALUES, {"sizes": "depth"}, HeatSketchError, "sizes='depth' is unknown; use 'sum'"),
        (VALUES, {"sizes": "sum"}, HeatSketchError, "row .* of values has the sum -"),
        (VALUES, {"sizes": np.ones(79)}, HeatSketchError, "sizes has 79 numbers"),
        (VALUES, {"sizes": np.arange(80.0)}, HeatSketchError, "the smallest is 0; give one above"),
        (VALUES, {"out": np.ones((80, 6))}, HeatSketchError, r"out has shape \(80, 6\)"),
    ],
)
def test_invalid_values_are_errors(values, options, error, message):
    K = np.exp(-pairwise_distances(cloud(80)))
    with pytest.raises(error, match=message):
        smooth(heat_operator(K, degree_scaling(K)), values, **options)
