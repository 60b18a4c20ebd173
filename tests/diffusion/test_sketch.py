"""Laws of the sketch: theorems of the paper; ``test_relations.py`` has relations between two."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import SEEDS, affinity, circle, cloud
from scipy import stats

from heatsketch.diffusion import (
    exact_diffusion_distances,
    gaussian_matrix,
    heat_operator,
    heat_trace,
    rademacher_matrix,
    ritz_pairs,
    sketch,
    sketch_all_times,
    symmetric_scaling,
)
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._sketch import diffuse, diffuse_path
from heatsketch.exceptions import HeatSketchError


def operator(X, normalization="symmetric", epsilon=0.5, n_neighbors=None):
    K = affinity(X, epsilon, n_neighbors)
    return heat_operator(K, SCALINGS[normalization](K))


# What is made from an operator and a block.
MADE_FROM_A_BLOCK = {
    "a few steps": lambda A, G: sketch(A, G, power=3),
    "a sum": lambda A, G: sketch(A, G, power=300),
    "a path": lambda A, G: np.array(diffuse_path(A, G, powers=[2, 300])),
    "all times": sketch_all_times,
    "a trace": lambda A, G: heat_trace(A, G, largest=3).trace,
    "eigenpairs": lambda A, G: ritz_pairs(A, G, 2).values,
}


@pytest.mark.parametrize("n_neighbors", [None, 7])
@pytest.mark.parametrize("made", list(MADE_FROM_A_BLOCK)[:3])
def test_the_precision_is_the_higher_of_operator_and_block(made, n_neighbors):
    function, K = MADE_FROM_A_BLOCK[made], affinity(cloud(50), 1.5, n_neighbors)
    G = gaussian_matrix(50, 4, seed=0).astype(np.float32)
    double, single = (heat_operator(k, symmetric_scaling(k)) for k in (K, K.astype(np.float32)))
    wanted = function(double, G.astype(np.float64))
    np.testing.assert_array_equal(function(double, G), wanted)
    found = function(single, G.astype(np.float64))
    assert found.dtype == np.float64
    error = 300 * np.finfo(np.float32).eps  # of so many products with rounded entries
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error * abs(wanted).max())


INVALID_BLOCKS = {
    "too few rows": lambda G: G[:30],
    "too many rows": lambda G: np.vstack([G, G]),
    "no rows": lambda G: G[:0],
    "one axis": lambda G: G[:, 0],
    "three axes": lambda G: G[..., np.newaxis],
    "complex numbers": lambda G: G + 1j,
    "words": lambda G: G.astype(str),
    "NaN": lambda G: np.where(G > 2, np.nan, G),
    "infinity": lambda G: np.where(G > 2, -np.inf, G),
}


@pytest.mark.parametrize("n_neighbors", [None, 7])
@pytest.mark.parametrize("invalid", INVALID_BLOCKS)
@pytest.mark.parametrize("made", MADE_FROM_A_BLOCK)
def test_an_invalid_block_is_rejected_by_name(made, invalid, n_neighbors):
    A, G = operator(cloud(50), epsilon=1.5, n_neighbors=n_neighbors), gaussian_matrix(50, 4, seed=0)
    with pytest.raises(HeatSketchError, match=r"^G "):
        MADE_FROM_A_BLOCK[made](A, INVALID_BLOCKS[invalid](G))


SAME_BLOCKS = {
    "columns one after another": np.asfortranarray,
    "rows backwards": lambda G: G[::-1].copy()[::-1],
    "other byte order": lambda G: G.astype(">f8"),
    "long doubles": lambda G: G.astype(np.longdouble),
    "a list": lambda G: G.tolist(),
    "signs as integers": lambda G: G.astype(np.int8),
    "signs as halves": lambda G: G.astype(np.float16),
}


@pytest.mark.parametrize("n_neighbors", [None, 7])
@pytest.mark.parametrize("same", SAME_BLOCKS)
@pytest.mark.parametrize("made", MADE_FROM_A_BLOCK)
def test_however_a_block_is_stored_it_is_the_same(made, same, n_neighbors):
    A = operator(cloud(50), epsilon=1.5, n_neighbors=n_neighbors)
    G = rademacher_matrix(50, 4, seed=0)
    wanted = MADE_FROM_A_BLOCK[made](A, G)
    np.testing.assert_array_equal(MADE_FROM_A_BLOCK[made](A, SAME_BLOCKS[same](G)), wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ratio_of_squares_is_chi_squared(seed):
    """k |y_i - y_j|^2 / d^2 has exactly k degrees of freedom, for every pair."""
    n, k, trials = 30, 4, 5000
    A = operator(circle(n), epsilon=0.3)
    G = gaussian_matrix(n, k * trials, seed=seed)
    Y = diffuse(A, G, power=3)
    squares = ((Y[3] - Y[17]) ** 2).reshape(trials, k).sum(axis=1)
    exact = exact_diffusion_distances(A, [[3, 17]], power=3)[0] ** 2
    assert stats.kstest(squares / exact, stats.chi2(k).cdf).pvalue > 1e-4


@given(powers=st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_a_path_is_its_sketches(powers):
    A = operator(circle(30))
    G = gaussian_matrix(30, 3, seed=0)
    for Y, power in zip(diffuse_path(A, G, powers=powers), powers, strict=True):
        np.testing.assert_array_equal(Y, diffuse(A, G, power=power))
