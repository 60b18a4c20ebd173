"""Lists of near points: the same laws as for exact neighbours."""

from itertools import pairwise

import numpy as np
import pytest
from registry import SEEDS, circle, cloud

from heatsketch import HeatSketch, LocalEngine
from heatsketch._core.parallel import at_most
from heatsketch._core.progress import reporting_to, steps
from heatsketch.engines._recall import FEWEST, MOST, choose_probes
from heatsketch.exceptions import (
    DegenerateKernelError,
    HeatSketchError,
)
from heatsketch.graph import neighbor_graph
from heatsketch.graph._ivf import (
    Found,
    Level,
    ListTree,
    NeighborLists,
    by_centroid,
    grow_tree,
    grown_levels,
    joined_level,
    places_of_sample,
    search_lists,
    search_within,
    sort_rows,
)
from heatsketch.graph._neighbors import find_neighbors, squared_distances
from heatsketch.testing import check_extension

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
    found = search_within(queries, probes, points, starts, limits)
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
    found = search_within(query, probes, points, starts, np.array([1], np.float32))
    np.testing.assert_array_equal(np.sort(found.ids), wanted)


@pytest.mark.parametrize("wrong", ["queries", "probes", "limits"])
def test_shapes_that_do_not_fit_are_rejected(wrong):
    parts = {"queries": np.zeros((3, 2)), "probes": np.zeros((3, 1), int), "limits": np.ones(3)}
    parts[wrong] = parts[wrong][:2] if wrong != "queries" else np.zeros((3, 4))
    with pytest.raises(HeatSketchError, match=r"shape.*\d,.*; pass"):
        search_within(
            parts["queries"], parts["probes"], cloud(9, 2), np.array([0, 9]), parts["limits"]
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_any_length_are_sorted_with_their_squares(seed):
    rng, lengths = np.random.default_rng(seed), [0, 1, 63, 64, 65, 0, 2000, 7]
    indptr = np.cumsum([0, *lengths])
    ids = np.concatenate([rng.permutation(3000)[:length] for length in lengths]).astype(np.int32)
    found = Found(indptr, ids.copy(), ids / 7)
    sort_rows(found)
    wanted = np.concatenate([np.sort(row) for row in np.split(ids, indptr[1:-1])])
    np.testing.assert_array_equal(found.ids, wanted)
    np.testing.assert_array_equal(found.squares, wanted / 7)


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
    model = HeatSketch(8, n_neighbors=7, metric=metric, epsilon=9.0)
    model.set_params(normalization=normalization)
    check_extension(model, swarm(1200, dtype=np.float32), rtol=0, batch=300)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("everything_in_lists")
def test_rows_permuted_with_their_ids_permute_the_embedding(seed):
    X, ids = swarm(seed=seed), np.random.default_rng(seed).permutation(3000) + 7
    shuffled = np.random.default_rng(seed + 1).permutation(3000)
    model = HeatSketch(8, n_neighbors=7, epsilon=9.0)
    wanted = model.fit(X, row_ids=ids).embedding_[shuffled]
    np.testing.assert_array_equal(model.fit(X[shuffled], row_ids=ids[shuffled]).embedding_, wanted)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("group", [64, 1000])
def test_threads_and_groups_do_not_matter(monkeypatch, n_threads, group):
    X = swarm()
    wanted = find_neighbors(X, n_neighbors=8, n_probes=4)[1]
    monkeypatch.setattr(f"{MODULE}.GROUP", group)
    with at_most(n_threads):
        assert_same_bits(find_neighbors(X, n_neighbors=8, n_probes=4)[1], wanted)


def test_a_tree_has_as_many_levels_as_its_lists_need(monkeypatch):
    X = cloud(20_000)
    assert ListTree().n_lists == 1
    assert len(grow_tree(X).levels) == 2
    monkeypatch.setattr(f"{MODULE}.CHILDREN", 4)
    tree = grow_tree(X)
    assert len(tree.levels) == 4
    assert 0.5 < tree.n_lists / (20_000 / 128) < 2
    order = NeighborLists.arrange(X, tree, 4).order
    steps = np.linalg.norm(np.diff(X[order], axis=0), axis=1).mean()
    assert steps < np.linalg.norm(np.diff(X, axis=0), axis=1).mean() / 2


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


def test_the_sample_of_ten_billion_points_is_where_it_should_be():
    n_points = 10**10
    places = places_of_sample(n_points, n_points - 10_000, n_points)
    assert n_points - 10_000 <= places[0] < places[-1] < n_points
    assert set(np.diff(places)) <= {3, 4}


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


def test_points_with_many_copies_each_are_neighbors_of_their_copies():
    X = np.repeat(cloud(60), 50, axis=0)
    neighbors, d2 = find_neighbors(X, n_neighbors=10, n_probes=8)
    assert not neighbors.radii.any()
    assert d2.nnz == 60 * 50**2


def test_centroids_that_nothing_is_near_are_left_out(monkeypatch):
    monkeypatch.setattr(f"{MODULE}.CHILDREN", 3)
    X = np.repeat(cloud(5), 400, axis=0)
    tree = grow_tree(X)
    assert len(tree.levels) == 3
    assert tree.n_lists == 5
    assert all((np.diff(level.starts) > 0).all() for level in tree.levels)
    assert len(np.unique(NeighborLists.arrange(X, tree, 1).probes)) == 5


def test_equal_points_share_a_list():
    X = np.zeros((2000, 3))
    X[:500] = 1
    tree = grow_tree(X)
    lists = NeighborLists.arrange(X, tree, 2)
    d2, radii, _ = lists.graph(10)
    assert not radii.any()
    assert d2.nnz == 500**2 + 1500**2


def test_too_many_copies_are_rejected(monkeypatch):
    monkeypatch.setattr(f"{MODULE}.MOST_TIES", 500)
    X = np.vstack([np.zeros((2000, 2)), cloud(1000, 2)])
    with pytest.raises(DegenerateKernelError, match=r"500 points at .* 0 .*unique"):
        find_neighbors(X, n_neighbors=5)


# --- how many lists to probe ----------------------------------------------------------------


def test_probes_are_as_many_as_the_sketch_can_tell():
    easy, hard = circle(20_000), cloud(20_000, 20)
    trees = {id(X): grow_tree(X) for X in (easy, hard)}

    def chosen(X, tolerance):
        return choose_probes(X, trees[id(X)], n_neighbors=10, tolerance=tolerance)

    assert chosen(easy, 0.05) == FEWEST
    assert chosen(hard, 0.05) > chosen(hard, 0.3) >= FEWEST


def test_trials_of_probes_are_not_reported_as_progress():
    X, begun = circle(12_000), []
    tree = grow_tree(X)
    with reporting_to(lambda name, n_steps: begun.append(name) or (lambda: None)):
        choose_probes(X, tree, n_neighbors=10, tolerance=0.05)
        assert not begun
        steps("neighbours", 1)  # later reports arrive
    assert begun == ["neighbours"]


def test_what_the_sketch_says_of_probes_is_true_of_exact_neighbors(monkeypatch):
    """The tolerance is met against the exact graph, which the choice has never seen."""
    X = cloud(20_000, 9)
    tree = grow_tree(X)
    n_probes = choose_probes(X, tree, n_neighbors=10, tolerance=0.05)
    assert FEWEST < n_probes < MOST
    engine = LocalEngine(graph_tolerance=0)
    exact = HeatSketch(32, n_neighbors=10, epsilon=9.0, engine=engine).fit_transform(X)
    monkeypatch.setattr("heatsketch.engines._local.EXACT_COMPARISONS", 0)
    monkeypatch.setattr("heatsketch.engines._local.choose_probes", lambda *_, **__: n_probes)
    listed = HeatSketch(32, n_neighbors=10, epsilon=9.0).fit_transform(X)
    pairs = np.random.default_rng(0).permutation(len(X)).reshape(2, -1)
    apart, wanted = (np.linalg.norm(Y[pairs[0]] - Y[pairs[1]], axis=1) for Y in (listed, exact))
    assert 0 < np.std(apart / wanted) < 0.05
