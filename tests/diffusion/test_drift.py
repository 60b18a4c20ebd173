"""Laws of drift: the erratum's variance, alarms at their rate, rows known by their ids."""

import re
import warnings

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud, two_blobs
from scipy.special import polygamma
from scipy.stats import false_discovery_control, norm, t
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import StandardScaler

from heatsketch import HeatSketch
from heatsketch.diffusion import (
    _drift,
    gaussian_matrix,
    heat_operator,
    rademacher_matrix,
    sketch,
    symmetric_scaling,
)
from heatsketch.diffusion._all_times import HORIZON
from heatsketch.diffusion._drift import drift
from heatsketch.diffusion._sketch import diffuse
from heatsketch.exceptions import (
    DisconnectedGraphWarning,
    DtypeError,
    HeatSketchError,
    MissingValueError,
)
from heatsketch.testing import tolerance

BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}


def operator(X, epsilon=0.5, n_neighbors=None):
    K = affinity(X, epsilon, n_neighbors)
    return heat_operator(K, symmetric_scaling(K))


def difference(seed=0, n=30, power=3):
    """Return ``M = A^p - B^p`` of some points and of the same points, a little elsewhere."""
    X = cloud(n, 2, seed)
    first, second = operator(X), operator(X + 0.2 * cloud(n, 2, seed + 100))
    return diffuse(first, np.eye(n), power=power) - diffuse(second, np.eye(n), power=power)


def trials(M, k, n_trials, kind="gaussian", seed=0):
    """Return the differences of as many pairs of sketches, of shape (n_trials, n, k)."""
    wide = M @ BLOCKS[kind](len(M), k * n_trials, seed=seed) / np.sqrt(k)
    return wide.reshape(len(M), n_trials, k).transpose(1, 0, 2)


# --- the total ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_total_has_the_mean_and_the_variance_of_the_erratum(seed, kind):
    """Var = (2/k) sum mu^4 for Gaussians; signs lack the part on the diagonal of M^2."""
    k, n_trials = 4, 40_000
    M = difference(seed)
    totals = (trials(M, k, n_trials, kind, seed) ** 2).sum(axis=(1, 2))
    squared = M @ M
    mean, gaussian = np.trace(squared), 2 / k * np.sum(squared**2)
    signs = gaussian - 2 / k * np.sum(np.diagonal(squared) ** 2)
    variance = gaussian if kind == "gaussian" else signs
    assert totals.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / n_trials))
    assert totals.var() == pytest.approx(variance, rel=0.05)
    assert totals.var() < 1.05 * gaussian
    assert gaussian < 2 / k * mean / 2  # what the paper prints is another number


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_standard_error_is_estimated_without_bias(seed, kind):
    k, n_trials = 8, 500
    M = difference(seed)
    found = [drift(D, np.zeros_like(D)) for D in trials(M, k, n_trials, kind, seed)]
    variances = np.array([one.standard_error**2 for one in found])
    wanted = 2 / k * np.sum((M @ M) ** 2)
    assert variances.mean() == pytest.approx(wanted, abs=4 * variances.std() / np.sqrt(n_trials))


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("k", [2, 8, 32])
@pytest.mark.parametrize("rank", [1, 30])
def test_intervals_of_the_total_cover(rank, k, kind):
    """One direction is the worst case, and exact; many are known better than that."""
    n_trials = 400
    M = difference() if rank == 30 else np.outer(circle(30)[:, 0], circle(30)[:, 0])
    true = np.sum(M**2)
    found = [
        drift(D, np.zeros_like(D), random_matrix=kind) for D in trials(M, k, n_trials, kind, 1)
    ]
    covered = np.mean([one.low <= true <= one.high for one in found])
    assert covered >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / n_trials)


def test_many_directions_are_known_better_than_one():
    M = difference()
    whole = drift(trials(M, 64, 1)[0], np.zeros((30, 64)))
    one = drift(trials(np.outer(M[0], M[0]), 64, 1)[0], np.zeros((30, 64)))
    assert whole.high / whole.low < 0.8 * one.high / one.low
    # The interval of one direction is that of its rows.
    low, high = one.rows.low / one.rows.distance, one.rows.high / one.rows.distance
    np.testing.assert_allclose(low, np.sqrt(one.low / one.total))
    np.testing.assert_allclose(high, np.sqrt(one.high / one.total))


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_of_rows_cover(seed, kind):
    k, n_trials = 16, 400
    M = difference(seed)
    true = np.linalg.norm(M, axis=1)
    found = [
        drift(D, np.zeros_like(D), random_matrix=kind).rows
        for D in trials(M, k, n_trials, kind, seed)
    ]
    covered = np.mean([(rows.low <= true) & (true <= rows.high) for rows in found], axis=0)
    # Each row by itself; thirty of them are looked at.
    assert covered.min() >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / n_trials)


def test_the_drift_of_two_fits_is_that_of_their_heat_kernels():
    """And two sketches with nothing in common differ by twice their squares."""
    X, n = cloud(200, 2), 200
    moved = X + 0.1 * cloud(n, 2, seed=1)
    options = {"power": 3, "epsilon": 0.5, "n_neighbors": None, "weighting": "symmetric"}
    Y, Z = (HeatSketch(256, **options).fit_transform(points) for points in (X, moved))
    found = drift(Y, Z)
    first, second = operator(X), operator(moved)
    M = diffuse(first, np.eye(n), power=3) - diffuse(second, np.eye(n), power=3)
    assert found.total == pytest.approx(np.sum(M**2), abs=4 * found.standard_error)
    assert found.low < np.sum(M**2) < found.high
    np.testing.assert_allclose(found.rows.distance, np.linalg.norm(M, axis=1), rtol=0.3)
    assert found.relative < 0.2
    other = HeatSketch(256, random_state=1, **options).fit_transform(X)
    assert drift(Y, other).relative == pytest.approx(2, rel=0.2)


# --- which rows moved -----------------------------------------------------------------------

POINTS = {
    "dense cloud": (lambda seed: cloud(100, 2, seed), None),
    "neighbours in a cloud": (lambda seed: cloud(100, 2, seed), 10),
    "circle": (lambda seed: circle(100, seed), None),
    "neighbours on a circle": (lambda seed: circle(100, seed), 10),
    "two blobs": (lambda seed: two_blobs(100, 3, seed), 10),
}


def noisy_pair(X, seed, *, swapped, noise=0.05):
    rng = np.random.default_rng(seed + 1000)
    first, second = noise * rng.standard_normal((2, *X.shape))
    if swapped:
        swap = rng.random(len(X)) < 0.5
        first[swap], second[swap] = second[swap], first[swap]
    return X + first, X + second


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("points", "swapped"),
    [*((points, False) for points in POINTS), ("dense cloud", True), ("two blobs", True)],
)
def test_noise_alone_alarms_at_most_at_the_nominal_rate(points, swapped):
    """Any row at all, in two noisy copies of the same points."""
    draw, n_neighbors = POINTS[points]
    n_repetitions, level, alarms = 200, 0.05, 0
    for seed in range(n_repetitions):
        G = gaussian_matrix(100, 32, seed=seed)
        Y, Z = (
            sketch(operator(X, n_neighbors=n_neighbors), G, power=4)
            for X in noisy_pair(draw(seed), seed, swapped=swapped)
        )
        alarms += drift(Y, Z, confidence=1 - level).moved.any()
    error = np.sqrt(level * (1 - level) / n_repetitions)
    assert alarms / n_repetitions <= level + 3 * error


FITTED = {
    "iris": (load_iris, {}),  # row 41 lies alone between two groups
    "digits": (load_digits, {"n_components": 32}),
}


@pytest.mark.untraced
@pytest.mark.parametrize("data", FITTED)
def test_noise_alone_raises_no_more_alarms_where_rows_are_unlike(data):
    """The short version of benchmarks/drift_level.py."""
    load, options = FITTED[data]
    X = StandardScaler().fit_transform(load().data[:300])
    n_repetitions, level, alarms = 40, 0.05, 0
    for seed in range(n_repetitions):
        model = HeatSketch(random_state=seed, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedGraphWarning)
            one, two = (clone(model).fit(x) for x in noisy_pair(X, seed, swapped=False))
            alarms += one.drift(two, confidence=1 - level).moved.any()
    error = np.sqrt(level * (1 - level) / n_repetitions)
    assert alarms / n_repetitions <= level + 3 * error


def test_a_row_that_moves_among_many_is_found(monkeypatch):
    """Where a sample of the rows stands for all."""
    before, after = noisy_pair(cloud(600, 3), 0, swapped=False)
    after[[5, 77]] = -2 * after[[77, 5]]
    model = HeatSketch(power=2)
    Y, Z = model.fit_transform(before), model.fit_transform(after)
    whole = drift(Y, Z)
    monkeypatch.setattr(_drift, "MOST_REFERENCES", 100)
    found = drift(Y, Z)
    assert {5, 77} <= set(whole.ids[whole.moved]) & set(found.ids[found.moved])
    assert found.moved.sum() <= 6


@pytest.mark.parametrize("random_matrix", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_jump_are_found(seed, random_matrix):
    n, jumpers = 1000, [3, 500, 700]
    before, after = noisy_pair(cloud(n, 5, seed), seed, swapped=False)
    after[jumpers] = -after[jumpers]
    options = {"n_neighbors": 15, "epsilon": 2.0, "power": 2, "random_matrix": random_matrix}
    model = HeatSketch(64, **options)
    Y, Z = model.fit_transform(before), model.fit_transform(after)
    found = drift(Y, Z, random_matrix=random_matrix)
    assert set(jumpers) <= set(found.ids[found.moved])
    assert found.moved.sum() <= 6
    assert set(np.argsort(found.p_values)[:3]) == set(jumpers)


def test_rows_that_all_move_alike_are_no_alarm():
    Y = sketch(operator(circle(100)), gaussian_matrix(100, 16, seed=0), power=2)
    found = drift(Y, 1.5 * Y)
    assert found.relative == pytest.approx(0.25 / (3.25 / 2))
    assert not found.moved.any()


# --- ids ------------------------------------------------------------------------------------


def test_rows_are_known_by_their_ids():
    X, order = cloud(80), np.random.default_rng(0).permutation(80)
    after = X + 0.1 * cloud(80, seed=1)
    model = HeatSketch(16, epsilon=1.5)
    Y, Z = model.fit_transform(X), model.fit_transform(after)
    shuffled = model.fit_transform(after[order], row_ids=order)
    straight, found = drift(Y, Z), drift(Y, shuffled, ids=np.arange(80), other_ids=order)
    np.testing.assert_array_equal(found.ids, np.arange(80))
    np.testing.assert_array_equal(found.moved, straight.moved)
    limit = tolerance("float64", terms=1000)
    np.testing.assert_allclose(found.rows.distance, straight.rows.distance, rtol=limit)
    np.testing.assert_allclose(found.p_values, straight.p_values, rtol=limit)
    assert found.total == pytest.approx(straight.total, rel=limit)
    names = np.array([f"row {i}" for i in range(80)])
    named = drift(Y, shuffled, ids=names, other_ids=names[order])
    np.testing.assert_array_equal(named.rows.distance, found.rows.distance)


def test_ids_too_large_for_floats_are_told_apart():
    Y, large = cloud(4, 8), 2**62 + np.arange(4)
    found = drift(Y, Y, ids=large, other_ids=large.astype(np.uint64))
    np.testing.assert_array_equal(found.ids, large)
    assert found.total == 0
    with pytest.raises(HeatSketchError, match="nothing in common"):
        drift(Y, Y, ids=large, other_ids=(large + 4).astype(np.uint64))


def test_rows_come_and_go():
    """What is absent counts as zero, so that the total is that over all ids."""
    X = cloud(60, 2)
    ids, other_ids = np.arange(50), np.arange(59, 9, -1)
    first, second = operator(X[ids]), operator(X[other_ids])
    k = 512
    Y = sketch(first, gaussian_matrix(ids, k, seed=0), power=2)
    Z = sketch(second, gaussian_matrix(other_ids, k, seed=0), power=2)
    found = drift(Y, Z, ids=ids, other_ids=other_ids)
    np.testing.assert_array_equal(found.ids, np.arange(10, 50))
    np.testing.assert_array_equal(found.went, np.arange(10))
    np.testing.assert_array_equal(found.came, np.arange(59, 49, -1))
    M = np.zeros((60, 60))
    M[np.ix_(ids, ids)] += diffuse(first, np.eye(50), power=2)
    M[np.ix_(other_ids, other_ids)] -= diffuse(second, np.eye(50), power=2)
    assert found.total == pytest.approx(np.sum(M**2), abs=4 * found.standard_error)
    true = np.linalg.norm(M[10:50], axis=1)
    np.testing.assert_allclose(found.rows.distance, true, rtol=5 / np.sqrt(2 * k))


# --- edges ----------------------------------------------------------------------------------


@pytest.mark.parametrize("random_matrix", BLOCKS)
def test_the_same_embedding_has_not_drifted(random_matrix):
    Y = sketch(operator(circle(40)), gaussian_matrix(40, 2, seed=0), power=2)
    found = drift(Y, Y, random_matrix=random_matrix)
    # Two signs bound nothing from above, not even where they agree.
    high = 0 if random_matrix == "gaussian" else np.inf
    assert found[:5] == (0, 0, 0, high, 0)
    assert not found.moved.any()
    for values, wanted in zip(found.rows, (0, 0, high), strict=True):
        np.testing.assert_array_equal(values, wanted)
    assert np.isfinite(found.p_values).all()
    nothing = drift(np.zeros((3, 2)), np.zeros((3, 2)), random_matrix=random_matrix)
    assert nothing.relative == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_drift(dtype):
    Y = sketch(operator(cloud(100)), gaussian_matrix(100, 16, seed=0), power=4).astype(dtype)
    rng = np.random.default_rng(0)
    Z = Y * (1 + np.finfo(dtype).eps * rng.standard_normal(Y.shape) ** 3).astype(dtype)
    assert not drift(Y, Z).moved.any()
    moved = Y * (1 + 1e-5 * rng.standard_normal(Y.shape))  # which float64 can tell from rounding
    for pair in ((Y, moved), (moved, Y)):
        assert (drift(*pair).p_values == 0.5).all() == (Y.dtype == np.float32)


def test_heat_that_has_decayed_far_still_has_an_error():
    Y, Z = gaussian_matrix(2 * 50, 16, seed=0).reshape(2, 50, 16)
    near, far = drift(Y, Z), drift(1e-120 * Y, 1e-120 * Z)
    assert far.standard_error / far.total == pytest.approx(near.standard_error / near.total)
    np.testing.assert_allclose(far.p_values, near.p_values)
    assert far.relative == pytest.approx(near.relative)


def test_few_rows_are_never_an_alarm():
    Y = gaussian_matrix(3, 8, seed=0)
    for n in (1, 2, 3):
        assert not drift(Y[:n], -Y[:n]).moved.any()
        assert not drift(Y[:n], Y[:n] * np.array([[1], [1.01], [-1]])[:n]).moved.any()


Y10 = gaussian_matrix(10, 4, seed=0)
BAD = {
    "columns": ((Y10, Y10[:, :3]), {}, HeatSketchError, "^Y has 4 columns and Z has 3"),
    "one column": (
        (Y10[:, :1], Y10[:, :1]),
        {},
        HeatSketchError,
        r"have 1 column, which says nothing about their error; use n_components=2 or more\.$",
    ),
    "no matrix": ((Y10[0], Y10), {}, HeatSketchError, r"Y has shape \(4,\)"),
    "no rows": ((Y10[:0], Y10[:0]), {}, HeatSketchError, r"Y has shape \(0, 4\)"),
    "words": ((Y10, [["a", "b"]]), {}, DtypeError, "Z has dtype"),
    "missing": ((Y10, np.where(Y10[4, 1] == Y10, np.nan, Y10)), {}, MissingValueError, "row 4"),
    "rows": ((Y10, Y10[:9]), {}, HeatSketchError, "must be 9 ids, one for each row of Z; give ids"),
    "ids": (
        (Y10, Y10),
        {"ids": [1, 2]},
        HeatSketchError,
        r"^ids=\[1, 2\] of shape \(2,\) must be 10 ids, one for each row of Y; give ids",
    ),
    "other ids": ((Y10, Y10), {"other_ids": [1]}, HeatSketchError, r"other_ids=\[1\]"),
    "twice": (
        (Y10, Y10),
        {"ids": [0, *range(9)]},
        HeatSketchError,
        r"^ids=\[0, 0, 1, .*\] repeats itself, so that it is not known which row is meant; give "
        r"each row an id of its own\.$",
    ),
    "other twice": ((Y10, Y10), {"other_ids": [7] * 10}, HeatSketchError, "other_ids=.*repeats"),
    "strangers": (
        (Y10, Y10),
        {"other_ids": range(10, 20)},
        HeatSketchError,
        r"^ids=\[0, 1, .*\] and other_ids=\[10, 11, .*\] have nothing in common, so no row can be "
        r"compared; give rows that stand for the same thing the same id, here and in fit "
        r"\(row_ids\)\.$",
    ),
    "confidence": ((Y10, Y10), {"confidence": 1.0}, HeatSketchError, "confidence=1.0"),
    "random": ((Y10, Y10), {"random_matrix": "dice"}, HeatSketchError, "random_matrix='dice'"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_compared_is_rejected_by_name(case):
    arrays, options, error, message = BAD[case]
    with pytest.raises(error, match=message):
        drift(*arrays, **options)


# --- two fitted sketches --------------------------------------------------------------------


def test_models_are_compared_by_the_ids_of_their_rows():
    """In any order of the rows, and with some that came and went."""
    X, order = cloud(60), np.random.default_rng(0).permutation(60)
    model = HeatSketch(16, power=3, n_neighbors=9)
    first = clone(model).fit(X[:55])
    second = clone(model).fit(X[order[order >= 5]] + 0.01, row_ids=order[order >= 5])
    found = first.drift(second)
    assert set(found.went) == set(range(5))
    assert set(found.came) == set(range(55, 60))
    there = second.embedding_[np.argsort(order[order >= 5])]
    wanted = np.linalg.norm(first.embedding_[5:] - there[:50], axis=1)
    np.testing.assert_allclose(found.rows.distance, wanted)
    np.testing.assert_array_equal(found.ids, np.arange(5, 55))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("power", 4),
        ("power", "all"),
        ("random_state", 1),
        ("n_components", 8),
        ("epsilon", 1.0),
        ("n_neighbors", 10),
        ("metric", "cosine"),
        ("normalization", "bistochastic"),
        ("weighting", "symmetric"),
        ("stationary", "keep"),
        ("random_matrix", "rademacher"),
    ],
)
def test_models_with_other_options_are_rejected(name, value):
    model = HeatSketch(16, power=3, n_neighbors=9).fit(cloud(60))
    other = clone(model).set_params(**{name: value}).fit(cloud(60))
    named = {"random_state": "seed"}.get(name, name)
    with pytest.raises(
        HeatSketchError, match=f"{named}=.* here, but {value!r} in the other"
    ) as error:
        model.drift(other)
    assert str(error.value).endswith("; fit both with the same, and with an integer as seed.")


@pytest.mark.parametrize(("name", "value"), [("affinity", "precomputed"), ("self_loops", False)])
def test_models_of_other_graphs_are_rejected(name, value):
    K = affinity(cloud(60), 0.5, None)
    model = HeatSketch(16, power=3, affinity="precomputed").fit(K)
    if name == "affinity":
        model, other = HeatSketch(16, power=3, normalization="degree").fit(cloud(60)), model
    else:
        other = clone(model).set_params(self_loops=value).fit(K)
    with pytest.raises(HeatSketchError, match=f"{name}=.* here, but {value!r} in the other"):
        model.drift(other)


def test_a_name_for_the_same_option_is_no_difference():
    one, two = (
        HeatSketch(16, power=3, normalization=name).fit(cloud(60)) for name in ("auto", "symmetric")
    )
    assert one.drift(two).total == 0


# --- parts of the p-values, by definition ---------------------------------------------------


@pytest.mark.parametrize(("n", "most"), [(5, 1000), (60, 1000), (60, 40), (60, 59)])
def test_what_is_usual_around_a_row_is_that_of_the_nearest_references(n, most, monkeypatch):
    monkeypatch.setattr(_drift, "MOST_REFERENCES", most)
    monkeypatch.setattr(_drift, "ROWS_AT_A_TIME", 17)
    Y, Z, moves = cloud(n, 4), cloud(n, 4, seed=1), cloud(n, 1, seed=2)[:, 0] ** 2
    references = np.linspace(0, n - 1, min(n, most)).astype(int)
    assert (references[0], references[-1]) == (0, n - 1)
    for rows, (near, moved) in zip((Y, Z), _drift._around(Y, Z, moves), strict=True):
        for place in range(n):
            distances = ((rows[references] - rows[place]) ** 2).sum(axis=1)
            distances[references == place] = np.inf
            order = np.argsort(distances)
            nearest = min(_drift.NEAREST, len(references) - 1)
            assert near[place] == pytest.approx(distances[order[nearest - 1]])
            fifth = max(nearest, len(references) // 5)
            assert moved[place] == pytest.approx(np.median(moves[references[order[:fifth]]]))


def test_scores_of_values_are_normal_where_their_tails_are():
    """Outer deciles are those of a normal variable, and a longer right tail is bent to one.

    What lies below the lower decile has its score, since only the upper tail is asked for.
    """
    decile = norm.ppf(0.9)
    plain = _drift._normal_scores(np.array([-2.0, 0, 1, 3]), 1.0, 1.0)
    np.testing.assert_allclose(plain, decile * np.array([-1.0, 0, 1, 3]), rtol=1e-6)
    left, right = 2.0, 6.0
    z = np.array([-2.0, -1, 0, 1, 2])  # Tukey's g-distribution of these, with its deciles
    values = right * (3.0**z - 1) / (3.0 - 1)
    assert (values[1], values[3]) == pytest.approx((-left, right))
    found = _drift._normal_scores(values, left, right)
    np.testing.assert_allclose(found, decile * np.maximum(z, -1))


@pytest.mark.parametrize(("n_columns", "n_rows"), [(2, 400), (64, 400), (64, 3)])
def test_a_tail_is_never_narrower_than_that_of_the_sketch(n_columns, n_rows):
    """Equal values but one: the spread is that of a logarithm of chi-squared over its mean."""
    values = np.ones(n_rows)
    values[0] = 5.0
    finest = norm.ppf(0.9) * np.sqrt(polygamma(1, n_columns / 2))
    found = _drift._upper_tail(values, n_columns)
    right = np.quantile(np.log(values), 0.9)
    scores = _drift._normal_scores(np.log(values), finest, max(finest, right))
    np.testing.assert_allclose(found, t.sf(scores, max(1, n_rows / 5)))
    np.testing.assert_allclose(found[1:], 0.5)


def test_p_values_of_a_power_law_are_uniform():
    """By Renyi's theorem: that of the largest value is twice a uniform variable."""
    rng, n_runs = np.random.default_rng(0), 4000
    values = rng.pareto(2.0, size=(n_runs, 200)) + 1
    found = np.array([_drift._above_gaps(row) for row in values])
    first = found[np.arange(n_runs), values.argmax(axis=1)]
    for level in (0.01, 0.05, 0.2):
        error = np.sqrt(level * (1 - level) / n_runs)
        assert np.mean((found <= level).any(axis=1)) <= level + 3 * error
        # Half of the level is for the gap below the largest value, and the rest for the others.
        assert np.mean(first <= level) >= level / 2 - 3 * error


@pytest.mark.parametrize("draw", ["lognormal", "exponential", "chisquare"])
def test_p_values_of_a_light_tail_keep_the_level(draw):
    rng, n_runs, level = np.random.default_rng(0), 2000, 0.05
    options = {"df": 3} if draw == "chisquare" else {}
    values = getattr(rng, draw)(size=(n_runs, 200), **options)
    alarms = np.mean([(_drift._above_gaps(row) <= level).any() for row in values])
    assert alarms <= level + 3 * np.sqrt(level * (1 - level) / n_runs)


@pytest.mark.parametrize("n_moved", [1, 4, 15])
def test_values_above_a_wide_gap_are_outliers(n_moved):
    rng = np.random.default_rng(0)
    values = rng.pareto(2.0, size=300) + 1
    values[:n_moved] += 1000 * values.max()
    found = _drift._above_gaps(values)
    np.testing.assert_array_equal(found < 0.001, np.arange(300) < n_moved)
    np.testing.assert_allclose(_drift._above_gaps(7 * values), found)
    np.testing.assert_array_equal(_drift._above_gaps(values[::-1]), found[::-1])


def test_the_only_rows_that_moved_are_outliers():
    values = np.zeros(100)
    values[[5, 20]] = 1.0, 1e-6
    np.testing.assert_array_equal(_drift._above_gaps(values) == 0, values > 0)


def rows_within_components(model):
    """Return the rows of the sum over all times by dense linear algebra."""
    A = model.heat_operator_
    labels = getattr(model, "component_labels_", np.zeros(len(A.stationary)))
    v = A.stationary / np.linalg.norm(A.stationary)
    matrix = A @ np.eye(len(v))
    for label in np.unique(labels):
        own = np.where(labels == label, v, 0)
        matrix -= np.outer(own, own) / (own @ own)
    alpha = 1 - 1 / HORIZON
    rows = np.linalg.inv(np.eye(len(v)) - alpha * matrix)
    rows = np.linalg.matrix_power(matrix, model.power_) @ rows / v[:, np.newaxis]
    places = np.argsort(model.order_)
    return rows[np.ix_(places, places)]


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_the_drift_of_components_is_that_within_them():
    """A group of points is drawn anew, and is a component of its own before and after."""
    X = np.concatenate([cloud(80, 2), cloud(80, 2, seed=1) + 100])
    after = np.concatenate([X[:80], cloud(80, 2, seed=2) + 100])
    model, n_runs, covered = HeatSketch(32), 60, 0
    for seed in range(n_runs):
        model.set_params(random_state=seed)
        one, two = (clone(model).fit(points) for points in (X, after))
        found = one.drift(two)
        if seed == 0:
            B, C = rows_within_components(one), rows_within_components(two)
            total = np.sum((B - C) ** 2)
            relative = 2 * total / (np.sum(B**2) + np.sum(C**2))
        covered += found.low <= total <= found.high
        assert found.relative == pytest.approx(relative, rel=0.5)
    assert covered / n_runs >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / n_runs)
    np.testing.assert_allclose(found.rows.distance[:80], 0, atol=1e-2 * found.rows.distance.max())


def test_the_drift_of_small_moves_is_that_of_one_polynomial():
    """Both sums are approximated in the same way, or their errors would outweigh the moves."""
    X = np.concatenate([cloud(250, 2), cloud(250, 2, seed=3) + 4])
    one, two = (HeatSketch(256).fit(X + 0.01 * cloud(500, 2, seed=seed)) for seed in (1, 2))
    assert (one.interval_ != two.interval_).any()
    total = np.sum((rows_within_components(one) - rows_within_components(two)) ** 2)
    apart = np.sum((one.embedding_ - two.embedding_) ** 2)
    found = one.drift(two)
    assert found.low < total < found.high < apart


def test_parts_that_fell_apart_are_a_warning():
    X = np.concatenate([cloud(80, 2), cloud(80, 2, seed=1) + 3])
    one = HeatSketch().fit(X)
    with pytest.warns(DisconnectedGraphWarning):
        two = HeatSketch().fit(np.concatenate([X[:80], X[80:] + 100]))
    with pytest.warns(DisconnectedGraphWarning, match="1 and 2 connected components"):
        one.drift(two)


@pytest.mark.untraced
def test_one_edited_row_is_found():
    X, n_runs = cloud(300, 5), 20
    before, found = HeatSketch().fit(X), 0
    for run in range(n_runs):
        after = X.copy()
        after[run] = X[-1 - run] + 0.05
        result = before.drift(HeatSketch().fit(after))
        found += result.moved[run]
        assert result.rows.distance.argmax() == run
    assert found >= n_runs / 3


def test_whole_numbers_are_exact():
    Y, Z = np.random.default_rng(0).integers(9, size=(2, 60, 16))
    Z[5:] = Y[5:] + (Z[5:] > 7)
    whole, found = drift(Y, Z), drift(Y.astype(float), Z.astype(float))
    assert np.ptp(whole.p_values) > 0.1
    np.testing.assert_array_equal(whole.p_values, found.p_values)


@pytest.mark.parametrize("n_rows", [2, 60])
def test_p_values_are_those_of_the_less_extreme_ratio_in_the_better_way(n_rows):
    Y, noise, precision = cloud(n_rows, 16), cloud(n_rows, 16, seed=1), 1e-9
    Z = Y + 0.1 * np.geomspace(0.5, 5, n_rows)[:, np.newaxis] * noise
    if n_rows > 2:
        Z[3], Z[4], Z[5] = Y[3], -Y[4], (1 + 1e-7) * Y[5]  # not moved; opposite; rounding
    squares = ((Y - Z) ** 2).sum(axis=1)
    shares = squares / (squares + ((Y + Z) ** 2).sum(axis=1))
    shares[shares < precision] = 0
    rest = np.where(shares < 1, 1 - shares, precision)
    odds = (shares + np.mean(shares) / 10) / rest
    (near_y, moved_y), (near_z, moved_z) = _drift._around(Y, Z, squares)
    usual = np.maximum(near_y, near_z) + np.maximum(moved_y, moved_z)
    local = (squares + np.median(squares) / 10) / (usual + np.median(usual) / 10)
    wanted = [_drift._upper_tail(ratios, 16) for ratios in (odds, local)]
    wanted[1] **= _drift.LENIENCE
    gaps = [_drift._above_gaps(np.where(shares > 0, r, 0)) for r in (odds, local)]
    wanted = np.minimum(false_discovery_control(np.maximum(*wanted)), np.maximum(*gaps))
    np.testing.assert_allclose(_drift._p_values(Y, Z, precision), wanted, rtol=1e-9)
    assert len(np.unique(wanted)) > 1


def test_a_drift_is_a_table_in_a_notebook_with_the_farthest_rows_first():
    Y, ids = cloud(30, 16), [f"<{row}>" for row in range(30)]
    Z = Y + 0.01 * cloud(30, 16, seed=1)
    Z[7] = 50
    found = drift(Y, Z, ids=ids, other_ids=[*ids[:29], "new"])
    page = found._repr_html_()
    names = re.findall("<th>(.*?)</th>", page)
    assert names == ["id", "distance", "low", "high", "p_value"]
    rows = re.findall("<tr><td>(.*?)</td>", page)
    farthest = found.ids[np.argsort(found.p_values, kind="stable")]
    assert rows == [name.replace("<", "&lt;").replace(">", "&gt;") for name in farthest[:10]]
    assert rows[0] == "&lt;7&gt;"
    assert found.low < found.total < found.high
    assert (
        f"{100 * found.relative:.3g} % of the heat kernel moved: {found.total:.4g}, between "
        f"{found.low:.4g} and {found.high:.4g}; 1 of 29 rows moved more than the others, "
        "1 came, 1 went."
    ) in page
