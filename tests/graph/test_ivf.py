"""Lists of near points: the same laws as for exact neighbours."""

from itertools import pairwise

import numpy as np
import pytest
from checks import check_extension
from registry import SEEDS, circle, cloud

from heatsketch import HeatSketch, LocalEngine
from heatsketch._core.parallel import at_most
from heatsketch.engines._recall import FEWEST, MOST, choose_probes
from heatsketch.graph import neighbor_graph
from heatsketch.graph._ivf import (
    Level,
    NeighborLists,
    by_centroid,
    grow_tree,
    grown_levels,
    joined_level,
    places_of_sample,
    search_lists,
    search_within,
)
from heatsketch.graph._neighbors import find_neighbors, squared_distances

MODULE = "heatsketch.graph._ivf"


def swarm(n=3000, dimension=6, seed=0, dtype=np.float64):
    """Points of uneven density, with duplicates and a far one."""
    X = cloud(n, dimension, seed)
    X[: n // 2] /= 10
    X[n // 2 : n // 2 + 50] = X[:50]
    X[-1] = 5
    return X.astype(dtype)


@pytest.fixture
def everything_in_lists(monkeypatch):
    monkeypatch.setattr("heatsketch.engines._local.EXACT_COMPARISONS", 0)


def assert_same_bits(one, other):
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_those_of_the_points(seed, dtype):
    X = swarm(seed=seed, dtype=dtype)
    neighbors, d2 = find_neighbors(X, n_neighbors=8, n_probes=6)
    np.testing.assert_array_equal(np.sort(neighbors.order), np.arange(len(X)))
    np.testing.assert_array_equal(neighbors.points, X[neighbors.order])
    assert_same_bits(d2, d2.T.tocsr())
    everything = neighbor_graph(neighbors.points)
    rows = np.repeat(np.arange(len(X)), np.diff(d2.indptr))
    np.testing.assert_array_equal(d2.data, everything[rows, d2.indices])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rule_is_the_one_that_is_written(seed):
    """An edge if one looks into the other's list and finds it within its radius."""
    X, k = swarm(1500, seed=seed), 8
    neighbors, d2 = find_neighbors(X, n_neighbors=k, n_probes=3)
    lists, everything = neighbors.lists, neighbor_graph(neighbors.points)
    looks = (lists.probes[:, :, np.newaxis] == lists.probes[:, 0]).any(axis=1)
    radii = np.sort(np.where(looks, everything, np.inf), axis=1)[:, k - 1]
    finds = looks & (everything <= radii[:, np.newaxis])
    np.testing.assert_array_equal(neighbors.radii, radii)
    stored = np.zeros(d2.shape, bool)
    stored[np.repeat(np.arange(len(X)), np.diff(d2.indptr)), d2.indices] = True
    np.testing.assert_array_equal(stored, finds | finds.T)


@pytest.mark.parametrize("most", [0.1, 20.0])  # within 20 is everything, which takes more space
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_within_a_limit_is_found(seed, most):
    rng, points = np.random.default_rng(seed), swarm(900, seed=seed)
    starts, queries = np.array([0, 200, 200, 900]), points[::9]
    probes = np.array([[0, 1], [2, -1], [1, -1], [2, 0]], np.int32)[rng.integers(4, size=100)]
    limits = most * rng.random(100) ** 2
    found = search_within(queries, probes, points, starts, limits, np.full(100, np.inf))
    own_list = np.repeat([0, 2], [200, 700])
    looks = (probes[:, :, np.newaxis] == own_list).any(axis=1)
    everything = squared_distances(queries, points)
    wanted = looks & (everything <= limits[:, np.newaxis])
    finders = np.repeat(np.arange(100), np.diff(found.indptr))
    np.testing.assert_array_equal(found.squares, everything[finders, found.ids])
    assert len(found.ids) == wanted.sum()
    assert wanted[finders, found.ids].all()
    assert len(set(zip(finders, found.ids, strict=True))) == len(found.ids)


def test_points_beyond_two_billion_have_their_numbers(tmp_path):
    """As many as int32 cannot count, in a file without content; the last list has ten of them."""
    points = np.memmap(tmp_path / "points", np.float32, "w+", shape=(2**31 + 10, 1))
    starts, probes = np.array([0, 2**31, 2**31 + 10]), np.ones((1, 1), np.int32)
    query, wanted = np.ones((1, 1), np.float32), np.arange(2**31, 2**31 + 10)
    found = search_lists(query, probes, points, starts, 1)
    np.testing.assert_array_equal(found.ids, wanted)
    limits = np.array([1], np.float32), np.array([np.inf])
    found = search_within(query, probes, points, starts, *limits)
    np.testing.assert_array_equal(np.sort(found.ids), wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_lists_probed_find_all_neighbors(seed, monkeypatch):
    monkeypatch.setattr(f"{MODULE}.BEAM", 1000)
    X = swarm(seed=seed)
    tree = grow_tree(X)
    lists = NeighborLists.arrange(X, tree, tree.n_lists)
    d2 = lists.graph(8)[0]
    assert_same_bits(
        d2, neighbor_graph(X, n_neighbors=8)[lists.order][:, lists.order].sorted_indices()
    )


@pytest.mark.untraced
@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_lists_find_most_neighbors(seed):
    X = circle(20_000, seed)
    _, d2 = find_neighbors(X, n_neighbors=10, n_probes=4)
    assert d2.nnz >= 0.999 * neighbor_graph(X, n_neighbors=10).nnz
    X = cloud(20_000, 5, seed)
    neighbors, d2 = find_neighbors(X, n_neighbors=10, n_probes=16)
    exact = neighbor_graph(X, n_neighbors=10)[neighbors.order][:, neighbors.order]
    found = d2.astype(bool).multiply(exact.astype(bool)).sum() / exact.astype(bool).sum()
    assert found > 0.95


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
@pytest.mark.usefixtures("everything_in_lists")
def test_training_points_keep_every_bit(metric, normalization):
    model = HeatSketch(8, n_neighbors=7, metric=metric, weights=9.0)
    model.set_params(normalization=normalization)
    check_extension(model, swarm(1200, dtype=np.float32), rtol=0, batch=300)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("everything_in_lists")
def test_rows_permuted_with_their_ids_permute_the_embedding(seed):
    X, ids = swarm(seed=seed), np.random.default_rng(seed).permutation(3000) + 7
    shuffled = np.random.default_rng(seed + 1).permutation(3000)
    model = HeatSketch(8, n_neighbors=7, weights=9.0)
    wanted = model.fit(X, ids=ids).embedding_[shuffled]
    np.testing.assert_array_equal(model.fit(X[shuffled], ids=ids[shuffled]).embedding_, wanted)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("group", [64, 1000])
def test_threads_and_groups_do_not_matter(monkeypatch, n_threads, group):
    X = swarm()
    wanted = find_neighbors(X, n_neighbors=8, n_probes=4)[1]
    monkeypatch.setattr(f"{MODULE}.GROUP", group)
    with at_most(n_threads):
        assert_same_bits(find_neighbors(X, n_neighbors=8, n_probes=4)[1], wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_grown_apart_are_those_of_the_tree(monkeypatch, seed):
    monkeypatch.setattr(f"{MODULE}.CHILDREN", 5)
    monkeypatch.setattr(f"{MODULE}.SEEN_PER_CHILD", 16)  # so that not everything is seen
    sample = swarm(seed=seed)
    root, *others = wanted = grown_levels(sample, 3)
    parts = by_centroid(sample, root.centroids)
    assert [len(level.starts) - 1 for level in wanted[:2]] == [1, len(parts)]
    branches = [grown_levels(part, 2) for part in parts]
    for level, of_branches in zip(others, zip(*branches, strict=True), strict=True):
        for part, found in zip(Level._fields, joined_level(list(of_branches)), strict=True):
            np.testing.assert_array_equal(found, getattr(level, part))


@pytest.mark.parametrize("n_points", [1, 127, 1000, 20_001])
@pytest.mark.parametrize("n_chunks", [1, 3, 7])
def test_chunks_together_have_the_sample_of_the_whole(n_points, n_chunks):
    starts = [i * n_points // n_chunks for i in range(n_chunks + 1)]
    found = [places_of_sample(n_points, *ends) for ends in pairwise(starts)]
    wanted = places_of_sample(n_points)
    np.testing.assert_array_equal(np.concatenate(found), wanted)
    assert wanted[0] == 0
    assert len(wanted) == min(n_points, -(-n_points // 128) * 32)


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_that_run_out_do_so_for_each_point_alone(monkeypatch, seed):
    """With a narrow beam a point may see fewer lists than it asks for, and others more."""
    monkeypatch.setattr(f"{MODULE}.BEAM", 1)
    monkeypatch.setattr(f"{MODULE}.CHILDREN", 6)
    X = swarm(seed=seed)
    neighbors, d2 = find_neighbors(X, n_neighbors=5, n_probes=20)
    n_lists = (neighbors.lists.probes >= 0).sum(axis=1)
    assert 1 <= n_lists.min() < n_lists.max() <= 20
    rows = np.random.default_rng(seed).permutation(len(X))[:40]
    for some in (rows, rows[:1], rows[1:3]):
        found = neighbors.distances_to(neighbors.points[some])
        assert_same_bits(found, d2[some])


# --- how many lists to probe ----------------------------------------------------------------


def test_probes_are_as_many_as_the_sketch_can_tell():
    easy, hard = circle(20_000), cloud(20_000, 20)
    trees = {id(X): grow_tree(X) for X in (easy, hard)}

    def chosen(X, tolerance):
        return choose_probes(X, trees[id(X)], n_neighbors=10, tolerance=tolerance)

    assert chosen(easy, 0.05) == FEWEST
    assert chosen(hard, 0.05) > chosen(hard, 0.3) >= FEWEST


def test_what_the_sketch_says_of_probes_is_true_of_exact_neighbors(monkeypatch):
    """The tolerance is met against the exact graph, which the choice has never seen."""
    X = cloud(20_000, 9)
    tree = grow_tree(X)
    n_probes = choose_probes(X, tree, n_neighbors=10, tolerance=0.05)
    assert FEWEST < n_probes < MOST
    engine = LocalEngine(graph_tolerance=0)
    exact = HeatSketch(32, n_neighbors=10, weights=9.0, engine=engine).fit_transform(X)
    monkeypatch.setattr("heatsketch.engines._local.EXACT_COMPARISONS", 0)
    monkeypatch.setattr("heatsketch.engines._local.choose_probes", lambda *_, **__: n_probes)
    listed = HeatSketch(32, n_neighbors=10, weights=9.0).fit_transform(X)
    pairs = np.random.default_rng(0).permutation(len(X)).reshape(2, -1)
    apart, wanted = (np.linalg.norm(Y[pairs[0]] - Y[pairs[1]], axis=1) for Y in (listed, exact))
    assert 0 < np.std(apart / wanted) < 0.05
