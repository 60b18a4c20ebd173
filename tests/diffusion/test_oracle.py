"""Every option against plain dense linear algebra, in float64, from the definition."""

import itertools
import warnings

import numpy as np
import pytest
from registry import SEEDS, affinity, circle
from scipy import linalg, sparse
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from heatsketch import HeatGraph, sketch
from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from heatsketch.exceptions import UnderflowWarning

POWERS = (1, 2, 8, 64, 512, 1024)
BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}
N, COLUMNS = 200, 16
# So narrow a kernel that one step of heat is short against the circle: lambda_1**1024 is
# 0.08, and even "keep" can hold the distances in floating point.
EPSILON = 0.01
# Pairs closer than this share of the largest distance lose digits.
CLOSE = {"float64": 1e-3, "float32": 2e-4}


def dense(K):
    return (K.toarray() if sparse.issparse(K) else K).astype(np.float64)


def normalized(K, normalization):
    """Algorithms 1 and 2 in plain numpy, with errata E1, E2 and E12 fixed."""
    if normalization == "symmetric":
        q = K.sum(axis=1)
        K = K / q[:, np.newaxis] / q
        v = K.sum(axis=1)
        return K / np.sqrt(v)[:, np.newaxis] / np.sqrt(v)
    d = np.sqrt(K.sum(axis=1))
    for _ in range(2000):
        d = np.sqrt(d * (K @ (1 / d)))
    return K / d[:, np.newaxis] / d


def oracle(K, normalization, G, power, stationary):
    """``A**p G / sqrt(k)`` from a full eigendecomposition of ``A``."""
    values, vectors = linalg.eigh(normalized(K, normalization))
    powers = values**power
    if stationary == "drop":
        powers[-1] = 0
    return vectors @ (powers[:, np.newaxis] * (vectors.T @ G)) / np.sqrt(G.shape[1])


def symmetric_sketch(graph, power, **options):
    options = {"weighting": "symmetric", "n_leading": 0} | options
    return sketch(graph, COLUMNS, power=power, **options).embedding


def worst_error(Y, wanted):
    """Largest relative error of a squared distance, over all pairs."""
    found, true = pdist(Y.astype(np.float64)) ** 2, pdist(wanted) ** 2
    return np.max(np.abs(found / true - 1))


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_neighbors", [None, 12])
@pytest.mark.parametrize(
    ("normalization", "random_matrix", "stationary"),
    list(itertools.product(("symmetric", "bistochastic"), BLOCKS, ("drop", "keep"))),
)
def test_squared_distances_agree_with_an_eigendecomposition(
    normalization, random_matrix, stationary, n_neighbors, dtype, power
):
    X = circle(N)
    graph = HeatGraph.from_points(
        X.astype(dtype), weights=EPSILON, n_neighbors=n_neighbors, normalization=normalization
    )
    Y = symmetric_sketch(graph, power, random_matrix=random_matrix, stationary=stationary)
    K = dense(affinity(X.astype(dtype).astype(float), EPSILON, n_neighbors))
    G = BLOCKS[random_matrix](N, COLUMNS, seed=0)
    wanted = oracle(K, normalization, G, power, stationary)
    assert Y.dtype == dtype
    assert worst_error(Y, wanted) <= {"float64": 1e-8, "float32": 1e-2}[dtype]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
@pytest.mark.parametrize("power", POWERS)
def test_large_powers_survive_a_fast_decay(power, normalization, dtype, seed):
    """The paper's circle, where lambda_1**1024 is 1e-28 and the stationary part still 1.

    Its points are uniform for float64. For float32 no two may be closer than the dtype can
    tell apart in an embedding, whatever computed it.
    """
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, 300)
    uniform = np.column_stack([np.cos(angle), np.sin(angle)])
    X = uniform if dtype == "float64" else circle(300, seed).astype(np.float32)
    options = {"weights": 0.25, "normalization": normalization, "n_neighbors": None}
    Y = symmetric_sketch(HeatGraph.from_points(X, **options), power)
    exact = affinity(X.astype(float), 0.25)
    wanted = oracle(exact, normalization, gaussian_matrix(300, COLUMNS, seed=0), power, "drop")
    assert worst_error(Y, wanted) <= {"float64": 1e-8, "float32": 1e-2}[dtype]


def pair_errors(Y, wanted):
    """Return relative errors of squared distances, and the distances over the largest."""
    found, true = pdist(Y.astype(np.float64)), pdist(wanted)
    return np.abs((found / true) ** 2 - 1), true / true.max()


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_close_pairs_lose_digits_in_proportion_to_their_distance(power, dtype, normalization):
    """Errors are relative to the embedding; of these pairs some are 1e-7 of it apart."""
    X = load_digits().data[:200]
    options = {"n_neighbors": 12, "normalization": normalization}
    Y = symmetric_sketch(HeatGraph.from_points(X.astype(dtype), **options), power)
    A = HeatGraph.from_points(X, **options).operator
    K = A.matrix.toarray() / A.s[:, np.newaxis] / A.s
    wanted = oracle(K, normalization, gaussian_matrix(200, COLUMNS, seed=0), power, "drop")
    errors, distances = pair_errors(Y, wanted)
    if power == 1024 and normalization == "bistochastic":
        assert distances.min() < 1e-6
    limit = {"float64": 1e-8, "float32": 1e-2}[dtype]
    assert np.all(errors <= limit * np.maximum(1, CLOSE[dtype] / distances))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keeping_the_stationary_part_warns_where_all_else_is_rounding(dtype):
    """Of the true distances, 1e-28 of the rows and less, nothing is left in floating point."""
    X = circle(N).astype(dtype)
    options = {"weights": 0.25, "n_neighbors": None, "normalization": "bistochastic"}
    graph = HeatGraph.from_points(X, **options)
    with pytest.warns(UnderflowWarning, match="stationary='keep'"):
        symmetric_sketch(graph, 1024, stationary="keep")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        symmetric_sketch(graph, 1024)
        symmetric_sketch(graph, 64, stationary="keep")


@pytest.mark.parametrize("power", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("n_neighbors", [None, 12])
@pytest.mark.parametrize("random_matrix", BLOCKS)
@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
def test_keeping_the_stationary_part_is_the_paper_to_the_letter(
    normalization, random_matrix, n_neighbors, power
):
    """Algorithms 4 and 5, computed as they are written: A, then its power, then A**p G."""
    X = circle(N)
    graph = HeatGraph.from_points(
        X, weights=0.25, n_neighbors=n_neighbors, normalization=normalization
    )
    found = symmetric_sketch(graph, power, random_matrix=random_matrix, stationary="keep")
    A = normalized(dense(affinity(X, 0.25, n_neighbors)), normalization)
    G = BLOCKS[random_matrix](N, COLUMNS, seed=0)
    literal = np.linalg.matrix_power(A, power) @ G / np.sqrt(COLUMNS)
    np.testing.assert_allclose(found, literal, rtol=0, atol=1e-12 * abs(literal).max())
