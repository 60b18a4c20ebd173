"""Leading directions: any basis gives an unbiased sketch, and a dependent column costs nothing."""

import dask.array as da
import numpy as np
import pytest
from registry import cloud, two_blobs
from scipy.spatial.distance import pdist

from heatsketch import HeatGraph, load, sketch
from heatsketch.diffusion import gaussian_matrix
from heatsketch.diffusion._leading import leading_and_random, orthonormal_columns
from heatsketch.exceptions import HeatSketchError

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
N = 5000


def decaying(n, m, dtype=np.float64):
    """A block whose columns differ in ever smaller directions, as those of a sum over times."""
    G = np.random.default_rng(0).normal(size=(n, m))
    return (np.linalg.qr(G)[0] * 10.0 ** -np.linspace(0, 4, m) @ G.T[:, :m]).astype(dtype)


BLOCKS = {
    "independent": lambda: cloud(N, 9),
    "float32": lambda: cloud(N, 9).astype(np.float32),
    "of very different sizes": lambda: decaying(N, 12),
    "of very different sizes, float32": lambda: decaying(N, 12, np.float32),
    "tiny": lambda: 1e-200 * cloud(N, 4),
    "with a column of zeros": lambda: cloud(N, 5) * [1, 0, 1, 1, 1],
    "with equal columns": lambda: cloud(N, 3)[:, [0, 1, 1, 2, 0]],
    "zero": lambda: np.zeros((N, 3)),
    "wider than long": lambda: cloud(6, 10),
    "wider than long, float32": lambda: cloud(6, 10).astype(np.float32),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_columns_are_an_orthonormal_basis_of_the_block(name):
    block = BLOCKS[name]()
    Q = orthonormal_columns(block)
    assert Q.dtype == block.dtype
    rounding = 100 * np.finfo(Q.dtype).eps
    Q, block = Q.astype(np.float64), block.astype(np.float64)
    lengths = np.linalg.norm(Q, axis=0)
    rank = np.linalg.matrix_rank(block, rtol=1e-6)
    assert (lengths > 0).sum() == rank
    np.testing.assert_allclose(Q.T @ Q, np.diag(lengths > 0), atol=rounding)
    np.testing.assert_allclose(Q @ (Q.T @ block), block, atol=1e-5 * abs(block).max())


@pytest.mark.parametrize("name", BLOCKS)
def test_random_columns_are_orthogonal_to_the_basis(name):
    Q = orthonormal_columns(BLOCKS[name]())
    G = gaussian_matrix(len(Q), 4, seed=0, dtype=Q.dtype)
    S = leading_and_random(Q, G)
    assert S.dtype == Q.dtype and (S[:, : Q.shape[1]] == Q).all()
    wanted = G - Q @ (Q.T @ G)
    np.testing.assert_allclose(S[:, Q.shape[1] :], wanted, atol=100 * np.finfo(Q.dtype).eps)


@pytest.mark.parametrize("chunks", [4096, (8192, 4096), (4096, 8192)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_depend_on_the_partition(dtype, chunks):
    block, G = cloud(12_288, 5).astype(dtype), cloud(12_288, 3, seed=1).astype(dtype)
    Q = orthonormal_columns(block)
    lazy = orthonormal_columns(da.from_array(block, chunks=(chunks, -1)))
    np.testing.assert_array_equal(lazy.compute(), Q)
    both = leading_and_random(lazy, da.from_array(G, chunks=(chunks, -1)))
    np.testing.assert_array_equal(both.compute(), leading_and_random(Q, G))


# --- in a sketch ------------------------------------------------------------------------------

OPTIONS = {
    "all times": {},
    "power": {"power": 5},
    "rademacher": {"power": 5, "random_matrix": "rademacher"},
    "kept": {"power": 5, "stationary": "keep"},
    "symmetric": {"power": 5, "weighting": "symmetric"},
}
POINTS = {
    "cloud": lambda: cloud(150),
    "float32": lambda: cloud(150).astype(np.float32),
    "two components": lambda: two_blobs(150, 1000),
    "fewer points than directions": lambda: cloud(20),
    "copies": lambda: np.repeat(cloud(20), 8, axis=0),
}


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("name", OPTIONS)
def test_distances_are_those_of_a_wide_sketch(name, points):
    """With 30 leading directions of 40, and with 4000 random components."""
    graph = HeatGraph.from_points(POINTS[points]())
    made = sketch(graph, 40, n_leading=30, **OPTIONS[name])
    wide = made.plain().grow(4000)
    rows = np.flatnonzero(graph.components == 0)
    found, wanted = (pdist(Y.embedding[rows].astype(np.float64)) for Y in (made, wide))
    apart = wanted > 1e-4 * wanted.max()
    # Of 4000 columns a distance has a relative standard error of 1 / sqrt(8000).
    errors = found[apart] / wanted[apart] - 1
    assert np.sqrt(np.mean(errors**2)) < 0.05
    assert abs(np.mean(errors)) < 0.04  # the 4000 components are the same for all pairs


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("name", OPTIONS)
def test_training_points_keep_their_embedding(name, points, tmp_path):
    X = POINTS[points]()
    made = sketch(HeatGraph.from_points(X), 24, **OPTIONS[name])
    assert made.settings.n_leading == 12
    np.testing.assert_array_equal(made.extend(made.graph.rows(X[::-1])), made.embedding[::-1])
    made.save(tmp_path / "made")
    again = load(tmp_path / "made")
    np.testing.assert_array_equal(again.embedding, made.embedding)
    np.testing.assert_array_equal(again.extend(again.graph.rows(X)), made.embedding)


def test_few_components_are_all_random():
    graph = HeatGraph.from_points(cloud(60))
    assert [sketch(graph, k).settings.n_leading for k in (2, 15, 16, 33)] == [0, 0, 8, 16]
    for invalid in (-1, 16, 1.5, "half", None):
        with pytest.raises(HeatSketchError, match="n_leading"):
            sketch(graph, 16, n_leading=invalid)
