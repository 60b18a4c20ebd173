"""Sketch: how it grows, many powers of one, distances and pseudotime, new points."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import affinity, circle, cloud
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import load_digits

from heatsketch import HeatGraph, load, sketch
from heatsketch.diffusion import exact_diffusion_distances, gaussian_matrix
from heatsketch.diffusion._all_times import HORIZON
from heatsketch.diffusion._chebyshev import tolerance_of
from heatsketch.exceptions import HeatSketchError, TrainingDataError
from heatsketch.heat import _graph as graph_module

ALPHA = 1 - 1 / HORIZON
NEIGHBORS, ALL_PAIRS = {"n_neighbors": 10, "weights": 0.5}, {"n_neighbors": None, "weights": 0.5}
# Options of the graph, and of the sketch.
KINDS = {
    "neighbors": (NEIGHBORS, {}),
    "signs": (NEIGHBORS, {"random_matrix": "rademacher"}),
    "bistochastic": (NEIGHBORS | {"normalization": "bistochastic"}, {}),
    "kept": (NEIGHBORS, {"stationary": "keep"}),
    "symmetric": (NEIGHBORS, {"weighting": "symmetric"}),
    "large power": (NEIGHBORS, {"power": 700}),
    "all pairs": (ALL_PAIRS, {}),
    "all pairs, large power": (ALL_PAIRS, {"power": 700}),
    "all pairs, local": (ALL_PAIRS | {"weights": "local"}, {}),
}
ALL_TIMES = {"all times": (NEIGHBORS, {"power": "all"})}


def made(name, X, n_components=16, **options):
    graph, own = (KINDS | ALL_TIMES)[name]
    options = {"power": 6, "n_leading": 4} | own | options
    return sketch(HeatGraph.from_points(X, **graph), n_components, **options)


def dense(A):
    matrix = A.deflate(A @ np.eye(A.shape[0]))
    return (matrix + matrix.T) / 2


def outer(graph, matrix):
    """A matrix of the operator, in the order of the given rows."""
    places = np.argsort(graph.order)
    return matrix[np.ix_(places, places)]


# --- growth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KINDS)
def test_a_grown_sketch_is_a_fresh_one(name, dtype):
    X = cloud(300, 2).astype(dtype)
    fresh, small = made(name, X, 64), made(name, X, 16)
    for before in (small, pickle.loads(pickle.dumps(small))):
        grown = before.grow(64)
        np.testing.assert_array_equal(grown.embedding, fresh.embedding)
        rows = X[:50] + dtype_of(X)(0.01)
        np.testing.assert_array_equal(
            grown.extend(grown.graph.rows(rows)), fresh.extend(fresh.graph.rows(rows))
        )
        assert grown.how() == fresh.how()


def dtype_of(X):
    return X.dtype.type


@pytest.mark.parametrize("name", [*KINDS, *ALL_TIMES])
def test_methods_leave_the_sketch_as_it_was(name):
    X = cloud(300, 2)
    before = made(name, X)
    embedding, rows = before.embedding.copy(), before.graph.rows(X[:50] + 0.01)
    new = before.extend(rows)
    before.grow(40)
    before.path([1, 3])
    before.pseudotime(0)
    np.testing.assert_array_equal(before.embedding, embedding)
    np.testing.assert_array_equal(before.extend(rows), new)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*KINDS, "all times", "all times, apart"])
def test_the_first_columns_are_the_smaller_sketch_but_for_its_scale(name, dtype):
    """Leading ones stay, and random ones are those of the larger sketch times a constant."""
    X = cloud(300, 2)
    if name.endswith("apart"):
        X[150:] += 100
    before = made(name.removesuffix(", apart"), X.astype(dtype))
    grown, wanted = before.grow(40), before.embedding
    assert grown.first_power == before.first_power
    cut = grown.embedding[:, :16].copy()
    cut[:, 4:] *= np.sqrt(36 / 12, dtype=dtype)
    if "large" in name:  # a Chebyshev sum, whose error is within a tolerance of the whole block
        whole = np.linalg.norm(wanted) + np.sqrt(36 / 12) * np.linalg.norm(grown.embedding)
        assert np.linalg.norm(cut - wanted) <= tolerance_of(dtype) * whole
        return
    rounding = 8 * np.finfo(dtype).eps * abs(wanted).max()
    if name.endswith("apart"):  # how far apart depends on all columns
        assert abs(cut[150:] - wanted[150:]).max() > 10 * rounding
        cut, wanted = (np.vstack([Y[1:150] - Y[0], Y[151:] - Y[150]]) for Y in (cut, wanted))
    np.testing.assert_allclose(cut, wanted, atol=rounding, rtol=0)


# --- all times ----------------------------------------------------------------------------------


def test_pseudotime_orders_a_curve():
    """Along a line the pseudotime from one end grows, and its interval covers the exact one."""
    X = np.random.default_rng(0).permutation(np.linspace(0, 1, 120))
    before = sketch(HeatGraph.from_points(X[:, np.newaxis], weights=0.01), 256)
    root = int(X.argmin())
    distance, low, high = before.pseudotime(root, confidence=0.99)
    matrix, v = dense(before.graph.operator), before.graph.operator.stationary
    powers = np.linalg.matrix_power(matrix, before.first_power)
    M = np.linalg.solve(np.eye(120) - ALPHA * matrix, powers)
    M *= (np.linalg.norm(v) / v)[:, np.newaxis]
    exact = outer(before.graph, cdist(M, M))[root]
    assert np.mean((low <= exact) & (exact <= high)) > 0.9
    assert np.corrcoef(np.argsort(np.argsort(distance)), np.argsort(np.argsort(X)))[0, 1] > 0.99
    with pytest.raises(HeatSketchError, match="root"):
        before.pseudotime(120)


# --- distances and maps -------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["random_walk", "symmetric"])
@pytest.mark.parametrize("form", ["points", "links"])
def test_distances_are_those_of_the_weighting(form, weighting):
    X = cloud(60, 2)
    K = np.exp(-squareform(pdist(X)))
    graph = HeatGraph.from_points(X) if form == "points" else HeatGraph.from_affinity(K)
    before = sketch(graph, 4000, power=3, n_leading=0, weighting=weighting)
    exact = exact_diffusion_distances(graph.operator, power=3, weighting=weighting)
    wanted = squareform(outer(graph, exact), checks=False)
    pairs = np.transpose(np.triu_indices(60, 1))
    found = before.distances(pairs)
    np.testing.assert_allclose(found.distance, pdist(before.embedding))
    # Of 4000 columns a distance has a relative standard error of 1 / sqrt(8000).
    np.testing.assert_allclose(found.distance, wanted, rtol=6 / np.sqrt(8000))
    assert np.mean((found.low <= wanted) & (wanted <= found.high)) > 0.8
    wider = before.distances(pairs, simultaneous=True)
    assert ((wider.low <= wanted) & (wanted <= wider.high)).all()


def test_neighbors_are_the_nearest_rows_of_rows_and_of_new_points():
    X = cloud(90)
    before = sketch(HeatGraph.from_points(X[:80]), 16)
    new = before.extend(before.graph.rows(X[80:]))
    apart = cdist(new, before.embedding)
    found = before.neighbors(new, n_neighbors=5)
    np.testing.assert_array_equal(found.indices, np.argsort(apart, axis=1)[:, :5])
    np.testing.assert_allclose(found.distance, np.sort(apart, axis=1)[:, :5], rtol=1e-10)
    apart = squareform(pdist(before.embedding))
    np.fill_diagonal(apart, np.inf)
    found = before.neighbors([3, 70], n_neighbors=5)
    np.testing.assert_array_equal(found.indices, np.argsort(apart[[3, 70]], axis=1)[:, :5])


@pytest.mark.parametrize("n_neighbors", [15, None])
def test_the_diffusion_map_of_digits_comes_out_of_the_sketch(n_neighbors):
    graph = HeatGraph.from_points(load_digits().data, n_neighbors=n_neighbors)
    found = sketch(graph, 64, power=4, weighting="symmetric").diffusion_map(10)
    assert found.residuals.max() <= 1e-6
    values, vectors = eigsh(dense(graph.operator), 10, which="LA")
    np.testing.assert_allclose(found.eigenvalues, values[::-1], atol=1e-9)
    wanted = vectors[:, ::-1] * values[::-1] ** 4
    overlap = np.sum(wanted * found.coordinates[graph.order], axis=0)
    np.testing.assert_allclose(np.abs(overlap) / np.sum(wanted**2, axis=0), 1, atol=1e-6)


# --- new points ---------------------------------------------------------------------------------


def test_a_new_point_follows_the_formula():
    """y = s (K (s W)), with s from the iterates of the training points, written out."""
    X, new = circle(100), circle(7, seed=5)
    graph = HeatGraph.from_points(X, weights=0.3, n_neighbors=None)
    before = sketch(graph, 5, power=3, weighting="symmetric", stationary="keep")
    K = affinity(X, 0.3)
    q = K.sum(axis=1)
    v = (K / q[:, np.newaxis] / q).sum(axis=1)
    A = K / q[:, np.newaxis] / q / np.sqrt(v)[:, np.newaxis] / np.sqrt(v)
    K_new = np.exp(-cdist(new, X, "sqeuclidean") / 0.3)
    q_new = K_new.sum(axis=1)
    v_new = (K_new / q_new[:, np.newaxis] / q).sum(axis=1)
    A_new = K_new / q_new[:, np.newaxis] / q / np.sqrt(v_new)[:, np.newaxis] / np.sqrt(v)
    wanted = A_new @ A @ A @ gaussian_matrix(100, 5, seed=0) / np.sqrt(5)
    np.testing.assert_allclose(before.extend(graph.rows(new)), wanted, rtol=1e-10)


@given(rows=st.lists(st.integers(0, 29), min_size=1, max_size=30))
def test_any_new_points_in_any_order_have_the_same_rows(rows):
    new = cloud(30, seed=10)
    graph = HeatGraph.from_points(cloud(90), n_neighbors=8)
    before = sketch(graph, 4, power=3)
    found = before.extend(graph.rows(new[rows]))
    np.testing.assert_array_equal(found, before.extend(graph.rows(new))[rows])


def test_batches_do_not_matter(monkeypatch):
    graph, new = HeatGraph.from_points(cloud(60), n_neighbors=7), cloud(50, seed=3)
    before = sketch(graph, 4)
    whole = before.extend(graph.rows(new))
    monkeypatch.setattr(graph_module, "BATCH_ENTRIES", 60 * 7)
    np.testing.assert_array_equal(before.extend(graph.rows(new)), whole)


# --- options ------------------------------------------------------------------------------------


def test_random_numbers_depend_on_the_seed_only():
    graph = HeatGraph.from_points(cloud(60))
    one, same, other = (sketch(graph, 8, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.embedding, same.embedding)
    assert (one.embedding != other.embedding).all()
    drawn = sketch(graph, 8, random_state=None)
    again = sketch(graph, 8, random_state=drawn.settings.seed)
    np.testing.assert_array_equal(again.embedding, drawn.embedding)


def test_a_sketch_without_its_graph_keeps_distances_and_ids(tmp_path):
    X, ids = cloud(60), np.array([f"row {i}" for i in range(60)])
    before = sketch(HeatGraph.from_points(X, ids=ids), 8)
    before.save(tmp_path / "alone", graph=False)
    alone = load(tmp_path / "alone")
    np.testing.assert_array_equal(alone.embedding, before.embedding)
    np.testing.assert_array_equal(alone.ids, ids)
    assert (alone.first_power, alone.how()) == (before.first_power, before.how())
    for call in (
        lambda: alone.grow(16),
        lambda: alone.path([1]),
        lambda: alone.diffusion_map(2),
        lambda: alone.extend(before.graph.rows(X)),
    ):
        with pytest.raises(TrainingDataError):
            call()
