"""Laws of the sketch: theorems of the paper; ``test_relations.py`` has relations between two."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import SEEDS, affinity, circle, cloud
from scipy import stats
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from heatsketch import HeatSketch
from heatsketch.diffusion import (
    estimate_epsilon,
    exact_diffusion_distances,
    gaussian_matrix,
    heat_operator,
    heat_trace,
    rademacher_matrix,
    ritz_pairs,
    sketch,
    sketch_all_times,
    sketch_heat,
    sketch_path,
    symmetric_scaling,
)
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._sketch import diffuse
from heatsketch.exceptions import HeatSketchError, SpectrumError

BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}


def operator(X, normalization="symmetric", epsilon=0.5, n_neighbors=None):
    K = affinity(X, epsilon, n_neighbors)
    return heat_operator(K, SCALINGS[normalization](K))


def test_before_any_time_a_sketch_is_its_random_block():
    G = gaussian_matrix(9, 4, seed=0)
    np.testing.assert_array_equal(sketch(operator(cloud(9)), G, power=0), G / 2)


@pytest.mark.parametrize("n_neighbors", [None, 8])
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("power", [1, 4, 7])
def test_squared_distances_are_unbiased(power, kind, normalization, n_neighbors):
    """E |y_i - y_j|^2 = d_p(i, j)^2, for both random matrices, even and odd powers."""
    n, columns = 40, 40_000
    A = operator(cloud(n, 2), normalization, n_neighbors=n_neighbors)
    Y = sketch(A, BLOCKS[kind](n, columns, seed=1), power=power)
    pairs = np.array([[0, 1], [2, 30], [10, 39]])
    found = ((Y[pairs[:, 0]] - Y[pairs[:, 1]]) ** 2).sum(axis=1)
    exact = exact_diffusion_distances(A, pairs, power=power) ** 2
    # A chi-squared mean of so many columns has this standard error; signs have a smaller one.
    np.testing.assert_allclose(found, exact, rtol=5 * np.sqrt(2 / columns))


# What is made from an operator and a block.
MADE_FROM_A_BLOCK = {
    "a few steps": lambda A, G: sketch(A, G, power=3),
    "a sum": lambda A, G: sketch(A, G, power=300),
    "a path": lambda A, G: np.array(sketch_path(A, G, powers=[2, 300])),
    "heat": lambda A, G: sketch_heat(A, G, time=20.5),
    "all times": sketch_all_times,
    "a trace": lambda A, G: heat_trace(A, G, largest=3).trace,
    "eigenpairs": lambda A, G: ritz_pairs(A, G, 2).values,
}


@pytest.mark.parametrize("n_neighbors", [None, 7])
@pytest.mark.parametrize("made", list(MADE_FROM_A_BLOCK)[:4])
def test_the_precision_is_the_higher_of_operator_and_block(made, n_neighbors):
    function, K = MADE_FROM_A_BLOCK[made], affinity(cloud(50), 1.5, n_neighbors)
    G = gaussian_matrix(50, 4, seed=0).astype(np.float32)
    double, single = (heat_operator(k, symmetric_scaling(k)) for k in (K, K.astype(np.float32)))
    wanted = function(double, G.astype(np.float64))
    np.testing.assert_array_equal(function(double, G), wanted)
    found = function(single, G.astype(np.float64))
    assert found.dtype == np.float64
    error = 300 * np.finfo(np.float32).eps  # of so many products with rounded entries
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error * abs(wanted).max())


INVALID_BLOCKS = {
    "too few rows": lambda G: G[:30],
    "too many rows": lambda G: np.vstack([G, G]),
    "no rows": lambda G: G[:0],
    "one axis": lambda G: G[:, 0],
    "three axes": lambda G: G[..., np.newaxis],
    "complex numbers": lambda G: G + 1j,
    "words": lambda G: G.astype(str),
    "NaN": lambda G: np.where(G > 2, np.nan, G),
    "infinity": lambda G: np.where(G > 2, -np.inf, G),
}


@pytest.mark.parametrize("n_neighbors", [None, 7])
@pytest.mark.parametrize("invalid", INVALID_BLOCKS)
@pytest.mark.parametrize("made", MADE_FROM_A_BLOCK)
def test_an_invalid_block_is_rejected_by_name(made, invalid, n_neighbors):
    A, G = operator(cloud(50), epsilon=1.5, n_neighbors=n_neighbors), gaussian_matrix(50, 4, seed=0)
    with pytest.raises(HeatSketchError, match=r"^G (has|holds)"):
        MADE_FROM_A_BLOCK[made](A, INVALID_BLOCKS[invalid](G))


SAME_BLOCKS = {
    "columns one after another": np.asfortranarray,
    "rows backwards": lambda G: G[::-1].copy()[::-1],
    "other byte order": lambda G: G.astype(">f8"),
    "long doubles": lambda G: G.astype(np.longdouble),
    "a list": lambda G: G.tolist(),
    "signs as integers": lambda G: G.astype(np.int8),
    "signs as halves": lambda G: G.astype(np.float16),
}


@pytest.mark.parametrize("n_neighbors", [None, 7])
@pytest.mark.parametrize("same", SAME_BLOCKS)
@pytest.mark.parametrize("made", MADE_FROM_A_BLOCK)
def test_however_a_block_is_stored_it_is_the_same(made, same, n_neighbors):
    A = operator(cloud(50), epsilon=1.5, n_neighbors=n_neighbors)
    G = rademacher_matrix(50, 4, seed=0)
    wanted = MADE_FROM_A_BLOCK[made](A, G)
    np.testing.assert_array_equal(MADE_FROM_A_BLOCK[made](A, SAME_BLOCKS[same](G)), wanted)


def test_a_matrix_is_no_heat_operator():
    with pytest.raises(HeatSketchError, match="A is a ndarray, not a heat operator"):
        sketch(np.eye(9), gaussian_matrix(9, 2, seed=0), power=3)


def test_after_all_heat_is_gone_nothing_is_computed():
    """Of fifty points none is left after ten thousand steps; digits of 1e-320 are not sought."""
    A, G = operator(cloud(50), epsilon=1.5, n_neighbors=7), gaussian_matrix(50, 4, seed=0)
    assert not sketch(A, G, power=20_000).any()
    assert not np.any(sketch_path(A, G, powers=[15_000, 20_000]))
    assert not sketch_heat(A, G, time=20_000).any()


@pytest.mark.parametrize("time", [1_000_001, 1e12, 1e300])
def test_times_without_end_are_rejected(time):
    A, G = operator(cloud(50), epsilon=1.5, n_neighbors=7), gaussian_matrix(50, 4, seed=0)
    with pytest.raises(SpectrumError, match="use at most 1000000"):
        sketch(A, G, power=time)
    with pytest.raises(SpectrumError, match="use at most 1000000"):
        sketch_heat(A, G, time=time)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ratio_of_squares_is_chi_squared(seed):
    """k |y_i - y_j|^2 / d^2 has exactly k degrees of freedom, for every pair."""
    n, k, trials = 30, 4, 5000
    A = operator(circle(n), epsilon=0.3)
    G = gaussian_matrix(n, k * trials, seed=seed)
    Y = diffuse(A, G, power=3)
    squares = ((Y[3] - Y[17]) ** 2).reshape(trials, k).sum(axis=1)
    exact = exact_diffusion_distances(A, [[3, 17]], power=3)[0] ** 2
    assert stats.kstest(squares / exact, stats.chi2(k).cdf).pvalue > 1e-4


@pytest.mark.parametrize("k", [16, 64, 256])
def test_the_relative_error_of_a_distance_is_what_the_readme_says(k):
    """About 1 / sqrt(2 k): 9 % with 64 columns."""
    n, trials = 20, 4000
    A = operator(circle(n), epsilon=0.3)
    Y = diffuse(A, gaussian_matrix(n, k * trials, seed=0), power=2)
    found = np.sqrt(((Y[1] - Y[9]) ** 2).reshape(trials, k).sum(axis=1) / k)
    exact = exact_diffusion_distances(A, [[1, 9]], power=2)[0]
    # The standard deviation of 4000 numbers is known to 1.1 %; the formula is off by 1 / 8 k.
    assert np.std(found / exact) == pytest.approx(1 / np.sqrt(2 * k), rel=0.05)


@pytest.mark.parametrize("stationary", ["drop", "keep"])
@pytest.mark.parametrize("normalization", SCALINGS)
def test_exact_distances_are_distances_between_rows_of_the_power(normalization, stationary):
    A = operator(cloud(50, 2), normalization)
    dense = A @ np.eye(50)
    rows = np.linalg.matrix_power(dense, 5)
    if stationary == "drop":
        v = A.stationary / np.linalg.norm(A.stationary)
        rows -= np.outer(v, v)
    wanted = np.linalg.norm(rows[:, np.newaxis] - rows, axis=2)
    found = exact_diffusion_distances(A, power=5, stationary=stationary)
    np.testing.assert_allclose(found, wanted, atol=1e-13)
    some = exact_diffusion_distances(A, [[4, 9], [9, 4], [7, 7]], power=5, stationary=stationary)
    np.testing.assert_allclose(some, [wanted[4, 9], wanted[4, 9], 0], atol=1e-13)


def test_the_stationary_part_is_a_translation_for_the_bistochastic_normalization():
    A = operator(cloud(50, 2), "bistochastic")
    np.testing.assert_allclose(
        exact_diffusion_distances(A, power=3, stationary="keep"),
        exact_diffusion_distances(A, power=3, stationary="drop"),
        atol=1e-11,
    )


@given(powers=st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_a_path_is_its_sketches(powers):
    A = operator(circle(30))
    G = gaussian_matrix(30, 3, seed=0)
    for Y, power in zip(sketch_path(A, G, powers=powers), powers, strict=True):
        np.testing.assert_array_equal(Y, sketch(A, G, power=power))


def test_rows_are_sorted_by_ids_of_any_kind():
    X, ids = cloud(40), np.random.default_rng(0).permutation(40)
    for kind in (np.int64, np.uint64, np.uint8):
        model = HeatSketch(4, power=2, n_neighbors=6).fit(X, row_ids=ids.astype(kind))
        np.testing.assert_array_equal(model.order_, np.argsort(ids))


def test_the_choice_of_epsilon_goes_by_the_ids_of_the_rows(monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._bandwidth.EPSILON_ENTRIES", 40 * 200)
    X = cloud(200) * (1 + (np.arange(200) % 5 == 0))[:, np.newaxis]
    order = np.random.default_rng(0).permutation(200)
    first = HeatSketch(4, epsilon="auto").fit(X)
    second = HeatSketch(4, epsilon="auto").fit(X[order], row_ids=order)
    assert second.epsilon_ == first.epsilon_
    assert (
        HeatSketch(4, epsilon="auto").fit(X[order]).epsilon_ != first.epsilon_
    )  # it is a choice of some rows


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dimension_from_some_points_is_that_of_all(seed):
    """Within the standard error of twenty samples that share no point."""
    X = cloud(2000, 3, seed)
    squares = cdist(X, X, "sqeuclidean")
    wanted = estimate_epsilon(squares).dimension
    found = [estimate_epsilon(part).dimension for part in np.split(squares[:1000], 20)]
    error = np.std(found, ddof=1) / np.sqrt(20)
    assert error < 0.02 * wanted
    assert abs(np.mean(found) - wanted) < 4 * error


@pytest.mark.parametrize("dtype", [int, bool, np.float32])
def test_a_graph_may_have_whole_weights(dtype):
    K = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    wanted = heat_operator(K.astype(float), symmetric_scaling(K.astype(float))) @ np.eye(3)
    for held in (K.astype(dtype), csr_array(K.astype(dtype))):
        A = heat_operator(held, symmetric_scaling(held))
        np.testing.assert_allclose(A @ np.eye(3), wanted, rtol=1e-6)
        assert np.isfinite(sketch(A, gaussian_matrix(3, 4, seed=0, dtype=A.dtype), power=3)).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"power": 1, "stationary": "Keep"}, r"stationary='Keep' is unknown; use"),
        ({"power": -1}, r"power=-1 must be an integer of at least 0"),
        ({"power": 1.5}, r"power=1.5 must be an integer of at least 0"),
        ({"power": np.nan}, r"power=nan must be an integer of at least 0"),
        ({"power": 1, "pairs": [[0, 1], [2]]}, "different lengths"),
        ({"power": 1, "pairs": [0, 1]}, r"pairs has shape \(2,\) and dtype int64; give"),
    ],
)
def test_exact_distances_reject_what_means_nothing(options, says):
    with pytest.raises(HeatSketchError, match=says):
        exact_diffusion_distances(operator(circle(10)), **options)
