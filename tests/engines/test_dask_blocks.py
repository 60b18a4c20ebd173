"""Functions of heatsketch.diffusion on dask arrays: the same functions, the same numbers."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
from registry import SEEDS, affinity, cloud

from heatsketch.diffusion import (
    bilipschitz_constant,
    bistochastic_scaling,
    diffusion_distances,
    exact_diffusion_distances,
    gaussian_affinity,
    gaussian_matrix,
    heat_operator,
    rademacher_matrix,
    sketch,
    sketch_path,
    symmetric_scaling,
)
from heatsketch.diffusion._operator import heat_rows
from heatsketch.engines._dask import _graph
from heatsketch.engines._dask._lists import BlockLists
from heatsketch.engines._dask._storage import Storage, read_block, write_block
from heatsketch.graph import neighbor_graph

SCALINGS = {
    "symmetric": symmetric_scaling,
    "bistochastic": partial(bistochastic_scaling, tol=1e-3),  # few sweeps, in both forms
}


class DaskRowBlocks:
    """A small affinity in blocks of rows, each multiplied where it is; never a numpy array."""

    def __init__(self, K, rows_per_block):
        self.K = da.from_array(K, chunks=(rows_per_block, -1))
        self.shape, self.dtype = K.shape, K.dtype

    def __matmul__(self, block):
        return (self.K @ da.asarray(block)).persist()


def dask_block(make, n_rows, n_columns, rows_per_block, seed):
    """Each chunk made where it is used, from the ids of its rows."""
    ids = da.arange(n_rows, chunks=rows_per_block)
    return ids[:, np.newaxis].map_blocks(
        lambda rows: make(rows[:, 0], n_columns, seed=seed),
        chunks=(ids.chunks[0], (n_columns,)),
        dtype=np.float64,
    )


@pytest.mark.parametrize("rows_per_block", [17, 60])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [gaussian_matrix, rademacher_matrix])
@pytest.mark.parametrize("normalization", SCALINGS)
def test_a_sketch_of_dask_blocks_is_the_sketch(normalization, make, seed, rows_per_block):
    K = affinity(cloud(60, seed=seed), 1.0)
    A = heat_operator(K, SCALINGS[normalization](K))
    wanted = sketch(A, make(60, 8, seed=seed), power=5)

    K_dask = DaskRowBlocks(K, rows_per_block)
    A_dask = heat_operator(K_dask, SCALINGS[normalization](K_dask))
    Y = sketch(A_dask, dask_block(make, 60, 8, rows_per_block, seed), power=5)
    assert isinstance(A_dask.s, da.Array)
    assert isinstance(Y, da.Array)
    np.testing.assert_allclose(Y.compute(), wanted, rtol=1e-12, atol=1e-13)


def test_a_path_of_dask_blocks_is_the_path():
    K = affinity(cloud(40), 1.0)
    wanted = sketch_path(
        heat_operator(K, symmetric_scaling(K)), gaussian_matrix(40, 4, seed=0), powers=(3, 1)
    )
    K_dask = DaskRowBlocks(K, 10)
    A = heat_operator(K_dask, symmetric_scaling(K_dask))
    found = sketch_path(A, dask_block(gaussian_matrix, 40, 4, 10, 0), powers=(3, 1))
    for Y, Y_wanted in zip(found, wanted, strict=True):
        np.testing.assert_allclose(Y.compute(), Y_wanted, rtol=1e-12)


def test_exact_distances_and_coordinates_take_a_dask_affinity():
    K = affinity(cloud(40), 1.0)
    A = heat_operator(K, symmetric_scaling(K))
    K_dask = DaskRowBlocks(K, 10)
    A_dask = heat_operator(K_dask, symmetric_scaling(K_dask))
    wanted = exact_diffusion_distances(A, power=3)
    found = exact_diffusion_distances(A_dask, power=3)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-13)
    Y = sketch(A_dask, dask_block(gaussian_matrix, 40, 4, 10, 0), power=3)
    assert bilipschitz_constant(Y, found) == pytest.approx(
        bilipschitz_constant(sketch(A, gaussian_matrix(40, 4, seed=0), power=3), wanted), rel=1e-8
    )


def test_affinities_new_rows_and_the_stationary_part_are_lazy_too():
    X = cloud(40)
    d2 = neighbor_graph(X)
    K = gaussian_affinity(da.from_array(d2, chunks=(10, -1)), epsilon=1.0)
    assert isinstance(K, da.Array)
    np.testing.assert_array_equal(K.compute(), gaussian_affinity(d2, epsilon=1.0))
    scaling = symmetric_scaling(K)
    A = heat_operator(K, scaling)
    G = dask_block(gaussian_matrix, 40, 4, 10, 0)
    part = A.stationary_part(A.stationary_coefficients(G))
    assert isinstance(part, da.Array)
    rows = heat_rows(K[:10], scaling, A) @ G
    np.testing.assert_allclose(rows.compute(), (A @ G).compute()[:10], rtol=1e-12)


def test_distances_of_a_dask_embedding_are_the_distances():
    Y = cloud(50, 8)
    pairs = np.array([[0, 49], [7, 7], [49, 3]])
    for found, wanted in zip(
        diffusion_distances(da.from_array(Y, chunks=(20, 8)), pairs),
        diffusion_distances(Y, pairs),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("start", [2**31 - 3, 2**31 + 5])
def test_a_block_beyond_two_billion_rows_has_their_numbers(tmp_path, start):
    """The block before is so long, and never looked at."""
    lists = BlockLists(Storage(tmp_path, "test"), "lists", 0, (0, start, start + 6))
    points = np.arange(6.0)[:, np.newaxis]
    parts = {"points": points, "probes": np.zeros((6, 1), np.int32)}
    for part, array in parts.items():
        write_block(array, lists.storage.block(f"lists-{part}", 1))
    write_block(points[:0], lists.storage.block("lists-points", 0))
    write_block(np.array([start, start + 6]), lists.storage.file("lists", "starts.npy"))
    _graph._search(1, lists, 2)
    for part in ("found-ids", "back-ids"):
        ids = read_block(lists.storage.block(f"lists-{part}", 1))
        np.testing.assert_array_equal(np.unique(ids), np.arange(start, start + 6))
