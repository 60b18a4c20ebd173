"""Conversion of a matrix in memory to blocks on storage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

from heatsketch._core.row_chunks import is_compiled
from heatsketch.engines._dask._cluster import Cluster
from heatsketch.engines._dask._halo import Halo, cut_rows, write_matrix
from heatsketch.engines._dask._matrix import BlockMatrix, stored_matrix


def matrix_in_blocks(cluster: Cluster, matrix: sparse.csr_array, rows: int) -> BlockMatrix:
    """Write a matrix to storage in blocks of rows, named by its content."""
    if not is_compiled(matrix):
        matrix = sparse.csr_array(matrix, dtype=np.result_type(matrix.dtype, np.float32))
    starts = cut_rows(matrix.shape[0], rows)
    parts = matrix.data, matrix.indices, matrix.indptr
    name = cluster.storage.name("graph", starts, matrix.dtype.str, *parts)
    needs = tuple(
        write_matrix(cluster.storage, name, b, matrix[start:stop], starts)
        for b, (start, stop) in enumerate(pairwise(starts))
    )
    return stored_matrix(cluster, Halo(cluster.storage, name, starts, needs), matrix.dtype)
