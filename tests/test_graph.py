"""Who is near whom."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from registry import SEEDS, circle, cloud, two_blobs
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from heatsketch import LocalEngine, gaussian_affinity, neighbor_graph
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph import METRICS, _stack, count_components, find_neighbors, squared_distances
from heatsketch.neighbor_lists import index_dtype
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
def test_radii_are_the_distances_to_the_last_neighbor(seed):
    X = cloud(80, seed=seed)
    X[70:] = X[:10]
    neighbors, _ = find_neighbors(X, n_neighbors=6)
    wanted = np.sort(neighbor_graph(X), axis=1)[:, 5]
    np.testing.assert_array_equal(neighbors.radii, wanted)


def test_a_point_with_many_duplicates_keeps_them_all():
    X = np.vstack([np.zeros((10, 2)), cloud(20, 2)])
    graph = neighbor_graph(X, n_neighbors=4)
    assert (np.diff(graph.indptr)[:10] >= 10).all()
    assert graph.nnz == len(graph.data)
    assert (graph.data == 0).sum() == 100 + 20


def test_tiles_do_not_matter(monkeypatch):
    X = cloud(100)
    whole, cut = neighbor_graph(X), neighbor_graph(X, n_neighbors=5)
    monkeypatch.setattr("heatsketch.graph.TILE_ENTRIES", 700)
    np.testing.assert_array_equal(neighbor_graph(X), whole)
    tiled = neighbor_graph(X, n_neighbors=5)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(tiled, name), getattr(cut, name))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool])
def test_whole_numbers_are_points_like_others(dtype):
    X = np.array([[0, 1], [20, 1], [0, 200]]).astype(dtype)
    for metric in ("euclidean", "cosine"):
        np.testing.assert_array_equal(
            neighbor_graph(X + dtype(1), metric=metric),
            neighbor_graph((X + dtype(1)).astype(float), metric=metric),
        )


@pytest.mark.parametrize("options", [{"n_neighbors": 0}, {"n_neighbors": -3}, {"metric": "euclid"}])
def test_options_that_mean_nothing_are_refused(options):
    ((name, value),) = options.items()
    with pytest.raises(HeatSketchError, match=rf"{name}={value!r} is .*use"):
        neighbor_graph(cloud(10), **options)


def test_a_graph_of_neighbors_takes_no_quadratic_memory(monkeypatch):
    monkeypatch.setattr("heatsketch.graph.TILE_ENTRIES", 100_000)
    X = cloud(3000)
    tracemalloc.start()
    neighbor_graph(X, n_neighbors=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 4


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_components_are_counted(form):
    for X, pieces in ((circle(40), 1), (two_blobs(40, 1000.0), 2), (1e3 * cloud(30), 30)):
        K = gaussian_affinity(neighbor_graph(X), epsilon=1.0)
        assert count_components(form(K)) == pieces


def test_links_are_compared_within_their_row():
    small = np.kron(np.diag([1, 1e-20]), np.ones((5, 5)))
    assert count_components(small) == count_components(sparse.csr_array(small)) == 2


def test_links_below_rounding_do_not_count():
    K = np.array([[1.0, 1e-20], [1e-20, 1.0]])
    assert count_components(K) == 2
    assert count_components(K.astype(np.float32) + np.float32(1e-3)) == 1


@pytest.mark.parametrize(
    ("columns", "stored", "dtype"),
    [
        (10, 100, np.int32),
        (2**31 - 1, 2**31 - 1, np.int32),
        (2**31, 1, np.int64),
        (144_000_000, 15 * 144_000_000, np.int64),
    ],
)
def test_indices_widen_before_they_overflow(columns, stored, dtype):
    assert index_dtype(columns, stored) is dtype


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shapes", [((2, 2), (3, 4)), ((5, 64), (600, 4))])
def test_points_of_another_space_are_refused(metric, form, shapes):
    X_new, X = (form(np.ones(shape)) for shape in shapes)
    with pytest.raises(HeatSketchError, match=r"X_new of shape \(.*X of shape \(.*; pass"):
        squared_distances(X_new, X, metric=metric)


def test_new_points_of_another_space_are_refused():
    neighbors, _ = find_neighbors(cloud(50, 4), n_neighbors=5)
    with pytest.raises(HeatSketchError, match=r"\(3, 2\) and X of shape \(.*, 4\).*; pass"):
        neighbors.distances_to(cloud(3, 2))


def test_pieces_of_a_matrix_that_is_not_square_are_refused():
    with pytest.raises(HeatSketchError, match=r"K of shape \(2, 5\) must be square; pass"):
        count_components(sparse.csr_array(np.ones((2, 5))))


def test_stacked_blocks_may_hold_more_than_int32_counts(monkeypatch):
    """What is stored is pretended; the sums of its numbers are not."""
    one = SimpleNamespace(
        nnz=2**31 - 1,
        shape=(1, 4),
        indptr=np.array([0, 2**31 - 1], np.int32),
        indices=np.zeros(0, np.int32),
        data=np.zeros(0),
    )
    monkeypatch.setattr(sparse, "csr_array", lambda arrays, shape: arrays)
    indptr = _stack([one, one, one])[2]
    np.testing.assert_array_equal(indptr, (2**31 - 1) * np.arange(4))
