"""Distances in an embedding and exact ones, against what dense matrices say."""

import re

import dask.array as da
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
from heatsketch.exceptions import HeatSketchError, MissingValueError

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


def test_without_words_the_stationary_direction_is_dropped_and_rows_are_as_they_are():
    K = affinity(cloud(9), 2.0)
    A = heat_operator(K, symmetric_scaling(K))
    words = {"stationary": "drop", "weighting": "symmetric"}
    np.testing.assert_array_equal(
        exact_diffusion_distances(A, power=2), exact_diffusion_distances(A, power=2, **words)
    )


def test_before_any_time_all_points_are_as_far_apart():
    K = affinity(cloud(9), 2.0)
    A = heat_operator(K, symmetric_scaling(K))
    np.testing.assert_allclose(exact_diffusion_distances(A, [[0, 1]], power=0), np.sqrt([2]))


def test_exact_distances_are_double_whatever_the_operator():
    K = affinity(cloud(9), 2.0).astype(np.float32)
    A = heat_operator(K, symmetric_scaling(K))
    for pairs in (None, PAIRS):
        found = exact_diffusion_distances(A, pairs, power=2, weighting="random_walk")
        assert found.dtype == np.float64


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


def test_of_a_lazy_embedding_some_rows_are_enough():
    Y = cloud(9, 16)
    lazy = da.from_array(Y, chunks=(2, 16)).map_blocks(reject_row, Y[5], meta=Y[:0])
    np.testing.assert_array_equal(diffusion_distances(lazy, PAIRS), diffusion_distances(Y, PAIRS))


def reject_row(block, row):
    assert not (block == row).all(axis=1).any(), "this row was not asked for"
    return block


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("column", [0, 3])
def test_a_row_without_numbers_is_named(bad, column):
    Y = cloud(9, 4)
    Y[3, column] = bad
    says = "^Y holds NaN or infinity in row 8 or the one compared with it; drop such rows.$"
    with pytest.raises(MissingValueError, match=says):
        diffusion_distances(Y, PAIRS[:2])
    diffusion_distances(Y, PAIRS[:1])


def test_of_numbers_of_single_precision_the_difference_is_double():
    Y = cloud(9, 4).astype(np.float32)
    wanted = diffusion_distances(Y.astype(np.float64), PAIRS)
    np.testing.assert_array_equal(diffusion_distances(Y, PAIRS), wanted)
    assert wanted.distance.dtype == diffusion_distances(Y, PAIRS).distance.dtype == np.float64


BAD_PAIRS = {
    "rows of different lengths": (
        [[0, 1], [2]],
        r"pairs=\[\[0, 1\], \[2\]\] has rows of different lengths; give two row numbers in each of "
        r"them\.$",
    ),
    "one row": (
        np.array([0, 1]),
        r"pairs has shape \(2,\) and dtype int64; give two row numbers in each of its rows.$",
    ),
    "three columns": (np.zeros((2, 3), int), r"pairs has shape \(2, 3\)"),
    "fractions": (np.zeros((2, 2)), "dtype float64"),
    "before the first": (
        [[-1, 0]],
        "^pairs has rows from -1 to 0, but there are 9; count them from 0.$",
    ),
    "after the last": ([[0, 9]], "from 0 to 9, but there are 9"),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_pairs_that_are_none_are_rejected(name):
    pairs, words = BAD_PAIRS[name]
    with pytest.raises(HeatSketchError, match=words):
        diffusion_distances(cloud(9, 4), pairs)


# --- neighbours -------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_points", "n_neighbors"), [(9, 1), (9, 3), (9, 7), (60, 50)])
def test_neighbors_are_the_nearest_others(n_points, n_neighbors):
    Y, rows = cloud(n_points, 16), [4, 0]
    found = diffusion_neighbors(Y, rows, n_neighbors=n_neighbors, confidence=0.8)
    for place, row in enumerate(rows):
        order = np.argsort(np.linalg.norm(Y - Y[row], axis=1))[1:]
        np.testing.assert_array_equal(found.indices[place], order[:n_neighbors])
        pairs = [(row, other) for other in order]
        distance, low, _ = diffusion_distances(Y, pairs[:n_neighbors], confidence=0.8)
        # The upper end allows for as many candidates as were not chosen.
        rarer = 1 - 0.2 * n_neighbors / (n_points - 1)
        high = diffusion_distances(Y, pairs[:n_neighbors], confidence=rarer).high
        np.testing.assert_allclose(
            [found.distance[place], found.low[place]], [distance, low], rtol=1e-14
        )
        np.testing.assert_allclose(found.high[place], high, rtol=1e-12)  # 1 - rarer is rounded
        apart = Y[order] - Y[row]
        sure = order_confidence(apart[:n_neighbors], apart[1 : n_neighbors + 1])
        np.testing.assert_allclose(found.confidence[place], sure, rtol=1e-14)


def test_the_confidence_of_neighbors_is_as_often_as_of_distances():
    Y = cloud(9, 16)
    found = diffusion_neighbors(Y, [4], n_neighbors=2, random_matrix="rademacher")
    pairs = [(4, other) for other in found.indices[0]]
    options = {"random_matrix": "rademacher"}
    wanted = diffusion_distances(Y, pairs, confidence=0.95, **options)
    np.testing.assert_allclose(found.low[0], wanted.low, rtol=1e-14)
    wanted = diffusion_distances(Y, pairs, confidence=1 - 0.05 * 2 / 8, **options)
    np.testing.assert_allclose(found.high[0], wanted.high, rtol=1e-12)


def test_simultaneous_intervals_of_neighbors_allow_for_each_of_them():
    Y, n_neighbors = cloud(20, 16), 4
    together = diffusion_neighbors(Y, [4], n_neighbors=n_neighbors, simultaneous=True)
    rarer = 1 - 0.05 / n_neighbors
    for mine, wanted in zip(
        together,
        diffusion_neighbors(Y, [4], n_neighbors=n_neighbors, confidence=rarer),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, wanted)


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
        wanted = diffusion_distances(joined, pairs)
        np.testing.assert_allclose(found.low[place], wanted.low, rtol=1e-12)
        rarer = diffusion_distances(joined, pairs, confidence=1 - 0.05 * 11 / 12)
        np.testing.assert_allclose(found.high[place], rarer.high, rtol=1e-12)
    # Each of them is its own nearest row.
    np.testing.assert_array_equal(
        diffusion_neighbors(Y, Y[[7, 2]], n_neighbors=1).indices, [[7], [2]]
    )
    with pytest.raises(HeatSketchError, match=r"n_neighbors=12 of 12 points .*; use 1 to 11"):
        diffusion_neighbors(Y, new, n_neighbors=12)


def test_points_of_whole_numbers_have_neighbors_too():
    Y = (10 * cloud(12, 16)).astype(int)
    found, wanted = (diffusion_neighbors(form, [3, 5], n_neighbors=4) for form in (Y, Y + 0.0))
    for mine, its in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_an_embedding_changes_no_neighbor(scale):
    Y, rows = cloud(20, 16), [4, 0]
    found = diffusion_neighbors(scale * Y, rows, n_neighbors=5)
    wanted = diffusion_neighbors(Y, rows, n_neighbors=5)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_allclose(found.confidence, wanted.confidence, rtol=1e-9)


def test_neighbors_are_a_table_in_a_notebook():
    page = diffusion_neighbors(cloud(20, 16), [4, 0], n_neighbors=3)._repr_html_()
    names = re.findall("<th>(.*?)</th>", page)
    assert names == ["query", "rank", "indices", "distance", "low", "high", "confidence"]
    rows = [re.findall("<td>(.*?)</td>", row) for row in page.split("<tr>")[2:]]
    assert [row[:2] for row in rows] == [[q, r] for q in "01" for r in "123"]


@pytest.mark.parametrize("n_neighbors", [0, 8])
def test_as_many_neighbors_as_can_be_distinguished(n_neighbors):
    words = f"n_neighbors={n_neighbors} of 9 points have no next one to compare with; use 1 to 7"
    with pytest.raises(HeatSketchError, match=words):
        diffusion_neighbors(cloud(9, 4), [0], n_neighbors=n_neighbors)


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


REJECTED = {"stationary": "forget", "weighting": "heavy", "power": -1}


@pytest.mark.parametrize("name", REJECTED)
def test_words_that_say_nothing_are_rejected(name):
    K = affinity(cloud(9), 2.0)
    A = heat_operator(K, symmetric_scaling(K))
    with pytest.raises(
        HeatSketchError, match=f"{name}={REJECTED[name]!r} (is .*; use|must be an int)"
    ):
        exact_diffusion_distances(A, **{"power": 1, name: REJECTED[name]})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([-1], "rows has rows from -1"),
        ([20], "to 20, but there are 20"),
        ([1.0], "dtype float64"),
        ([True] * 20, "dtype bool"),
        (3, r"shape \(\)"),
        ([[1, 2]], r"shape \(1, 2\)"),
    ],
)
def test_neighbors_of_no_row_are_rejected(rows, says):
    with pytest.raises(HeatSketchError, match=says):
        diffusion_neighbors(cloud(20, 8), rows, n_neighbors=2)
