"""All pairs without the memory for them."""

import tracemalloc

import numpy as np
import pytest
from registry import SEEDS, circle, cloud, two_blobs
from scipy import sparse

from heatsketch import HeatSketch
from heatsketch.diffusion import gaussian_affinity
from heatsketch.graph import neighbor_graph
from heatsketch.graph._metrics import METRICS
from heatsketch.graph._neighbors import label_components
from heatsketch.graph._pairwise import DistanceTiles
from heatsketch.testing import check_affinity, check_extension, tolerance


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr("heatsketch.engines._local.all_pairs_bytes", lambda *_: np.inf)
    monkeypatch.setattr("heatsketch.graph._pairwise.TILE_ENTRIES", 700)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_products_are_those_of_the_matrix(metric, seed):
    X = cloud(100, seed=seed)
    tiles = gaussian_affinity(DistanceTiles(X, metric), epsilon=0.7)
    K = gaussian_affinity(neighbor_graph(X, metric=metric), epsilon=0.7)
    atol = tolerance(K.dtype, terms=100)
    for block in (np.ones(100), cloud(100, 4, seed)):
        np.testing.assert_allclose(tiles @ block, K @ block, atol=atol)
    np.testing.assert_array_equal(tiles.diagonal(), K.diagonal())
    assert (tiles.shape, tiles.dtype) == (K.shape, K.dtype)
    check_affinity(tiles)


@pytest.mark.parametrize("normalization", ["symmetric", "bistochastic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_embedding_from_tiles_is_that_of_the_matrix(monkeypatch, normalization, dtype):
    X = circle(150).astype(dtype)
    options = {"n_neighbors": None, "normalization": normalization}
    found = HeatSketch(8, **options).fit_transform(X)
    monkeypatch.undo()
    wanted = HeatSketch(8, **options).fit_transform(X)
    np.testing.assert_allclose(found, wanted, atol=tolerance(dtype, terms=150))


def test_sparse_points_have_tiles_too(monkeypatch):
    X = sparse.csr_array(cloud(60) * (cloud(60, seed=1) > 0))
    found = HeatSketch(4, n_neighbors=None).fit_transform(X)
    monkeypatch.undo()
    wanted = HeatSketch(4, n_neighbors=None).fit_transform(X)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_training_points_keep_their_embedding():
    check_extension(HeatSketch(8, n_neighbors=None), circle(60))


def test_components_are_counted_without_the_matrix():
    for X, n_wanted in ((circle(300), 1), (two_blobs(300, 1000.0), 2), (1e3 * cloud(30), 30)):
        epsilon = 0.01 if n_wanted == 1 else 1
        tiles = gaussian_affinity(DistanceTiles(X, "euclidean"), epsilon=epsilon)
        whole = gaussian_affinity(neighbor_graph(X), epsilon=epsilon)
        (n_tiles, of_tiles), (n_whole, of_whole) = map(label_components, (tiles, whole))
        assert n_tiles == n_whole == n_wanted
        assert (of_tiles == of_whole).all()


def test_no_quadratic_memory(monkeypatch):
    monkeypatch.setattr("heatsketch.graph._pairwise.TILE_ENTRIES", 50_000)
    X = circle(3000)
    model = HeatSketch(4, n_neighbors=None, epsilon=0.1)
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 4
