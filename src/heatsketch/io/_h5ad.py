"""Files of single-cell tools, ``.h5ad``.

The table is ``X``, or the layer or entry of obsm that ``key`` names, dense or sparse in rows.
Labels are columns of obs; ids are the names of obs, or another column of it. Rows are read by
``h5py`` as they are asked for. (``h5py`` and ``anndata``
are imported here and in the file of the writer only.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import (
    Wanted,
    carried,
    check_matrix,
    column_positions,
    find_name,
    float_dtype,
)
from heatsketch.io._failures import needed, refuse_beyond_memory
from heatsketch.io._table import Block, Table

__all__ = ["open_h5ad"]


def open_h5ad(path: Path, wanted: Wanted) -> Table:
    """Look at shapes and chunks, and read the names and the labels."""
    h5py, anndata = needed("h5py", path), needed("anndata.io", path)
    with h5py.File(path, "r") as file:
        key = _table_key(path, file, wanted.key)
        node = file[key]
        shape, dtype, layout = _layout(path, key, node)
        obs = _frame(path, file, "obs")
        known = [name for name in obs if name not in ("__categories", obs.attrs["_index"])]

        def column(name: str) -> np.ndarray:
            _refuse_elsewhere(path, obs[name])
            values = carried(anndata.read_elem(obs[name]))
            if values.shape != (shape[0],):
                raise FileFormatError(
                    path,
                    f"obs {name!r} has shape {values.shape}, and {key} has {shape[0]} rows",
                    "check that the file is whole",
                )
            return values

        ids = column(
            obs.attrs["_index"] if wanted.ids is None else find_name(path, wanted.ids, known, "ids")
        )
        labels = {n: column(find_name(path, n, known, "labels")) for n in wanted.labels}
        names = _names(path, file, key, shape[1], anndata.read_elem)
    return H5adTable(
        path=path,
        names=names if wanted.columns is None else wanted.columns,
        n_rows=shape[0],
        dtype=float_dtype(dtype),
        is_sparse=layout != "array",
        layout=layout,
        key=key,
        n_columns=shape[1],
        positions=column_positions(path, names, wanted.columns),
        ids=ids,
        labels=labels,
    )


def _table_key(path: Path, file: Any, key: str | None) -> str:
    tables = [
        "X" if folder == "X" else f"{folder}/{name}"
        for folder in ("X", "obsm", "layers")
        if folder in file
        for name in (["X"] if folder == "X" else file[folder])
    ]
    if key is None and "X" not in tables:
        raise FileFormatError(path, "it has no X", f"name one of {tables[:8]} with key=")
    # A bare name will do where it is the only one.
    bare = [table for table in tables if table.rpartition("/")[2] == key]
    return find_name(path, bare[0] if len(bare) == 1 else key or "X", tables, "key")


def _frame(path: Path, file: Any, name: str) -> Any:
    frame = file[name]
    if not isinstance(frame.attrs.get("_index"), str):
        raise FileFormatError(
            path, f"{name} is no data frame", "write it with anndata 0.7 or later"
        )
    return frame


def _names(path: Path, file: Any, key: str, n_columns: int, read: Any) -> tuple[str, ...]:
    if key.startswith("obsm/"):
        return tuple(f"{key.removeprefix('obsm/')}_{column}" for column in range(n_columns))
    var = _frame(path, file, "var")
    names = tuple(str(name) for name in read(var[var.attrs["_index"]]))
    if len(names) != n_columns:
        raise FileFormatError(
            path,
            f"var has {len(names)} names, and {key} has {n_columns} columns",
            "check that the file is whole",
        )
    return names


# --- what is stored, and whether all of it is there ----------------------------------------------


def _layout(path: Path, key: str, node: Any) -> tuple[tuple[int, int], Any, str]:
    """Return shape, dtype, and "array", "csr_matrix" or "csc_matrix"."""
    _refuse_elsewhere(path, node)
    if hasattr(node, "dtype"):
        check_matrix(path, node.shape, node.dtype, key)
        return node.shape, node.dtype, "array"
    layout = node.attrs.get("encoding-type")
    if layout not in ("csr_matrix", "csc_matrix"):
        raise FileFormatError(
            path,
            f"{key} is stored as {layout!r}",
            "write it as an array, or as a sparse matrix in rows (CSR)",
        )
    n_rows, n_columns = (int(n) for n in node.attrs["shape"])
    shape = n_rows, n_columns
    check_matrix(path, shape, node["data"].dtype, key)
    for part in ("data", "indices", "indptr"):
        _refuse_elsewhere(path, node[part])
    n_lines = shape[0] if layout == "csr_matrix" else shape[1]
    stored, pointers = node["indices"].shape, node["indptr"].shape
    if node["data"].shape != stored or pointers != (n_lines + 1,):
        raise FileFormatError(
            path, f"{key} of shape {shape} has {pointers} pointers", "check that the file is whole"
        )
    return shape, node["data"].dtype, layout


def _refuse_elsewhere(path: Path, node: Any) -> None:
    """Refuse numbers that are in another file, and chunks that HDF5 would make up as zeros."""
    if Path(node.file.filename) != path:
        raise FileFormatError(path, f"{node.name} is a link to another file", "distrust it")
    if not hasattr(node, "dtype"):
        for part in node:
            _refuse_elsewhere(path, node[part])
        return
    if node.external or node.is_virtual:
        raise FileFormatError(path, f"{node.name} lies in another file", "distrust it")
    if node.size and node.chunks is None:
        whole = node.id.get_storage_size() > 0
    else:
        wanted = [ceil(n / chunk) for n, chunk in zip(node.shape, node.chunks or (), strict=False)]
        whole = node.chunks is None or node.id.get_num_chunks() == prod(wanted)
        chunk = prod(node.chunks or ()) * node.dtype.itemsize
        remedy = "write it in smaller chunks"
        refuse_beyond_memory(path, chunk, f"a chunk of {node.name}", remedy)
    if node.size and not whole:
        raise FileFormatError(
            path,
            f"{node.name} of shape {node.shape} has parts that were never written, which HDF5 "
            "would read as zeros",
            "write it again",
        )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class H5adTable(Table):
    """One matrix of a file, and the columns of its obs."""

    key: str
    layout: str
    n_columns: int
    positions: tuple[int, ...] | None
    ids: Any
    labels: dict[str, Any]

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return True, tuple(self.labels)

    def _blocks(self, rows: int) -> Iterator[Block]:
        h5py = needed("h5py", self.path)
        read = {"array": _dense, "csr_matrix": _in_rows, "csc_matrix": _in_columns}[self.layout]
        with h5py.File(self.path, "r") as file:
            for start, X in read(self.path, file[self.key], (self.n_rows, self.n_columns), rows):
                X = X if self.positions is None else X[:, list(self.positions)]
                part = slice(start, start + X.shape[0])
                yield Block(
                    X.astype(self.dtype),
                    self.ids[part],
                    {name: values[part] for name, values in self.labels.items()},
                )


def _dense(
    path: Path, node: Any, shape: tuple[int, int], rows: int
) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, shape[0], rows):
        yield start, node[start : start + rows]


def _in_rows(path: Path, node: Any, shape: tuple[int, int], rows: int) -> Iterator[tuple[int, Any]]:
    indptr = node["indptr"][:]
    for start in range(0, shape[0], rows):
        pointers = indptr[start : start + rows + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        parts = (node["data"][entries], node["indices"][entries], pointers - pointers[0])
        yield start, _checked_rows(parts, (len(pointers) - 1, shape[1]))


def _in_columns(
    path: Path, node: Any, shape: tuple[int, int], rows: int
) -> Iterator[tuple[int, Any]]:
    """Give rows of a matrix that is stored by columns, which has to be in memory for it."""
    size = 3 * sum(node[part].nbytes for part in ("data", "indices", "indptr"))
    refuse_beyond_memory(path, size, "a sparse matrix in columns (CSC; write it as CSR)")
    parts = (node["data"][:], node["indices"][:], node["indptr"][:])
    X = _checked_rows(parts, (shape[1], shape[0])).T.tocsr()
    yield from ((start, X[start : start + rows]) for start in range(0, shape[0], rows))


def _checked_rows(parts: Any, shape: tuple[int, int]) -> Any:
    X = sparse.csr_array(parts, shape=shape)
    # Else products would read memory that is not theirs.
    X.check_format(full_check=True)
    return X
