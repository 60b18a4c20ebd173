"""Harmonic extension, against dense solutions of the same equations."""

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud, graph_of
from scipy import sparse

from heatsketch import HeatGraph, harmonic
from heatsketch.exceptions import DisconnectedGraphWarning, SpectrumError

ROWS = np.array([3, 50, 51, 90])
VALUES = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.5]])


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
    solution = np.zeros((len(walk), np.shape(values)[1]))
    solution[rows] = values
    inner = np.eye(len(inside)) - walk[np.ix_(inside, inside)]
    solution[inside] = np.linalg.solve(inner, walk[np.ix_(inside, rows)] @ values)
    return solution


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("normalization", ["degree", "symmetric", "bistochastic"])
@pytest.mark.parametrize("seed", SEEDS)
def test_errors_are_within_the_tolerance(seed, normalization, tolerance):
    graph = graph_of(cloud(120, 2, seed), 0.5, 8, normalization)
    found = harmonic(graph, VALUES, ROWS, tolerance=tolerance)
    wanted = dense_solution(graph.operator, VALUES, ROWS)
    assert np.abs(found - wanted).max() <= tolerance
    assert np.abs(found.sum(axis=1) - 1).max() <= 2 * tolerance


def test_self_loops_change_nothing():
    K = sparse.csr_array(affinity(cloud(120, 2), 0.5, n_neighbors=8))
    looped = K + sparse.diags_array(np.linspace(0, 50, 120))
    one, other = (
        harmonic(HeatGraph.from_affinity(W, self_loops=False), VALUES, ROWS, tolerance=1e-9)
        for W in (K, looped)
    )
    np.testing.assert_allclose(one, other, atol=2e-9)


def test_constants_stay_and_the_rest_scales():
    graph = graph_of(circle(100), 0.5, 8)
    constant = harmonic(graph, np.full(4, 7.0), ROWS)
    assert constant.shape == (100,)
    np.testing.assert_allclose(constant, 7, atol=7e-6)
    found = harmonic(graph, VALUES, ROWS)
    np.testing.assert_allclose(harmonic(graph, -1e9 * VALUES, ROWS), -1e9 * found, rtol=1e-9)
    np.testing.assert_array_equal(harmonic(graph, np.zeros(4), ROWS), 0)
    np.testing.assert_array_equal(found[ROWS], VALUES)


def test_all_rows_may_be_given():
    values = np.arange(100.0)
    found = harmonic(graph_of(circle(100), 0.5, 8), values, np.arange(100))
    np.testing.assert_allclose(found, values, rtol=1e-15)


def test_a_tolerance_below_rounding_is_an_error():
    """Which tells how many steps a walk takes from the farthest row: one, and those after it."""
    graph = graph_of(circle(100), 0.5, 8)
    with pytest.raises(SpectrumError, match="is not reached") as caught:
        harmonic(graph, VALUES, ROWS, tolerance=1e-20)
    walk = walk_without_loops(graph.operator)
    inside = np.setdiff1d(np.arange(100), ROWS)
    inner = np.eye(len(inside)) - walk[np.ix_(inside, inside)]
    n_steps = np.linalg.solve(inner, np.ones(len(inside))).max()
    assert f"takes up to {n_steps:.1e} steps" in str(caught.value)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_in_the_order_of_the_points(seed):
    """In whatever order, and with copies, which share rows of the graph."""
    X = np.vstack([cloud(100, 2, seed), np.repeat(cloud(10, 2, seed), 20, axis=0)])
    graph = HeatGraph.from_points(X, ids=np.random.default_rng(seed).permutation(len(X)))
    found = harmonic(graph, VALUES, ROWS)
    np.testing.assert_array_equal(found[ROWS], VALUES)
    places = np.argsort(graph.order)
    inner = dense_solution(graph.operator, VALUES, places[ROWS])
    np.testing.assert_allclose(found, inner[places], atol=1e-6)


def test_rows_that_no_walk_leaves_for_a_given_one_are_nan_with_a_warning():
    X = np.vstack([cloud(60, 2), cloud(40, 2) + 100])
    with pytest.warns(DisconnectedGraphWarning):
        graph = HeatGraph.from_points(X)
    with pytest.warns(DisconnectedGraphWarning, match="40 of 100 points"):
        found = harmonic(graph, np.eye(2), [3, 5])
    assert np.isfinite(found[:60]).all()
    assert np.isnan(found[60:]).all()
