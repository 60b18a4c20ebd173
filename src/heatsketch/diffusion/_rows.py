"""The sparse matrix of a heat operator, in one interface: in memory or on a cluster."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from heatsketch._core.partitioned import RowBlocks
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.exceptions import HeatSketchError


def rows_of(A: Any) -> RowBlocks:
    """Return the sparse matrix of an operator, and raise for a dense one."""
    if isinstance(A.matrix, RowBlocks):
        return A.matrix
    if not sparse.issparse(A.matrix):
        raise HeatSketchError(
            "Labels and fates need a graph of neighbours, but this graph links all pairs; use "
            "n_neighbors=15, for instance, or a sparse matrix of weights."
        )
    return SharedRows(A.matrix)
