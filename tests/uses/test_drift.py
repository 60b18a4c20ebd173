"""Laws of drift: the erratum's variance, alarms at their rate, rows known by their ids."""

import numpy as np
import pytest
from registry import SEEDS, circle, cloud, graph_of, two_blobs

from heatsketch import HeatGraph, HeatSketch, drift, sketch
from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion import sketch as sketch_of_operator
from heatsketch.diffusion._all_times import HORIZON
from heatsketch.diffusion._sketch import diffuse
from heatsketch.exceptions import HeatSketchError
from heatsketch.uses._drift import drift_of_rows

BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}


def operator(X, n_neighbors=None):
    return graph_of(X, 0.5, n_neighbors).operator


def drift_of(Y, Z, *, ids=None, other_ids=None, **options):
    """The drift of two embeddings, whose ids are positions by default."""
    ids, other_ids = (
        np.arange(len(rows)) if given is None else np.asarray(given)
        for rows, given in ((Y, ids), (Z, other_ids))
    )
    return drift_of_rows(Y, Z, ids=ids, other_ids=other_ids, **options)


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
    found = [drift_of(D, np.zeros_like(D)) for D in trials(M, k, n_trials, kind, seed)]
    variances = np.array([one.standard_error**2 for one in found])
    wanted = 2 / k * np.sum((M @ M) ** 2)
    assert variances.mean() == pytest.approx(wanted, abs=4 * variances.std() / np.sqrt(n_trials))


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("k", [2, *(pytest.param(k, marks=pytest.mark.nightly) for k in (8, 32))])
@pytest.mark.parametrize("rank", [1, 30])
def test_intervals_of_the_total_cover(rank, k, kind):
    """One direction is the worst case, and exact; many are known better than that."""
    n_trials = 400
    M = difference() if rank == 30 else np.outer(circle(30)[:, 0], circle(30)[:, 0])
    true = np.sum(M**2)
    found = [
        drift_of(D, np.zeros_like(D), random_matrix=kind) for D in trials(M, k, n_trials, kind, 1)
    ]
    covered = np.mean([one.low <= true <= one.high for one in found])
    assert covered >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / n_trials)


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_of_rows_cover(seed, kind):
    k, n_trials = 16, 400
    M = difference(seed)
    true = np.linalg.norm(M, axis=1)
    found = [
        drift_of(D, np.zeros_like(D), random_matrix=kind).rows
        for D in trials(M, k, n_trials, kind, seed)
    ]
    covered = np.mean([(rows.low <= true) & (true <= rows.high) for rows in found], axis=0)
    # Each row by itself; thirty of them are looked at.
    assert covered.min() >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / n_trials)


def test_the_drift_of_two_fits_is_that_of_their_heat_kernels():
    """And two sketches with nothing in common differ by twice their squares."""
    X, n = cloud(200, 2), 200
    moved = X + 0.1 * cloud(n, 2, seed=1)
    options = {"power": 3, "weighting": "symmetric"}
    graphs = [HeatGraph.from_points(x, n_neighbors=None, weights=0.5) for x in (X, moved)]
    before, after = (sketch(graph, 256, **options) for graph in graphs)
    found = drift(before, after)
    first, second = operator(X), operator(moved)
    M = diffuse(first, np.eye(n), power=3) - diffuse(second, np.eye(n), power=3)
    assert found.total == pytest.approx(np.sum(M**2), abs=4 * found.standard_error)
    assert found.low < np.sum(M**2) < found.high
    np.testing.assert_allclose(found.rows.distance, np.linalg.norm(M, axis=1), rtol=0.3)
    assert found.relative < 0.2
    other = sketch(graphs[0], 256, random_state=1, **options)
    unrelated = drift_of(before.embedding, other.embedding)
    assert unrelated.relative == pytest.approx(2, rel=0.2)


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
    [
        ("neighbours in a cloud", False),
        ("two blobs", True),
        *(
            pytest.param(points, swapped, marks=pytest.mark.nightly)
            for points in POINTS
            for swapped in (False, True)
            if (points, swapped) not in [("neighbours in a cloud", False), ("two blobs", True)]
        ),
    ],
)
def test_noise_alone_alarms_at_most_at_the_nominal_rate(points, swapped):
    """Any row at all, in two noisy copies of the same points."""
    draw, n_neighbors = POINTS[points]
    n_repetitions, level, alarms = 200, 0.05, 0
    for seed in range(n_repetitions):
        G = gaussian_matrix(100, 32, seed=seed)
        Y, Z = (
            sketch_of_operator(operator(X, n_neighbors=n_neighbors), G, power=4)
            for X in noisy_pair(draw(seed), seed, swapped=swapped)
        )
        alarms += drift_of(Y, Z, confidence=1 - level).moved.any()
    error = np.sqrt(level * (1 - level) / n_repetitions)
    assert alarms / n_repetitions <= level + 3 * error


@pytest.mark.parametrize("random_matrix", BLOCKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_jump_are_found(seed, random_matrix):
    n, jumpers = 1000, [3, 500, 700]
    before, after = noisy_pair(cloud(n, 5, seed), seed, swapped=False)
    after[jumpers] = -after[jumpers]
    graphs = (HeatGraph.from_points(X, weights=2.0) for X in (before, after))
    found = drift(*(sketch(graph, power=2, random_matrix=random_matrix) for graph in graphs))
    assert set(jumpers) <= set(found.ids[found.moved])
    assert found.moved.sum() <= 6
    assert set(np.argsort(found.p_values)[:3]) == set(jumpers)


# --- ids ------------------------------------------------------------------------------------


def test_rows_come_and_go():
    """What is absent counts as zero, so that the total is that over all ids."""
    X = cloud(60, 2)
    ids, other_ids = np.arange(50), np.arange(59, 9, -1)
    first, second = operator(X[ids]), operator(X[other_ids])
    k = 512
    Y = sketch_of_operator(first, gaussian_matrix(ids, k, seed=0), power=2)
    Z = sketch_of_operator(second, gaussian_matrix(other_ids, k, seed=0), power=2)
    found = drift_of(Y, Z, ids=ids, other_ids=other_ids)
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
    Y = sketch_of_operator(operator(circle(40)), gaussian_matrix(40, 2, seed=0), power=2)
    found = drift_of(Y, Y, random_matrix=random_matrix)
    # Two signs bound nothing from above, not even where they agree.
    high = 0 if random_matrix == "gaussian" else np.inf
    assert found[:5] == (0, 0, 0, high, 0)
    assert not found.moved.any()
    for values, wanted in zip(found.rows, (0, 0, high), strict=True):
        np.testing.assert_array_equal(values, wanted)
    assert np.isfinite(found.p_values).all()
    nothing = drift_of(np.zeros((3, 2)), np.zeros((3, 2)), random_matrix=random_matrix)
    assert nothing.relative == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_drift(dtype):
    Y = sketch_of_operator(operator(cloud(100)), gaussian_matrix(100, 16, seed=0), power=4).astype(
        dtype
    )
    rng = np.random.default_rng(0)
    Z = Y * (1 + np.finfo(dtype).eps * rng.standard_normal(Y.shape) ** 3).astype(dtype)
    assert not drift_of(Y, Z).moved.any()
    moved = Y * (1 + 1e-5 * rng.standard_normal(Y.shape))  # which float64 can tell from rounding
    for pair in ((Y, moved), (moved, Y)):
        assert (drift_of(*pair).p_values == 0.5).all() == (Y.dtype == np.float32)


# --- two sketches ---------------------------------------------------------------------------


def made(X, n_components=16, *, ids=None, graph=None, **options):
    options = {"power": 3} | options
    points = HeatGraph.from_points(X, ids=ids, **{"n_neighbors": 9, **(graph or {})})
    return sketch(points, n_components, **options)


def test_sketches_are_compared_by_the_ids_of_their_rows():
    """In any order of the rows, and with some that came and went."""
    X, order = cloud(60), np.random.default_rng(0).permutation(60)
    ids = order[order >= 5]
    first, second = made(X[:55]), made(X[ids] + 0.01, ids=ids)
    found = drift(first, second)
    assert set(found.went) == set(range(5))
    assert set(found.came) == set(range(55, 60))
    there = second.plain().embedding[np.argsort(ids)]
    wanted = np.linalg.norm(first.plain().embedding[5:] - there[:50], axis=1)
    np.testing.assert_allclose(found.rows.distance, wanted)
    np.testing.assert_array_equal(found.ids, np.arange(5, 55))
    names = np.array([f"row {i}" for i in range(60)])
    named = drift(made(X, ids=names), made(X[order], ids=names[order]))
    assert named.ids.tolist() == names.tolist()
    assert named.total == pytest.approx(0, abs=1e-20)


def test_fitted_models_are_compared_like_their_sketches():
    models = [HeatSketch(16, power=3).fit(cloud(60) + shift) for shift in (0, cloud(60, seed=1))]
    for one, other in zip(drift(*models), drift(*(model.sketch_ for model in models)), strict=True):
        np.testing.assert_array_equal(one, other)
    for invalid in (models[0].graph_, models[0].embedding_):
        with pytest.raises(HeatSketchError, match="after"):
            drift(models[0], invalid)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("power", {"power": 4}),
        ("power", {"power": "all"}),
        ("seed", {"random_state": 1}),
        ("n_components", {"n_components": 8}),
        ("weights", {"graph": {"weights": 1.0}}),
        ("n_neighbors", {"graph": {"n_neighbors": 10}}),
        ("metric", {"graph": {"metric": "cosine"}}),
        ("normalization", {"graph": {"normalization": "bistochastic"}}),
        ("weighting", {"weighting": "symmetric"}),
        ("stationary", {"stationary": "keep"}),
        ("random_matrix", {"random_matrix": "rademacher"}),
    ],
)
def test_sketches_with_other_options_are_an_error(name, options):
    X = cloud(60)
    with pytest.raises(HeatSketchError, match=rf"before has {name}=.* but after has"):
        drift(made(X), made(X, **options))


# --- all times, by definition --------------------------------------------------------------


def rows_within_components(made):
    """Return the rows of the sum over all times by dense linear algebra."""
    graph = made.graph
    A, labels = graph.operator, graph.components[graph.order]
    v = A.stationary / np.linalg.norm(A.stationary)
    matrix = A @ np.eye(len(v))
    for label in np.unique(labels):
        own = np.where(labels == label, v, 0)
        matrix -= np.outer(own, own) / (own @ own)
    alpha = 1 - 1 / HORIZON
    rows = np.linalg.inv(np.eye(len(v)) - alpha * matrix)
    rows = np.linalg.matrix_power(matrix, made.first_power) @ rows / v[:, np.newaxis]
    places = np.argsort(graph.order)
    return rows[np.ix_(places, places)]


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_the_drift_of_components_is_that_within_them():
    """A group of points is drawn anew, and is a component of its own before and after."""
    X = np.concatenate([cloud(80, 2), cloud(80, 2, seed=1) + 100])
    after = np.concatenate([X[:80], cloud(80, 2, seed=2) + 100])
    graphs = [HeatGraph.from_points(points) for points in (X, after)]
    n_runs, covered = 60, 0
    for seed in range(n_runs):
        one, two = (sketch(graph, 32, random_state=seed) for graph in graphs)
        found = drift(one, two)
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
    moved = (X + 0.01 * cloud(500, 2, seed=seed) for seed in (1, 2))
    one, two = (sketch(HeatGraph.from_points(points), 256) for points in moved)
    assert (one.times.interval != two.times.interval).any()
    total = np.sum((rows_within_components(one) - rows_within_components(two)) ** 2)
    apart = np.sum((one.embedding - two.embedding) ** 2)
    found = drift(one, two)
    assert found.low < total < found.high < apart
