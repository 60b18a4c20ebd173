"""A sketch that grows, many powers of one, all of them together, and a map out of it."""

import pickle
import re
from contextlib import nullcontext

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.datasets import load_digits

from heatsketch import HeatSketch
from heatsketch.diffusion import (
    exact_diffusion_distances,
    gaussian_matrix,
    ritz_pairs,
    sketch,
    sketch_all_times,
)
from heatsketch.diffusion._all_times import HORIZON
from heatsketch.diffusion._chebyshev import tolerance_of
from heatsketch.exceptions import HeatSketchError

MODELS = {
    "neighbors": HeatSketch(power=6, n_neighbors=10),
    "neighbors, signs": HeatSketch(power=6, n_neighbors=10, random_matrix="rademacher"),
    "neighbors, bistochastic": HeatSketch(power=6, n_neighbors=10, normalization="bistochastic"),
    "neighbors, kept": HeatSketch(power=6, n_neighbors=10, stationary="keep"),
    "neighbors, large power": HeatSketch(power=700, n_neighbors=10),
    "all pairs": HeatSketch(power=6, n_neighbors=None),
    "all pairs, large power": HeatSketch(power=700, n_neighbors=None),
    "all pairs, local": HeatSketch(power=6, n_neighbors=None, epsilon="local"),
    "random walk": HeatSketch(power=6, n_neighbors=10, weighting="random_walk"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_grown_sketch_is_a_fresh_one(name, saved, dtype):
    X = cloud(300, 2).astype(dtype)
    fresh = clone(MODELS[name]).set_params(n_components=64).fit(X)
    model = clone(MODELS[name]).set_params(n_components=16).fit(X)
    model = pickle.loads(pickle.dumps(model)) if saved else model
    grown = model.grow(64)
    np.testing.assert_array_equal(grown.embedding_, fresh.embedding_)
    np.testing.assert_array_equal(grown.transform(X[:50]), fresh.transform(X[:50]))
    assert grown.get_params() == fresh.get_params()
    assert grown.parameters_ == fresh.parameters_


@pytest.mark.parametrize("name", [*MODELS, "all times"])
def test_growing_leaves_the_model_as_it_was(name):
    X = cloud(300, 2)
    kind = {"all times": HeatSketch(n_neighbors=10), **MODELS}[name]
    model = clone(kind).set_params(n_components=16).fit(X)
    parameters, attributes = model.get_params(), dict(vars(model))
    new = model.transform(X[:50] + 0.01)
    grown = model.grow(40)
    assert model.get_params() == parameters
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[name] is value for name, value in attributes.items())
    np.testing.assert_array_equal(model.transform(X[:50] + 0.01), new)
    # The graph, which is most of a model, is there once.
    assert grown.heat_operator_ is model.heat_operator_ and grown.neighbors_ is model.neighbors_


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*MODELS, "all times", "all times, apart"])
def test_the_first_columns_are_the_smaller_sketch_but_for_its_scale(name, dtype):
    """The law of the first columns: ``Y_k = sqrt(K / k) Y_K[:, :k]``."""
    all_times = {"all times": HeatSketch(n_neighbors=10), "all times, apart": HeatSketch()}
    X = cloud(300, 2)
    if name.endswith("apart"):
        X[150:] += 100
    model = clone((all_times | MODELS)[name]).set_params(n_components=16)
    with pytest.warns() if name.endswith("apart") else nullcontext():
        model.fit(X.astype(dtype))
    grown = model.grow(40)
    wanted = model.embedding_
    cut = grown.embedding_[:, :16] * np.sqrt(40 / 16, dtype=dtype)
    if "large" in name:  # a Chebyshev sum, whose error is within a tolerance of the whole block
        whole = np.linalg.norm(wanted) + np.sqrt(40 / 16) * np.linalg.norm(grown.embedding_)
        assert np.linalg.norm(cut - wanted) <= tolerance_of(dtype) * whole
        return
    np.testing.assert_array_equal(grown.before_last_[:, :16], model.before_last_)
    rounding = 8 * np.finfo(dtype).eps * abs(wanted).max()
    if name.endswith("apart"):  # how far apart depends on all columns
        assert abs(cut[150:] - wanted[150:]).max() > 100 * rounding
        cut, wanted = (np.vstack([Y[1:150] - Y[0], Y[151:] - Y[150]]) for Y in (cut, wanted))
    np.testing.assert_allclose(cut, wanted, atol=rounding, rtol=0)


def test_growing_keeps_the_power_and_the_seed():
    model = HeatSketch(8, n_neighbors=10, random_state=None).fit(cloud(300, 2))
    grown = model.grow(32)
    assert (grown.power_, grown.seed_, grown.power) == (model.power_, model.seed_, "all")


def test_a_error_to_shrink_says_how_to_cut():
    """The remedy of the message is evaluated, and is what a fit gives."""
    X = cloud(300, 2)
    wide, narrow = (HeatSketch(k, power=6, n_neighbors=10).fit(X) for k in (32, 16))
    with pytest.raises(HeatSketchError, match="n_components=16 is less than the 32") as caught:
        wide.grow(16)
    remedy = re.search(r"take (.*) instead", str(caught.value))[1]
    cut = eval(remedy, {"np": np, "embedding_": wide.embedding_})
    np.testing.assert_allclose(cut, narrow.embedding_, rtol=1e-15)


@pytest.mark.parametrize("name", [name for name in MODELS if "large" not in name])
def test_a_path_is_separate_fits(name):
    X = cloud(200, 2)
    model = clone(MODELS[name]).set_params(n_components=8).fit(X)
    powers = [5, 1, 3]
    for power, Y in zip(powers, model.path(powers), strict=True):
        wanted = clone(model).set_params(power=power).fit(X).embedding_
        np.testing.assert_allclose(Y, wanted, rtol=1e-9, atol=1e-12 * abs(wanted).max())


ALPHA = 1 - 1 / HORIZON


def dense(A):
    matrix = A.deflate(A @ np.eye(A.shape[0]))
    return (matrix + matrix.T) / 2


def unit(vector):
    return vector.astype(float) / np.linalg.norm(vector.astype(float))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["neighbors", "neighbors, bistochastic", "all pairs"])
def test_all_times_together_are_a_linear_system(name, dtype, seed):
    model = clone(MODELS[name]).set_params(n_components=8).fit(circle(150, seed).astype(dtype))
    A = model.heat_operator_
    G = gaussian_matrix(150, 8, seed=seed, dtype=dtype)
    matrix = dense(A).astype(float)
    wanted = np.linalg.solve(np.eye(150) - ALPHA * matrix, matrix @ G) / np.sqrt(8)
    wanted /= unit(A.stationary)[:, np.newaxis]
    found = sketch_all_times(A, G, tolerance=1e-8)
    assert found.dtype == dtype
    assert abs(found - wanted).max() <= (1e-6 if dtype == "float64" else 1e-2) * abs(wanted).max()


def test_pseudotime_orders_a_curve():
    """Along a line the pseudotime from one end grows, and its interval covers the exact one."""
    X = np.linspace(0, 1, 120)[:, np.newaxis]
    model = HeatSketch(256, epsilon=0.01).fit(X)
    distance, low, high = model.pseudotime(0, confidence=0.99)
    matrix = dense(model.heat_operator_)
    M = np.linalg.solve(np.eye(120) - ALPHA * matrix, np.linalg.matrix_power(matrix, model.power_))
    M /= unit(model.heat_operator_.stationary)[:, np.newaxis]
    exact = np.linalg.norm(M - M[0], axis=1)
    assert np.mean((low <= exact) & (exact <= high)) > 0.9
    assert np.corrcoef(np.argsort(np.argsort(distance)), np.arange(120))[0, 1] > 0.99


# --- eigenpairs ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [15, None])
def test_eigenpairs_of_digits_come_out_of_the_sketch(n_neighbors):
    X, _ = load_digits(return_X_y=True)
    model = HeatSketch(64, n_neighbors=n_neighbors, power=4, weighting="symmetric").fit(X)
    found = model.diffusion_map(10)
    assert found.residuals.max() <= 1e-6
    values, vectors = eigsh(dense(model.heat_operator_), 10, which="LA")
    np.testing.assert_allclose(found.eigenvalues, values[::-1], atol=1e-9)
    wanted = vectors[:, ::-1] * values[::-1] ** model.power_
    coordinates = found.coordinates[model.order_]
    overlap = np.abs(np.sum(wanted * coordinates, axis=0)) / np.sum(wanted**2, axis=0)
    np.testing.assert_allclose(overlap, 1, atol=1e-6)


def test_a_block_too_narrow_is_rejected():
    model = HeatSketch(4, n_neighbors=10).fit(cloud(100, 2))
    with pytest.raises(HeatSketchError, match=r"n_components=5 must be .* 1 to 4"):
        model.diffusion_map(5)
    with pytest.raises(HeatSketchError, match="n_pairs=100"):
        ritz_pairs(model.heat_operator_, np.ones((100, 100)), 100)


@pytest.mark.parametrize("n_components", [30, 31, 64])
def test_a_sketch_may_be_wider_than_it_is_long(n_components):
    model = HeatSketch(n_components, power=2).fit(cloud(30, 2))
    found = model.diffusion_map(29)
    wanted = np.linalg.eigvalsh(dense(model.heat_operator_))[::-1][
        :20
    ]  # the stationary zero is among the last
    np.testing.assert_allclose(found.eigenvalues[:20], wanted, atol=1e-12)
    assert found.residuals.max() <= 1e-12


# --- which diffusion distance --------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_random_walk_distances_are_those_of_coifman_and_lafon(n_neighbors):
    """Against eigenvectors of the random walk, and against its distributions themselves."""
    X, power = cloud(60, 2), 3
    model = HeatSketch(8, epsilon=0.5, n_neighbors=n_neighbors).fit(X)
    A = model.heat_operator_
    v = A.stationary / np.linalg.norm(A.stationary)
    walk = (A @ np.eye(60)) * v / v[:, np.newaxis]
    np.testing.assert_allclose(walk.sum(axis=1), 1)
    steps = np.linalg.matrix_power(walk, power)
    found = exact_diffusion_distances(A, power=power, weighting="random_walk")
    wanted = np.linalg.norm((steps[:, np.newaxis] - steps) / v, axis=2)
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    values, vectors = np.linalg.eigh((A @ np.eye(60) + (A @ np.eye(60)).T) / 2)
    coordinates = values**power * vectors / v[:, np.newaxis]
    wanted = np.linalg.norm(coordinates[:, np.newaxis] - coordinates, axis=2)
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_walk_sketch_estimates_them(seed):
    options = {"epsilon": 0.5, "power": 3, "weighting": "random_walk", "random_state": seed}
    model = HeatSketch(4000, **options).fit(cloud(40, 2))
    pairs = np.array([[0, 1], [2, 30], [7, 39]])
    exact = exact_diffusion_distances(model.heat_operator_, power=3, weighting="random_walk")
    _, low, high = model.diffusion_distances(pairs, confidence=0.9999)
    wanted = exact[tuple(pairs.T)]
    assert ((low < wanted) & (wanted < high)).all()


def test_weightings_agree_where_the_stationary_direction_is_constant():
    X = cloud(80, 2)
    options = {"normalization": "bistochastic", "power": 3, "n_components": 8}
    walk = HeatSketch(weighting="random_walk", **options).fit(X).embedding_
    plain = HeatSketch(weighting="symmetric", **options).fit(X).embedding_
    np.testing.assert_allclose(walk, plain * np.sqrt(80), rtol=1e-8)


GRAPH = {"affinity": "precomputed"}


@pytest.mark.parametrize("weighting", ["random_walk", "symmetric"])
@pytest.mark.parametrize("options", [{}, GRAPH], ids=["points", "graph"])
def test_distances_are_those_of_the_weighting(options, weighting):
    X = cloud(60, 2)
    given = np.exp(-squareform(pdist(X))) if options else X
    model = HeatSketch(4000, power=3, weighting=weighting, **options).fit(given)
    places = np.argsort(model.order_)
    found = exact_diffusion_distances(model.heat_operator_, power=3, weighting=weighting)
    wanted = squareform(found[np.ix_(places, places)], checks=False)
    # Of 4000 columns a distance has a relative standard error of 1 / sqrt(8000).
    np.testing.assert_allclose(pdist(model.embedding_), wanted, rtol=6 / np.sqrt(8000))


def test_sketching_by_hand_is_the_estimator():
    model = HeatSketch(8, power=3, n_neighbors=9, weighting="symmetric").fit(cloud(80, 2))
    G = gaussian_matrix(80, 8, seed=0)[model.order_]
    Y = sketch(model.heat_operator_, G, power=3)
    np.testing.assert_allclose(model.embedding_[model.order_], Y, rtol=1e-9, atol=1e-12)
