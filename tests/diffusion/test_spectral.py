"""Diffusion maps against a full eigendecomposition, and the distortion L."""

import dask.array as da
import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud
from scipy import linalg

from heatsketch import DiffusionMap
from heatsketch.diffusion import (
    bilipschitz_constant,
    diffusion_coordinates,
    exact_diffusion_distances,
    gaussian_matrix,
    heat_operator,
    ritz_pairs,
    sketch,
    symmetric_scaling,
)
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._spectral import eigenvalue_powers, leading_eigenpairs
from heatsketch.exceptions import HeatSketchError, SpectrumError
from heatsketch.graph import neighbor_graph


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
    values, vectors = linalg.eigh((dense + dense.T) / 2)
    found = leading_eigenpairs(A, 6)
    np.testing.assert_allclose(found.values, values[::-1][1:7], atol=1e-10)
    overlap = np.abs(np.sum(found.vectors * vectors[:, ::-1][:, 1:7], axis=0))
    np.testing.assert_allclose(overlap, 1, atol=1e-8)
    np.testing.assert_allclose(A @ found.vectors, found.vectors * found.values, atol=1e-9)


@pytest.mark.parametrize("n", [400, 700])
@pytest.mark.parametrize("components", [3, 12])
def test_every_copy_of_a_multiple_eigenvalue_is_found(n, components):
    """A graph in components has the eigenvalue one once for each, the stationary one included."""
    X = cloud(n, 2)
    X[:, 0] += 1000 * (np.arange(n) % components)
    A = operator(X, "symmetric", 10)
    found = leading_eigenpairs(A, components + 1)
    dense = A @ np.eye(n)
    wanted = linalg.eigvalsh((dense + dense.T) / 2)[::-1][1 : components + 2]
    np.testing.assert_allclose(found.values, wanted, atol=1e-9)
    assert (found.values[: components - 1] > 1 - 1e-9).all()
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(components + 1), atol=1e-8)


def test_as_many_eigenpairs_as_asked_for_even_if_all_are_equal():
    A = heat_operator(np.eye(200), symmetric_scaling(np.eye(200)))
    assert leading_eigenpairs(A, 3).vectors.shape == (200, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_signs_are_fixed(seed):
    A = operator(cloud(700, 2, seed), "symmetric")
    first, second = leading_eigenpairs(A, 3), leading_eigenpairs(A, 3)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    largest = np.abs(first.vectors).argmax(axis=0)
    assert (first.vectors[largest, range(3)] > 0).all()


@pytest.mark.parametrize("power", [1, 4, 2.5])
@pytest.mark.parametrize("normalization", SCALINGS)
def test_the_estimator_is_algorithm_3(normalization, power):
    X = cloud(80, 2)
    options = {"power": power, "epsilon": 0.5, "n_neighbors": None, "weighting": "symmetric"}
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


def test_the_circle_is_a_circle_in_two_dimensions():
    X = circle(200)
    A = operator(X, "bistochastic")
    L = bilipschitz_constant(diffusion_coordinates(A, 2, power=8), np.sqrt(neighbor_graph(X)))
    assert L < 1.5


def test_more_eigenvectors_than_points_are_rejected():
    with pytest.raises(HeatSketchError, match=r"n_components=30 .* 30 points.*=1 to 29"):
        DiffusionMap(30).fit(cloud(30))


def test_a_search_that_ends_without_says_so(monkeypatch):
    monkeypatch.setattr("heatsketch.diffusion._spectral.MOST_ROUNDS", 1)
    A = operator(cloud(700, 2), "symmetric", 15)
    message = (
        r"n_components=6 eigenvectors were not found \(residual .*\); ask for fewer, or use "
        r"HeatSketch, which needs none\.$"
    )
    with pytest.raises(SpectrumError, match=message):
        leading_eigenpairs(A, 6)


def test_a_fractional_power_needs_a_positive_spectrum():
    with pytest.raises(SpectrumError, match=r"power=1\.5 of the eigenvalue -.*integer power"):
        DiffusionMap(39, power=1.5, n_neighbors=3, epsilon=1.0).fit(circle(40))


def test_a_negative_power_needs_eigenvalues_away_from_zero():
    with pytest.raises(SpectrumError, match=r"cannot be divided by.*fewer components"):
        DiffusionMap(150, power=0, epsilon=5.0, n_neighbors=None).fit(cloud(200, 2))


def test_distortion_sees_what_falls_together():
    D = np.sqrt(neighbor_graph(cloud(10)))
    assert bilipschitz_constant(np.zeros((10, 2)), D) == np.inf
    assert bilipschitz_constant(cloud(10), np.zeros((10, 10)) + (D.max() / 2 < D) * D) == np.inf
    with pytest.raises(HeatSketchError, match="10 points are all zero"):
        bilipschitz_constant(cloud(10), np.zeros((10, 10)))


@pytest.mark.parametrize("n_neighbors", [None, 8])
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_of_a_search_that_ended_without_are_still_what_they_say(seed, n_neighbors):
    """All columns of a narrow block, with none to spare: the last ones are never found."""
    K = affinity(cloud(60, seed=seed), 2.0, n_neighbors)
    A = heat_operator(K, symmetric_scaling(K))
    block = sketch(A, gaussian_matrix(60, 8, seed=seed), power=2)
    values, vectors, residuals = ritz_pairs(A, block, 8, tolerance=0.0)
    assert residuals.max() > 1e-12
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, rtol=1e-12)
    found = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    np.testing.assert_allclose(found, residuals, rtol=1e-3, atol=1e-14)


@pytest.mark.parametrize("n_pairs", [0, -1, 60, np.uint8(60)])
def test_numbers_of_pairs_that_there_are_not_are_rejected(n_pairs):
    K = affinity(cloud(60), 2.0)
    A = heat_operator(K, symmetric_scaling(K))
    message = (
        f"n_components={n_pairs} .* from 60 points, which have 59 .*; use n_components=1 to 59"
    )
    with pytest.raises(HeatSketchError, match=message):
        diffusion_coordinates(A, n_pairs)


def test_numpy_integers_are_numbers_of_pairs():
    K = affinity(cloud(60), 2.0)
    A = heat_operator(K, symmetric_scaling(K))
    wanted = diffusion_coordinates(A, 5)
    np.testing.assert_array_equal(diffusion_coordinates(A, np.uint8(5)), wanted)
    np.testing.assert_allclose(diffusion_coordinates(A, 1), wanted[:, :1], atol=1e-12)
    with pytest.raises(SpectrumError, match="power=nan"):
        diffusion_coordinates(A, 2, power=np.nan)


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


@pytest.mark.parametrize(("n_pairs", "n_columns"), [(0, 8), (9, 8), (60, 60), (60, 80)])
def test_numbers_of_pairs_that_a_block_does_not_have_are_rejected(n_pairs, n_columns):
    A = operator(cloud(60, 2), "symmetric")
    message = (
        f"^n_pairs={n_pairs} eigenvectors cannot be had from a block of {n_columns} columns and 60 "
        r"rows; use fewer pairs, or another n_components\.$"
    )
    with pytest.raises(HeatSketchError, match=message):
        ritz_pairs(A, np.ones((60, n_columns)), n_pairs)
    all_pairs = ritz_pairs(A, np.random.default_rng(0).normal(size=(60, 60)), 59)
    np.testing.assert_allclose(all_pairs.values, leading_eigenpairs(A, 59).values, atol=1e-12)


def test_eigenvectors_of_a_lazy_block_are_rejected():
    A = operator(cloud(60, 2), "symmetric")
    with pytest.raises(
        HeatSketchError, match=r"^G is a Array, and eigenvectors cannot be found on"
    ):
        ritz_pairs(A, da.ones((60, 8)), 2)


@pytest.mark.parametrize("power", [-2, -1, 0, 1, 3])
def test_powers_of_eigenvalues_of_either_sign(power):
    values = np.array([0.9, 0.5, -0.5])
    np.testing.assert_allclose(eigenvalue_powers(values, power), [value**power for value in values])
    if power >= 0:
        np.testing.assert_array_equal(eigenvalue_powers(np.zeros(2), power), [power == 0] * 2)


def test_powers_that_do_not_exist_are_rejected_with_what_does():
    np.testing.assert_array_equal(eigenvalue_powers(np.array([0.25, 0.0]), 0.5), [0.5, 0])
    message = (
        r"^power=0.5 of the eigenvalue -0.25 is not a real number; use an integer power, fewer "
        r"components, or n_neighbors=None, whose kernel has no negative ones\.$"
    )
    with pytest.raises(SpectrumError, match=message) as raised:
        eigenvalue_powers(np.array([0.5, -0.25]), 0.5)
    assert raised.value.parameters == {"power": 0.5, "n_neighbors": None}
    message = (
        r"^an eigenvalue of 1e-09 cannot be divided by; use power=1 or more, or fewer components\.$"
    )
    with pytest.raises(SpectrumError, match=message):
        eigenvalue_powers(np.array([0.5, -1e-9]), -1)
    assert np.isfinite(eigenvalue_powers(np.array([0.5, -1e-7]), -1)).all()
