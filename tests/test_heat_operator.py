"""Products: the same bits from one thread of scipy and from all cores."""

import sys

import numpy as np
import pytest
from registry import SEEDS, cloud
from scipy import sparse

from heatsketch import HeatSketch, gaussian_block
from heatsketch.heat_operator import multiply

ROOM = sys.modules["heatsketch.heat_operator"]  # whose name is also that of a function


@pytest.fixture
def always_parallel(monkeypatch):
    monkeypatch.setattr(ROOM, "MANY_PRODUCTS", 0)


def random_matrix(dtype, index, seed, n=333):
    rng = np.random.default_rng(seed)
    K = sparse.random_array((n, n), density=0.05, rng=rng, dtype=np.float64).tocsr().astype(dtype)
    K.data -= dtype(0.3)
    K.indices, K.indptr = K.indices.astype(index), K.indptr.astype(index)
    return K


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 8, 15, 16, 31, 32, 64, 65, 100, 128])
def test_products_from_all_cores_are_scipys_bit_for_bit(
    always_parallel, n_columns, dtype, index, seed
):
    K = random_matrix(dtype, index, seed)
    block = gaussian_block(333, n_columns, seed=seed, dtype=dtype)
    found = multiply(K, block)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, K @ block)


@pytest.mark.parametrize("cores", [1, 2, 7])
def test_the_number_of_cores_does_not_matter(always_parallel, monkeypatch, cores):
    K = random_matrix(np.float32, np.int32, 0)
    block = gaussian_block(333, 32, seed=0, dtype=np.float32)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    np.testing.assert_array_equal(multiply(K, block), K @ block)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_embedding_is_the_same_from_all_cores(monkeypatch, dtype):
    X = cloud(300).astype(dtype)
    model = HeatSketch(32, n_neighbors=10, power=5)
    plain = model.fit_transform(X)
    monkeypatch.setattr(ROOM, "MANY_PRODUCTS", 0)
    np.testing.assert_array_equal(model.fit_transform(X), plain)
    np.testing.assert_array_equal(model.transform(X[::3]), plain[::3])


@pytest.mark.parametrize(
    "block",
    [
        np.asfortranarray(gaussian_block(333, 4, seed=0)),
        gaussian_block(333, 4, seed=0, dtype=np.float32),
        gaussian_block(333, 8, seed=0)[:, ::2],
    ],
    ids=["columns first", "another dtype", "strided"],
)
def test_other_blocks_are_left_to_scipy(always_parallel, block):
    K = random_matrix(np.float64, np.int32, 0)
    np.testing.assert_array_equal(multiply(K, block), K @ block)
