"""Harmonic extension, against dense solutions of the same equations."""

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud
from scipy import sparse

from heatsketch import HeatSketch
from heatsketch.diffusion import _harmonic as module
from heatsketch.diffusion import (
    bistochastic_scaling,
    degree_scaling,
    harmonic_extension,
    heat_operator,
    symmetric_scaling,
)
from heatsketch.exceptions import DisconnectedGraphWarning, HeatSketchError, SpectrumError

SCALINGS = [degree_scaling, symmetric_scaling, bistochastic_scaling]
ROWS = np.array([3, 50, 51, 90])
VALUES = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.5]])


def neighbor_operator(X, scaling=symmetric_scaling):
    K = sparse.csr_array(affinity(X, 0.5, n_neighbors=8))
    return heat_operator(K, scaling(K))


def dense_walk(A):
    matrix = A @ np.eye(A.shape[0], dtype=A.dtype)
    v = A.stationary.astype(float)
    walk = matrix * v / v[:, np.newaxis]
    return walk / walk.sum(axis=1, keepdims=True)


def walk_without_loops(A):
    """The walk without the steps that stay, which change no harmonic value."""
    walk = dense_walk(A)
    np.fill_diagonal(walk, 0)
    return walk / walk.sum(axis=1, keepdims=True)


def dense_solution(A, values, rows):
    """Means over the first given row that a walk meets, from the transition matrix."""
    walk = dense_walk(A)
    inside = np.setdiff1d(np.arange(len(walk)), rows)
    found = np.zeros((len(walk), np.shape(values)[1]))
    found[rows] = values
    inner = np.eye(len(inside)) - walk[np.ix_(inside, inside)]
    found[inside] = np.linalg.solve(inner, walk[np.ix_(inside, rows)] @ values)
    return found


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_errors_are_within_the_tolerance(seed, scaling, tolerance):
    A = neighbor_operator(cloud(120, 2, seed), scaling)
    found = harmonic_extension(A, VALUES, ROWS, tolerance=tolerance)
    assert np.abs(found - dense_solution(A, VALUES, ROWS)).max() <= tolerance
    assert np.abs(found.sum(axis=1) - 1).max() <= 2 * tolerance


def test_float32_models_lose_nothing_but_the_precision_of_their_weights():
    X = cloud(120, 2)
    single = harmonic_extension(neighbor_operator(X.astype("float32")), VALUES, ROWS)
    assert single.dtype == np.float64
    np.testing.assert_allclose(single.sum(axis=1), 1, atol=2e-6)
    double = harmonic_extension(neighbor_operator(X), VALUES, ROWS)
    np.testing.assert_allclose(single, double, atol=1e-4)


def test_self_loops_change_nothing():
    K = sparse.csr_array(affinity(cloud(120, 2), 0.5, n_neighbors=8))
    A = heat_operator(K, degree_scaling(K))
    looped = sparse.csr_array(K + sparse.diags_array(np.linspace(0, 50, 120)))
    B = heat_operator(looped, degree_scaling(looped))
    options = {"values": VALUES, "rows": ROWS, "tolerance": 1e-9}
    np.testing.assert_allclose(
        harmonic_extension(A, **options), harmonic_extension(B, **options), atol=2e-9
    )


def test_constants_stay_and_the_rest_scales():
    A = neighbor_operator(circle(100))
    constant = harmonic_extension(A, np.full(4, 7.0), ROWS)
    assert constant.shape == (100,)
    np.testing.assert_allclose(constant, 7, atol=7e-6)
    found = harmonic_extension(A, VALUES, ROWS)
    np.testing.assert_allclose(harmonic_extension(A, -1e9 * VALUES, ROWS), -1e9 * found, rtol=1e-9)
    np.testing.assert_array_equal(harmonic_extension(A, np.zeros(4), ROWS), 0)
    np.testing.assert_array_equal(found[ROWS], VALUES)


def test_all_rows_may_be_given():
    A = neighbor_operator(circle(100))
    values = np.arange(100.0)
    np.testing.assert_allclose(harmonic_extension(A, values, np.arange(100)), values, rtol=1e-15)


def test_rows_that_no_walk_leaves_for_a_given_one_are_nan():
    X = np.vstack([cloud(60, 2), cloud(40, 2) + 100])
    A = neighbor_operator(X)
    found = harmonic_extension(A, [0.0, 1.0], rows=[0, 1])
    assert np.isfinite(found[:60]).all()
    assert np.isnan(found[60:]).all()


def test_a_tolerance_below_rounding_is_an_error():
    """Which tells how many steps a walk takes from the farthest row: one, and those after it."""
    A = neighbor_operator(circle(100))
    with pytest.raises(SpectrumError, match="is not reached") as caught:
        harmonic_extension(A, VALUES, ROWS, tolerance=1e-20)
    walk = walk_without_loops(A)
    inside = np.setdiff1d(np.arange(100), ROWS)
    inner = np.eye(len(inside)) - walk[np.ix_(inside, inside)]
    n_steps = np.linalg.solve(inner, np.ones(len(inside))).max()
    assert f"takes up to {n_steps:.1e} steps" in str(caught.value)


def test_the_number_of_steps_is_limited(monkeypatch):
    begun, done = [], []
    monkeypatch.setattr(module, "MOST_STEPS", 6)
    monkeypatch.setattr(
        module, "steps", lambda *about: (begun.append(about), lambda: done.append(1))[1]
    )
    with pytest.raises(SpectrumError, match="is not reached"):
        harmonic_extension(neighbor_operator(circle(100)), VALUES, ROWS)
    assert begun[0] == ("harmonic extension", 6)
    assert len(done) == 6


@pytest.mark.parametrize("left", [0.0, 0.3])
def test_the_bound_holds_whatever_the_error_is(left):
    """Of a system with a known solution, and as the docstring of the module has it."""
    rng = np.random.default_rng(0)
    system = np.eye(30) - 0.9 * rng.dirichlet(np.ones(30), 30)
    n_steps, solution = np.linalg.solve(system, np.ones(30)), rng.normal(size=(30, 3))
    found = np.column_stack([solution, (1 - left) * n_steps])
    found[4, 1] += 0.5
    residual = np.column_stack([system @ solution, np.ones(30)]) - system @ found
    rest = np.abs(residual).max(axis=0)
    bound = module._bound(found, residual)
    assert bound >= 0.5
    assert bound == pytest.approx(found[:, 3].max() / (1 - rest[3]) * rest[:3].max())
    assert rest[3] == pytest.approx(left, abs=1e-12)
    found[:, 3] = 0
    assert module._bound(found, np.column_stack([residual[:, :3], np.ones(30)])) == np.inf
    assert module._bound(found, 0 * residual) == 0
    residual[:, :3] = 0
    assert module._bound(found, residual) == 0  # whatever is known of the steps


def test_a_column_that_is_solved_stays_while_others_go_on():
    A = neighbor_operator(circle(100))
    found = harmonic_extension(A, np.column_stack([VALUES, np.zeros(4)]), ROWS)
    np.testing.assert_array_equal(found[:, 2], 0)
    np.testing.assert_allclose(found[:, :2], harmonic_extension(A, VALUES, ROWS), atol=2e-6)
    np.testing.assert_array_equal(module._ratios(np.ones(3), np.array([0.0, 2, 4])), [0, 0.5, 0.25])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32"])
def test_values_of_any_number_are_the_same_numbers(dtype):
    A, values = neighbor_operator(circle(100)), np.array([1, 0, 0, 1])
    found = harmonic_extension(A, values.astype(dtype), ROWS.astype("uint8"))
    np.testing.assert_array_equal(found, harmonic_extension(A, values.astype(float), ROWS))


@pytest.mark.parametrize(
    ("values", "rows", "message"),
    [
        ([1.0], [0.5], "must be integers"),
        ([], [], "at least one"),
        ([1.0, 2.0], [0, 0], "different rows from 0 to 99"),
        ([1.0], [100], "different rows from 0 to 99"),
        ([1.0], [-1], "different rows from 0 to 99"),
        ([1.0, 2.0], [0], "for 1 rows"),
        (["a"], [0], "real numbers"),
        ([np.nan], [0], "NaN or infinity in row 0"),
        ([[1.0, 2.0], [3.0, np.inf], [np.nan, 0.0]], [7, 8, 9], "NaN or infinity in row 1"),
        ([1.0], [[0]], r"rows=\[\[0\]\] must be integers"),
        ([[[1.0]]], [0], r"values has shape \(1, 1, 1\)"),
    ],
)
def test_invalid_values_are_named(values, rows, message):
    with pytest.raises(HeatSketchError, match=message):
        harmonic_extension(neighbor_operator(circle(100)), values, rows)


def test_an_operator_of_all_pairs_is_an_error():
    K = affinity(circle(30), 0.5)
    A = heat_operator(K, degree_scaling(K))
    with pytest.raises(HeatSketchError, match="n_neighbors=15"):
        harmonic_extension(A, [1.0], [0])


# --- the method of a model -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_counts_rows_as_they_were_given(seed):
    """In whatever order, and with copies, which share rows of the graph."""
    X = np.vstack([cloud(100, 2, seed), np.repeat(cloud(10, 2, seed), 20, axis=0)])
    ids = np.random.default_rng(seed).permutation(len(X))
    rows = ROWS
    model = HeatSketch(2, power=1).fit(X, row_ids=ids)
    found = model.harmonic(VALUES, rows)
    np.testing.assert_array_equal(found[rows], VALUES)
    places = np.argsort(model.order_)
    inner = dense_solution(model.heat_operator_, VALUES, places[rows])
    np.testing.assert_allclose(found, inner[places], atol=1e-6)


def test_a_model_warns_of_rows_without_fate():
    X = np.vstack([cloud(60, 2), cloud(40, 2) + 100])
    with pytest.warns(DisconnectedGraphWarning, match="connected components: distances"):
        model = HeatSketch(2, power=1).fit(X)
    with pytest.warns(DisconnectedGraphWarning, match="40 of 100 points"):
        found = model.harmonic(np.eye(2), [3, 5])
    assert np.isnan(found[60:]).all()
