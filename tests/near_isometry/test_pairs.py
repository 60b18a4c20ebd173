"""The worst pairs are those of all pairs, or nearly so if they are searched."""

import numpy as np
import pytest
from distortions import log_distortion
from registry import SEEDS, cloud, helix

from heatsketch.near_isometry._distortion import _Points, least_distortion_map
from heatsketch.near_isometry._pairs import hardest, scan_pairs


@pytest.mark.parametrize("seed", SEEDS)
def test_a_scan_finds_the_extremes(seed, monkeypatch):
    monkeypatch.setattr("heatsketch.near_isometry._pairs.TILE_ENTRIES", 1000)
    Z = cloud(100, 6, seed)
    found = scan_pairs(Z[:, :2].copy(), Z, n_each=3)
    assert found.n_pairs == 100 * 99 // 2
    assert found.log_distortion == pytest.approx(log_distortion(Z[:, :2], Z))
    stretches = found.pairs.stretches(Z[:, :2].copy())
    assert (stretches.min(), stretches.max()) == pytest.approx((found.low, found.high))


def all_pairs(Y, Z):
    """Return the ends of all pairs, and their squared distances and stretches."""
    i, j = np.triu_indices(len(Z), 1)
    squares = ((Z[i] - Z[j]) ** 2).sum(axis=1)
    return i, j, squares, ((Y[i] - Y[j]) ** 2).sum(axis=1) / squares


@pytest.mark.parametrize("n_each", [1, 2, 5, 100])
def test_a_scan_keeps_the_extremes_of_each_point(n_each, monkeypatch):
    monkeypatch.setattr("heatsketch.near_isometry._pairs.TILE_ENTRIES", 300)
    Z = cloud(70, 5)
    for columns in (slice(2), slice(1, 3)):
        Y = np.ascontiguousarray(Z[:, columns])
        i, j, squares, stretches = all_pairs(Y, Z)
        wanted = {}
        for point in range(69):
            rows = np.flatnonzero(i == point)
            order = rows[np.argsort(stretches[rows])]
            for row in (*order[:n_each], *order[-n_each:]):
                wanted[i[row], j[row]] = squares[row]
        found = scan_pairs(Y, Z, n_each=n_each)
        pairs = list(zip(found.pairs.first.tolist(), found.pairs.second.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs) == len(found.pairs)
        assert set(pairs) == wanted.keys()
        np.testing.assert_allclose(found.pairs.squares, [wanted[pair] for pair in pairs])
        assert (found.low, found.high) == pytest.approx((stretches.min(), stretches.max()))
        assert found.n_pairs == len(i)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copies_and_rounding_are_no_pairs(dtype):
    Z = cloud(50, 4).astype(dtype) + 100
    copies = np.vstack([Z, Z[:10], Z[10:20] * (1 + 2 * np.finfo(dtype).eps)])
    found = scan_pairs(np.ascontiguousarray(copies[:, :2]), copies)
    assert found.n_pairs == 70 * 69 // 2 - 20
    wanted = scan_pairs(np.ascontiguousarray(Z[:, :2]), Z)
    assert found.log_distortion == pytest.approx(wanted.log_distortion, rel=1e-2)
    assert np.isfinite(least_distortion_map(copies, 2).log_distortion)


def test_hardest_pairs_are_the_ends_of_the_order():
    Z = cloud(40, 3)
    Y = Z[:, :1].copy()
    pairs = scan_pairs(Y, Z, n_each=40).pairs
    stretches = np.sort(pairs.stretches(Y))
    ends = np.concatenate([stretches[:10], stretches[-10:]])
    np.testing.assert_array_equal(np.sort(hardest(Y, pairs, 20).stretches(Y)), ends)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_finds_nearly_the_worst_pair(seed, monkeypatch):
    monkeypatch.setattr("heatsketch.near_isometry._distortion.MOST_SCANNED", 500)
    Z = helix(4000, seed)
    Y = Z @ np.random.default_rng(seed).normal(size=(8, 3))
    exact = scan_pairs(Y, Z)
    found = _Points(Z, Z).search(Y, np.random.default_rng(seed))
    assert found.n_pairs < exact.n_pairs / 2
    assert 0.95 * exact.log_distortion < found.log_distortion <= exact.log_distortion + 1e-9
    # The pairs are in the order in which the points were given.
    i, j = found.pairs.first, found.pairs.second
    np.testing.assert_allclose(((Z[i] - Z[j]) ** 2).sum(axis=1), found.pairs.squares)
