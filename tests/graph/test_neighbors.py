"""Who is near whom."""

import numpy as np
import pytest
from registry import SEEDS, circle, cloud, two_blobs
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from heatsketch import LocalEngine
from heatsketch.diffusion import gaussian_affinity
from heatsketch.exceptions import (
    AffinityError,
)
from heatsketch.graph import neighbor_graph
from heatsketch.graph._metrics import METRICS
from heatsketch.graph._neighbors import (
    find_neighbors,
    label_components,
)
from heatsketch.testing import check_engine


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_local_engine_keeps_the_laws_of_an_engine(metric, seed):
    check_engine(LocalEngine(), seed=seed, metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_are_scikit_learns(metric):
    X = cloud(50) > 0 if metric == "jaccard" else cloud(50)
    wanted = pairwise_distances(X, metric=metric) ** 2
    np.testing.assert_allclose(neighbor_graph(X.astype(float), metric=metric), wanted, atol=1e-12)


def test_small_distances_far_from_the_origin_are_exact():
    """Where the squares of the coordinates are 1e16 and the distances 1e-6 (reliability F8)."""
    offset = cloud(50, 4).round(2)
    X = 1e4 + 2.0**-10 * offset  # all exact in float32, too
    wanted = cdist(2.0**-10 * offset, 2.0**-10 * offset, "sqeuclidean")
    rounded = X.astype(np.float32).astype(float) - 1e4
    np.testing.assert_allclose(
        neighbor_graph(X.astype(np.float32)), cdist(rounded, rounded, "sqeuclidean"), rtol=1e-6
    )
    np.testing.assert_allclose(neighbor_graph(X), wanted, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_neighbors", [1, 6, 150])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_radii_are_the_distances_to_the_last_neighbor(metric, n_neighbors, seed):
    X = cloud(400, seed=seed)
    X[350:] = X[:50]
    neighbors, _ = find_neighbors(X, n_neighbors=n_neighbors, metric=metric)
    wanted = np.sort(neighbor_graph(X, metric=metric), axis=1)[:, n_neighbors - 1]
    np.testing.assert_array_equal(neighbors.radii, wanted)


def test_tiles_do_not_matter(monkeypatch):
    X = cloud(100)
    whole, cut = neighbor_graph(X), neighbor_graph(X, n_neighbors=5)
    monkeypatch.setattr("heatsketch.graph._neighbors.TILE_ENTRIES", 700)
    np.testing.assert_array_equal(neighbor_graph(X), whole)
    tiled = neighbor_graph(X, n_neighbors=5)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(tiled, name), getattr(cut, name))


def second_distances(X_new, X):
    """Weights 1/2 + (c golden mod 1), written out."""
    weights = 0.5 + np.arange(1, X.shape[1] + 1) * (np.sqrt(5) - 1) / 2 % 1
    return (weights * np.abs(X_new[:, np.newaxis] - X)).sum(axis=2)


def without_copies(X, seed):
    return np.random.default_rng(seed).permutation(np.unique(X, axis=0)).astype(float)


GRIDS = {
    "truth values": lambda seed: (np.arange(256)[:, np.newaxis] >> np.arange(8)) & 1,
    "a lattice": lambda seed: np.stack(np.meshgrid(*[np.arange(6)] * 3), -1).reshape(-1, 3),
    "one of many": lambda seed: np.eye(120),
    "integers": lambda seed: np.random.default_rng(seed).integers(0, 4, (250, 5)),
}


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "hamming", "chebyshev"])
@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_second_distance_decides_among_ties(name, metric, seed):
    """The oracle: all points sorted by both distances."""
    X, k = without_copies(GRIDS[name](seed), seed), 12
    d2, second = neighbor_graph(X, metric=metric), second_distances(X, X)
    order = np.lexsort((second.round(9), d2))[:, k - 1]  # whose signs are mirrored have one second
    last = np.arange(len(X)), order
    radii, ties = d2[last][:, np.newaxis], second[last][:, np.newaxis]
    finds = (d2 < radii) | ((d2 == radii) & (second <= ties + 1e-9))
    neighbors, graph = find_neighbors(X, n_neighbors=k, metric=metric)
    stored = np.zeros(d2.shape, bool)
    stored[np.repeat(np.arange(len(X)), np.diff(graph.indptr)), graph.indices] = True
    np.testing.assert_array_equal(stored, finds | finds.T)
    again = neighbors.distances_to(X[::-1])
    np.testing.assert_array_equal(again.toarray(), graph.toarray()[::-1])
    assert again.nnz == graph.nnz


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_components_are_counted(form):
    for X, components in ((circle(40), 1), (two_blobs(40, 1000.0), 2), (1e3 * cloud(30), 30)):
        K = gaussian_affinity(neighbor_graph(X), epsilon=1.0)
        n_components, labels = label_components(form(K))
        assert n_components == components
        expected = connected_components(sparse.csr_array(np.where(K > 1e-12, K, 0)))[1]
        assert (labels == expected).all()  # numbered by their first rows, too


@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_a_metric_of_ones_own_is_tried_on_a_few_points(n_neighbors):
    X = cloud(20)
    with pytest.raises(AffinityError, match=r"metric=.* is not symmetric"):
        find_neighbors(X, metric=lambda x, y: abs(x[0]), n_neighbors=n_neighbors)
    wanted, found = (
        find_neighbors(X, metric=metric, n_neighbors=n_neighbors)[1]
        for metric in ("manhattan", lambda x, y: abs(x - y).sum())
    )
    np.testing.assert_allclose(dense(found), dense(wanted))


# --- validation -------------------------------------------------------------------------------


def test_distances_may_come_in_any_form():
    wanted = neighbor_graph(cloud(20), n_neighbors=5)
    distances = wanted.sqrt()
    for form in ("csc", "coo", "lil", "dok"):
        given = distances.asformat(form)
        found = neighbor_graph(given, metric="precomputed")
        assert found.nnz == wanted.nnz
        np.testing.assert_allclose(found.toarray(), wanted.toarray())
    for form in ("bsr", "dia"):
        with pytest.raises(AffinityError, match=rf"X is in {form.upper()} format"):
            neighbor_graph(distances.asformat(form), metric="precomputed")


# --- names of metrics ----------------------------------------------------------------------


def dense(d2):
    """Return distances as an array, infinite where there are none."""
    if not sparse.issparse(d2):
        return d2
    found = np.full(d2.shape, np.inf)
    i, j = d2.tocoo().coords
    found[i, j] = d2.data
    return found


@pytest.mark.parametrize("metric", [*METRICS, "precomputed"])
@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_points_given_again_have_their_old_rows(metric, n_neighbors):
    X = (cloud(40) > 0).astype(float) if metric == "jaccard" else cloud(40) + 3
    X = cdist(X, X) if metric == "precomputed" else X
    neighbors, d2 = find_neighbors(X, n_neighbors=n_neighbors, metric=metric)
    again = neighbors.distances_to(X[neighbors.order])
    np.testing.assert_allclose(dense(again), dense(d2), atol=1e-12)


def test_all_at_the_distance_of_the_last_neighbor_are_near_if_only_distances_are_known():
    D = np.ones((6, 6)) - np.eye(6)
    neighbors, d2 = find_neighbors(D, n_neighbors=3, metric="precomputed")
    assert (dense(d2) == D).all()
    new = np.array([[1.0, 1, 1, 1, 1, 1], [0.5, 2, 2, 2, 3, 3]])
    expected = [[1, 1, 1, 1, 1, 1], [0.25, 4, 4, 4, np.inf, np.inf]]
    assert dense(neighbors.distances_to(new)).tolist() == expected
