"""Diffusion maps against a full eigendecomposition, and the distortion L."""

import numpy as np
import pytest
from registry import SEEDS, affinity, cloud
from scipy import linalg

from heatsketch import DiffusionMap
from heatsketch.diffusion import (
    bilipschitz_constant,
    diffusion_coordinates,
    exact_diffusion_distances,
    heat_operator,
    ritz_pairs,
    symmetric_scaling,
)
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._spectral import leading_eigenpairs


def operator(X, normalization, n_neighbors=None):
    K = affinity(X, 0.5, n_neighbors)
    return heat_operator(K, SCALINGS[normalization](K))


# Below and above the size at which the iterative solver takes over.
@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("n_neighbors", [None, 15])
def test_eigenpairs_agree_with_dense_linear_algebra(n, normalization, n_neighbors):
    A = operator(cloud(n, 2), normalization, n_neighbors)
    dense = A @ np.eye(n)
    wanted, wanted_vectors = linalg.eigh((dense + dense.T) / 2)
    values, vectors = leading_eigenpairs(A, 6)
    np.testing.assert_allclose(values, wanted[::-1][1:7], atol=1e-10)
    overlap = np.abs(np.sum(vectors * wanted_vectors[:, ::-1][:, 1:7], axis=0))
    np.testing.assert_allclose(overlap, 1, atol=1e-8)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-9)


@pytest.mark.parametrize("n", [400, 700])
@pytest.mark.parametrize("components", [3, 12])
def test_every_copy_of_a_multiple_eigenvalue_is_found(n, components):
    """A graph in components has the eigenvalue one once for each, the stationary one included."""
    X = cloud(n, 2)
    X[:, 0] += 1000 * (np.arange(n) % components)
    A = operator(X, "symmetric", 10)
    values, vectors = leading_eigenpairs(A, components + 1)
    dense = A @ np.eye(n)
    wanted = linalg.eigvalsh((dense + dense.T) / 2)[::-1][1 : components + 2]
    np.testing.assert_allclose(values, wanted, atol=1e-9)
    assert (values[: components - 1] > 1 - 1e-9).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(components + 1), atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_signs_are_fixed(seed):
    A = operator(cloud(700, 2, seed), "symmetric")
    (_, first), (_, second) = leading_eigenpairs(A, 3), leading_eigenpairs(A, 3)
    np.testing.assert_array_equal(first, second)
    largest = np.abs(first).argmax(axis=0)
    assert (first[largest, range(3)] > 0).all()


@pytest.mark.parametrize("power", [1, 4, 2.5])
@pytest.mark.parametrize("normalization", SCALINGS)
def test_the_estimator_is_algorithm_3(normalization, power):
    X = cloud(80, 2)
    options = {"power": power, "weights": 0.5, "n_neighbors": None, "weighting": "symmetric"}
    model = DiffusionMap(3, normalization=normalization, **options).fit(X)
    A = operator(X, normalization)
    np.testing.assert_allclose(
        model.embedding_, diffusion_coordinates(A, 3, power=power), atol=1e-12
    )


def test_all_coordinates_together_give_the_diffusion_distance():
    """Erratum E8: the eigenvalues enter the squared distance with the power 2 t."""
    A = operator(cloud(40, 2), "symmetric")
    Y = diffusion_coordinates(A, 39, power=4)
    wanted = exact_diffusion_distances(A, power=4)
    found = np.linalg.norm(Y[:, np.newaxis] - Y, axis=2)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert bilipschitz_constant(Y, wanted) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [24, 40, 50])
@pytest.mark.parametrize("n_pairs", [1, 4])
def test_pairs_from_a_block_are_the_leading_ones(n_columns, n_pairs, dtype):
    """Also if the block spans all directions, or more."""
    K = np.asarray(affinity(cloud(40, 2), 2.0, None), dtype)
    A = heat_operator(K, symmetric_scaling(K))
    block = np.random.default_rng(0).normal(size=(40, n_columns))
    values, vectors, residuals = ritz_pairs(A, block, n_pairs)
    assert values.shape == residuals.shape == (n_pairs,)
    assert vectors.shape == (40, n_pairs)
    assert vectors.dtype == dtype
    dense = (A @ np.eye(40, dtype=dtype)).astype(np.float64)
    wanted = linalg.eigvalsh((dense + dense.T) / 2)[::-1][1 : n_pairs + 1]
    atol = 1e-6 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(values, wanted, atol=atol)
    found = np.linalg.norm(dense @ vectors - vectors * values, axis=0)
    np.testing.assert_allclose(found, residuals, atol=atol / 10)
    assert (residuals <= (1e-6 if dtype == np.float64 else 1.2e-5)).all()
    largest = np.abs(vectors).argmax(axis=0)
    assert (vectors[largest, range(n_pairs)] > 0).all()
