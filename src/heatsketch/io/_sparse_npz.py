"""Sparse matrices as ``scipy.sparse.save_npz`` writes them: some arrays in a file ``.npz``.

Not by ``scipy.sparse.load_npz``, which believes the shape and the indices that it finds. The
matrix is in memory as a whole while it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from scipy import sparse

from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import check_matrix
from heatsketch.io._failures import refuse_beyond_memory
from heatsketch.io._npy import ArrayLayout
from heatsketch.io._table import Block, Table

__all__ = ["SparseNpzTable", "is_sparse_matrix", "read_sparse", "sparse_shape", "stored_array"]

MATRICES: dict[str, Any] = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "bsr": sparse.bsr_array,
    "dia": sparse.dia_array,
    "coo": sparse.coo_array,
}
PARTS = {
    **dict.fromkeys(("csr", "csc", "bsr"), ("indices", "indptr")),
    "dia": ("offsets",),
    "coo": ("row", "col"),
}
# Rows and columns without entries cost a claimant nothing: as many as a hashing vectorizer has, or
# a few for each entry.
MOST_EMPTY, PER_ENTRY = 2**22, 4


def is_sparse_matrix(layouts: Mapping[str, ArrayLayout]) -> bool:
    """Say whether these are the arrays of a sparse matrix."""
    wanted = {"format": ((), "SU"), "shape": ((2,), "iu")}
    return "data" in layouts and all(
        name in layouts and layouts[name].shape == shape and layouts[name].dtype.kind in kinds
        for name, (shape, kinds) in wanted.items()
    )


def stored_array(
    path: Path, archive: ZipFile, layouts: Mapping[str, ArrayLayout], name: str
) -> Any:
    """Return an array of a file as it is, unless it holds objects."""
    layout = layouts[name]
    if layout.dtype.hasobject:
        check_matrix(path, layout.shape, layout.dtype, f"array {name!r}")
    refuse_beyond_memory(path, archive.getinfo(f"{name}.npy").file_size, f"array {name!r}")
    with archive.open(f"{name}.npy") as file:
        file.read(layout.offset)
        values = np.frombuffer(file.read(), layout.dtype)
    return values.reshape(layout.shape, order="F" if layout.fortran_order else "C")


def sparse_shape(
    path: Path, archive: ZipFile, layouts: Mapping[str, ArrayLayout]
) -> tuple[int, int]:
    """Return the shape of a sparse matrix, if its entries could fill it."""
    n_rows, n_columns = (int(n) for n in stored_array(path, archive, layouts, "shape"))
    n_stored = int(np.prod(layouts["data"].shape))
    if not 0 <= max(n_rows, n_columns) <= max(MOST_EMPTY, PER_ENTRY * n_stored):
        raise FileFormatError(
            path,
            f"it claims a sparse matrix of shape {(n_rows, n_columns)} with {n_stored} entries",
            "leave out rows and columns without entries",
        )
    return n_rows, n_columns


def read_sparse(
    path: Path, archive: ZipFile, layouts: Mapping[str, ArrayLayout], dtype: Any
) -> Any:
    """Return the matrix as a CSR array of floats, none of whose indices leaves its shape."""
    name = str(stored_array(path, archive, layouts, "format").astype(str))
    parts = PARTS.get(name, ("a known format",))
    missing = [part for part in parts if part not in layouts]
    if missing:
        raise FileFormatError(
            path,
            f"it is a sparse matrix in format {name[:20]!r} without {missing[0]!r}",
            "save it as CSR with scipy.sparse.save_npz",
        )
    shape = sparse_shape(path, archive, layouts)
    data, *places = (stored_array(path, archive, layouts, part) for part in ("data", *parts))
    if any(part.dtype.kind not in "iu" for part in places):
        raise FileFormatError(path, "its indices are no integers", "check that the file is whole")
    data = data.astype(dtype)
    given = (data, tuple(places)) if name == "coo" else (data, *places)
    matrix = MATRICES[name](given, shape=shape)
    if name in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)  # else products would read memory that is not theirs
    return sparse.csr_array(matrix)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SparseNpzTable(Table):
    """Rows of a sparse matrix."""

    layouts: Mapping[str, ArrayLayout]
    positions: tuple[int, ...] | None
    is_sparse: bool = True

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return False, ()

    def _blocks(self, rows: int) -> Iterator[Block]:
        with ZipFile(self.path) as archive:
            X = read_sparse(self.path, archive, self.layouts, self.dtype)
        X = X if self.positions is None else X[:, list(self.positions)]
        yield from (Block(X[start : start + rows]) for start in range(0, self.n_rows, rows))
