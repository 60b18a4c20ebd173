"""The kernel."""

import numpy as np
import pytest
from registry import cloud
from scipy import sparse

from heatsketch import gaussian_affinity, neighbor_graph
from heatsketch.affinity import gaussian_affinity_rows, lonely_fraction, nearest_squares


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_the_kernel_is_applied_to_what_is_stored(form):
    d2 = form(np.array([[0.0, 2.0], [2.0, 1.0]]))
    K = gaussian_affinity(d2, epsilon=0.5)
    assert type(K) is type(d2)
    found = K.toarray() if sparse.issparse(K) else K
    wanted = np.exp(-np.array([[0, 4.0], [4, 2]]))
    if sparse.issparse(K):
        wanted[0, 0] = 0  # not stored: not a neighbour
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_keeps_the_dtype(dtype):
    d2 = neighbor_graph(cloud(10).astype(dtype))
    assert gaussian_affinity(d2, epsilon=0.7).dtype == dtype


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_new_points_differ_from_the_kernel_by_a_factor(form):
    d2 = form(neighbor_graph(cloud(30))[:5, 10:])
    K, rows = gaussian_affinity(d2, epsilon=1.0), gaussian_affinity_rows(d2, epsilon=1.0)
    ratio = (K.data / rows.data) if sparse.issparse(K) else K / rows
    np.testing.assert_allclose(ratio.reshape(5, -1), ratio.reshape(5, -1)[:, :1].repeat(20, axis=1))
    np.testing.assert_array_equal(
        rows.max(axis=1).toarray() if form is sparse.csr_array else rows.max(axis=1), 1
    )


def test_a_row_without_neighbors_has_no_nearest():
    d2 = sparse.csr_array((np.array([4.0, 1.0, 9.0]), [0, 1, 1], [0, 2, 2, 3]), shape=(3, 2))
    np.testing.assert_array_equal(nearest_squares(d2), [1, 0, 9])


def test_lonely_points_are_counted():
    X = np.vstack([np.zeros((6, 1)), 100 * np.arange(1, 5)[:, np.newaxis]])
    assert lonely_fraction(gaussian_affinity(neighbor_graph(X), epsilon=1.0)) == 0.4
