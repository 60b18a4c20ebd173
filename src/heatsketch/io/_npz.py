"""Several numpy arrays in one zip file, ``.npz``.

The table is the only array of two axes, or the one that ``key`` names; ids and labels are arrays
of one axis beside it. A sparse matrix of ``scipy.sparse.save_npz`` is read as one. Rows are
unpacked as they are asked for, so that a file that claims to be a thousand times its size does no
harm to whoever reads it in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from heatsketch.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io._columns import (
    Wanted,
    carried,
    check_matrix,
    column_positions,
    find_name,
    float_dtype,
    numbered_names,
)
from heatsketch.io._failures import refuse_beyond_memory
from heatsketch.io._graphs import Graph, graph_of_matrix
from heatsketch.io._npy import ArrayLayout, array_layout, write_array_header
from heatsketch.io._output import Columns
from heatsketch.io._sparse_npz import (
    SparseNpzTable,
    is_sparse_matrix,
    read_sparse,
    sparse_shape,
    stored_array,
)
from heatsketch.io._table import Block, Table

__all__ = ["matrix_shape", "open_npz", "read_matrix", "write_npz"]

TABLE, NAMES = "X", "names"  # of the arrays that we write
# Deflate packs zeros 1000 times; data that pack 200 times and then fill memory are no data.
LARGEST_RATIO, HARMLESS = 200, 2**28


def open_npz(path: Path, wanted: Wanted) -> Table:
    """Look at the headers of all arrays, and unpack the ids and labels."""
    with _archive(path) as (archive, layouts):
        if wanted.key is None and is_sparse_matrix(layouts):
            return _open_sparse(path, archive, layouts, wanted)
        key = _table_key(path, layouts, wanted.key)
        layout = layouts[key]
        check_matrix(path, layout.shape, layout.dtype, f"array {key!r}")
        n_rows, n_columns = layout.shape
        names = numbered_names(n_columns)
        if NAMES in layouts and layouts[NAMES].shape == (n_columns,):
            names = tuple(str(name) for name in stored_array(path, archive, layouts, NAMES))
        positions = column_positions(path, names, wanted.columns)

        def beside(name: str, argument: str) -> np.ndarray:
            find_name(path, name, layouts, argument)
            if layouts[name].shape != (n_rows,):
                raise FileFormatError(
                    path,
                    f"{argument}={name!r} has shape {layouts[name].shape}, not ({n_rows},)",
                    "name an array with one value for each row",
                )
            return carried(stored_array(path, archive, layouts, name))

        ids = None if wanted.ids is None else beside(wanted.ids, "ids")
        labels = {name: beside(name, "labels") for name in wanted.labels}
    return NpzTable(
        path=path,
        names=names if wanted.columns is None else wanted.columns,
        n_rows=n_rows,
        dtype=float_dtype(layout.dtype),
        key=key,
        layout=layout,
        positions=positions,
        beside=Block(None, ids, labels),
    )


def _open_sparse(
    path: Path, archive: ZipFile, layouts: dict[str, ArrayLayout], wanted: Wanted
) -> Table:
    shape, dtype = sparse_shape(path, archive, layouts), layouts["data"].dtype
    check_matrix(path, shape, dtype, "the sparse matrix")
    for option in ("labels", "ids"):
        if getattr(wanted, option):
            raise FileFormatError(
                path,
                f"{option}={getattr(wanted, option)!r} is not in it, which holds a sparse matrix",
                "leave it out",
            )
    names = numbered_names(shape[1])
    return SparseNpzTable(
        path=path,
        names=names if wanted.columns is None else wanted.columns,
        n_rows=shape[0],
        dtype=float_dtype(dtype),
        layouts=layouts,
        positions=column_positions(path, names, wanted.columns),
    )


def matrix_shape(path: Path) -> tuple[int, int] | None:
    """Return the shape of the sparse matrix in a file; None if it holds something else."""
    with _archive(path) as (archive, layouts):
        return sparse_shape(path, archive, layouts) if is_sparse_matrix(layouts) else None


def read_matrix(path: Path) -> Graph:
    """Read the sparse matrix in a file as a graph."""
    with _archive(path) as (archive, layouts):
        if not is_sparse_matrix(layouts):
            raise FileFormatError(
                path, "it holds no sparse matrix", "save the graph with scipy.sparse.save_npz"
            )
        check_matrix(path, sparse_shape(path, archive, layouts), layouts["data"].dtype)
        return graph_of_matrix(path, read_sparse(path, archive, layouts, np.float64))


@contextmanager
def _archive(path: Path) -> Iterator[tuple[ZipFile, dict[str, ArrayLayout]]]:
    _refuse_prefix(path)
    with ZipFile(path) as archive:
        yield archive, _layouts(path, archive)


def _refuse_prefix(path: Path) -> None:
    """Refuse a file that something else would take for something else."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            raise FileFormatError(path, "it does not begin as a zip file", "check what it is")


def _layouts(path: Path, archive: ZipFile) -> dict[str, ArrayLayout]:
    layouts: dict[str, ArrayLayout] = {}
    for info in archive.infolist():
        if info.filename.endswith(".npy"):
            name = info.filename.removesuffix(".npy")
            _refuse_bomb(path, info)
            if name in layouts:
                raise FileFormatError(path, f"it holds {name!r} twice", "distrust it")
            with archive.open(info) as file:
                layouts[name] = array_layout(path, file, info.file_size)
    if not layouts:
        raise FileFormatError(path, "it holds no arrays", "save some with numpy.savez")
    return layouts


def _refuse_bomb(path: Path, info: ZipInfo) -> None:
    packed = max(info.compress_size, 1)
    if info.file_size > HARMLESS and info.file_size > LARGEST_RATIO * packed:
        raise FileFormatError(
            path,
            f"{info.filename!r} claims to unpack {packed} bytes into {info.file_size}",
            "save it as .npy if it is yours, and distrust it if it is not",
        )


def _table_key(path: Path, layouts: dict[str, ArrayLayout], key: str | None) -> str:
    if key is not None:
        return find_name(path, key, layouts, "key")
    tables = [name for name, layout in layouts.items() if len(layout.shape) == 2]
    if len(tables) == 1:
        return tables[0]
    if len(layouts) == 1:
        return next(iter(layouts))  # which check_matrix will refuse, with its shape
    shapes = ", ".join(f"{name!r} {layout.shape}" for name, layout in list(layouts.items())[:8])
    raise FileFormatError(
        path, f"{len(tables)} of its arrays have two axes: {shapes}", "name the one with key="
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NpzTable(Table):
    """One array of a zip file, and those beside it."""

    key: str
    layout: ArrayLayout
    positions: tuple[int, ...] | None
    beside: Block

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return self.beside.ids is not None, tuple(self.beside.labels)

    def _blocks(self, rows: int) -> Iterator[Block]:
        _, ids, labels = self.beside
        with ZipFile(self.path) as archive, archive.open(f"{self.key}.npy") as file:
            file.read(self.layout.offset)
            start = 0
            for X in self._arrays(file, rows):
                part = slice(start, start + len(X))
                start += len(X)
                X = X if self.positions is None else X[:, list(self.positions)]
                yield Block(
                    X.astype(self.dtype, order="C"),
                    None if ids is None else ids[part],
                    {name: values[part] for name, values in labels.items()},
                )
            # At its end a member is held against its checksum.
            if file.read(1):
                raise FileFormatError(self.path, "it changed meanwhile", "let nobody write to it")

    def _arrays(self, file: IO[bytes], rows: int) -> Iterator[np.ndarray]:
        _, dtype, fortran_order, _ = self.layout
        n_columns = self.layout.shape[1]
        if fortran_order:  # the last number of the first row comes almost last
            size = self.n_rows * n_columns * dtype.itemsize
            refuse_beyond_memory(self.path, size, "an array in columns")
            X = np.frombuffer(file.read(), dtype).reshape(n_columns, self.n_rows).T
            yield from (X[start : start + rows] for start in range(0, self.n_rows, rows))
            return
        for start in range(0, self.n_rows, rows):
            n_rows = min(rows, self.n_rows - start)
            numbers = file.read(n_rows * n_columns * dtype.itemsize)
            yield np.frombuffer(numbers, dtype).reshape(n_rows, n_columns)


@contextmanager
def write_npz(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Keep all rows in memory and write them at the end: a zip file cannot be mended afterwards."""
    if {TABLE, NAMES} & {columns.ids, *columns.labels}:
        raise HeatSketchError(
            f"{path}: neither ids={columns.ids!r} nor one of labels={list(columns.labels)} may be "
            f"{TABLE!r} or {NAMES!r}, which the file uses itself; rename it."
        )
    blocks: list[Block] = []

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        blocks.append(Block(X.copy(), ids, labels))

    with atomic_file(path, overwrite=overwrite) as file:
        yield write
        with ZipFile(file, "w", ZIP_STORED) as archive:
            with archive.open(f"{TABLE}.npy", "w", force_zip64=True) as member:
                n_rows = sum(len(block.X) for block in blocks)
                write_array_header(member, (n_rows, len(columns.names)), columns.dtype)
                for block in blocks:
                    member.write(block.X.data)
            _write_column(archive, NAMES, [np.array(columns.names, dtype=object)])
            if columns.ids is not None:
                _write_column(archive, columns.ids, [block.ids for block in blocks])
            for name in columns.labels:
                _write_column(archive, name, [block.labels[name] for block in blocks])


def _write_column(archive: ZipFile, name: str, pieces: list[np.ndarray]) -> None:
    values = np.concatenate(pieces) if pieces else np.empty(0, dtype=object)
    if values.dtype.kind == "O":
        values = np.array(["" if value is None else value for value in values], dtype=np.str_)
    info = ZipInfo(f"{name}.npy")
    info.compress_type = ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, values, allow_pickle=False)
