"""The worst pairs are those of all pairs, or nearly so if they are searched."""

import numpy as np
import pytest
from distortions import log_distortion
from registry import SEEDS, cloud, helix

from heatsketch.diffusion._distortion import least_distortion_map
from heatsketch.diffusion._pair_search import (
    CLOSE,
    ROUNDING,
    Pairs,
    PairSearch,
    PairTiles,
    Stretches,
    hardest,
    joined,
    scan_pairs,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_scan_finds_the_extremes(seed, monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._pair_search.TILE_ENTRIES", 1000)
    Z = cloud(100, 6, seed)
    found = scan_pairs(Z[:, :2].copy(), Z, n_each=3)
    assert found.exact and found.n_pairs == 100 * 99 // 2
    assert found.log_distortion == pytest.approx(log_distortion(Z[:, :2], Z))
    stretches = found.pairs.stretches(Z[:, :2].copy())
    assert (stretches.min(), stretches.max()) == pytest.approx((found.low, found.high))


def all_pairs(Y, Z):
    """Return the ends of all pairs, and their squared distances and stretches."""
    i, j = np.triu_indices(len(Z), 1)
    squares = ((Z[i] - Z[j]) ** 2).sum(axis=1)
    return i, j, squares, ((Y[i] - Y[j]) ** 2).sum(axis=1) / squares


@pytest.mark.parametrize("n_each", [1, 2, 5, 100])
@pytest.mark.parametrize("kept", [0, 10_000])
def test_a_scan_keeps_the_extremes_of_each_point(n_each, kept, monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._pair_search.TILE_ENTRIES", 300)
    monkeypatch.setattr("heatsketch.diffusion._pair_search.KEPT", kept)
    Z = cloud(70, 5)
    tiles = PairTiles(Z)
    for columns in (slice(2), slice(1, 3)):  # the second time with distances of the first
        Y = np.ascontiguousarray(Z[:, columns])
        i, j, squares, stretches = all_pairs(Y, Z)
        wanted = {}
        for point in range(69):
            rows = np.flatnonzero(i == point)
            order = rows[np.argsort(stretches[rows])]
            for row in (*order[:n_each], *order[-n_each:]):
                wanted[i[row], j[row]] = squares[row]
        found = tiles.worst(Y, n_each=n_each)
        pairs = list(zip(found.pairs.first.tolist(), found.pairs.second.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs) == len(found.pairs)
        assert set(pairs) == wanted.keys()
        np.testing.assert_allclose(found.pairs.squares, [wanted[pair] for pair in pairs])
        assert (found.low, found.high) == pytest.approx((stretches.min(), stretches.max()))
        assert (found.n_pairs, found.exact) == (len(i), True)
    assert bool(tiles._kept) == bool(kept)


@pytest.mark.parametrize("entries", [60, 1_000_000])
def test_pairs_that_are_close_are_measured_in_another_way(entries, monkeypatch):
    """Twins at distances around the limit, and points that are equal."""
    monkeypatch.setattr("heatsketch.diffusion._pair_search.TILE_ENTRIES", entries)
    Z = np.vstack([cloud(20, 3), cloud(20, 3)[:8]])
    norms = np.linalg.norm(Z[20:], axis=1)
    limit = CLOSE * ROUNDING * np.finfo(float).eps
    Z[20:27, 0] += norms[:7] * limit * [0.005, 0.1, 0.5, 0.9, 1.1, 2, 10]
    Y = np.ascontiguousarray(Z[:, :2])
    seen = []

    def of_close(pairs):
        seen.extend(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
        np.testing.assert_array_equal(pairs.squares > 0, True)
        return np.full(len(pairs), 10_000.0)

    found = PairTiles(Z, of_close=of_close).worst(Y)
    assert sorted(seen) == [(0, 20), (1, 21), (2, 22), (3, 23)]
    assert (found.high, found.n_pairs) == (10_000, 28 * 27 // 2 - 1)
    # Pairs that differ by more than rounding are left out only if nobody measures them.
    assert PairTiles(Z).worst(Y).n_pairs == found.n_pairs - 1


def test_a_pair_without_distance_in_the_image_is_an_infinite_distortion():
    Z = np.eye(3)
    assert scan_pairs(Z[:, :1].copy(), Z).log_distortion == np.inf
    assert scan_pairs(np.ones((4, 1)), np.ones((4, 2)))[1:] == (np.inf, 0, 0, True)
    assert scan_pairs(np.ones((4, 1)), np.ones((4, 2))).log_distortion == 0


def test_results_are_joined_with_each_pair_once():
    one = Stretches(Pairs(*np.array([[0, 5, 2], [1, 3, 7], [1, 2, 3]])), 0.5, 2.0, 10, True)
    two = Stretches(Pairs(*np.array([[3, 7, 0], [5, 8, 2], [2, 4, 5]])), 0.25, 1.5, 7, True)
    found = joined([one, two])
    assert found[1:] == (0.25, 2.0, 17, False)
    pairs = found.pairs
    rows = sorted(zip(pairs.first, pairs.second, pairs.squares, strict=True))
    assert rows == [(0, 1, 1), (0, 2, 5), (2, 7, 3), (3, 5, 2), (7, 8, 4)]
    assert joined([two, one], exact=True).exact
    far = Pairs(np.array([3, 2**31 - 1]), np.array([2**31 - 1, 2**31 - 2]), np.ones(2))
    last = joined([Stretches(far, 1, 1, 1, False)]).pairs
    assert (last.first.tolist(), last.second.tolist()) == ([3, 2**31 - 2], [2**31 - 1] * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_copies_and_rounding_are_no_pairs(dtype):
    Z = cloud(50, 4).astype(dtype) + 100
    copies = np.vstack([Z, Z[:10], Z[10:20] * (1 + 2 * np.finfo(dtype).eps)])
    found = scan_pairs(np.ascontiguousarray(copies[:, :2]), copies)
    assert found.n_pairs == 70 * 69 // 2 - 20
    wanted = scan_pairs(np.ascontiguousarray(Z[:, :2]), Z)
    assert found.log_distortion == pytest.approx(wanted.log_distortion, rel=1e-2)
    assert np.isfinite(least_distortion_map(copies, 2).log_distortion)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_finds_nearly_the_worst_pair(seed, monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._pair_search.SAMPLE", 500)
    Z = helix(4000, seed)
    Y = Z @ np.random.default_rng(seed).normal(size=(8, 3))
    exact = scan_pairs(Y, Z)
    found = PairSearch.arrange(Z).worst(Y, n_pairs=2000, seed=seed)
    assert not found.exact and found.n_pairs < exact.n_pairs / 2
    assert 0.95 * exact.log_distortion < found.log_distortion <= exact.log_distortion + 1e-9
    # The pairs are in the order in which the points were given.
    i, j = found.pairs.first, found.pairs.second
    np.testing.assert_allclose(((Z[i] - Z[j]) ** 2).sum(axis=1), found.pairs.squares)


def test_hardest_pairs_are_the_ends_of_the_order():
    Z = cloud(40, 3)
    Y = Z[:, :1].copy()
    pairs = joined([scan_pairs(Y, Z, n_each=40)]).pairs
    kept = hardest(Y, pairs, 20)
    stretches = np.sort(pairs.stretches(Y))
    np.testing.assert_array_equal(
        np.sort(kept.stretches(Y)), np.concatenate([stretches[:10], stretches[-10:]])
    )


def test_stretches_of_pairs_in_parts(monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._pair_search.LISTED_PAIRS", 7)
    Z = cloud(40, 3)
    Y = Z[:, :1].copy()
    i, j, squares, stretches = all_pairs(Y, Z)
    some = np.random.default_rng(0).permutation(len(i))  # in another order than in freed memory
    found = Pairs(i, j, squares)[some].stretches(Y)
    np.testing.assert_allclose(found, stretches[some])


def test_few_pairs_are_all_the_hardest():
    Z = cloud(10, 3)
    pairs = scan_pairs(Z[:, :1].copy(), Z).pairs
    assert hardest(Z[:, :1].copy(), pairs, len(pairs)) is pairs
    kept = hardest(Z[:, :1].copy(), pairs, 5)
    assert len(kept) == 4  # half of either kind


# --- a search -------------------------------------------------------------------------------


@pytest.fixture
def search():
    """Points with copies, of which a sample of 100 is scanned."""
    Z = helix(1500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heatsketch.diffusion._pair_search.SAMPLE", 100)
        patch.setattr("heatsketch.diffusion._pair_search.LISTED_PAIRS", 1000)
        yield PairSearch.arrange(np.vstack([Z, Z[:20]]))


def test_neighbors_are_pairs_with_their_distances(search):
    Z, pairs = search.points, search.neighbors
    np.testing.assert_allclose(Z, np.vstack([helix(1500), helix(1500)[:20]])[search.order])
    np.testing.assert_allclose(
        ((Z[pairs.first] - Z[pairs.second]) ** 2).sum(axis=1), pairs.squares, atol=1e-12
    )
    assert (pairs.first < pairs.second).all()
    linked = set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(linked) == len(pairs)
    # Nine neighbours of each point, most of them mutual.
    assert 9 * 1520 / 2 < len(pairs) < 9 * 1520
    rows = np.arange(1520)[:, np.newaxis]
    assert search.near.shape == (1520, 10)
    ends = zip(*np.broadcast_arrays(rows, search.near), strict=True)
    assert all(
        i == j or (min(i, j), max(i, j)) in linked
        for one, other in ends
        for i, j in zip(one.tolist(), other.tolist(), strict=True)
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_climb_ends_where_no_neighbor_is_better(search, sign, monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._pair_search.MOST_STEPS", 1000)
    Y = np.ascontiguousarray(search.points[:, :3])
    rng = np.random.default_rng(0)
    starts = search._pairs(*rng.permutation(1520)[:60].reshape(2, 30))
    found = search._climb(Y, starts, sign)
    before, after = starts.stretches(Y), found.pairs.stretches(Y)
    assert (sign * after <= sign * before + 1e-12).all()
    assert np.median(sign * (before - after)) > 0
    assert (found.low, found.high) == (after.min(), after.max())
    for i, j, reached in zip(found.pairs.first, found.pairs.second, after, strict=True):
        others = [(k, j) for k in search.near[i]] + [(i, k) for k in search.near[j]]
        moved = search._pairs(*np.array(others).T)
        values = moved[search._is_sound(moved)].stretches(Y)
        assert (sign * values >= sign * reached - 1e-12).all()
    # Each round looks at twenty pairs for each that still moves.
    assert found.n_pairs % 20 == 0
    assert found.n_pairs > 20 * 30


def test_a_climb_ends_after_some_steps(search, monkeypatch):
    Y = np.ascontiguousarray(search.points[:, :3])
    starts = search._pairs(np.arange(0, 400, 10), np.arange(1000, 1400, 10))
    seen = []
    for most in (0, 1, 2):
        monkeypatch.setattr("heatsketch.diffusion._pair_search.MOST_STEPS", most)
        seen.append(search._climb(Y, starts, 1))
    np.testing.assert_array_equal(seen[0].pairs.first, starts.first)
    assert [found.n_pairs for found in seen[:2]] == [0, 20 * 40]
    assert seen[2].low <= seen[1].low < seen[0].low
    changed = (seen[1].pairs.first != starts.first).astype(int)
    changed += seen[1].pairs.second != starts.second
    assert changed.max() == 1


def test_a_sample_is_scanned_and_climbed_from_both_ends(search):
    Y = np.ascontiguousarray(search.points[:, :3])
    scanned, down, up = search._climbed(Y, 4)
    chosen = np.random.default_rng(4).permutation(1520)[:100]
    wanted = scan_pairs(Y[chosen], search.points[chosen])
    assert scanned[1:] == wanted[1:]
    pairs = scanned.pairs
    np.testing.assert_allclose(
        ((search.points[pairs.first] - search.points[pairs.second]) ** 2).sum(axis=1),
        pairs.squares,
    )
    assert down.low <= scanned.low and up.high >= scanned.high
    n_shrunk = np.count_nonzero(pairs.stretches(Y) < np.sqrt(scanned.low * scanned.high))
    assert (len(down.pairs), len(up.pairs)) == (n_shrunk, len(pairs) - n_shrunk)


def test_copies_are_left_out_of_a_search(search):
    Y = np.ascontiguousarray(np.vstack([helix(1500), helix(1500)[:20]])[:, :3])
    found = search.worst(Y, n_pairs=400, seed=0)
    assert (found.pairs.squares > 0).all()
    assert np.isfinite(found.log_distortion)
    assert len(found.pairs) <= 5 * 200
    pairs, before = found.pairs, np.vstack([helix(1500), helix(1500)[:20]])
    np.testing.assert_allclose(
        ((before[pairs.first] - before[pairs.second]) ** 2).sum(axis=1), pairs.squares
    )
