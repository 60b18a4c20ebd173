"""Distances in an embedding and exact ones, against what dense matrices say."""

import numpy as np
import pytest
from registry import SEEDS, affinity, cloud

from heatsketch.diffusion import (
    bilipschitz_constant,
    diffusion_distances,
    diffusion_neighbors,
    exact_diffusion_distances,
    heat_operator,
    symmetric_scaling,
)
from heatsketch.diffusion._confidence import distance_estimate, order_confidence
from heatsketch.exceptions import HeatSketchError

PAIRS = np.array([[0, 1], [8, 3], [3, 3], [1, 0]])


def lengths(points, pairs):
    return np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)


# --- exact ------------------------------------------------------------------------------------


def powers_written_out(A, power, stationary, weighting):
    """Rows of a dense power of the operator."""
    dense = A @ np.eye(A.shape[0])
    v = A.stationary / np.linalg.norm(A.stationary)
    rows = np.linalg.matrix_power(dense, power)
    rows = rows - np.outer(v, v) if stationary == "drop" else rows
    return rows / v[:, np.newaxis] if weighting == "random_walk" else rows


@pytest.mark.parametrize("weighting", ["symmetric", "random_walk"])
@pytest.mark.parametrize("stationary", ["drop", "keep"])
@pytest.mark.parametrize("power", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_exact_distances_are_those_between_rows_of_a_power(seed, power, stationary, weighting):
    K = affinity(cloud(9, seed=seed), 2.0)
    A = heat_operator(K, symmetric_scaling(K))
    options = {"power": power, "stationary": stationary, "weighting": weighting}
    rows = powers_written_out(A, **options)
    everyone = np.stack(np.triu_indices(9), axis=1)
    all_of_them = exact_diffusion_distances(A, **options)
    np.testing.assert_allclose(all_of_them[*everyone.T], lengths(rows, everyone), atol=1e-14)
    np.testing.assert_array_equal(all_of_them, all_of_them.T)
    some = exact_diffusion_distances(A, PAIRS.tolist(), **options)
    np.testing.assert_allclose(some, lengths(rows, PAIRS), atol=1e-14)


# --- of an embedding --------------------------------------------------------------------------


def test_distances_and_intervals_are_those_of_the_differences():
    Y = cloud(9, 16)
    found = diffusion_distances(Y, PAIRS)
    np.testing.assert_allclose(found.distance, lengths(Y, PAIRS), rtol=1e-14)
    wanted = distance_estimate(Y[PAIRS[:, 0]] - Y[PAIRS[:, 1]], 0.95)
    np.testing.assert_array_equal(found, wanted)
    rougher = diffusion_distances(Y, PAIRS, confidence=0.5, random_matrix="rademacher")
    wanted = distance_estimate(Y[PAIRS[:, 0]] - Y[PAIRS[:, 1]], 0.5, random_matrix="rademacher")
    np.testing.assert_array_equal(rougher, wanted)


def test_simultaneous_intervals_share_the_doubt():
    Y = cloud(9, 16)
    together = diffusion_distances(Y, PAIRS, simultaneous=True, confidence=0.9)
    apart = diffusion_distances(Y, PAIRS, confidence=1 - 0.1 / len(PAIRS))
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    assert diffusion_distances(Y, np.zeros((0, 2), int), simultaneous=True).distance.shape == (0,)


# --- neighbours -------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_points", "n_neighbors"), [(9, 1), (9, 3), (9, 7), (60, 50)])
def test_neighbors_are_the_nearest_others(n_points, n_neighbors):
    Y, rows = cloud(n_points, 16), [4, 0]
    found = diffusion_neighbors(Y, rows, n_neighbors=n_neighbors, confidence=0.8)
    for place, row in enumerate(rows):
        order = np.argsort(np.linalg.norm(Y - Y[row], axis=1))[1:]
        np.testing.assert_array_equal(found.indices[place], order[:n_neighbors])
        pairs = [(row, other) for other in order]
        # Intervals allow for as many candidates as were not selected.
        rarer = 1 - 0.2 * n_neighbors / (n_points - 1)
        wanted = diffusion_distances(Y, pairs[:n_neighbors], confidence=rarer)
        parts = [part[place] for part in (found.distance, found.low, found.high)]
        np.testing.assert_allclose(parts, wanted, rtol=1e-12)
        apart = Y[order] - Y[row]
        sure = order_confidence(apart[:n_neighbors], apart[1 : n_neighbors + 1])
        np.testing.assert_allclose(found.confidence[place], sure, rtol=1e-14)


def test_nobody_is_a_neighbor_of_itself_and_duplicates_are():
    Y = np.repeat(cloud(3, 4), 3, axis=0)
    found = diffusion_neighbors(Y, np.arange(9), n_neighbors=2)
    for row in range(9):
        assert set(found.indices[row]) == set(range(row // 3 * 3, row // 3 * 3 + 3)) - {row}
    np.testing.assert_array_equal(found.distance, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_points_have_all_rows_as_candidates(dtype):
    Y, new = (1e-30 * cloud(12, 16)).astype(dtype), (1e-30 * cloud(3, 16, seed=1)).astype(dtype)
    found = diffusion_neighbors(Y, new, n_neighbors=11)
    joined = np.vstack([Y, new])
    for place in range(3):
        order = np.argsort(np.linalg.norm((Y - new[place]).astype(float), axis=1))
        np.testing.assert_array_equal(found.indices[place], order[:11])
        pairs = [(12 + place, other) for other in order[:11]]
        wanted = diffusion_distances(joined, pairs, confidence=1 - 0.05 * 11 / 12)
        parts = [part[place] for part in (found.distance, found.low, found.high)]
        np.testing.assert_allclose(parts, wanted, rtol=1e-12)
    # Each of them is its own nearest row.
    np.testing.assert_array_equal(
        diffusion_neighbors(Y, Y[[7, 2]], n_neighbors=1).indices, [[7], [2]]
    )
    with pytest.raises(HeatSketchError, match="n_neighbors must be from 1 to 11"):
        diffusion_neighbors(Y, new, n_neighbors=12)


# --- distortion -------------------------------------------------------------------------------


def test_the_distortion_is_the_largest_stretch_over_the_smallest():
    distances = [[0, 1, 2], [1, 0, 4], [2, 4, 0]]
    Y = [[0], [2], [10]]  # stretched by 2, 5 and 2
    assert bilipschitz_constant(Y, distances) == 2.5
    assert bilipschitz_constant(np.float32(Y) / 1024, distances) == 2.5


def test_points_that_fall_together_or_are_torn_apart_have_no_finite_distortion():
    apart = np.ones((3, 3)) - np.eye(3)
    assert bilipschitz_constant([[0], [0], [1]], apart) == np.inf
    together = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    assert bilipschitz_constant([[0], [1], [2]], together) == np.inf
    assert bilipschitz_constant([[0], [0], [2]], together) == 1
    with pytest.raises(
        HeatSketchError,
        match=r"of 3 points are all zero, so no .*; give at least two different points.$",
    ):
        bilipschitz_constant([[0], [1], [2]], np.zeros((3, 3)))
