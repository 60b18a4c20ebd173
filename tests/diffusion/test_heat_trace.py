"""The heat trace is that of dense linear algebra, and the power that is read from it the first."""

import numpy as np
import pytest
from checks import tolerance
from registry import SEEDS, affinity, cloud
from sklearn.datasets import load_digits

from heatsketch import HeatGraph
from heatsketch.diffusion import gaussian_matrix, heat_operator, heat_trace, rademacher_matrix
from heatsketch.diffusion._heat_trace import diffuse_until_few, trace_of_block
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._sketch import diffuse


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
    A = operator(9) if data == "line" else HeatGraph.from_points(load_digits().data).operator
    G = gaussian_matrix(A.shape[0], 64, seed=0, dtype=A.dtype)
    before, curve = diffuse_until_few(A, G, few, largest=500)
    power = int(curve.powers[-1])
    full = heat_trace(A, G, largest=power)
    assert power == 1 + np.flatnonzero(full.directions <= few)[0]
    np.testing.assert_array_equal(curve.directions, full.directions[curve.powers - 1])
    np.testing.assert_array_equal(before, diffuse(A, G, power=power - 1))
    assert len(curve.powers) <= power / 2 + 4  # most powers are not counted


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
