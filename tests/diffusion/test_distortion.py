"""Maps of least distortion: they are what they say, and beat both of the paper's methods."""

import numpy as np
import pytest
from distortions import log_distortion, wide, with_stationary
from registry import SEEDS, cloud, helix
from scipy import sparse

from heatsketch import HeatSketch, datasets
from heatsketch._core import kernels as loops
from heatsketch.diffusion import bilipschitz_constant
from heatsketch.diffusion._adapted_matrix import adapted_matrix
from heatsketch.diffusion._distances import exact_diffusion_distances
from heatsketch.diffusion._distortion import (
    _smooth_distortion,
    certified_distortion,
    least_distortion_map,
)
from heatsketch.diffusion._pair_search import Pairs, scan_pairs
from heatsketch.diffusion._random_matrix import gaussian_matrix
from heatsketch.exceptions import DtypeError, HeatSketchError
from heatsketch.graph._neighbors import squared_distances
from heatsketch.reproduction import CATALOGUE, METHODS
from heatsketch.reproduction.runner import sample


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


def test_enough_dimensions_keep_everything():
    flat = cloud(60, 3) @ cloud(3, 10, seed=1)
    found = least_distortion_map(flat, 5)
    assert found.log_distortion < 1e-9 and found.converged
    np.testing.assert_allclose(
        squared_distances(flat @ found.components, flat @ found.components),
        squared_distances(flat, flat),
        atol=1e-9,
    )


def test_the_same_seed_gives_the_same_map():
    Z = cloud(80, 6)
    one, two = (least_distortion_map(Z, 2, seed=5).components for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("scanned", [0, 10_000])
def test_many_points_are_searched_and_still_controlled(scanned, monkeypatch):
    """What happens beyond 8000 and beyond 50,000 points, on fewer."""
    monkeypatch.setattr("heatsketch.diffusion._distortion.SCANNED_EACH_ROUND", 1000)
    monkeypatch.setattr("heatsketch.diffusion._distortion.MOST_SCANNED", scanned)
    monkeypatch.setattr("heatsketch.diffusion._pair_search.SAMPLE", 500)
    Z = helix(3000)
    found = least_distortion_map(Z, 4)
    assert found.exact == bool(scanned)
    exact = scan_pairs(Z @ found.components, Z).log_distortion
    assert found.log_distortion == pytest.approx(exact, rel=0.05)
    assert exact < 1.1 * least_distortion_map(Z[::8], 4).log_distortion


def test_errors_say_what_to_do():
    Z = cloud(10, 3)
    with pytest.raises(HeatSketchError, match=r"n_components=4 must be an integer from 1 to 3"):
        least_distortion_map(Z, 4)
    with pytest.raises(HeatSketchError, match="all lie at one place"):
        least_distortion_map(np.ones((10, 3)), 1)
    with pytest.raises(HeatSketchError, match="Y has 9 rows and Z has 10"):
        certified_distortion(Z[:9], Z)
    with pytest.raises(HeatSketchError, match=r"Z has shape \(10,\)"):
        least_distortion_map(Z[:, 0], 1)
    with pytest.raises(HeatSketchError, match=r"contains NaN in row 4, column \d.*; fill"):
        least_distortion_map(np.where(np.arange(10)[:, np.newaxis] == 4, np.nan, Z), 1)


@pytest.mark.parametrize(
    ("dtype", "becomes"), [("f2", "f4"), (">f4", "f4"), (">f8", "f8"), (np.longdouble, "f8")]
)
def test_coordinates_of_any_width_are_coordinates(dtype, becomes):
    Z = cloud(40, 4).astype(dtype)
    plain = Z.astype(becomes)
    found, wanted = least_distortion_map(Z, 2), least_distortion_map(plain, np.uint8(2))
    np.testing.assert_array_equal(found.components, wanted.components)
    assert certified_distortion(Z[:, :2], Z) == certified_distortion(plain[:, :2], plain)
    assert certified_distortion(Z, Z.tolist(), seed=np.uint8(250)).exact


def test_what_has_no_coordinates_is_rejected():
    Z = cloud(10, 3)
    for bad, says in (
        (sparse.csr_array(Z), r"{} is a sparse matrix .*; pass {}.toarray\(\)"),
        (Z + 1j, "{} has dtype complex128; pass"),
        (Z.astype(str), "{} has dtype <U.*; encode"),
    ):
        with pytest.raises(DtypeError, match=says.format("Z", "Z")):
            least_distortion_map(bad, 2)
        with pytest.raises(DtypeError, match=says.format("Y", "Y")):
            certified_distortion(bad, Z)
    for n_components in (2.5, True, "2"):
        with pytest.raises(DtypeError, match=r"n_components=.* must be an integer from 1 to"):
            least_distortion_map(Z, n_components)


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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "letter"), [("symmetric", "S"), ("bistochastic", "B")])
def test_methods_of_the_catalogue_are_these_maps(kind, letter, seed):
    name, k = f"outliers-isometry-{kind}", 3
    _, operators, block_seed = sample(name, seed, 0)
    A, (power,) = operators[kind], CATALOGUE[name].powers
    distances = exact_diffusion_distances(A, power=power, stationary="keep")
    found = {
        method: np.log(
            bilipschitz_constant(METHODS[method].embed(A, [(k, power)], block_seed)[0], distances)
        )
        for method in CATALOGUE[name].methods
    }
    ours = found[f"NI{letter}"]
    assert ours < 0.4 * min(found[f"DM{letter}"], found[f"GP{letter}"])
    assert found.get("NISW", ours) < 1.35 * ours + 0.02


@pytest.mark.untraced
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in SEEDS if seed)]
)
def test_nothing_is_folded_between_the_points_of_the_fit(seed):
    # Of the starts that are best on a sample, one folds the torus of seed 0 in its gaps.
    X = datasets.stretched_torus(4000, seed=seed)
    model = HeatSketch(256, epsilon=0.3, power=10, n_neighbors=None).fit(X[::2])
    found = least_distortion_map(model.embedding_, 4, seed=seed)
    Z = model.transform(X)
    everywhere = certified_distortion(Z @ found.components, Z)
    assert everywhere.log_distortion < 1.3 * found.log_distortion
