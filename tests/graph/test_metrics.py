"""Metrics by name: what they compute, and what is said of points that they do not take."""

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from heatsketch.exceptions import AffinityError, DtypeError, HeatSketchError, ScaleError
from heatsketch.graph._metrics import (
    ALIASES,
    LIST_METRICS,
    METRICS,
    check_nonzero_rows,
    check_symmetric_metric,
    check_width,
    second_distances,
    squared_distances_to,
)

X = cloud(20)
FAR = sparse.csr_array([[1e6, 1e6], [1e6, 1e6 + 1]])


def to_the_left(x, y):
    return max(float(x[0] - y[0]), 0.0)


WITHOUT_DIRECTION = np.vstack([X, np.zeros(3)])
REJECTED = {
    "sparse points": (
        lambda: squared_distances_to(sparse.csr_array(X), "l1"),
        DtypeError,
        "metric='manhattan' does not take a sparse X of shape (20, 3); use 'euclidean' or "
        "'cosine', or pass X.toarray() if it fits in memory.",
        {"metric": "manhattan"},
    ),
    "an unknown metric": (
        lambda: squared_distances_to(X, "crow"),
        HeatSketchError,
        f"metric='crow' is unknown; use one of {sorted([*METRICS, *ALIASES])}, 'precomputed', or "
        "a function of two points.",
        {},
    ),
    "a row of zeros": (
        lambda: check_nonzero_rows(WITHOUT_DIRECTION),
        AffinityError,
        "metric='cosine' has no angle for row 20 of X, which is all zeros; drop such rows, or "
        "use 'euclidean'.",
        {"metric": "cosine"},
    ),
    "two directions": (
        lambda: check_symmetric_metric(to_the_left, np.array([[0.0], [2.0]])),
        AffinityError,
        f"metric={to_the_left!r} is not symmetric: row 0 of X is 0 from row 1, but 2 the other "
        "way; average the two directions.",
        {},
    ),
    "sparse points far from zero": (
        lambda: squared_distances_to(FAR, "euclidean"),
        ScaleError,
        "X is sparse and its points are 1.41e+06 from zero but only about 0.5 from each other, "
        "which is lost in rounding; pass X.toarray(), or drop the duplicates if all points are "
        "equal.",
        {},
    ),
    "equal sparse points": (
        lambda: squared_distances_to(sparse.csr_array([[1e8], [1e8]]), "euclidean"),
        ScaleError,
        "X is sparse and its points are 1e+08 from zero but only about 0 from each other, which "
        "is lost in rounding; pass X.toarray(), or drop the duplicates if all points are equal.",
        {},
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_is_rejected_is_named_with_a_remedy(case):
    call, error, message, parameters = REJECTED[case]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
    assert caught.value.parameters == parameters


@pytest.mark.parametrize(
    ("X_new", "points"), [(X[:, :2], X), (X[:2], X[:, :2]), (X[0], X), (X, X[0])]
)
def test_both_must_be_tables_of_the_same_width(X_new, points):
    with pytest.raises(HeatSketchError) as caught:
        check_width(X_new, points)
    assert str(caught.value) == (
        f"X_new of shape {X_new.shape} and X of shape {points.shape} must be tables with the "
        "same number of columns; pass the features of X, one row for each point."
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_new_sparse_points_have_the_columns_of_the_old(metric):
    squares = squared_distances_to(sparse.csr_array(X), metric)
    with pytest.raises(HeatSketchError, match=r"X_new of shape \(20, 2\) and X of shape \(20, 3\)"):
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
def test_directions_are_computed_in_double_precision_and_rounded(dtype):
    points = X.astype(dtype)
    found = LIST_METRICS["cosine"][0](points)
    exact = points.astype(float)
    wanted = (exact / np.sqrt(np.square(exact).sum(axis=1, keepdims=True))).astype(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


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
