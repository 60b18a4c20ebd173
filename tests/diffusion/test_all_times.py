"""The sum over all diffusion times: its oracle, its accuracy, its components."""

from itertools import pairwise

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from heatsketch import HeatSketch
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
    Components,
    add_offsets,
    all_times_weights,
    resolvent,
    spectrum,
)
from heatsketch.diffusion._chebyshev import Interval
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.exceptions import (
    DisconnectedGraphWarning,
    HeatSketchError,
    SaturationWarning,
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


def together(*graphs):
    """Return a graph of several that no edge joins."""
    return sparse.block_diag([sparse.csr_array(K) for K in graphs], format="csr")


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


def test_the_interval_holds_the_spectrum_and_little_more():
    A = operator(cloud(300))
    values = np.linalg.eigvalsh(dense(A))
    low, high = spectrum(A, None, 1 / ALPHA)
    assert low <= values[0] <= low + 0.1
    assert values[-1] <= high and (1 / ALPHA - values[-1]) < 1.5 * (1 / ALPHA - high)


@pytest.mark.parametrize(
    "K", [graph(200), path(40), path(120), path(2000)], ids=["graph", "short", "long", "endless"]
)
def test_the_interval_takes_as_many_steps_of_lanczos_as_it_says(K, monkeypatch):
    """By the Ritz values of an orthogonal basis of the Krylov space."""
    A, n_taken, end = walk(K), [], 1 / ALPHA
    step = type(A).step
    monkeypatch.setattr(type(A), "step", lambda *a, **k: n_taken.append(1) or step(*a, **k))
    low, high = spectrum(A, None, end)
    matrix = dense(A)
    start = np.random.default_rng(0).standard_normal(len(matrix))
    v = A.stationary / np.linalg.norm(A.stationary)
    basis = [start - v * (v @ start)]
    check, is_settled, is_known = 16, False, False
    for n_steps in range(1, len(matrix) + 1):
        basis[-1] = basis[-1] / np.linalg.norm(basis[-1])
        Q = np.array(basis)
        following = matrix @ Q[-1]
        for _ in range(2):
            following = following - Q.T @ (Q @ following)
        basis.append(following)
        if n_steps == check:
            values, vectors = np.linalg.eigh(Q @ matrix @ Q.T)
            residual = np.linalg.norm(following) * abs(vectors[-1, -1])
            gap = end - values[-1]
            # Kuczynski and Wozniakowski: farther beyond with a probability below one half.
            hidden = (np.log(2 * 1.648 * np.sqrt(len(matrix))) / (2 * n_steps - 1)) ** 2
            is_certain = hidden * (end - values[0]) <= gap / 2
            is_known = gap <= 2 / HORIZON or (is_settled and is_certain)
            is_settled = is_settled or residual <= gap / 4
            check = check * 5 // 4
        if is_known:
            break
    is_whole = n_steps == len(matrix)  # nothing is left to find, but for rounding
    assert len(n_taken) == n_steps or (is_whole and len(n_taken) >= n_steps - 1)
    assert low <= values[0] and low % (1 / 64) == 0
    nearest = np.linalg.eigvalsh(matrix)[-1]
    assert high == 1 if gap <= 2 / HORIZON else nearest <= high < 1


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


@pytest.mark.parametrize(("n_rows", "n_steps"), [(1000, 10), (10**6, 40)])
def test_what_lanczos_misses_is_bounded_by_the_theorem(n_rows, n_steps):
    """It is exceeded with a probability of at most 1.648 sqrt(n) exp(-sqrt(x) (2 k - 1))."""
    missed = all_times._hidden(n_steps, n_rows)
    probability = 1.648 * np.sqrt(n_rows) * np.exp(-np.sqrt(missed) * (2 * n_steps - 1))
    assert probability == pytest.approx(all_times.RISK)


def test_an_interval_without_an_end_is_that_up_to_one():
    assert spectrum(walk(path(40))) == spectrum(walk(path(40)), None, 1.0)
    # Nothing is left of a single point, nor of points without links.
    assert spectrum(walk(np.ones((1, 1)))) == Interval(0.0, 0.5)
    alone = walk(np.eye(3))
    assert spectrum(alone, Components(alone, np.arange(3))) == Interval(0.0, 0.5)


@pytest.mark.parametrize("n_nodes", [2, 6])
def test_the_interval_of_a_complete_graph_is_known_after_one_step(n_nodes):
    low, high = spectrum(walk(np.ones((n_nodes, n_nodes)) + 9 * n_nodes * np.eye(n_nodes)))
    assert -1 / 64 <= low <= 0 and 0.9 <= high < 0.92  # the only other eigenvalue is 9 / 10


def test_the_interval_of_components_leaves_out_what_each_keeps():
    K = together(graph(100), graph(140, seed=1))
    A, labels = walk(K), np.repeat([0, 1], [100, 140])
    values = np.linalg.eigvalsh(dense(A))
    _, high = spectrum(A, Components(A, labels), 1 / ALPHA)
    assert values[-1] > 1 - 1e-9  # the direction that tells the components apart
    assert values[-2] <= high and (1 / ALPHA - values[-2]) < 1.5 * (1 / ALPHA - high)


@pytest.mark.parametrize("first_power", [1, 3])
def test_weights_of_eigenvalues_are_sums_of_powers(first_power):
    values = np.array([-0.3, 0.2, 0.7, 0.95])
    powers = np.arange(2000)[:, np.newaxis]
    expected = (values**first_power) * ((ALPHA * values) ** powers).sum(axis=0)
    assert np.allclose(all_times_weights(values, first_power), expected, rtol=1e-12, atol=0)


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


@pytest.mark.parametrize("K", [graph(200), path(120)], ids=["graph", "path"])
def test_the_number_of_products_is_known_before_the_first(K):
    A = walk(K)
    expected = n_products_for(spectrum(A, None, 1 / ALPHA))
    assert resolvent(A, gaussian_matrix(len(A.stationary), 4, seed=0)).n_products == expected


def test_more_components_continue_the_columns_of_fewer():
    """The polynomial depends on the graph alone, not on the random matrix."""
    A = operator(cloud(200))
    few, many = (sketch_all_times(A, gaussian_matrix(200, k, seed=0)) for k in (8, 32))
    assert np.allclose(few * np.sqrt(8), (many * np.sqrt(32))[:, :8], rtol=1e-12, atol=0)


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
        model = HeatSketch(normalization=normalization).fit(both)
    alone = HeatSketch(normalization=normalization).fit(blob)
    Y = model.embedding_
    inner = max(pdist(Y[:100]).max(), pdist(Y[100:]).max())
    assert cdist(Y[:100], Y[100:]).min() > inner
    unit = model.stationary_length_ / alone.stationary_length_  # that of the whole walk
    assert np.abs(pdist(Y[:100]) / pdist(alone.embedding_) / unit - 1).max() < 1e-5


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


def three_components(dtype=np.float64):
    """Return an operator whose smallest component has the largest weights, and labels."""
    K = together(graph(40), graph(90, seed=1), 1e4 * graph(30, seed=2)).astype(dtype)
    return walk(K), np.repeat(np.arange(3), [40, 90, 30])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_offsets_are_in_the_directions_of_what_components_keep(dtype):
    A, labels = three_components(dtype)
    G = gaussian_matrix(160, 16, seed=0, dtype=dtype)
    Y = gaussian_matrix(160, 16, seed=1, dtype=dtype)
    found = Components(A, labels).offsets(G, Y)
    v = A.stationary.astype(float)
    kept = [v[labels == i] @ G[labels == i] / np.linalg.norm(v[labels == i]) for i in range(3)]
    apart = 8 * np.sqrt((Y.astype(float) ** 2).sum(axis=1).mean())
    expected = (kept - kept[1]) * apart / 4
    assert found.dtype == dtype and (found[1] == 0).all()  # the largest stays
    assert np.allclose(found, expected, rtol=1e3 * np.finfo(dtype).eps)
    nothing = Components(A, labels).offsets(G, 0 * Y)
    assert np.allclose(nothing, (kept - kept[1]) / 4, rtol=1e3 * np.finfo(dtype).eps)
    moved = add_offsets(Y, labels, found.astype(float))
    assert moved.dtype == dtype and (moved - Y)[labels == 1].max() == 0
    assert np.allclose(moved - Y, expected[labels], rtol=1e4 * np.finfo(dtype).eps)


def test_an_embedding_of_components_has_their_offsets(monkeypatch):
    A, labels = three_components()
    G = gaussian_matrix(160, 16, seed=0)
    Y = sketch_all_times(A, G, labels=labels)
    monkeypatch.setattr(all_times, "add_offsets", lambda block, labels, offsets: block)
    plain = sketch_all_times(A, G, labels=labels)
    assert np.allclose(Y - plain, Components(A, labels).offsets(G, plain)[labels])
    assert np.allclose(plain, sketch_all_times(A, G, labels=labels, first_power=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pieces_of_rows_change_nothing_but_rounding(dtype, monkeypatch):
    A, labels = three_components(dtype)
    G = gaussian_matrix(160, 16, seed=0, dtype=dtype)
    whole = Components(A, labels).deflate(G)
    v = A.stationary * (labels == np.arange(3)[:, np.newaxis])
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    assert whole.dtype == dtype
    assert np.allclose(whole, G - v.T @ (v @ G), atol=1e2 * np.finfo(dtype).eps)
    monkeypatch.setattr(all_times, "PIECE", 7)
    pieces = Components(A, labels).deflate(G)
    assert np.allclose(pieces, whole, rtol=0, atol=1e2 * np.finfo(dtype).eps)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_of_several_components_keeps_its_laws(dtype):
    _, X = two_blobs(dtype)
    model = HeatSketch(32).fit(X)
    assert model.embedding_.dtype == dtype
    assert (model.transform(X[::-1]) == model.embedding_[::-1]).all()
    fresh = HeatSketch(48).fit(X)
    grown = model.grow(48)
    assert (grown.embedding_ == fresh.embedding_).all()
    shape = grown.diffusion_map(1).coordinates[:, 0]  # of each blob, and the blobs are equal
    assert abs(np.corrcoef(shape[:100], shape[100:])[0, 1]) > 0.999


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_a_new_point_belongs_to_the_component_of_its_nearest_point():
    _, X = two_blobs()
    model = HeatSketch(32).fit(X)
    near = model.transform(X[[3, 150]] + 0.01)
    assert np.linalg.norm(near - model.embedding_[[3, 150]], axis=1).max() < 0.5 * np.linalg.norm(
        model.embedding_[3] - model.embedding_[150]
    )


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DegenerateKernelWarning")
def test_isolated_nodes_are_embedded():
    K = graph(60)
    np.fill_diagonal(K, 0)
    K[5] = K[:, 5] = 0
    Y = HeatSketch(16, affinity="precomputed").fit_transform(sparse.csr_array(K))
    assert np.isfinite(Y).all()
    assert np.linalg.norm(Y[5]) > 2 * np.median(np.linalg.norm(np.delete(Y, 5, axis=0), axis=1))


# --- options ------------------------------------------------------------------------------------


def test_the_stationary_direction_cannot_be_kept():
    with pytest.raises(HeatSketchError, match=r"stationary='keep'.*power='all'"):
        HeatSketch(stationary="keep").fit(cloud(50))


def test_drift_starts_both_sums_at_the_same_power():
    X = load_digits().data
    one, other = HeatSketch().fit(X), HeatSketch().fit(X[:300])
    other.power_ += 2
    found = one.drift(other)
    again = HeatSketch().fit(X)
    again.power_ += 2
    assert found.total == again._embedded_again("drift").drift(other).total


def test_pseudotime_is_the_distance_in_the_embedding():
    X = cloud(200)
    model = HeatSketch(32).fit(X)
    found = model.pseudotime(7).distance
    assert np.allclose(found, np.linalg.norm(model.embedding_ - model.embedding_[7], axis=1))
    single = HeatSketch(32, power=4).fit(X)
    assert (single.pseudotime(7).distance == found).all()


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
    model = HeatSketch(32, affinity="precomputed").fit(K)
    root = int(np.argmin(places))
    assert spearmanr(model.pseudotime(root).distance, places).statistic > 0.995
    single = HeatSketch(32, power=2, affinity="precomputed").fit(K)
    assert (single.pseudotime(root).distance == model.pseudotime(root).distance).all()


def test_pseudotime_along_a_path_beyond_the_longest_horizon_warns():
    model = HeatSketch(8, affinity="precomputed").fit(path(2500))
    with pytest.warns(SaturationWarning, match="1,000,000 steps"):
        model.pseudotime(0)
