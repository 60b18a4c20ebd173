"""Large powers from few products: as accurate as the loop, wherever the spectrum lies."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud, two_blobs
from scipy import linalg
from scipy.spatial.distance import pdist

from heatsketch.diffusion import (
    HeatOperator,
    _sketch,
    gaussian_matrix,
    heat_operator,
)
from heatsketch.diffusion._chebyshev import lower_end
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import Scaled
from heatsketch.diffusion._sketch import diffuse, diffuse_path, power_coefficients

COLUMNS = 8
# Points, epsilon, neighbours. One step of heat hardly moves on the slow ones (the blobs are even
# two components, between which it never flows); on the fast ones lambda_1**1024 is below 1e-8.
SLOW = {
    "slow dense": (circle(200), 0.0005, None),
    "slow kNN": (circle(200), 0.0005, 8),
    "two blobs": (two_blobs(200, 8), 0.5, 10),
}
FAST = {
    "fast dense": (circle(200), 0.25, None),
    "fast kNN": (cloud(200, 2), 1.0, 20),
}
DECAYS = SLOW | FAST


@dataclass
class Counting:
    """A heat operator that counts its products."""

    A: object
    count: int = 0
    columns: int = 0

    def step(self, *blocks, **options):
        self.count += 1
        return self.A.step(*blocks, **options)

    def __matmul__(self, vector):
        assert vector.ndim == 1  # of which some dozens cost less than one block
        self.columns += 1
        return self.A @ vector

    def __getattr__(self, name):
        return getattr(self.A, name)


def operator(name, dtype=np.float64, normalization="symmetric"):
    X, epsilon, n_neighbors = DECAYS[name]
    K = affinity(X, epsilon, n_neighbors).astype(dtype)
    return heat_operator(K, SCALINGS[normalization](K))


def block(A, seed=0):
    return gaussian_matrix(A.shape[0], COLUMNS, seed=seed, dtype=A.dtype)


def in_float64(A):
    """The same operator, free of its own rounding."""
    if isinstance(A.matrix, Scaled):
        parts = (part.astype(np.float64) for part in (A.matrix.K, A.matrix.left, A.matrix.right))
        matrix = Scaled(*parts)
    else:
        matrix = A.matrix.astype(np.float64)
    return HeatOperator(matrix, A.s, A.stationary.astype(np.float64))


def loop(A, G, power):
    """The plain recurrence."""
    for _ in range(power):
        G = A @ A.deflate(G)
    return G


def dense_loop(A, G, power):
    """The same by a dense matrix, for many steps."""
    matrix = A @ A.deflate(np.eye(A.shape[0]))
    for _ in range(power):
        G = matrix @ G
    return G


def by_eigenvalues(A, G, function):
    """A function of ``A`` by definition, without the stationary direction."""
    matrix = A.deflate(A @ np.eye(A.shape[0]))
    values, vectors = linalg.eigh((matrix + matrix.T) / 2)
    return vectors @ (function(values)[:, np.newaxis] * (vectors.T @ A.deflate(G)))


def relative_error(Y, wanted):
    return np.linalg.norm(Y.astype(np.float64) - wanted) / np.linalg.norm(wanted)


def worst_pair(Y, wanted):
    """Largest relative error of a squared distance."""
    return np.max(np.abs(pdist(Y.astype(np.float64)) ** 2 / pdist(wanted) ** 2 - 1))


def tolerance(dtype):
    """What a sum promises, with as much again for the loop it is compared with."""
    return 0.4 * math.sqrt(np.finfo(dtype).eps)


# --- coefficients --------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0, 1, 2, 3, 10, 63, 64, 1001])
def test_coefficients_are_binomial_and_sum_to_the_power(power):
    coefficients = power_coefficients(power)
    found = np.pad(coefficients, (0, power + 1 - len(coefficients)))
    wanted = np.zeros(power + 1)
    for j in range(power % 2, power + 1, 2):
        wanted[j] = math.comb(power, (power - j) // 2) / 2 ** (power - 1 + (j == 0))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-55)
    x = np.linspace(-1, 1, 101)
    np.testing.assert_allclose(np.polynomial.chebyshev.chebval(x, found), x**power, atol=1e-14)


# --- products ------------------------------------------------------------------------------


@pytest.mark.untraced
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize(("power", "most"), [(256, 104), (1024, 200), (4096, 410)])
def test_a_slow_decay_needs_few_products(name, power, most, seed):
    A = Counting(operator(name))
    Y = diffuse(A, block(A, seed), power=power)
    assert A.count <= most
    # Within a component distances are thousands of times smaller than between components, to which
    # the error is relative.
    worst = 1e-5 if name == "two blobs" else 1e-7
    assert worst_pair(Y, dense_loop(A.A, block(A, seed), power)) <= worst


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FAST)
def test_a_fast_decay_never_costs_much_more_than_the_loop(name, dtype):
    for power in (256, 1024, 4096):
        A = Counting(operator(name, dtype))
        diffuse(A, block(A), power=power)
        assert A.count <= {256: 1.5, 1024: 0.75, 4096: 0.5}[power] * power


@pytest.mark.parametrize("power", [1, 2, 7, 64])
def test_a_small_power_is_the_loop(power):
    A = Counting(operator("slow kNN"))
    found, wanted = diffuse(A, block(A), power=power), loop(A.A, block(A), power)
    assert relative_error(found, wanted) <= power * np.finfo(np.float64).eps
    assert (A.count, A.columns) == (power, 0)


def test_a_path_costs_hardly_more_than_its_largest_power():
    A = Counting(operator("slow kNN"))
    powers = [1024, 3, 300, 512, 777, 1000, 3]
    path = diffuse_path(A, block(A), powers=powers)
    assert A.count <= 200
    for Y, power in zip(path, powers, strict=True):
        assert relative_error(Y, diffuse(A.A, block(A), power=power)) <= tolerance("float64")
    np.testing.assert_array_equal(path[1], diffuse(A.A, block(A), power=3))


# --- accuracy ------------------------------------------------------------------------------


@pytest.mark.untraced
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("power", [200, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("name", DECAYS)
def test_a_large_power_is_that_of_the_eigenvalues(name, normalization, dtype, power, seed):
    A = operator(name, dtype, normalization)
    Y = diffuse(A, block(A, seed), power=power)
    assert Y.dtype == dtype
    exact, G = in_float64(A), block(A, seed).astype(np.float64)
    # Each of p products rounds, in the loop as well: by eps / 2 at worst, if all agree.
    rounding = power * np.finfo(dtype).eps / 2
    assert relative_error(Y, dense_loop(exact, G, power)) <= tolerance(dtype) + rounding
    wanted = by_eigenvalues(exact, G, lambda x: x**power)
    assert relative_error(Y, wanted) <= tolerance(dtype) + 2 * rounding


@pytest.mark.untraced
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hidden", [0.0, -0.1, -0.15])
@pytest.mark.parametrize("name", ["two blobs", "fast kNN"])
def test_an_eigenvalue_that_hid_from_the_lower_end_does_no_harm(monkeypatch, name, hidden, seed):
    A = Counting(operator(name))
    assert lower_end(A) < -0.15
    monkeypatch.setattr(_sketch, "lower_end", lambda A: hidden)
    wanted = dense_loop(A.A, block(A, seed), 1024)
    assert relative_error(diffuse(A, block(A, seed), power=1024), wanted) <= tolerance("float64")
    honest = Counting(A.A)
    monkeypatch.undo()
    diffuse(honest, block(A, seed), power=1024)
    # At worst one sum in vain, and one on all of [-1, 1], which is sqrt(2) times as long.
    assert A.count <= 2.5 * honest.count
