"""A random matrix that is exact where a first sketch is large."""

import numpy as np
import pytest
from distortions import wide, with_stationary
from registry import SEEDS, cloud

from heatsketch.diffusion import bilipschitz_constant
from heatsketch.diffusion._random_matrix import gaussian_matrix
from paper.adapted_matrix import adapted_matrix


@pytest.mark.parametrize("seed", SEEDS)
def test_an_adapted_block_errs_less(seed):
    A, power, distances, block_seed = wide("torus", seed)
    first = with_stationary(A, gaussian_matrix(500, 128, seed=block_seed), power)
    block = adapted_matrix(first, gaussian_matrix(500, 128, seed=block_seed + 1))
    second = with_stationary(A, block, power)
    errors = [np.log(bilipschitz_constant(Y, distances)) for Y in (first, second)]
    assert errors[1] < 0.1 * errors[0]


def with_sizes(sizes):
    """Return a matrix with these singular values, and its left singular vectors."""
    width = len(sizes)
    U, V = np.linalg.qr(cloud(50, width))[0], np.linalg.qr(cloud(width, width, seed=1))[0]
    return U * sizes @ V, U


# The last quarter of eight directions holds a share of 0.01 of the sum of squares.
SHARE = np.append(np.linspace(1.2, 1, 6), np.zeros(2)) ** 0.5
LAST = np.sqrt(0.01 * np.sum(SHARE**2) / (2 * 0.99)) * np.append(np.zeros(6), [1.01, 0.99])
ADAPTED = {
    "a sketch that holds everything": (0.5 ** np.arange(16), 14),
    "a wider one": (0.8 ** np.arange(40), 35),
    "one that does not": (np.linspace(2, 1, 16), 8),
    "just negligible": (SHARE + 0.999 * LAST, 7),
    "just not negligible": (SHARE + 1.001 * LAST, 4),
    "odd": (np.linspace(2, 1, 13), 6),
    "four columns": (0.01 ** np.arange(4), 4),
    "three columns": (0.01 ** np.arange(3), 1),
    "one column": (np.ones(1), 0),
}


@pytest.mark.parametrize("case", ADAPTED)
def test_a_block_is_a_basis_and_what_is_random_beside_it(case):
    sizes, n_adapted = ADAPTED[case]
    (Y, U), G, width = with_sizes(sizes), cloud(50, len(sizes), seed=2), len(sizes)
    block = adapted_matrix(Y, G) / np.sqrt(width)
    Q, rest = block[:, :n_adapted], block[:, n_adapted:]
    onto = U[:, :n_adapted] @ U[:, :n_adapted].T
    np.testing.assert_allclose(Q @ Q.T, onto, atol=1e-9)
    n_random = width - n_adapted
    wanted = (np.eye(50) - onto) @ G[:, :n_random] / np.sqrt(max(1, n_random))
    np.testing.assert_allclose(rest, wanted, atol=1e-9)
