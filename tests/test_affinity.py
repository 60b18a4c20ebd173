"""The kernel and its bandwidth."""

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy import sparse
from sklearn.datasets import make_swiss_roll

from heatsketch import HeatSketch, estimate_epsilon, gaussian_affinity, neighbor_graph
from heatsketch.affinity import gaussian_affinity_rows, lonely_fraction, nearest_squares
from heatsketch.exceptions import DegenerateKernelError


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_the_kernel_is_applied_to_what_is_stored(form):
    d2 = form(np.array([[0.0, 2.0], [2.0, 1.0]]))
    K = gaussian_affinity(d2, epsilon=0.5)
    assert type(K) is type(d2)
    found = K.toarray() if sparse.issparse(K) else K
    wanted = np.exp(-np.array([[0, 4.0], [4, 2]]))
    if sparse.issparse(K):
        wanted[0, 0] = 0  # not stored: not a neighbour
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_keeps_the_dtype(dtype):
    d2 = neighbor_graph(cloud(10).astype(dtype))
    assert gaussian_affinity(d2, epsilon=0.7).dtype == dtype


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_new_points_differ_from_the_kernel_by_a_factor(form):
    d2 = form(neighbor_graph(cloud(30))[:5, 10:])
    K, rows = gaussian_affinity(d2, epsilon=1.0), gaussian_affinity_rows(d2, epsilon=1.0)
    ratio = (K.data / rows.data) if sparse.issparse(K) else K / rows
    np.testing.assert_allclose(ratio.reshape(5, -1), ratio.reshape(5, -1)[:, :1].repeat(20, axis=1))
    np.testing.assert_array_equal(
        rows.max(axis=1).toarray() if form is sparse.csr_array else rows.max(axis=1), 1
    )


def test_a_row_without_neighbors_has_no_nearest():
    d2 = sparse.csr_array((np.array([4.0, 1.0, 9.0]), [0, 1, 1], [0, 2, 2, 3]), shape=(3, 2))
    np.testing.assert_array_equal(nearest_squares(d2), [1, 0, 9])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("X", "dimension"),
    [
        (lambda seed: circle(500, seed), 1),
        (lambda seed: make_swiss_roll(2000, random_state=seed)[0], 2),
        (lambda seed: np.random.default_rng(seed).uniform(size=(2000, 2)), 2),
        (lambda seed: cloud(2000, 3, seed), 3),
    ],
    ids=["circle", "swiss roll", "square", "cloud"],
)
def test_the_slope_finds_the_intrinsic_dimension(X, dimension, seed):
    estimate = estimate_epsilon(neighbor_graph(X(seed)))
    # A closed curve bends, which its chords see as a part of a second dimension.
    assert abs(estimate.dimension - dimension) <= 0.25 * dimension
    assert estimate.dimensions[np.searchsorted(estimate.epsilons, estimate.epsilon)] > 0


def test_the_bandwidth_scales_with_the_square_of_the_points():
    d2 = neighbor_graph(cloud(200))
    np.testing.assert_allclose(
        estimate_epsilon(9 * d2).epsilon, 9 * estimate_epsilon(d2).epsilon, rtol=1e-9
    )


def test_the_bandwidth_does_not_depend_on_how_many_neighbors_are_kept():
    X = cloud(200)
    assert HeatSketch(n_neighbors=10).fit(X).epsilon_ == HeatSketch().fit(X).epsilon_


def test_equal_points_have_no_bandwidth():
    with pytest.raises(DegenerateKernelError, match=r"d2 of shape \(5, 5\).*give epsilon"):
        estimate_epsilon(np.zeros((5, 5)))


def test_lonely_points_are_counted():
    X = np.vstack([np.zeros((6, 1)), 100 * np.arange(1, 5)[:, np.newaxis]])
    assert lonely_fraction(gaussian_affinity(neighbor_graph(X), epsilon=1.0)) == 0.4
