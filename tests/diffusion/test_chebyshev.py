"""Large powers from few products: as accurate as the loop, wherever the spectrum lies."""

import math
from dataclasses import dataclass

import dask.array as da
import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud, two_blobs
from scipy import linalg
from scipy.spatial.distance import pdist

from heatsketch import HeatSketch
from heatsketch.diffusion import (
    HeatOperator,
    _sketch,
    gaussian_matrix,
    heat_operator,
    sketch,
    sketch_heat,
    sketch_path,
    symmetric_scaling,
)
from heatsketch.diffusion._chebyshev import Interval, Series, chebyshev_sums, lower_end
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import Scaled
from heatsketch.diffusion._sketch import _radius, diffuse, power_coefficients
from heatsketch.exceptions import SpectrumError

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


@pytest.mark.parametrize("power", [256, 1024, 4096])
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_a_degree_of_about_the_square_root_is_enough(power, tol):
    c = power_coefficients(power)
    degree = math.ceil(math.sqrt(2 * power * math.log(2 / tol)))
    assert c[degree + 1 :].sum() <= tol
    assert c[degree // 2 :].sum() > tol
    x = np.linspace(-1, 1, 101)
    cut = np.polynomial.chebyshev.chebval(x, c[: degree + 1])
    assert np.max(np.abs(cut - x**power)) <= tol


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
    path = sketch_path(A, block(A), powers=powers)
    assert A.count <= 200
    for Y, power in zip(path, powers, strict=True):
        assert relative_error(Y, sketch(A.A, block(A), power=power)) <= tolerance("float64")
    np.testing.assert_array_equal(path[1], sketch(A.A, block(A), power=3))


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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("power", [512, 1024])
def test_pairs_keep_their_digits_after_a_fast_decay(power, seed):
    A = operator("fast dense")
    wanted = loop(A, block(A, seed), power)
    assert np.linalg.norm(wanted) < 1e-7 * np.linalg.norm(block(A, seed))
    found = diffuse(A, block(A, seed), power=power)
    assert worst_pair(found, wanted) <= 1e-8
    assert relative_error(found, wanted) <= 1024 * np.finfo(np.float64).eps


@pytest.mark.parametrize("radius", [0.996, 0.998, 0.999])
def test_eigenvalues_outside_of_the_interval_make_a_sum_longer_not_wrong(radius):
    A = operator("slow dense")
    y, series = loop(A, block(A), 100), [Series(power_coefficients(300))]
    (total,), degree, growth = chebyshev_sums(A, y, series, Interval(-radius, radius), 3e-9)
    assert growth > 1
    assert relative_error(total * radius**300, loop(A, y, 300)) <= tolerance("float64")
    _, inside, _ = chebyshev_sums(A, y, series, Interval(-1.0, 1.0), 3e-9)
    assert inside < degree < 300
    # Far outside it is rejected.
    assert chebyshev_sums(A, y, series, Interval(-0.9, 0.9), 3e-9)[0] == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("name", DECAYS)
def test_the_lower_end_is_below_the_spectrum_but_not_far(name, normalization, dtype):
    A = operator(name, dtype, normalization)
    lowest = linalg.eigvalsh(A @ np.eye(A.shape[0]))[0]
    assert min(lowest, 0) - 0.1 <= lower_end(A) <= min(lowest, 0)


def test_an_operator_of_one_point_or_of_two_has_a_lower_end():
    for K in (np.ones((1, 1)), np.eye(2), np.ones((2, 2)), np.array([[0.0, 1.0], [1.0, 0.0]])):
        A = heat_operator(K, symmetric_scaling(K))
        assert -1 <= lower_end(A) <= max(-1, min(0, linalg.eigvalsh(A @ np.eye(len(K)))[0]))


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
    monkeypatch.setattr(_sketch, "lower_end", lambda A: hidden)
    time = sketch_heat(A, block(A, seed), time=50) * np.sqrt(COLUMNS)
    wanted = by_eigenvalues(A.A, block(A, seed), lambda x: np.exp(-50 * (1 - x)))
    assert relative_error(time, wanted) <= tolerance("float64")


def test_an_interval_is_never_empty():
    x = np.ones((5, 2))
    assert _radius(0 * x, x, 1000) == 0.5
    assert _radius(0.9 * x, x, 1000) == pytest.approx(0.9 * 8 ** (1 / 1000))
    assert _radius(0 * x, 0 * x, 1000) == _radius(1.1 * x, x, 1000) == 1.0


def test_a_path_through_a_fast_decay_is_its_sketches():
    A = operator("fast dense")
    powers = [2**i for i in range(12)]
    for Y, power in zip(sketch_path(A, block(A), powers=powers), powers, strict=True):
        assert relative_error(Y, loop(A, block(A), power) / np.sqrt(COLUMNS)) <= 1e-8


@pytest.mark.parametrize("name", DECAYS)
def test_large_steps_add_up(name):
    A = operator(name)
    once = diffuse(A, block(A), power=900)
    twice = diffuse(A, diffuse(A, block(A), power=300), power=600)
    assert relative_error(twice, once) <= 2 * tolerance("float64")


def test_a_training_point_given_again_has_its_embedding_at_a_large_power():
    X = circle(200)
    model = HeatSketch(COLUMNS, power=1024, epsilon=0.0005, n_neighbors=8).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_columns_of_zeros_and_kernels_of_rank_one_stay_finite():
    A = operator("slow kNN")
    G = block(A)
    G[:, 3] = 0
    Y = diffuse(A, G, power=1024)
    assert abs(Y[:, 3]).max() == 0
    assert relative_error(Y, loop(A, G, 1024)) <= tolerance("float64")
    np.testing.assert_array_equal(diffuse(A, np.zeros_like(G), power=1024), 0)
    K = np.ones((20, 20), np.float32)
    flat = heat_operator(K, symmetric_scaling(K))
    assert abs(diffuse(flat, block(flat), power=1024)).max() < 1e-30


def test_a_decay_below_all_numbers_ends_in_zero_not_in_noise():
    A = operator("fast dense", "float32")
    assert abs(diffuse(A, block(A), power=8192)).max() == 0


def test_dask_blocks_give_the_same_large_power():
    A = operator("slow dense", "float32")
    K = da.from_array(A.matrix.K, chunks=(100, -1))
    lazy = heat_operator(K, symmetric_scaling(K))
    G = da.from_array(block(A), chunks=(100, -1))
    few = Counting(lazy)
    found = diffuse(few, G, power=128)
    assert isinstance(found, da.Array)
    assert few.count <= 64
    assert relative_error(found.compute(), diffuse(A, block(A), power=128)) <= 1e-5


# --- powers that are not whole, and the semigroup ------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("power", [2.5, 3.25, 7.9, 300.5])
@pytest.mark.parametrize("name", ["slow dense", "fast dense"])
def test_a_fractional_power_is_that_of_the_eigenvalues(name, power, normalization, seed):
    A = operator(name, normalization=normalization)
    G = block(A, seed)
    wanted = by_eigenvalues(A, G, lambda x: np.maximum(x, 0) ** power) / np.sqrt(COLUMNS)
    assert relative_error(sketch(A, G, power=power), wanted) <= 2 * tolerance("float64")


def test_fractional_powers_add_up_to_whole_ones():
    A = operator("slow dense", "float32")
    twice = diffuse(A, diffuse(A, block(A), power=3.5), power=2.5)
    assert twice.dtype == np.float32
    assert relative_error(twice, loop(A, block(A), 6)) <= 3 * tolerance("float32")


def test_a_whole_power_given_as_a_float_is_whole():
    A = operator("slow kNN")
    np.testing.assert_array_equal(sketch(A, block(A), power=5.0), sketch(A, block(A), power=5))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("time", [0, 0.3, 1, 17.5, 1000])
@pytest.mark.parametrize("name", DECAYS)
def test_the_semigroup_is_that_of_the_eigenvalues(name, time, dtype, seed):
    A = operator(name, dtype)
    Y = sketch_heat(A, block(A, seed), time=time)
    assert Y.dtype == dtype
    exact, G = in_float64(A), block(A, seed).astype(np.float64)
    wanted = by_eigenvalues(exact, G, lambda x: np.exp(-time * (1 - x))) / np.sqrt(COLUMNS)
    rounding = max(time, 10) * np.finfo(dtype).eps
    assert relative_error(Y, wanted) <= 2 * tolerance(dtype) + rounding


def test_the_semigroup_needs_few_products():
    A = Counting(operator("slow kNN"))
    sketch_heat(A, block(A), time=1024)
    assert A.count <= 200
    A.count = 0
    sketch_heat(A, block(A), time=0.5)
    assert A.count <= 16


# --- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", [2.5, 100.5])
@pytest.mark.parametrize("name", ["two blobs", "fast kNN"])
def test_a_negative_eigenvalue_has_no_fractional_power(name, power, dtype):
    A = operator(name, dtype)
    lowest = linalg.eigvalsh(A @ np.eye(A.shape[0]))[0]
    assert lowest < -0.01
    with pytest.raises(SpectrumError, match=rf"power={power} .* below -0\.\d+; use") as error:
        sketch(A, block(A), power=power)
    claimed = float(str(error.value).split("below ")[1].split(";")[0])
    assert lowest * 1.05 <= claimed < 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_spectrum_far_outside_is_rejected_before_it_overflows(dtype):
    K = np.kron(np.ones((10, 10)), np.array([[0.0, 1.0], [1.0, 0.0]])).astype(dtype)
    A = heat_operator(K, symmetric_scaling(K))
    with pytest.raises(SpectrumError, match=r"power=1\.4 of a negative eigenvalue"):
        sketch(A, block(A), power=1.4)


@pytest.mark.parametrize("power", [0.25, 0.5, 1.1])
def test_a_power_with_too_rough_a_start_is_rejected(power):
    A = operator("fast dense")
    with pytest.raises(SpectrumError, match=f"power={power} cannot be had accurately"):
        sketch(A, block(A), power=power)


@pytest.mark.parametrize("value", [-1, -0.5, math.inf, math.nan])
def test_heat_does_not_flow_backwards(value):
    A = operator("slow dense")
    with pytest.raises(SpectrumError, match=f"power={value} .* not negative"):
        sketch(A, block(A), power=value)
    with pytest.raises(SpectrumError, match=f"powers={value} .* not negative"):
        sketch_path(A, block(A), powers=[1, value])
    with pytest.raises(SpectrumError, match=f"time={value} .* not negative"):
        sketch_heat(A, block(A), time=value)


def test_a_path_has_whole_powers():
    A = operator("slow dense")
    with pytest.raises(SpectrumError, match=r"powers=2\.5 is not whole.*power=2\.5"):
        sketch_path(A, block(A), powers=[1, 2.5])
