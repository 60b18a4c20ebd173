"""The kernel."""

from functools import partial

import numpy as np
import pytest
from registry import cloud
from scipy import sparse

from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion import gaussian_affinity, local_scales
from heatsketch.diffusion._affinity import (
    gaussian_affinity_rows,
    isolated_fraction,
    locally_scaled,
    nearest_squares,
    strongest_columns,
    with_self_loops,
)
from heatsketch.exceptions import AffinityError, DtypeError, HeatSketchError, MissingValueError
from heatsketch.graph import neighbor_graph


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


def test_isolated_points_are_counted():
    X = np.vstack([np.zeros((6, 1)), 100 * np.arange(1, 5)[:, np.newaxis]])
    K = gaussian_affinity(neighbor_graph(X), epsilon=1.0)
    assert isolated_fraction(K, K.sum(axis=1)) == 0.4
    edge = np.array([[1.0, 0.0, 2e-6], [0.0, 1.0, 5e-7], [2e-6, 5e-7, 1.0]])
    # A millionth is the limit.
    assert isolated_fraction(edge, edge.sum(axis=1)) == pytest.approx(1 / 3)


def test_points_without_links_may_be_left_out_of_the_count():
    W = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1e9]])
    K = W + np.diag([1e9, 1, 1, 0])  # the first two have a link, of which one is weak
    assert isolated_fraction(K, K.sum(axis=1)) == 3 / 4
    assert isolated_fraction(K, K.sum(axis=1), linked_only=True) == 1 / 2
    assert isolated_fraction(np.eye(3), np.ones(3), linked_only=True) == 1


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_missing_self_loops_are_a_tenth_of_the_strongest_link(form, dtype):
    K = np.array([[0.0, 2, 1, 0], [2, 3, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype)
    found = with_self_loops(form(K))
    assert found.dtype == dtype
    assert isinstance(found, np.ndarray if form is np.asarray else sparse.csr_array)
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, K + np.diag([0.2, 0, 0.1, 1]), rtol=1e-6)
    whole = form(K + 5 * np.eye(4, dtype=dtype))
    assert with_self_loops(whole) is whole


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_the_strongest_column_of_a_row_is_the_first_of_the_largest(form):
    found = strongest_columns(form(np.array([[0.0, 2, 3], [3, 0, 3], [1, 0, 0], [0, 0.1, 0]])))
    np.testing.assert_array_equal(found, [2, 0, 0, 1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_bandwidths_leave_nothing_or_everything(form, dtype):
    d2 = form(np.array([[1e-30, 4.0], [4.0, 1e-30]], dtype))
    entries = gaussian_affinity(d2, epsilon=1e-310), gaussian_affinity(d2, epsilon=1e308)
    for K, far in zip(entries, (0.0, 1.0), strict=True):
        found = K.toarray() if sparse.issparse(K) else K
        assert found.dtype == dtype
        assert found[0, 1] == found[1, 0] == far
    for bad in (0.0, -1.0, np.nan, None, "auto", [2.0]):
        with pytest.raises(HeatSketchError, match="epsilon"):
            gaussian_affinity(d2, epsilon=bad)


# --- whatever form the distances have -----------------------------------------------------


def halves_twice(d2):
    """Return each entry as two halves at the same place."""
    entries = d2.tocoo()
    twice = np.tile(np.arange(entries.nnz), 2)
    places = entries.row[twice], entries.col[twice]
    return sparse.coo_array((entries.data[twice] / 2, places), shape=d2.shape)


def rows_of_halves(d2):
    entries = halves_twice(d2)
    order = np.argsort(entries.row, kind="stable")
    return sparse.csr_array((entries.data[order], entries.col[order], 2 * d2.indptr), d2.shape)


def of_another_machine(d2):
    d2 = d2.copy()
    d2.data = d2.data.astype(">f8")
    return d2


SPARSE_FORMS = {
    **{name: getattr(sparse, f"{name}_array") for name in ("coo", "csc", "lil", "dok")},
    **{f"{name}_matrix": getattr(sparse, f"{name}_matrix") for name in ("coo", "csc", "csr")},
    "halves twice": halves_twice,
    "rows of halves": rows_of_halves,
    "long double": lambda d2: d2.astype(np.longdouble),
    "big-endian": of_another_machine,
}
DENSE_FORMS = {
    "list": np.ndarray.tolist,
    "long double": lambda d2: d2.astype(np.longdouble),
    "big-endian": lambda d2: d2.astype(">f8"),
    "objects": lambda d2: d2.astype(object),
    "columns first": np.asfortranarray,
}


@pytest.mark.parametrize("name", SPARSE_FORMS)
def test_every_sparse_form_says_the_same(name):
    X = cloud(40)
    X[7] = X[3]  # a distance of zero is a distance
    for d2 in (neighbor_graph(X, n_neighbors=8), neighbor_graph(X, n_neighbors=8)[:5]):
        form = SPARSE_FORMS[name](d2)
        K, wanted = gaussian_affinity(form, epsilon=2.0), gaussian_affinity(d2, epsilon=2.0)
        assert (K.format, K.dtype, K.nnz) == ("csr", np.float64, wanted.nnz)
        np.testing.assert_array_equal(K.toarray(), wanted.toarray())
        np.testing.assert_array_equal(local_scales(form), local_scales(d2))


@pytest.mark.parametrize("name", DENSE_FORMS)
def test_every_dense_form_says_the_same(name):
    d2 = neighbor_graph(cloud(40))
    form = DENSE_FORMS[name](d2)
    K = gaussian_affinity(form, epsilon=2.0)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, gaussian_affinity(d2, epsilon=2.0))
    np.testing.assert_array_equal(local_scales(form), local_scales(d2))


@pytest.mark.parametrize("function", [partial(gaussian_affinity, epsilon=1.0), local_scales])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_what_is_no_distance_is_rejected_by_its_place(function, form):
    d2 = neighbor_graph(cloud(10))
    for value, error, says in (
        (np.nan, MissingValueError, r"d2\[3, 5\]"),
        (-0.25, AffinityError, r"d2\[3, 5\]"),
    ):
        d2[3, 5] = value
        with pytest.raises(error, match=says):
            function(form(d2))
    with pytest.raises(DtypeError, match=r"Complex data not supported: d2 has"):
        function(form(d2 + 1j))


# --- local scales -------------------------------------------------------------------------


def scale_by_definition(squares):
    """The seventh distance that is not zero; the last, if there are fewer."""
    apart = np.sort(squares[squares > 0])
    return np.sqrt(apart[min(7, len(apart)) - 1])


@pytest.mark.parametrize("n_neighbors", [4, 7, 8, 20, None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_local_scales_are_the_seventh_distances(n_neighbors, dtype):
    X = cloud(30).astype(dtype)
    X[3] = X[4]  # copies do not count
    d2 = neighbor_graph(X, n_neighbors=n_neighbors)
    scales = local_scales(d2)
    assert scales.dtype == np.float64
    rows = d2 if n_neighbors is None else [d2[[i]].data for i in range(30)]
    wanted = [scale_by_definition(np.asarray(row)) for row in rows]
    np.testing.assert_allclose(scales, wanted, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_copies_alone_have_the_least_scale(form):
    d2 = np.zeros((9, 9))
    np.testing.assert_array_equal(local_scales(form(d2)), 1)
    d2[0, 1:] = d2[1:, 0] = 4.0
    d2[1, 2] = d2[2, 1] = 0.25
    stored = form(d2)
    np.testing.assert_array_equal(local_scales(stored)[[0, 1, 5]], [2, 2, 2])
    alone = form(np.array([[0.0, 0.0], [0.0, 9.0]]))
    np.testing.assert_array_equal(local_scales(alone), [3, 3])  # the smallest that there is
    np.testing.assert_array_equal(local_scales(alone, least=0.5), [0.5, 3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_neighbors", [None, 8])
def test_locally_scaled_squares_are_divided_by_both_scales(n_neighbors, dtype):
    d2 = neighbor_graph(cloud(30).astype(dtype), n_neighbors=n_neighbors)
    rows, columns = np.linspace(1, 2, 30), np.linspace(3, 5, 30)
    found = locally_scaled(d2, rows, columns)
    assert found.dtype == dtype and type(found) is type(d2)
    dense = [m.toarray() if sparse.issparse(m) else m for m in (found, d2)]
    np.testing.assert_allclose(dense[0], dense[1] / np.outer(rows, columns), rtol=1e-6)


def test_a_vector_that_is_too_short_is_rejected():
    K = neighbor_graph(cloud(30), n_neighbors=9)
    with pytest.raises(HeatSketchError, match="vector"):
        multiply_vector(K, np.ones(3))
