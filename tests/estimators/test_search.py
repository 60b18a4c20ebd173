"""Vectors for an index, and neighbours of new points."""

import numpy as np
import pandas as pd
import pytest
from registry import SEEDS, cloud
from scipy import sparse
from sklearn.datasets import load_digits

from heatsketch import DiffusionMap, HeatSketch
from heatsketch.diffusion import diffusion_neighbors, gaussian_matrix
from heatsketch.diffusion._vectors import search_vectors
from heatsketch.exceptions import DtypeError, HeatSketchError


@pytest.mark.parametrize("model", [HeatSketch(8), DiffusionMap(4)])
@pytest.mark.parametrize("weight", [0, 0.5, 3])
def test_inner_products_are_sums_of_cosines(model, weight):
    X = cloud(60)
    u = model.fit(X).vectors(append=X, weight=weight)
    Y = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    Z = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert u.dtype == np.float32
    assert u.flags.c_contiguous
    np.testing.assert_allclose(u @ u.T, Y @ Y.T + weight * Z @ Z.T, atol=1e-5)


def test_without_lengths_squared_distances_add_up():
    X = cloud(60)
    model = HeatSketch(8).fit(X)
    u = model.vectors(normalize=False, append=X, weight=0.25).astype(float)
    Y = model.embedding_
    for i, j in ((0, 1), (5, 40)):
        wanted = np.sum((Y[i] - Y[j]) ** 2) + 0.25 * np.sum((X[i] - X[j]) ** 2)
        assert np.sum((u[i] - u[j]) ** 2) == pytest.approx(wanted, rel=1e-5)


def test_new_points_have_vectors_of_the_same_kind():
    X = cloud(60)
    model = HeatSketch(8).fit(X)
    np.testing.assert_array_equal(model.vectors(X[:9], append=X[:9]), model.vectors(append=X)[:9])
    np.testing.assert_array_equal(model.vectors(X[:9]), model.vectors()[:9])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_rows_have_length_one_whatever_their_scale(dtype):
    """Also beside rows of another scale, and where squares overflow or vanish."""
    Y = 2.0 * np.asfortranarray(cloud(60, 3)).round(2)
    scales = np.array([[1.0], [1.0], [3.0]] if dtype == "int64" else [[1e-30], [1.0], [1e30]])
    Y = (np.repeat(scales, 20, axis=0) * (100 * Y if dtype == "int64" else Y)).astype(dtype)
    wanted = Y.astype(float) / np.linalg.norm(Y.astype(float), axis=1, keepdims=True)
    found = search_vectors(Y, normalize=True, append=None, weight=0.5)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    plain = search_vectors(Y, normalize=False, append=None, weight=0.5)
    assert plain.dtype == np.float32
    np.testing.assert_array_equal(plain, Y.astype(np.float32))


def test_a_row_of_zeros_stays():
    model = HeatSketch(4).fit(cloud(30))
    X = np.zeros((30, 2))
    X[1:] = 1e-200
    u = model.vectors(append=X, weight=1)
    assert (u[0, 4:] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(u[1:, 4:], axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"append": cloud(29)}, HeatSketchError, r"append has shape \(29, 3\), and there are 30"),
        ({"append": sparse.eye_array(30)}, DtypeError, "TruncatedSVD"),
        ({"append": cloud(30), "weight": -1}, HeatSketchError, "weight=-1 must be a finite"),
        ({"append": cloud(30), "weight": np.inf}, HeatSketchError, "weight=inf must be a finite"),
        ({"append": [["a"]] * 30}, DtypeError, "append"),
        ({"append": cloud(30), "weight": "much"}, HeatSketchError, "weight='much' must be"),
        ({"append": np.full((30, 1), np.nan)}, HeatSketchError, "append contains NaN"),
    ],
)
def test_invalid_options_are_errors(options, error, message):
    with pytest.raises(error, match=message):
        HeatSketch(4).fit(cloud(30)).vectors(**options)


def test_search_finds_more_of_what_belongs_together():
    """Mean average precision: .66 by raw cosines, .88 by the vectors (benchmarks/search.py)."""
    X, digit = load_digits(return_X_y=True)
    raw = X / np.linalg.norm(X, axis=1, keepdims=True)
    queries = np.arange(0, len(X), 9)

    def precision(u):
        order = np.argsort(-(u[queries] @ u.T), axis=1)[:, 1:]
        hits = digit[order] == digit[queries, np.newaxis]
        ranks = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        return np.mean((ranks * hits).sum(axis=1) / hits.sum(axis=1))

    assert precision(HeatSketch().fit(X).vectors(append=X)) > 1.2 * precision(raw)


# --- neighbours of new points -----------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_new_points_have_the_nearest_training_points(form):
    X = np.abs(cloud(90))
    model = HeatSketch(16).fit(X[:80])
    found = model.diffusion_neighbors(form(X[80:]), n_neighbors=5)
    apart = np.linalg.norm(model.transform(X[80:])[:, np.newaxis] - model.embedding_, axis=2)
    np.testing.assert_array_equal(found.indices, np.argsort(apart, axis=1)[:, :5])
    np.testing.assert_allclose(found.distance, np.sort(apart, axis=1)[:, :5], rtol=1e-10)


def test_a_training_point_given_again_is_its_own_nearest():
    X = cloud(80)
    model = HeatSketch(16).fit(X)
    again = model.diffusion_neighbors(X[:7], n_neighbors=4)
    rows = model.diffusion_neighbors(np.arange(7), n_neighbors=3)
    np.testing.assert_array_equal(again.indices[:, 0], np.arange(7))
    np.testing.assert_array_equal(again.indices[:, 1:], rows.indices)
    np.testing.assert_array_equal(again.distance[:, 1:], rows.distance)


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_of_new_points_cover_after_the_choice(seed):
    """On average over neighbours, as for rows; three standard errors below 95 % are allowed."""
    rng = np.random.default_rng(seed)
    F, n_trials, k = rng.normal(size=(320, 40)), 60, 24
    exact = np.linalg.norm(F[300:, np.newaxis] - F[:300], axis=2)
    covered = []
    for trial in range(n_trials):
        Y = F @ gaussian_matrix(40, k, seed=1000 * seed + trial) / np.sqrt(k)
        found = diffusion_neighbors(Y[:300], Y[300:], n_neighbors=10)
        truth = np.take_along_axis(exact, found.indices, axis=1)
        covered.append(np.mean((found.low <= truth) & (truth <= found.high)))
    assert np.mean(covered) > 0.95 - 3 * np.std(covered) / np.sqrt(n_trials)


def test_all_neighbours_but_one_may_be_asked_for():
    model = HeatSketch(4).fit(cloud(20))
    assert model.diffusion_neighbors(cloud(3, seed=1), n_neighbors=19).indices.shape == (3, 19)
    with pytest.raises(HeatSketchError, match="use 1 to 19"):
        model.diffusion_neighbors(cloud(3, seed=1), n_neighbors=20)
    with pytest.raises(HeatSketchError, match="use 1 to 18"):
        model.diffusion_neighbors([0], n_neighbors=19)
