"""The heat trace is that of dense linear algebra, and the power that is read from it the first."""

import numpy as np
import pytest
from registry import SEEDS, affinity, circle, cloud
from sklearn.datasets import load_digits

from heatsketch import HeatSketch
from heatsketch.diffusion import gaussian_matrix, heat_operator, heat_trace, rademacher_matrix
from heatsketch.diffusion._all_times import resolvent
from heatsketch.diffusion._heat_trace import FALL, _steps_to_few, diffuse_until, trace_of_block
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.estimators.heat_sketch import DIRECTIONS_PER_COMPONENT
from heatsketch.testing import tolerance


def operator(n_neighbors, normalization="symmetric"):
    K = affinity(cloud(80, 2), 0.5, n_neighbors)
    return heat_operator(K, SCALINGS[normalization](K))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("block", [gaussian_matrix, rademacher_matrix])
@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_the_trace_is_that_of_the_matrix(n_neighbors, normalization, block, seed, monkeypatch):
    from heatsketch.diffusion import _heat_trace as module

    monkeypatch.setattr(module, "GRAM_COLUMNS", 2000)
    A = operator(n_neighbors, normalization)
    matrix = A.deflate(A @ np.eye(80))
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    powers, trace, error, directions = heat_trace(A, block(80, 2000, seed=seed), largest=6)
    wanted = np.sum(values ** (2.0 * powers[:, np.newaxis]), axis=1)
    assert (np.abs(trace - wanted) < 5 * error).all()
    assert (error < 0.1 * wanted).all()
    doubled = np.sum(values ** (4.0 * powers[:, np.newaxis]), axis=1)
    np.testing.assert_allclose(directions, wanted**2 / doubled, rtol=0.1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("power", [1, 3])
def test_directions_are_the_error_of_the_sketched_kernel(power, seed):
    """|Y Y^T - A^{2p}|^2 is (directions + 1) / k of |A^{2p}|^2, on average over sketches."""
    A, k, n_trials = operator(9), 16, 400
    matrix = A.deflate(A @ np.eye(80))
    kernel = np.linalg.matrix_power(matrix @ matrix.T, power)
    errors = []
    for trial in range(n_trials):
        G = gaussian_matrix(80, k, seed=seed, first_column=k * trial)
        Y = np.linalg.matrix_power(matrix, power) @ G / np.sqrt(k)
        errors.append(np.sum((Y @ Y.T - kernel) ** 2) / np.sum(kernel**2))
    directions = np.trace(kernel) ** 2 / np.sum(kernel**2)
    spread = np.std(errors) / np.sqrt(n_trials)
    assert abs(np.mean(errors) - (directions + 1) / k) < 4 * spread


@pytest.mark.parametrize("few", [4, 10, 30])
@pytest.mark.parametrize("data", ["line", "digits"])
def test_the_power_is_the_first_with_few_directions(data, few):
    A = (
        operator(9)
        if data == "line"
        else HeatSketch(power=1).fit(load_digits().data).heat_operator_
    )
    G = gaussian_matrix(A.shape[0], 64, seed=0, dtype=A.dtype)
    options = {"enough": lambda directions: directions[-1] <= few, "largest": 500}
    before, curve = diffuse_until(A, G, **options)
    full = heat_trace(A, G, largest=len(curve.powers))
    assert len(curve.powers) == 1 + np.flatnonzero(full.directions <= few)[0]
    np.testing.assert_array_equal(curve.trace, full.trace)
    # The same with fewer counts.
    skipped, some = diffuse_until(A, G, few=few, **options)
    np.testing.assert_array_equal(skipped, before)
    np.testing.assert_array_equal(some.directions, full.directions[some.powers - 1])
    assert len(some.powers) <= len(curve.powers) / 2 + 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [2, 3, 9])
def test_a_trace_is_a_mean_over_columns(k, dtype):
    block = cloud(50, k).astype(dtype)
    gram = block.T.astype(float) @ block
    lengths, products = np.diag(gram), gram[~np.eye(k, dtype=bool)]
    wanted = (
        lengths.mean(),
        np.sqrt(np.sum((lengths - lengths.mean()) ** 2) / (k - 1) / k),
        lengths.mean() ** 2 / np.mean(products**2),
    )
    np.testing.assert_allclose(trace_of_block(block), wanted, rtol=100 * tolerance(dtype))


def test_what_has_decayed_has_no_directions():
    assert trace_of_block(np.zeros((5, 2))) == (0, 0, 0)


def test_counts_are_left_out_where_more_directions_must_remain():
    def steps(*directions, few):
        return _steps_to_few([1, 2], [(0, 0, found) for found in directions], few)

    assert steps(16, 8, few=2) == 2  # they halve at every step
    assert steps(16, 8, few=7) == 1
    assert steps(16, 8, few=8) == steps(16, 8, few=9) == 1
    assert steps(8, 8, few=2) == steps(8, 16, few=2) == 1
    assert steps(16, 15, few=2) == 2  # no more than there were already
    assert _steps_to_few([5], [(0, 0, 8)], 2) == 1


def test_the_largest_power_ends_it_in_any_case():
    assert len(heat_trace(operator(9), gaussian_matrix(80, 1, seed=0), largest=3).powers) == 3
    assert np.isinf(heat_trace(operator(9), gaussian_matrix(80, 1, seed=0), largest=3).error).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{"n_neighbors": 12}, {"n_neighbors": None}])
@pytest.mark.parametrize("k", [8, 24])
def test_the_sum_starts_where_the_sketch_resolves_it(k, options, dtype):
    X = load_digits(return_X_y=True)[0][:700].astype(dtype)
    model = HeatSketch(k, **options).fit(X)
    directions = model.heat_trace_.directions
    assert directions[-1] <= DIRECTIONS_PER_COMPONENT * k
    assert (directions[:-1] > DIRECTIONS_PER_COMPONENT * k).all()
    # From there on, the sum itself loses directions, until one more step takes few.
    A = model.heat_operator_
    block = resolvent(A, A.deflate(gaussian_matrix(700, max(k, 16), seed=0, dtype=dtype))).block
    falls = heat_trace(A, block, largest=model.power_).directions
    ratios = falls[1:] / falls[:-1]
    assert ratios[-1] >= 1 - FALL - 0.01
    assert (ratios[model.heat_trace_.powers[-1] - 1 : -1] < 1 - FALL + 0.01).all()


def test_more_columns_want_a_smaller_power():
    X = circle(500)
    powers = [HeatSketch(k, epsilon=0.01).fit(X).power_ for k in (4, 16, 64)]
    assert powers == sorted(powers, reverse=True)
    assert powers[0] > powers[-1]
