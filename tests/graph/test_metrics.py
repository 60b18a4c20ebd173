"""Metrics by name: what they compute, and what is said of points that they do not take."""

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from heatsketch.exceptions import AffinityError, HeatSketchError
from heatsketch.graph._metrics import (
    check_symmetric_metric,
    second_distances,
    squared_distances_to,
)

X = cloud(20)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_new_sparse_points_have_the_columns_of_the_old(metric):
    squares = squared_distances_to(sparse.csr_array(X), metric)
    with pytest.raises(HeatSketchError, match="X_new and X"):
        squares(sparse.csr_array(X[:, :2]))
    np.testing.assert_allclose(
        squares(sparse.csr_array(X[:4])), squared_distances_to(X, metric)(X[:4]), atol=1e-12
    )


def test_sparse_points_off_center_are_not_rejected():
    """The mean is that of each column: points are spread, though no column is about zero."""
    points = 1 + 1e-3 * X
    found = squared_distances_to(sparse.csr_array(points), "euclidean")(sparse.csr_array(points))
    np.testing.assert_allclose(found, cdist(points, points) ** 2, atol=1e-12)


def test_presence_counts_for_jaccard():
    points = np.where(X > 0, X, 0)
    found = squared_distances_to(points, "jaccard")(points)
    np.testing.assert_allclose(found, pairwise_distances(points > 0, metric="jaccard") ** 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_distances_of_sparse_points_are_those_of_dense_points(dtype):
    points, rng = np.where(X > 0, X, 0).astype(dtype), np.random.default_rng(0)
    rows, places = rng.integers(20, size=(2, 150_000))  # more than are computed at a time
    found, wanted = (
        second_distances(form(points), rows, form(points), places)
        for form in (sparse.csr_array, np.asarray)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert (wanted[rows != places] > 0).any()


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_a_metric_is_symmetric_up_to_rounding(scale):
    def nearly(x, y):
        return scale * abs(x[0] - y[0]) * (1 + 1e-10 * (x[0] < y[0]))

    check_symmetric_metric(nearly, X)
    with pytest.raises(AffinityError, match="average the two directions"):
        check_symmetric_metric(lambda x, y: scale * (x[0] - y[0]) ** 2 * (1 + (x[0] < y[0])), X)
