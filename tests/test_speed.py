"""Small versions of what benchmarks/ measures, with a margin for a busy machine.

Two sides are timed in turn, and the median of their ratios is kept; see benchmarks/timing.py.
"""

import statistics
from time import perf_counter

import numpy as np
import pytest
from registry import circle, cloud

from heatsketch import HeatSketch, LocalEngine
from heatsketch.diffusion import gaussian_matrix, sketch
from heatsketch.diffusion._sketch import diffuse
from heatsketch.graph import neighbor_graph
from heatsketch.graph._neighbors import find_neighbors

pytestmark = pytest.mark.untraced


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
    return HeatSketch(2, n_neighbors=15, epsilon=1e-6).fit(X).heat_operator_


@pytest.mark.parametrize("n_columns", [32, 128])
def test_a_sketch_takes_no_longer_than_bare_products(operator, n_columns):
    """Against scipy's products, on one core; MKL's are in benchmarks/products.py."""
    G = gaussian_matrix(40_000, n_columns, seed=0, dtype=np.float32)

    def bare():
        block = G
        for _ in range(8):
            block = operator.matrix @ block

    assert median_ratio(lambda: sketch(operator, G, power=8), bare, n_pairs=21) < 0.9


def test_a_large_power_takes_less_than_half_of_its_steps(operator):
    G = gaussian_matrix(40_000, 16, seed=0, dtype=np.float32)

    def steps():
        block = G
        for _ in range(1024):
            block = operator.step(block, np.zeros(16, np.float32))[0]

    assert median_ratio(lambda: diffuse(operator, G, power=1024), steps, n_pairs=1) < 0.5


def test_lists_find_neighbors_faster_than_looking_everywhere():
    angles, waves = np.random.default_rng(0).random((80_000, 3)), np.arange(48).reshape(3, 16) % 5
    X = np.cos(2 * np.pi * angles @ waves).astype(np.float32)
    exact = LocalEngine(graph_tolerance=0)

    def fit(engine):
        return engine.neighbors(X, metric="euclidean", n_neighbors=15, n_columns=1)

    assert median_ratio(lambda: fit(LocalEngine()), lambda: fit(exact), n_pairs=1) < 0.9


def test_new_points_close_together_take_no_longer_than_others():
    """They are all found by the same few points, whose rows are long and need no order."""
    neighbors, _ = find_neighbors(cloud(20_000, 2), n_neighbors=15)
    apart = cloud(20_000, 2, seed=1)

    def rows(X_new):
        return neighbors.distances_to(X_new)

    assert median_ratio(lambda: rows(apart / 1e4), lambda: rows(apart), n_pairs=3) < 3


def test_compiled_distances_are_faster_than_scipys():
    from scipy.spatial.distance import cdist

    X = np.random.default_rng(0).standard_normal((3000, 16))
    ours, scipys = (lambda: neighbor_graph(X)), (lambda: cdist(X, X, "sqeuclidean"))
    assert median_ratio(ours, scipys) < 0.9
