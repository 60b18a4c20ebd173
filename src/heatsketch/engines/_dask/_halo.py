"""Exchange of rows between blocks.

The columns of a block are its own rows, followed by its halo: the rows of other blocks in which it
has entries, in order. The list of these rows is computed once. A product needs the rows of its
operand in the halo. For each pair of adjacent blocks, one task selects these rows in one block, and
dask sends them to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from scipy import sparse

from heatsketch._core.partitioned import PIECE
from heatsketch.engines._dask._cluster import graph_of
from heatsketch.engines._dask._storage import Storage, map_block, read_block, write_block
from heatsketch.graph._ivf import index_dtype

PARTS = ("data", "indices", "indptr")


def cut_rows(n_rows: int, rows_per_block: int) -> tuple[int, ...]:
    """Return the starts of blocks, multiples of ``PIECE``, and the last end."""
    step = max(PIECE, -(-rows_per_block // PIECE) * PIECE)
    return (*range(0, n_rows, step), n_rows)


@dataclass(frozen=True)
class Halo:
    """Rows that blocks need from each other.

    Attributes
    ----------
    name : str
        Name of the lists on storage.
    starts : tuple of int
        First row of each block, and the end of the last one.
    needs : tuple of dicts
        For each block, the range of its list with rows of each other block.
    """

    storage: Storage
    name: str
    starts: tuple[int, ...]
    needs: tuple[dict[int, tuple[int, int]], ...]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    @property
    def chunks(self) -> tuple[int, ...]:
        """Number of rows of each block."""
        return tuple(np.diff(self.starts).tolist())

    def exchange(self, x: da.Array) -> tuple[HighLevelGraph, list[list[Any]]]:
        """Return tasks that fetch the halos, and the keys of the parts of each block."""
        name = f"halo-{tokenize(self.name, x.name)}"
        rest = (0,) * (x.ndim - 1)
        tasks, parts = {}, []
        for b, needed in enumerate(self.needs):
            parts.append([(x.name, b, *rest)])
            for owner, (first, last) in needed.items():
                rows = halo_path(self.storage, self.name, b), first, last, self.starts[owner]
                tasks[name, owner, b] = (_rows_for_another, (x.name, owner, *rest), *rows)
                parts[-1].append((name, owner, b))
        return graph_of(name, tasks, [x]), parts


class Halos:
    """Tasks of an exchange, as a dask collection that others can depend on."""

    def __init__(self, graph: HighLevelGraph) -> None:
        self.graph = graph

    def __dask_graph__(self) -> HighLevelGraph:
        """Return the tasks."""
        return self.graph

    def __dask_keys__(self) -> list[Any]:
        """Return an empty list: no task needs all of them."""
        return []

    def __dask_layers__(self) -> tuple[str, ...]:
        """Return the layer of the exchange."""
        return tuple(name for name in self.graph.layers if name.startswith("halo-"))


def _rows_for_another(x: np.ndarray, path: Path, first: int, last: int, start: int) -> np.ndarray:
    return x[map_block(path)[first:last] - start]


def with_halo(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rows of a block, followed by those of its halo."""
    return np.concatenate(parts)


# --- on storage -------------------------------------------------------------------------------


def halo_path(storage: Storage, name: str, b: int) -> Path:
    """Return the path of the list of a block."""
    return storage.file(name, f"{b:06d}.halo.npy")


def write_matrix(
    storage: Storage, name: str, b: int, matrix: sparse.csr_array, starts: tuple[int, ...]
) -> dict[int, tuple[int, int]]:
    """Write a block with renumbered columns; return the rows of other blocks that it needs.

    The order of entries is kept, since the rounding of sums depends on it.
    """
    start, stop = starts[b], starts[b + 1]
    columns = np.unique(matrix.indices)
    halo = columns[(columns < start) | (columns >= stop)].astype(np.int64)
    own = (matrix.indices >= start) & (matrix.indices < stop)
    dtype = index_dtype(stop - start + len(halo), matrix.nnz)
    indices = np.empty(matrix.nnz, dtype)
    indices[own] = matrix.indices[own] - start
    indices[~own] = np.searchsorted(halo, matrix.indices[~own]) + (stop - start)
    values = matrix.data, indices, matrix.indptr.astype(dtype)
    for part, array in zip(PARTS, values, strict=True):
        write_block(array, _path(storage, name, b, part))
    write_block(halo, halo_path(storage, name, b))
    cuts = np.searchsorted(halo, starts).tolist()
    return {c: (cuts[c], cuts[c + 1]) for c in range(len(starts) - 1) if cuts[c] < cuts[c + 1]}


def read_matrix(storage: Storage, name: str, b: int) -> sparse.csr_array:
    """Read a block of rows, whose columns are its rows followed by its halo."""
    data, indices, indptr = (read_block(_path(storage, name, b, part)) for part in PARTS)
    n_halo = len(map_block(halo_path(storage, name, b)))
    n_rows = len(indptr) - 1
    return sparse.csr_array((data, indices, indptr), shape=(n_rows, n_rows + n_halo))


def _path(storage: Storage, name: str, b: int, part: str) -> Path:
    return storage.file(name, f"{b:06d}.{part}.npy")
