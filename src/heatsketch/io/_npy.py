"""Files of one numpy array, ``.npy``.

Rows are read with plain reads and not with a memory map: if another process truncates the file
meanwhile, a read raises an error, but a memory map crashes the process (SIGBUS).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import atomic_file
from heatsketch._core.checks import float_dtype
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import Wanted, check_matrix, numbered_names
from heatsketch.io._output import Columns
from heatsketch.io._table import Table, array_table


class ArrayLayout(NamedTuple):
    """Header of an array, checked against the number of bytes that follow."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    offset: int


def array_layout(path: Path, file: IO[bytes], n_bytes: int) -> ArrayLayout:
    """Read the header of an array; both together take ``n_bytes``."""
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
    """Read the header of a two-dimensional array."""
    with path.open("rb") as file:
        shape, dtype, fortran_order, offset = array_layout(
            path, file, os.fstat(file.fileno()).st_size
        )
    check_matrix(path, shape, dtype)
    n_rows, n_columns = shape

    def numbers(file: IO[bytes], first: int, count: int) -> np.ndarray:
        file.seek(offset + first * dtype.itemsize)
        found = np.fromfile(file, dtype, count)
        if len(found) < count:
            raise FileFormatError(
                path, "it was cut short while it was read", "do not write to it meanwhile"
            )
        return found

    def read(rows: int) -> Iterator[np.ndarray]:
        with path.open("rb") as file:
            for start in range(0, n_rows, rows):
                n = min(rows, n_rows - start)
                if fortran_order:
                    columns = [numbers(file, c * n_rows + start, n) for c in range(n_columns)]
                    yield np.stack(columns, axis=1)
                else:
                    yield numbers(file, start * n_columns, n * n_columns).reshape(n, n_columns)

    names = numbered_names(n_columns)
    return array_table(path, wanted, names, read, n_rows=n_rows, dtype=float_dtype(dtype))


@contextmanager
def write_npy(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows block by block, and their number to the header at the end."""
    n_rows = 0

    def write_header() -> None:
        """Write the number of rows so far; the header has space for more digits."""
        description = np.lib.format.dtype_to_descr(columns.dtype)
        shape = (n_rows, len(columns.names))
        header = {"descr": description, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        nonlocal n_rows
        file.write(X.data)
        n_rows += len(X)

    with atomic_file(path, overwrite=overwrite) as file:
        write_header()
        yield write
        file.seek(0)
        write_header()
