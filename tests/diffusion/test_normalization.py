"""Algorithms 1 and 2, against their definition, and the matrices that have no scaling."""

import numpy as np
import pytest
from checks import check_affinity, check_heat_operator
from registry import FORMS, SEEDS, affinity, circle, cloud, two_blobs
from scipy import sparse

from heatsketch.diffusion import bistochastic_scaling, heat_operator, symmetric_scaling
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.exceptions import HeatSketchError, ScalingError, ScalingFailure


def torus(n, seed=0):
    u, v = np.random.default_rng(seed).uniform(0, 2 * np.pi, (2, n))
    return np.column_stack([np.cos(u), np.sin(u), 3.5 * np.cos(v), 3.5 * np.sin(v)])


POSITIVE_SEMIDEFINITE = {
    "circle, epsilon .05": affinity(circle(300), 0.05),
    "circle, epsilon .25": affinity(circle(300), 0.25),
    "circle, epsilon 1": affinity(circle(300), 1.0),
    "torus": affinity(torus(500), 0.3),
    "cloud in 3 dimensions": affinity(cloud(400), 1.0),
    "cloud in 20 dimensions": affinity(cloud(400, 20), 20.0),
    "isolated points": affinity(cloud(100, 20), 0.01),
    "two blobs, weakly linked": affinity(two_blobs(300, 8.0), 1.0),
    "two blobs, hardly linked": affinity(two_blobs(300, 14.0), 1.0),
    "circle and outliers": affinity(np.vstack([circle(198), [[0, 3], [3, 0]]]), 0.5),
    "all equal": affinity(np.zeros((50, 2)), 1.0),
    "duplicates": affinity(np.repeat(cloud(60), 5, axis=0), 1.0),
}
NEAREST_NEIGHBORS = {
    "circle": affinity(circle(300), 0.05, 10),
    "torus": affinity(torus(500), 0.3, 8),
    "cloud in 3 dimensions": affinity(cloud(500), 1.0, 10),
    "cloud in 20 dimensions": affinity(cloud(500, 20), 20.0, 6),
    "two blobs": affinity(two_blobs(300, 8.0), 1.0, 10),
    "hub": affinity(np.vstack([np.zeros((1, 30)), cloud(300, 30)]), 60.0, 4),
}


def off_diagonal(edges, n):
    K = np.zeros((n, n))
    for i, j in edges:
        K[i, j] = K[j, i] = 1
    return K


def star(n):
    return off_diagonal([(0, i) for i in range(1, n)], n)


def path(n):
    return off_diagonal([(i, i + 1) for i in range(n - 1)], n)


def with_row(K, i, value):
    K = K.copy()
    K[i] = K[:, i] = value
    return K


# Symmetric patterns with an entry that no permutation can use, or with no permutation at all.
WITHOUT_SCALING = {
    **{f"star of {n}": star(n) for n in (3, 4, 5, 10, 50)},
    **{f"path of {n}": path(n) for n in (3, 4, 5, 7)},
    "a loop and a leaf": np.array([[1.0, 1], [1, 0]]),
    "unbalanced bipartite": np.block(
        [[np.zeros((2, 2)), np.ones((2, 4))], [np.ones((4, 2)), np.zeros((4, 4))]]
    ),
    "empty row": with_row(np.ones((4, 4)), 2, 0.0),
    "all zeros": np.zeros((3, 3)),
    "a negative row": with_row(np.ones((4, 4)), 1, -1.0),
    "not a number": with_row(np.ones((4, 4)), 1, np.nan),
    "infinite": with_row(np.ones((4, 4)), 1, np.inf),
    "sparse star": sparse.csr_array(star(20)),
    "comb": off_diagonal([(0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (1, 6)], 7),
}


@pytest.mark.parametrize("name", POSITIVE_SEMIDEFINITE)
def test_symmetric_scaling_is_algorithm_1(name):
    K = POSITIVE_SEMIDEFINITE[name]
    q = K.sum(axis=1)
    literal = K / q[:, np.newaxis] / q
    v = literal.sum(axis=1)
    literal = literal / np.sqrt(v)[:, np.newaxis] / np.sqrt(v)
    A = heat_operator(K, symmetric_scaling(K)) @ np.eye(len(K))
    np.testing.assert_allclose(A, literal, rtol=1e-14, atol=1e-14 * literal.max())


@pytest.mark.parametrize("name", POSITIVE_SEMIDEFINITE)
def test_semidefinite_kernels_are_bistochastic_within_sixty_sweeps(name):
    K = POSITIVE_SEMIDEFINITE[name]
    scaling = bistochastic_scaling(K)
    sums = heat_operator(K, scaling) @ np.ones(K.shape[0])
    assert np.max(np.abs(sums - 1)) <= 1e-10
    assert scaling.n_iter <= 60
    assert scaling.residual <= 1e-10


@pytest.mark.parametrize("name", NEAREST_NEIGHBORS)
def test_neighbor_kernels_are_bistochastic_within_two_hundred_sweeps(name):
    K = NEAREST_NEIGHBORS[name]
    scaling = bistochastic_scaling(K)
    sums = heat_operator(K, scaling) @ np.ones(K.shape[0])
    assert np.max(np.abs(sums - 1)) <= 1e-10
    assert scaling.n_iter <= 200


@pytest.mark.parametrize("name", WITHOUT_SCALING)
def test_a_pattern_without_scaling_ends_in_a_reason(name):
    with pytest.raises(ScalingError) as caught:
        bistochastic_scaling(WITHOUT_SCALING[name])
    error = caught.value
    assert error.reason in ScalingFailure
    assert 1 <= error.n_iter <= 1000
    assert not error.residual <= 1e-12
    assert error.reason.value in str(error)
    assert str(error.n_iter) in str(error)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("form", FORMS)
def test_heat_operator_keeps_the_laws_in_every_form(form, scaling, dtype, seed):
    K = affinity(cloud(80, seed=seed).astype(dtype), 1.0)
    held = FORMS[form](K)
    check_affinity(held, seed=seed)
    A = heat_operator(held, SCALINGS[scaling](held))
    check_heat_operator(A, seed=seed)
    dense = heat_operator(K, SCALINGS[scaling](K))
    block = np.eye(80, dtype=dtype)
    np.testing.assert_allclose(A @ block, dense @ block, rtol=10 * np.finfo(dtype).eps, atol=1e-30)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_top_eigenvalue_is_one(scaling):
    for K in POSITIVE_SEMIDEFINITE.values():
        A = heat_operator(K, SCALINGS[scaling](K)) @ np.eye(len(K))
        assert abs(np.linalg.eigvalsh(A)[-1] - 1) <= 1e-12


def test_row_sums_accumulate_in_float64():
    """Ten thousand affinities of 0.1 in float32 would lose three digits, one by one."""
    K = sparse.csr_array(np.full((2, 20_000), 0.1, np.float32))
    sums = symmetric_scaling(K).current
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, 20_000 * float(np.float32(0.1)), rtol=1e-12)


def test_a_factor_on_a_new_row_cancels():
    K = affinity(cloud(40), 1.0)
    scaling = symmetric_scaling(K)
    s, stationary = scaling(K)
    s_scaled, stationary_scaled = scaling(7.0 * K)
    np.testing.assert_allclose(7.0 * s_scaled, s, rtol=1e-14)
    np.testing.assert_allclose(stationary_scaled, stationary, rtol=1e-14)


@pytest.mark.parametrize("form", ["toarray", "tocsr"])
@pytest.mark.parametrize("name", SCALINGS)
def test_weights_of_new_rows_follow_from_the_last_two_sweeps(name, form):
    """Those of training points are computed in the same way; only that takes a product less."""
    K = getattr(affinity(cloud(50), 1.0, 12), form)()
    options = {"tol": 1e-3} if name == "bistochastic" else {}  # few sweeps, which still differ
    scaling = SCALINGS[name](K, **options)
    s, stationary = scaling(K, is_training=True)
    later = K @ (1 / scaling.current)
    earlier = 1 if name == "degree" else K @ (1 / scaling.previous)
    np.testing.assert_allclose(s, 1 / np.sqrt(earlier * later), rtol=1e-12)
    np.testing.assert_allclose(stationary, np.sqrt(later / earlier), rtol=1e-12)
    for new, training in zip(scaling(K[:7]), (s, stationary), strict=True):
        np.testing.assert_allclose(new, training[:7], rtol=1e-12)


@pytest.mark.parametrize("name", SCALINGS)
def test_a_matrix_with_places_beyond_its_shape_is_rejected(name):
    K = sparse.csr_array(affinity(cloud(10), 1.0, 4))
    scaling = SCALINGS[name](K)
    K.indices[3] = 10
    for rejecting in (SCALINGS[name], scaling):
        with pytest.raises(HeatSketchError, match=r"^K\.indices"):
            rejecting(K)
