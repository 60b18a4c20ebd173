"""Small versions of what benchmarks/ measures, with a margin for a busy machine.

Two sides are timed in turn, and the median of their ratios is kept; see benchmarks/timing.py.
"""

import statistics
from time import perf_counter

import numpy as np
import pytest
from registry import circle

from heatsketch import HeatGraph, LocalEngine
from heatsketch.diffusion import gaussian_matrix, sketch

pytestmark = [pytest.mark.untraced, pytest.mark.nightly]


def seconds(function):
    start = perf_counter()
    function()
    return perf_counter() - start


def median_ratio(function, other, n_pairs=7):
    function(), other()
    return statistics.median(seconds(function) / seconds(other) for _ in range(n_pairs))


@pytest.fixture(scope="module")
def operator():
    X = circle(40_000).astype(np.float32)
    return HeatGraph.from_points(X, weights=1e-6).operator


@pytest.mark.parametrize("n_columns", [32, 128])
def test_a_sketch_takes_no_longer_than_bare_products(operator, n_columns):
    """Against scipy's products, on one core; MKL's are in benchmarks/products.py."""
    G = gaussian_matrix(40_000, n_columns, seed=0, dtype=np.float32)

    def bare():
        block = G
        for _ in range(8):
            block = operator.matrix @ block

    assert median_ratio(lambda: sketch(operator, G, power=8), bare, n_pairs=21) < 0.9


def test_lists_find_neighbors_faster_than_looking_everywhere():
    angles, waves = np.random.default_rng(0).random((80_000, 3)), np.arange(48).reshape(3, 16) % 5
    X = np.cos(2 * np.pi * angles @ waves).astype(np.float32)
    exact = LocalEngine(graph_tolerance=0)

    def fit(engine):
        return engine.neighbors(X, metric="euclidean", n_neighbors=15)

    assert median_ratio(lambda: fit(LocalEngine()), lambda: fit(exact), n_pairs=1) < 0.9
