"""Several numpy arrays in one zip file, ``.npz``.

The table is the only two-dimensional array, or the one named by ``key``; ids and labels are
one-dimensional arrays beside it. A sparse matrix of ``scipy.sparse.save_npz`` is read as such.
numpy and scipy load an array as a whole: while rows are read, all of it is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from scipy import sparse

from heatsketch._core.atomic_file import atomic_file
from heatsketch._core.checks import float_dtype
from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io._columns import (
    Wanted,
    carried,
    check_length,
    check_matrix,
    check_unique,
    find_name,
    find_table,
    numbered_names,
)
from heatsketch.io._failures import check_memory
from heatsketch.io._graphs import Graph, graph_of_matrix
from heatsketch.io._npy import ArrayLayout, array_layout
from heatsketch.io._output import Columns, joined
from heatsketch.io._table import Block, Table, array_table, slices

TABLE, NAMES = "X", "names"  # arrays that are always written
SPARSE = {"data", "format", "shape"}  # arrays that scipy writes


def open_npz(path: Path, wanted: Wanted) -> Table:
    """Read the headers of all arrays, and load the ids and labels."""
    layouts = _layouts(path)
    if wanted.key is None and set(layouts) >= SPARSE:
        return _open_sparse(path, layouts, wanted)
    key = find_table(path, {name: layout.shape for name, layout in layouts.items()}, wanted.key)
    shape, dtype, _, _ = layouts[key]
    check_matrix(path, shape, dtype, f"array {key!r}")
    n_rows, n_columns = shape
    names = numbered_names(n_columns)
    if NAMES in layouts and layouts[NAMES].shape == (n_columns,):
        names = tuple(map(str, _load(path, layouts, NAMES)))

    def beside(name: str, argument: str) -> np.ndarray:
        find_name(path, name, layouts, argument)
        check_length(path, f"{argument}={name!r}", layouts[name].shape, n_rows)
        return carried(_load(path, layouts, name))

    return array_table(
        path,
        wanted,
        names,
        lambda rows: slices(_load(path, layouts, key), rows),
        n_rows=n_rows,
        dtype=float_dtype(dtype),
        ids=None if wanted.ids is None else beside(wanted.ids, "ids"),
        labels={name: beside(name, "labels") for name in wanted.labels},
    )


def _layouts(path: Path) -> dict[str, ArrayLayout]:
    """Return the layout of every array by name."""
    layouts = {}
    with ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        check_unique(path, [info.filename for info in members], "the archive")
        for info in members:
            with archive.open(info) as file:
                name = info.filename.removesuffix(".npy")
                layouts[name] = array_layout(path, file, info.file_size)
    if not layouts:
        raise FileFormatError(path, "it holds no arrays", "save some with numpy.savez")
    return layouts


def _load(path: Path, layouts: dict[str, ArrayLayout], name: str) -> np.ndarray:
    shape, dtype, _, _ = layouts[name]
    check_memory(path, prod(shape) * dtype.itemsize, f"array {name!r}", "save it as .npy")
    with np.load(path, allow_pickle=False) as archive:
        return archive[name]


# --- sparse matrices ---------------------------------------------------------------------------


def _open_sparse(path: Path, layouts: dict[str, ArrayLayout], wanted: Wanted) -> Table:
    for option in ("labels", "ids"):
        if getattr(wanted, option):
            raise FileFormatError(
                path,
                f"{option}={getattr(wanted, option)!r} is not in it, which holds a sparse matrix",
                "leave it out",
            )
    n_rows, n_columns = _sparse_shape(path, layouts)
    return array_table(
        path,
        wanted,
        numbered_names(n_columns),
        lambda rows: slices(_load_sparse(path), rows),
        n_rows=n_rows,
        dtype=float_dtype(layouts["data"].dtype),
        is_sparse=True,
    )


def _sparse_shape(path: Path, layouts: dict[str, ArrayLayout]) -> tuple[int, int]:
    shape = tuple(_load(path, layouts, "shape").tolist())
    check_matrix(path, shape, layouts["data"].dtype, "the sparse matrix")
    check_memory(path, 8 * sum(shape), "the sparse matrix", "leave out empty rows")
    return shape


def _load_sparse(path: Path) -> Any:
    """Return the matrix in CSR format, with indices checked against its shape."""
    matrix = sparse.load_npz(path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # otherwise products would read out of bounds
    return sparse.csr_array(matrix)


def matrix_shape(path: Path) -> tuple[int, int] | None:
    """Return the shape of the sparse matrix in a file; None if it holds none."""
    layouts = _layouts(path)
    return _sparse_shape(path, layouts) if set(layouts) >= SPARSE else None


def read_matrix(path: Path) -> Graph:
    """Read the sparse matrix in a file as a graph."""
    if matrix_shape(path) is None:
        raise FileFormatError(
            path, "it holds no sparse matrix", "save the graph with scipy.sparse.save_npz"
        )
    return graph_of_matrix(path, _load_sparse(path).astype(np.float64))


@contextmanager
def write_npz(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Keep all rows in memory, and write them at the end."""
    if {TABLE, NAMES} & {columns.ids, *columns.labels}:
        raise HeatSketchError(
            f"{path}: neither ids={columns.ids!r} nor one of labels={list(columns.labels)} may be "
            f"{TABLE!r} or {NAMES!r}, which the file uses itself; rename it."
        )
    blocks: list[Block] = []
    with atomic_file(path, overwrite=overwrite) as file:
        yield lambda X, ids, labels: blocks.append(Block(X.copy(), ids, labels))
        X = [np.empty((0, len(columns.names)), columns.dtype), *(block.X for block in blocks)]
        names = np.array(columns.names, dtype=object)
        arrays = {TABLE: np.concatenate(X), NAMES: names, **joined(columns, blocks)}
        with ZipFile(file, "w") as archive:  # numpy.savez fails for an array named "file"
            for name, values in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, _plain_text(values), allow_pickle=False)
                archive.compression = ZIP_DEFLATED  # for ids and labels


def _plain_text(values: np.ndarray) -> np.ndarray:
    """Return text in numpy's fixed-width dtype, and numbers unchanged."""
    if values.dtype.kind != "O":
        return values
    return np.array(["" if value is None else value for value in values], dtype=np.str_)
