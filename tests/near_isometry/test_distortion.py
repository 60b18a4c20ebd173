"""Maps of least distortion: they are what they say, and beat both of the paper's methods."""

from functools import partial

import numpy as np
import pytest
from distortions import log_distortion, wide, with_stationary
from registry import SEEDS, cloud, helix
from scipy import sparse

from heatsketch import HeatGraph, sketch
from heatsketch._core import kernels as loops
from heatsketch.diffusion import bilipschitz_constant
from heatsketch.diffusion._random_matrix import gaussian_matrix
from heatsketch.exceptions import DtypeError, HeatSketchError, MissingValueError
from heatsketch.graph._neighbors import squared_distances
from heatsketch.near_isometry._distortion import (
    _smooth_distortion,
    certified_distortion,
    least_distortion_map,
)
from heatsketch.near_isometry._pairs import Pairs, scan_pairs
from paper import datasets
from paper.adapted_matrix import adapted_matrix
from paper.methods import METHODS


@pytest.mark.parametrize("doublings", [0, 3, 9])
def test_the_gradient_is_the_slope(doublings):
    X, P = cloud(20, 5), cloud(5, 2, seed=1)
    i, j = np.triu_indices(20, 1)
    squares = np.empty(len(i))
    loops.pair_squares(X, i, j, squares)
    options = {"X": X, "pairs": Pairs(i, j, squares), "doublings": doublings, "shape": P.shape}
    value, gradient = _smooth_distortion(P.ravel(), **options)
    for place in (0, 3, 9):
        step = np.zeros(P.size)
        step[place] = 1e-6
        ahead, behind = (_smooth_distortion(P.ravel() + s * step, **options)[0] for s in (1, -1))
        assert gradient[place] == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-7)
    exact, bound = log_distortion(X @ P, X), np.log(len(i)) / 2**doublings
    assert exact <= value <= exact + bound + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_the_distortion_is_as_stated_and_around_one(seed):
    Z = cloud(120, 12, seed)
    found = least_distortion_map(Z, 4, seed=seed)
    Y = Z @ found.components
    assert found.exact and found.n_pairs == 120 * 119 // 2
    assert found.log_distortion == pytest.approx(log_distortion(Y, Z))
    stated = certified_distortion(Y, Z)
    assert stated.least * stated.largest == pytest.approx(1)
    assert stated.log_distortion == pytest.approx(np.log(stated.largest / stated.least))
    leading = np.linalg.svd(Z - Z.mean(axis=0))[2][:4].T
    random = np.random.default_rng(seed).normal(size=(12, 4))
    old = min(log_distortion(Z @ P, Z) for P in (leading, random))
    assert found.log_distortion < 0.6 * old


@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_entry_of_each_component_is_positive(seed):
    """Also of a map whose entries are all less than one."""
    turn = np.linalg.qr(cloud(30, 30, seed))[0][:5]
    Z = cloud(80, 5, seed) * [4, 3, 2, 1, 0.5] @ turn
    components = least_distortion_map(Z, 3).components
    assert (components[np.abs(components).argmax(axis=0), range(3)] > 0).all()


def test_enough_dimensions_keep_everything():
    flat = cloud(60, 3) @ cloud(3, 10, seed=1)
    found = least_distortion_map(flat, 5)
    assert found.log_distortion < 1e-9 and found.converged
    np.testing.assert_allclose(
        squared_distances(flat @ found.components, flat @ found.components),
        squared_distances(flat, flat),
        atol=1e-9,
    )


@pytest.mark.parametrize("scanned", [0, 10_000])
def test_many_points_are_searched_and_still_controlled(scanned, monkeypatch):
    """What happens beyond 8000 and beyond 50,000 points, on fewer."""
    monkeypatch.setattr("heatsketch.near_isometry._distortion.MOST_SCANNED", 1000)
    monkeypatch.setattr("heatsketch.near_isometry._distortion.MOST_CERTIFIED", scanned)
    Z = helix(3000)
    found = least_distortion_map(Z, 4)
    assert found.exact == bool(scanned)
    exact = scan_pairs(Z @ found.components, Z).log_distortion
    assert found.log_distortion == pytest.approx(exact, rel=0.05)
    leading = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[2][:4].T
    assert exact < 0.3 * scan_pairs(Z @ leading, Z).log_distortion


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "k", "most"), [("outliers", 2, 1.2), ("outliers", 3, 0.2)])
def test_it_beats_both_of_the_papers_methods(name, k, most, seed):
    A, power, distances, block_seed = wide(name, seed)
    n = A.shape[0]
    Z = with_stationary(A, np.eye(n), power)
    old = [
        np.log(bilipschitz_constant(METHODS[method].embed(A, [(k, power)], seed)[0], distances))
        for method in ("DMS", "GPS")
    ]
    exact = np.log(bilipschitz_constant(Z @ least_distortion_map(Z, k).components, distances))
    assert exact < min(most, 0.4 * min(old))
    first = with_stationary(A, gaussian_matrix(n, 64, seed=block_seed), power)
    block = adapted_matrix(first, gaussian_matrix(n, 64, seed=block_seed + 1))
    Z = with_stationary(A, block, power)
    found = np.log(bilipschitz_constant(Z @ least_distortion_map(Z, k).components, distances))
    assert found < 1.35 * exact + 0.02


@pytest.mark.untraced
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_folded_between_the_points_of_the_fit(seed):
    # Of the starts that are best on a sample, one folds the torus of seed 0 in its gaps.
    X = datasets.stretched_torus(4000, seed=seed)
    graph = HeatGraph.from_points(X[::2], weights=0.3, n_neighbors=None)
    made = sketch(graph, 256, power=10)
    found = least_distortion_map(made.embedding, 4, seed=seed)
    Z = made.extend(graph.rows(X))
    everywhere = certified_distortion(Z @ found.components, Z)
    assert everywhere.log_distortion < 1.3 * found.log_distortion


# --- parts of the search for a map ----------------------------------------------------------


def test_a_certificate_counts_all_pairs_of_different_points():
    Z = np.vstack([cloud(20, 3), cloud(20, 3)[:5]])
    Y = 3 * Z[:, :2]
    found = certified_distortion(Y, Z)
    stretches = scan_pairs(np.ascontiguousarray(Y), Z)
    assert (found.n_pairs, found.exact) == (25 * 24 // 2 - 5, True)
    assert (found.least**2, found.largest**2) == pytest.approx((stretches.low, stretches.high))
    Z[20:] *= 1 + 1e-14
    close = certified_distortion(Y, Z)  # equal up to rounding
    assert (close.n_pairs, close.exact) == (25 * 24 // 2 - 5, True)


X = cloud(60)
MISSING = np.where(np.arange(180).reshape(60, 3) == 7, np.nan, X)


@pytest.mark.parametrize(
    ("function", "arguments", "error", "name"),
    [
        (least_distortion_map, (X, 4), HeatSketchError, "n_components"),
        (least_distortion_map, (X, 2.5), DtypeError, "n_components"),
        *[(least_distortion_map, (Z, 1), HeatSketchError, "Z") for Z in (X[0], X[:1], 0 * X)],
        (least_distortion_map, (MISSING, 1), MissingValueError, "Z"),
        *[(least_distortion_map, (Z, 2), DtypeError, "Z") for Z in (sparse.csr_array(X), X + 1j)],
        (certified_distortion, (X[:9], X), HeatSketchError, "Y"),
        (partial(certified_distortion, seed=-1), (X, X), HeatSketchError, "seed"),
        (certified_distortion, (np.ones((4, 2)), np.ones((4, 3))), HeatSketchError, "Z"),
    ],
)
def test_an_invalid_argument_is_named(function, arguments, error, name):
    with pytest.raises(error, match=rf"\b{name}\b"):
        function(*arguments)
