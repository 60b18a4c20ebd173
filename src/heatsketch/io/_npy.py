"""Files of one numpy array, ``.npy``.

Read by plain reads of some rows and not by a memory map: if somebody cuts the file short meanwhile,
a read is an error, and a memory map is the end of the process (SIGBUS).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from heatsketch.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import (
    Wanted,
    check_matrix,
    column_positions,
    float_dtype,
    numbered_names,
)
from heatsketch.io._output import Columns
from heatsketch.io._table import Block, Table

__all__ = ["ArrayLayout", "array_layout", "open_npy", "write_array_header", "write_npy"]


class ArrayLayout(NamedTuple):
    """What the header of an array says, found to agree with the bytes that follow."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    offset: int


def array_layout(path: Path, file: IO[bytes], n_bytes: int) -> ArrayLayout:
    """Read the header of an array that takes ``n_bytes`` with it."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise FileFormatError(path, f"npy format {version} is unknown", "save it with numpy.save")
    offset = file.tell()
    claimed = prod(shape) * dtype.itemsize
    if not dtype.hasobject and claimed != n_bytes - offset:
        raise FileFormatError(
            path,
            f"shape {shape} of {dtype} takes {claimed} bytes, but there are {n_bytes - offset}",
            "check that the file is whole",
        )
    return ArrayLayout(shape, dtype, fortran_order, offset)


def open_npy(path: Path, wanted: Wanted) -> Table:
    """Look at an array of two axes."""
    with path.open("rb") as file:
        layout = array_layout(path, file, os.fstat(file.fileno()).st_size)
    check_matrix(path, layout.shape, layout.dtype)
    n_rows, n_columns = layout.shape
    names = numbered_names(n_columns)
    positions = column_positions(path, names, wanted.columns)
    return NpyTable(
        path=path,
        names=names if wanted.columns is None else wanted.columns,
        n_rows=n_rows,
        dtype=float_dtype(layout.dtype),
        layout=layout,
        positions=positions,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NpyTable(Table):
    """An array of two axes in a file of its own."""

    layout: ArrayLayout
    positions: tuple[int, ...] | None

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return False, ()

    def _blocks(self, rows: int) -> Iterator[Block]:
        read = self._columns if self.layout.fortran_order else self._rows
        with self.path.open("rb") as file:
            for start in range(0, self.n_rows, rows):
                X = read(file, start, min(rows, self.n_rows - start))
                yield Block(X.astype(self.dtype, order="C", copy=False))

    def _rows(self, file: IO[bytes], start: int, n_rows: int) -> np.ndarray:
        n_columns = self.layout.shape[1]
        X = self._numbers(file, start * n_columns, n_rows * n_columns).reshape(n_rows, n_columns)
        return X if self.positions is None else X[:, list(self.positions)]

    def _columns(self, file: IO[bytes], start: int, n_rows: int) -> np.ndarray:
        positions = range(self.layout.shape[1]) if self.positions is None else self.positions
        X = np.empty((n_rows, len(positions)), self.layout.dtype)
        for column, place in enumerate(positions):
            X[:, column] = self._numbers(file, place * self.n_rows + start, n_rows)
        return X

    def _numbers(self, file: IO[bytes], first: int, count: int) -> np.ndarray:
        dtype = self.layout.dtype
        file.seek(self.layout.offset + first * dtype.itemsize)
        numbers = np.fromfile(file, dtype, count)
        if len(numbers) < count:
            raise FileFormatError(
                self.path, "it was cut short while it was read", "let nobody write to it"
            )
        return numbers


def write_array_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Write the header of an array in rows; numpy leaves room in it for more of them."""
    description = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": description, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


@contextmanager
def write_npy(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows as they come; their number goes into the header at the end."""
    n_rows = 0

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        nonlocal n_rows
        file.write(X.data)
        n_rows += len(X)

    with atomic_file(path, overwrite=overwrite) as file:
        write_array_header(file, (0, len(columns.names)), columns.dtype)
        yield write
        file.seek(0)
        write_array_header(file, (n_rows, len(columns.names)), columns.dtype)
