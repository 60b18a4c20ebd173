"""Vectors for a search index: inner products are sums of cosines."""

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from sklearn.datasets import load_digits

from heatsketch import DiffusionMap, HeatGraph, HeatSketch, sketch, vectors
from heatsketch.exceptions import HeatSketchError


@pytest.mark.parametrize("model", [HeatSketch(8), DiffusionMap(4)])
@pytest.mark.parametrize("weight", [0, 0.5, 3])
def test_inner_products_are_sums_of_cosines(model, weight):
    X = cloud(60)
    Y = model.fit_transform(X)
    u = vectors(Y, append=X, weight=weight)
    Y, Z = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (Y, X))
    assert u.dtype == np.float32
    assert u.flags.c_contiguous
    np.testing.assert_allclose(u @ u.T, Y @ Y.T + weight * Z @ Z.T, atol=1e-5)


def test_vectors_of_sketches_and_models_are_those_of_their_embedding():
    X = cloud(60)
    made, model = sketch(HeatGraph.from_points(X), 8), HeatSketch(8).fit(X)
    for source in (made, model):
        np.testing.assert_array_equal(vectors(source), vectors(made.embedding))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_rows_have_length_one_whatever_their_scale(dtype):
    """Also beside rows of another scale, and where squares overflow or vanish."""
    Y = 2.0 * np.asfortranarray(cloud(60, 3)).round(2)
    scales = np.array([[1.0], [1.0], [3.0]] if dtype == "int64" else [[1e-30], [1.0], [1e30]])
    Y = (np.repeat(scales, 20, axis=0) * (100 * Y if dtype == "int64" else Y)).astype(dtype)
    wanted = Y.astype(float) / np.linalg.norm(Y.astype(float), axis=1, keepdims=True)
    unit, plain = vectors(Y), vectors(Y, normalize=False)
    assert unit.dtype == plain.dtype == np.float32
    assert unit.flags.c_contiguous
    np.testing.assert_allclose(unit, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(plain, Y.astype(np.float32))


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

    assert precision(vectors(HeatSketch().fit(X), append=X)) > 1.2 * precision(raw)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"append": np.ones((59, 2))}, "append"),
        ({"append": np.full((60, 2), np.nan)}, "append"),
        ({"append": sparse.eye_array(60)}, "append"),
        ({"append": np.ones((60, 2)), "weight": -1}, "weight"),
        ({"append": np.ones((60, 2)), "weight": "much"}, "weight"),
    ],
)
def test_an_invalid_argument_is_named(options, name):
    with pytest.raises(HeatSketchError, match=rf"\b{name}\b"):
        vectors(cloud(60), **options)
