"""The sum over all diffusion times: its oracle, its accuracy, its components."""

from itertools import pairwise

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr

from heatsketch import HeatGraph, HeatSketch, sketch
from heatsketch.diffusion import _all_times as all_times
from heatsketch.diffusion import (
    bistochastic_scaling,
    degree_scaling,
    gaussian_affinity,
    gaussian_matrix,
    heat_operator,
    rademacher_matrix,
    sketch_all_times,
    symmetric_scaling,
)
from heatsketch.diffusion._all_times import (
    HORIZON,
    TOLERANCE,
    resolvent,
    spectrum,
)
from heatsketch.diffusion._chebyshev import Interval
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.exceptions import (
    DisconnectedGraphWarning,
)
from heatsketch.graph import neighbor_graph
from heatsketch.graph._neighbors import label_components

SCALINGS = {
    "degree": degree_scaling,
    "symmetric": symmetric_scaling,
    "bistochastic": bistochastic_scaling,
}
BLOCKS = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}
ALPHA = 1 - 1 / HORIZON


def operator(X, normalization="symmetric", n_neighbors=10):
    K = gaussian_affinity(neighbor_graph(X, n_neighbors=n_neighbors), epsilon=1.0)
    return heat_operator(K, SCALINGS[normalization](K))


def dense(A):
    """Return A without its stationary direction, as a matrix."""
    matrix = A @ np.eye(A.shape[0], dtype=A.dtype)
    v = A.stationary / np.linalg.norm(A.stationary)
    return matrix - np.outer(v, v)


def sum_over_times(A, first_power):
    """Return f(A) by dense linear algebra."""
    matrix = dense(A)
    inverse = np.linalg.inv(np.eye(len(matrix)) - ALPHA * matrix)
    return np.linalg.matrix_power(matrix, first_power) @ inverse


def per_walk(A, rows):
    """Divide rows by the stationary direction of length one."""
    v = A.stationary.astype(float)
    return rows * np.linalg.norm(v) / v[:, np.newaxis]


def graph(n_nodes=300, seed=0):
    """Return a random graph of two groups, unweighted, with self-loops."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_nodes) % 2
    links = rng.uniform(size=(n_nodes, n_nodes)) < np.where(group == group[:, None], 0.1, 0.02)
    links = np.triu(links, 1)
    return (links + links.T + np.eye(n_nodes)).astype(float)


def path(n_nodes):
    """Return the matrix of a path, with self-loops."""
    diagonals = [np.ones(n_nodes - 1), np.ones(n_nodes), np.ones(n_nodes - 1)]
    return sparse.csr_array(sparse.diags_array(diagonals, offsets=[-1, 0, 1]))


def walk(K):
    return heat_operator(K, degree_scaling(K))


# --- against dense linear algebra ---------------------------------------------------------------


@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("first_power", [1, 4])
def test_the_sum_is_that_of_dense_linear_algebra(normalization, first_power):
    A = operator(cloud(200), normalization)
    G = gaussian_matrix(200, 16, seed=0)
    exact = per_walk(A, sum_over_times(A, first_power) @ G / 4)
    found = sketch_all_times(A, G, first_power=first_power, tolerance=1e-9)
    assert np.abs(found - exact).max() < 1e-8 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_distance_is_within_the_tolerance_of_the_converged_one(dtype):
    A = operator(cloud(400).astype(dtype))
    G = gaussian_matrix(400, 400, seed=0, dtype=dtype)
    exact = pdist(per_walk(A, sum_over_times(A, 2)))
    # A matrix of orthogonal columns has the distances of the kernel itself.
    Q = np.linalg.qr(G)[0].astype(dtype)
    found = pdist(sketch_all_times(A, Q, first_power=2)) * 20
    assert np.abs(found / exact - 1).max() < TOLERANCE + 1e3 * np.finfo(dtype).eps


def hidden_groups(seed):
    """Groups of a few dozen nodes, each with one weak link to a random graph of 2000."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([2000, *rng.integers(8, 60, 30)])
    ends, weights = [np.stack([np.arange(1999), np.arange(1, 2000)])], [np.ones(1999)]

    def link(i, j, weight=1.0):
        ends.append(np.stack(np.broadcast_arrays(i, j)).reshape(2, -1))
        weights.append(np.full(ends[-1].shape[1], weight))

    link(np.repeat(np.arange(2000), 3), rng.integers(2000, size=6000))
    for start, stop in pairwise(starts):
        link(*rng.integers(start, stop, (2, 4 * (stop - start))))
        link(np.arange(start, stop - 1), np.arange(start + 1, stop))
        link(start, rng.integers(2000), (stop - start) * rng.uniform(0.02, 0.2))
    W = sparse.coo_array((np.concatenate(weights), np.concatenate(ends, axis=1)), (starts[-1],) * 2)
    return sparse.csr_array(W + W.T)


@pytest.mark.parametrize("seed", range(8))
def test_the_interval_holds_eigenvalues_of_small_groups_too(seed):
    A, end = walk(hidden_groups(seed)), 1 / ALPHA
    deflated = LinearOperator(A.shape, lambda x: A.deflate(A @ x.reshape(-1, 1)), dtype=float)
    largest = eigsh(deflated, 1, which="LA", ncv=80, return_eigenvectors=False)[0]
    _, high = spectrum(A, None, end)
    assert largest <= high and (end - largest) < 1.5 * (end - high)


def test_eigenvalues_outside_the_interval_are_solved_for_all_the_same(monkeypatch):
    A = operator(cloud(200))
    G = A.deflate(gaussian_matrix(200, 8, seed=0))
    exact = np.linalg.solve(np.eye(200) - ALPHA * dense(A), G)
    too_small, whole = Interval(-0.01, 0.5), Interval(-1.0, 1.0)
    monkeypatch.setattr(all_times, "spectrum", lambda *args: too_small)
    found, n_products, *_ = resolvent(A, G.copy())
    assert np.linalg.norm(found - exact) < 2 * TOLERANCE * np.linalg.norm(exact)
    assert n_products == n_products_for(too_small) + n_products_for(whole)


def n_products_for(interval):
    """Return the degree at which 1 / T_n(z_0) is the tolerance."""
    center, radius = (interval.high + interval.low) / 2, (interval.high - interval.low) / 2
    pole = (1 / ALPHA - center) / radius
    return int(np.ceil(np.arccosh(1 / TOLERANCE) / np.arccosh(pole)))


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("case", ["points", "graph"])
@pytest.mark.parametrize("k", [16, 64])
def test_intervals_cover(kind, case, k):
    n_trials = 20_000
    A = (
        operator(cloud(80))
        if case == "points"
        else heat_operator(graph(80), degree_scaling(graph(80)))
    )
    # The polynomial that is applied, whatever its error: a fixed matrix.
    M = sketch_all_times(A, np.eye(len(A.stationary)), first_power=2) * np.sqrt(len(A.stationary))
    pairs = np.array([[0, 1], [2, 40], [5, 77]])
    rows = M[pairs[:, 0]] - M[pairs[:, 1]]
    covered = np.zeros(len(pairs))
    low, high = scale_interval(k, 0.95, random_matrix=kind)
    for first in range(0, n_trials * k, 80_000):
        width = min(80_000, n_trials * k - first)
        columns = rows @ BLOCKS[kind](len(M), width, seed=7, first_column=first)
        squares = (columns.reshape(len(pairs), -1, k) ** 2).mean(axis=2)
        ratio = np.sqrt(squares) / np.linalg.norm(rows, axis=1)[:, np.newaxis]
        covered += ((low * ratio <= 1) & (high * ratio >= 1)).sum(axis=1)
    covered /= n_trials
    assert (covered >= 0.945).all(), covered
    if kind == "gaussian":
        assert (covered <= 0.955).all(), covered


# --- connected components -----------------------------------------------------------------------


def two_blobs(dtype=np.float64):
    blob = np.random.default_rng(1).normal(size=(100, 2))
    return blob.astype(dtype), np.concatenate([blob, blob + 1000]).astype(dtype)


@pytest.mark.parametrize("normalization", SCALINGS)
def test_two_far_blobs_lie_apart_and_are_what_each_is_alone(normalization):
    blob, both = two_blobs()
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        graph = HeatGraph.from_points(both, normalization=normalization)
    part = HeatGraph.from_points(blob, normalization=normalization)
    Y, alone = (sketch(made, n_leading=0).embedding for made in (graph, part))
    inner = max(pdist(Y[:100]).max(), pdist(Y[100:]).max())
    assert cdist(Y[:100], Y[100:]).min() > inner
    unit = graph.stationary_length / part.stationary_length  # that of the whole walk
    assert np.abs(pdist(Y[:100]) / pdist(alone) / unit - 1).max() < 1e-5


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_components_of_other_shape_are_what_they_are_alone_once_converged():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(120, 2)), rng.uniform(size=(90, 2)) * 3 + 500])
    K = gaussian_affinity(neighbor_graph(X, n_neighbors=10), epsilon=1.0)
    part = K[:120, :120]
    n_components, labels = label_components(K)
    assert n_components == 2
    options = {"first_power": 3, "tolerance": 1e-9}
    G = gaussian_matrix(210, 32, seed=0)
    Y = sketch_all_times(heat_operator(K, symmetric_scaling(K)), G, labels=labels, **options)
    A = heat_operator(part, symmetric_scaling(part))
    alone = sketch_all_times(A, G[:120], **options)
    ratios = pdist(Y[:120]) / pdist(alone)
    assert ratios.max() / ratios.min() - 1 < 1e-5


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_of_several_components_keeps_its_laws(dtype):
    _, X = two_blobs(dtype)
    model = HeatSketch(32).fit(X)
    assert model.embedding_.dtype == dtype
    assert (model.transform(X[::-1]) == model.embedding_[::-1]).all()
    fresh = sketch(model.graph_, 48, n_leading=16)
    grown = model.sketch_.grow(48)
    assert (grown.embedding == fresh.embedding).all()
    shape = grown.diffusion_map(1).coordinates[:, 0]  # of each blob, and the blobs are equal
    assert abs(np.corrcoef(shape[:100], shape[100:])[0, 1]) > 0.999


# --- the horizon ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_nodes", "horizon", "is_exceeded"),
    [
        (150, HORIZON, False),
        (400, 10 * HORIZON, False),
        (700, 100 * HORIZON, False),
        (2500, 100 * HORIZON, True),
    ],
)
def test_the_horizon_is_the_first_beyond_the_slowest_direction(n_nodes, horizon, is_exceeded):
    """The gap of a path is about pi^2 / (3 n^2)."""
    A, G = walk(path(n_nodes)), gaussian_matrix(n_nodes, 1, seed=0)
    found = resolvent(A, A.deflate(G), horizon=None)
    assert (found.horizon, found.interval.high == 1) == (horizon, is_exceeded)
    gap = np.pi**2 / 3 / n_nodes**2
    assert horizon == HORIZON or gap < 10 / horizon
    assert (gap < 1 / horizon) == is_exceeded
    given = resolvent(A, A.deflate(G), horizon=horizon)
    assert (given.block == found.block).all()


def test_pseudotime_along_a_long_path_does_not_saturate():
    """With a horizon of 10,000 the correlation is .35, and with 100,000 it is .987."""
    K, places = path(1200), np.random.default_rng(0).permutation(1200)
    K = K[places][:, places]
    graph = HeatGraph.from_affinity(K)
    root = int(np.argmin(places))
    found = sketch(graph, 32).pseudotime(root).distance
    assert spearmanr(found, places).statistic > 0.995
    assert (sketch(graph, 32, power=2).pseudotime(root).distance == found).all()
