"""Steps and products: the same bits from scipy, from numpy's formula, and from all cores."""

import pickle

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud
from scipy import sparse

from heatsketch._core.kernels import CHUNK
from heatsketch._core.parallel import at_most
from heatsketch.diffusion import (
    HeatOperator,
    gaussian_matrix,
    heat_operator,
    sketch,
    symmetric_scaling,
)
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import Scaled, heat_rows
from heatsketch.diffusion._sketch import diffuse
from heatsketch.exceptions import HeatSketchError

N = 2 * CHUNK + 333
RECURRENCES = {"plain": (1.0, 0.0, 0.0), "first": (1.7, -0.4, 0.0), "later": (2.9, -0.8, 1.0)}


def random_operator(dtype=np.float64, index=np.int32, seed=0, n=N):
    """A matrix that is no heat operator at all, with rows of different lengths."""
    rng = np.random.default_rng(seed)
    matrix = sparse.random_array((n, n), density=10 / n, rng=rng).tocsr().astype(dtype)
    matrix.data -= dtype(0.3)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return HeatOperator(matrix, np.ones(n), rng.uniform(0.5, 2, n).astype(dtype))


def blocks(A, n_columns, seed=0):
    """Three blocks, and two totals."""
    return gaussian_matrix(5 * A.shape[0], n_columns, seed=seed, dtype=A.dtype).reshape(
        5, A.shape[0], n_columns
    )


def written_out(A, x, w, z, factors):
    """The formula of a step, by scipy and numpy."""
    a, b, g = (A.dtype.type(factor) for factor in factors)
    y = a * (A.matrix @ x - A.stationary[:, np.newaxis] * w) + b * x
    return y - g * z if g else y


def test_an_operator_can_be_pickled():
    A = random_operator(n=300)
    assert A.squared_length > 0  # which is kept once it is known
    copy, G = pickle.loads(pickle.dumps(A)), gaussian_matrix(300, 3, seed=0)
    np.testing.assert_array_equal(copy @ G, A @ G)
    np.testing.assert_array_equal(copy.deflate(G), A.deflate(G))
    assert copy.dtype == A.dtype and copy.shape == A.shape


def test_a_step_of_some_rows_reads_the_rest_from_elsewhere():
    """Rows of a worker: their own columns first, then those of other workers."""
    A, n_own = random_operator(), CHUNK + 100
    x, w = blocks(A, 4)[0], np.arange(4.0)
    wanted, _ = A.step(x, w)
    own = HeatOperator(A.matrix[:n_own], A.s, A.stationary[:n_own])
    assert own.shape == (n_own, N)
    y, sums = own.step_of_rows(x[:n_own].copy(), w, halo=x[n_own:].copy())
    np.testing.assert_array_equal(y, wanted[:n_own])
    assert (sums.shape, sums.dtype) == ((2, 4), np.float64)
    np.testing.assert_allclose(sums.sum(axis=0), A.stationary[:n_own] @ y)
    with pytest.raises(HeatSketchError, match=f"^The block must have {n_own} rows"):
        own.step_of_rows(x[: n_own - 1].copy(), w, halo=x[n_own:].copy())


# --- values --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_weights_in_the_values_or_around_the_products_are_the_same(seed, normalization, dtype):
    K = affinity(cloud(300, seed=seed), 1.0, 10).astype(dtype)
    scaling = SCALINGS[normalization](K)
    A, apart = heat_operator(K, scaling), heat_operator(K.tocsc(), scaling)
    assert sparse.issparse(A.matrix)
    assert isinstance(apart.matrix, Scaled)
    G = gaussian_matrix(300, 5, seed=seed, dtype=dtype)
    atol = 20 * np.finfo(dtype).eps * abs(G).max()  # a row has some 15 entries that sum to one
    np.testing.assert_allclose(A @ G, apart @ G, rtol=0, atol=atol)
    np.testing.assert_allclose(A @ G[:, 0], apart @ G[:, 0], rtol=0, atol=atol)
    assert (apart @ G).dtype == (apart @ G[:, 0]).dtype == dtype
    np.testing.assert_array_equal(apart.s, A.s)
    assert abs(A.matrix - A.matrix.T).max() == 0


def test_weights_whose_product_is_no_float32_are_multiplied_in():
    K = sparse.csr_array(1e-30 * affinity(circle(50), 0.1, 5)).astype(np.float32)
    A = heat_operator(K, SCALINGS["bistochastic"](K))
    assert A.dtype == np.float32
    np.testing.assert_allclose(A @ np.ones((50, 1), np.float32), 1, rtol=1e-5)


def test_more_new_rows_than_points_have_their_weights_all():
    K = affinity(cloud(20), 1.0, 5)
    scaling = SCALINGS["symmetric"](K)
    many = sparse.vstack([K] * (CHUNK // 5), format="csr")  # more than a chunk of rows
    rows = heat_rows(many, scaling, heat_operator(K, scaling))
    np.testing.assert_array_equal(rows.matrix[-20:].toarray(), rows.matrix[:20].toarray())


def test_no_rows_have_no_products():
    K = affinity(cloud(40), 1.0, 8)
    scaling = SCALINGS["symmetric"](K)
    rows = heat_rows(K[:0], scaling, heat_operator(K, scaling))
    assert (rows @ gaussian_matrix(40, 3, seed=0)).shape == (0, 3)


# --- steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 8, 15, 16, 31, 32, 64, 65, 100, 128])
def test_products_are_scipys_bit_for_bit(n_columns, dtype, index, seed):
    A = random_operator(dtype, index, seed)
    x = gaussian_matrix(N, n_columns, seed=seed, dtype=dtype)
    found = A @ x
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, A.matrix @ x)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 37, 128])
@pytest.mark.parametrize("recurrence", RECURRENCES)
def test_a_step_is_its_formula_bit_for_bit(recurrence, n_columns, dtype, seed):
    A, factors = random_operator(dtype, seed=seed), RECURRENCES[recurrence]
    x, z, _, *totals = blocks(A, n_columns, seed)
    totals, terms, w = np.array(totals), [0.3, 0.7], A.stationary_coefficients(x)
    wanted = written_out(A, x, w, z, factors)
    sums = totals + np.array(terms, dtype)[:, np.newaxis, np.newaxis] * wanted
    given = x.copy()
    y, following = A.step(x, w, factors=factors, out=z, totals=totals, terms=terms)
    assert y is z
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(totals, sums)
    np.testing.assert_array_equal(x, given)
    assert following.dtype == dtype
    exact = A.stationary_coefficients(y)
    atol = 10 * np.finfo(dtype).eps * abs(y).max() / np.linalg.norm(A.stationary)
    np.testing.assert_allclose(following, exact, rtol=0, atol=atol if dtype == np.float32 else 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", [sparse.csc_array, sparse.csr_array.toarray])
@pytest.mark.parametrize("recurrence", RECURRENCES)
def test_a_step_of_any_other_affinity_is_the_same(recurrence, form, seed):
    K = affinity(cloud(300, seed=seed), 1.0, 10)
    scaling, factors = SCALINGS["symmetric"](K), RECURRENCES[recurrence]
    A, other = heat_operator(K, scaling), heat_operator(form(K), scaling)
    x, z, *totals = blocks(A, 4, seed)
    w, totals, others, terms = A.stationary_coefficients(x), np.array(totals), totals, [0.3, 0, 0.7]
    found, v_found = other.step(x, w, factors=factors, out=z, totals=others, terms=terms)
    wanted, v_wanted = A.step(x, w, factors=factors, out=z, totals=totals, terms=terms)
    atol = 50 * np.finfo(np.float64).eps * abs(x).max()  # some 15 entries, and the terms above
    np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)
    np.testing.assert_allclose(others, totals, rtol=0, atol=atol)
    np.testing.assert_allclose(v_found, v_wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_memory_held_before_does_not_matter(dtype):
    A = random_operator(dtype)
    x = gaussian_matrix(N, 5, seed=0, dtype=dtype)
    w = A.stationary_coefficients(x)
    np.testing.assert_array_equal(
        A.step(x, w, out=np.full_like(x, np.nan))[0], A.step(x, w)[0], strict=True
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", SEEDS)
def test_stationary_coefficients_are_the_projection(seed, dtype):
    A = random_operator(dtype, seed=seed)
    x, v = gaussian_matrix(N, 9, seed=seed, dtype=dtype), A.stationary.astype(np.float64)
    wanted = v @ x.astype(np.float64) / (v @ v)
    found = A.stationary_coefficients(x)
    assert found.dtype == dtype
    scale = abs(x).max() / np.linalg.norm(v)
    np.testing.assert_allclose(found, wanted, rtol=np.finfo(dtype).eps, atol=1e-14 * scale)
    np.testing.assert_array_equal(found[:1], A.stationary_coefficients(x[:, :1]))
    left = A.stationary_coefficients(A.deflate(x))
    assert abs(left).max() <= np.finfo(dtype).eps * abs(x).max()


# --- threads -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("cores", "n_tasks"), [(1, 64), (2, 64), (7, 64), (2, 1), (2, 2), (1, 3)])
def test_neither_cores_nor_cuts_change_a_bit(monkeypatch, cores, n_tasks, dtype):
    n = 5 * CHUNK + 1
    A = random_operator(dtype, n=n)
    G = gaussian_matrix(n, 33, seed=0, dtype=dtype)
    A.matrix.data /= 10  # so that powers stay finite
    wanted = A @ G, A.stationary_coefficients(G), diffuse(A, G, power=3), A.deflate(G)
    monkeypatch.setattr("heatsketch._core.row_chunks.TASKS", n_tasks)
    monkeypatch.setattr("heatsketch._core.row_chunks.FEWEST_CHUNKS", 1)
    with at_most(cores):
        found = A @ G, A.stationary_coefficients(G), diffuse(A, G, power=3), A.deflate(G)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("power", [1, 2, 3, 300])
def test_the_block_given_is_left_as_it_is(power):
    K = affinity(circle(200), 0.0005, 8)
    A = heat_operator(K, SCALINGS["symmetric"](K))
    G = gaussian_matrix(200, 4, seed=0)
    given = G.copy()
    Y = sketch(A, G, power=power)
    np.testing.assert_array_equal(G, given)
    assert not np.shares_memory(Y, G)


@pytest.mark.parametrize("power", [1, 3, 300])
@pytest.mark.parametrize("cut", [np.s_[:, :3], np.s_[:, 2:], np.s_[:, ::2], np.s_[:, ::-1]])
def test_the_layout_of_the_block_changes_no_bit(power, cut):
    K = affinity(circle(200), 0.0005, 8)
    A = heat_operator(K, SCALINGS["symmetric"](K))
    G = gaussian_matrix(200, 6, seed=0)
    wanted = diffuse(A, G[cut].copy(order="C"), power=power)
    for layout in (G[cut], np.asfortranarray(G[cut])):
        np.testing.assert_array_equal(diffuse(A, layout, power=power), wanted)


@pytest.mark.parametrize("n_rows", [0, 30, 41, 80])
@pytest.mark.parametrize("n_neighbors", [None, 8])
@pytest.mark.parametrize("verb", ["__matmul__", "stationary_coefficients", "deflate"])
def test_a_block_of_other_rows_is_rejected_before_a_loop_reads_beyond_it(verb, n_neighbors, n_rows):
    K = affinity(cloud(40), 2.0, n_neighbors)
    A = heat_operator(K, symmetric_scaling(K))
    with pytest.raises(ValueError, match=str(n_rows)):
        getattr(A, verb)(np.ones((n_rows, 2)))
