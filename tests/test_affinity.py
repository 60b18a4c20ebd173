"""The kernel."""

import numpy as np
import pytest
from registry import cloud
from scipy import sparse

from heatsketch import affinity, gaussian_affinity, local_scales, neighbor_graph
from heatsketch.affinity import (
    LOCAL_NEIGHBOR,
    gaussian_affinity_rows,
    locally_scaled,
    lonely_fraction,
    nearest_squares,
)
from heatsketch.compiled.products import CHUNK
from heatsketch.distance_tiles import DistanceTiles
from heatsketch.exceptions import HeatSketchError
from heatsketch.row_chunks import multiply_vector


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


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_new_points_keep_the_dtype(form):
    d2 = form(neighbor_graph(cloud(30).astype(np.float32))[:5])
    assert nearest_squares(d2).dtype == np.float32
    assert gaussian_affinity_rows(d2, epsilon=1.0).dtype == np.float32


def test_a_row_without_neighbors_has_no_nearest():
    d2 = sparse.csr_array((np.array([4.0, 1.0, 9.0]), [0, 1, 1], [0, 2, 2, 3]), shape=(3, 2))
    np.testing.assert_array_equal(nearest_squares(d2), [1, 0, 9])


def test_lonely_points_are_counted():
    X = np.vstack([np.zeros((6, 1)), 100 * np.arange(1, 5)[:, np.newaxis]])
    assert lonely_fraction(gaussian_affinity(neighbor_graph(X), epsilon=1.0)) == 0.4
    edge = np.array([[1.0, 0.0, 2e-6], [0.0, 1.0, 5e-7], [2e-6, 5e-7, 1.0]])
    assert lonely_fraction(edge) == pytest.approx(1 / 3)  # a millionth is where it ends


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_bandwidths_leave_nothing_or_everything(form, dtype):
    d2 = form(np.array([[1e-30, 4.0], [4.0, 1e-30]], dtype))
    entries = gaussian_affinity(d2, epsilon=1e-310), gaussian_affinity(d2, epsilon=1e308)
    for K, far in zip(entries, (0.0, 1.0), strict=True):
        found = K.toarray() if sparse.issparse(K) else K
        assert found.dtype == dtype
        assert found[0, 1] == found[1, 0] == far
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(HeatSketchError, match=rf"epsilon={bad} must be positive; use estimate"):
            gaussian_affinity(d2, epsilon=bad)


def test_whole_squares_have_an_affinity_too():
    for form in (np.asarray, sparse.csr_array):
        K = gaussian_affinity(form(np.array([[0, 2], [2, 0]])), epsilon=2)
        assert K.dtype == np.float64
        assert K[0, 1] == pytest.approx(np.exp(-1))


def test_pieces_do_not_matter(monkeypatch):
    d2 = neighbor_graph(cloud(40), n_neighbors=9)
    plain = gaussian_affinity(d2, epsilon=0.7), local_scales(d2.toarray())
    monkeypatch.setattr(affinity, "TILE_ENTRIES", 41)
    np.testing.assert_array_equal(gaussian_affinity(d2, epsilon=0.7).data, plain[0].data)
    np.testing.assert_array_equal(local_scales(d2.toarray()), plain[1])
    assert (plain[0].data != d2.data).all()  # what was given is left alone


# --- local scales -------------------------------------------------------------------------


def scale_by_definition(squares):
    """The seventh distance that is not zero; the last, if there are fewer."""
    apart = np.sort(squares[squares > 0])
    return np.sqrt(apart[min(LOCAL_NEIGHBOR, len(apart)) - 1])


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


def test_few_points_take_the_last_distance():
    d2 = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 9.0], [4.0, 9.0, 0.0]])
    np.testing.assert_array_equal(local_scales(d2), [2, 3, 3])


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


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(5, 25), (25, 5), (2 * CHUNK + 1, 5)])
def test_few_new_points_to_many_old_ones_or_many_to_few(form, shape, monkeypatch):
    monkeypatch.setattr(affinity, "TILE_ENTRIES", 41)
    monkeypatch.setattr("heatsketch.row_chunks.FEWEST_CHUNKS", 1)
    n_rows, n_columns = shape
    whole = ((cloud(n_rows)[:, np.newaxis] - cloud(n_columns, seed=1)) ** 2).sum(axis=2)
    d2 = form(whole)
    wanted = [scale_by_definition(row) for row in whole]
    np.testing.assert_allclose(local_scales(d2), wanted)
    rows, columns = np.linspace(1, 2, n_rows), np.linspace(3, 5, n_columns)
    found = locally_scaled(d2, rows, columns)
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, whole / np.outer(rows, columns))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_are_scaled_like_the_matrix(dtype):
    X = cloud(30).astype(dtype)
    tiles, d2 = DistanceTiles(X, "euclidean"), neighbor_graph(X)
    scales = local_scales(tiles)
    np.testing.assert_allclose(scales, local_scales(d2), rtol=1e-5)
    scaled = locally_scaled(tiles, scales, scales)
    assert scaled.dtype == scaled.tile(slice(3)).dtype == dtype
    np.testing.assert_allclose(
        scaled.tile(slice(None)), locally_scaled(d2, scales, scales), rtol=1e-5
    )


def test_scales_that_are_too_few_are_refused():
    d2 = neighbor_graph(cloud(30), n_neighbors=9)
    scales = local_scales(d2)
    with pytest.raises(HeatSketchError, match=r"30 and 3 scales for d2 of shape \(30, 30\); pass"):
        locally_scaled(d2, scales, scales[:3])


def test_a_vector_that_is_too_short_is_refused():
    K = neighbor_graph(cloud(30), n_neighbors=9)
    with pytest.raises(HeatSketchError, match=r"shape \(3,\) must .* 30 columns .*; pass"):
        multiply_vector(K, np.ones(3))
