"""Functions of heatsketch.diffusion on dask arrays: the same functions, the same numbers."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
from registry import affinity, cloud

from heatsketch.diffusion import (
    bistochastic_scaling,
    gaussian_matrix,
    heat_operator,
    sketch,
    symmetric_scaling,
)
from heatsketch.engines._dask import _graph
from heatsketch.engines._dask._lists import BlockLists
from heatsketch.engines._dask._storage import Storage, read_block, write_block

SCALINGS = {
    "symmetric": symmetric_scaling,
    "bistochastic": partial(bistochastic_scaling, tol=1e-3),  # few sweeps, in both forms
}


@pytest.mark.parametrize("rows_per_block", [17, 60])
@pytest.mark.parametrize("normalization", SCALINGS)
def test_a_dask_affinity_can_be_sketched(normalization, rows_per_block):
    K, G = affinity(cloud(60), 1.0), gaussian_matrix(60, 8, seed=0)
    wanted = sketch(heat_operator(K, SCALINGS[normalization](K)), G, power=5)
    lazy = da.from_array(K, chunks=(rows_per_block, -1))
    Y = sketch(heat_operator(lazy, SCALINGS[normalization](lazy)), G, power=5)
    np.testing.assert_allclose(Y, wanted, rtol=1e-12, atol=1e-13)


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
