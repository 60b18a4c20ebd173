"""Files of numpy arrays: one array in ``.npy``, several in a zip file ``.npz``.

Rows of ``.npy`` are read with plain reads and not with a memory map: if another process truncates
the file meanwhile, a read raises an error, but a memory map crashes the process (SIGBUS), and the
pages of a map count as memory of the process.

The table of ``.npz`` is the only two-dimensional array, or the one named by ``key``; ids and labels
are one-dimensional arrays beside it. A sparse matrix of ``scipy.sparse.save_npz`` is read as such.
numpy and scipy load an array as a whole: while rows are read, all of it is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, NamedTuple
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from heatsketch._core.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError
from heatsketch.io import _checks as checks
from heatsketch.io._output import Columns
from heatsketch.io._table import Block, Table, array_table, checked_csr, slices

SPARSE = {"data", "format", "shape"}  # arrays that scipy writes


class _Header(NamedTuple):
    """Header of an array, checked against the number of bytes that follow."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    offset: int


def _header(path: Path, file: IO[bytes], n_bytes: int) -> _Header:
    """Read the header of an array; both together take ``n_bytes``."""
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, fortran_order, dtype = read[version](file)
    size, n_left = prod(shape) * dtype.itemsize, n_bytes - file.tell()
    if size != n_left and not dtype.hasobject:
        cause = f"shape {shape} of {dtype} takes {size} bytes, but there are {n_left}"
        raise FileFormatError(path, cause, "check that the file is complete")
    return _Header(shape, dtype, fortran_order, file.tell())


def open_npy(path: Path, selection: checks.Selection) -> Table:
    """Read the header of a two-dimensional array."""
    with path.open("rb") as file:
        shape, dtype, fortran_order, offset = _header(path, file, path.stat().st_size)
    checks.check_matrix(path, shape, dtype)
    n_rows, n_columns = shape

    def numbers(first: int, count: int) -> np.ndarray:
        return np.fromfile(path, dtype, count, offset=offset + first * dtype.itemsize)

    def read(rows: int) -> Iterator[np.ndarray]:
        for start in range(0, n_rows, rows):
            n = min(rows, n_rows - start)
            if fortran_order:
                columns = [numbers(c * n_rows + start, n) for c in range(n_columns)]
                yield np.stack(columns, axis=1)
            else:  # raises if the file was truncated meanwhile
                yield numbers(start * n_columns, n * n_columns).reshape(n, n_columns)

    names = checks.numbered_names(n_columns)
    return array_table(path, selection, names, read, n_rows=n_rows, dtype=dtype)


def open_npz(path: Path, selection: checks.Selection) -> Table:
    """Read the headers of all arrays, and load the ids and labels."""
    headers = _headers(path)
    if selection.key is None and set(headers) >= SPARSE:
        return _open_sparse(path, headers, selection)
    shapes = {name: header.shape for name, header in headers.items()}
    key = checks.find_table(path, shapes, selection.key)
    shape, dtype, _, _ = headers[key]
    checks.check_matrix(path, shape, dtype, f"array {key!r}")

    def beside(name: str, argument: str) -> np.ndarray:
        checks.find_name(path, name, shapes, argument)
        checks.check_length(path, f"{argument}={name!r}", shapes[name], shape[0])
        return checks.carried(_load(path, headers, name))

    return array_table(
        path,
        selection,
        checks.numbered_names(shape[1]),
        lambda rows: slices(_load(path, headers, key), rows),
        n_rows=shape[0],
        dtype=dtype,
        beside=beside,
    )


def _open_sparse(path: Path, headers: dict[str, _Header], selection: checks.Selection) -> Table:
    n_rows, n_columns = shape = tuple(_load(path, headers, "shape").tolist())
    dtype = headers["data"].dtype
    checks.check_matrix(path, shape, dtype, "the sparse matrix")
    checks.check_memory(path, 8 * sum(shape), "the sparse matrix", "leave out empty rows")
    return array_table(
        path,
        selection,
        checks.numbered_names(n_columns),
        lambda rows: slices(load_sparse(path), rows),
        n_rows=n_rows,
        dtype=dtype,
        is_sparse=True,
    )


def _headers(path: Path) -> dict[str, _Header]:
    """Return the header of every array by name."""
    headers = {}
    with ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        checks.check_unique(path, [info.filename for info in members], "names of arrays")
        for info in members:
            with archive.open(info) as file:
                headers[info.filename.removesuffix(".npy")] = _header(path, file, info.file_size)
    return headers


def _load(path: Path, headers: dict[str, _Header], name: str) -> np.ndarray:
    shape, dtype, _, _ = headers[name]
    checks.check_memory(path, prod(shape) * dtype.itemsize, f"array {name!r}", "save it as .npy")
    with np.load(path, allow_pickle=False) as archive:
        return archive[name]


def load_sparse(path: Path) -> sparse.csr_array:
    """Return the sparse matrix in a file, with indices checked against its shape."""
    return checked_csr(sparse.load_npz(path))


@contextmanager
def write_npy(path: Path, columns: Columns, overwrite: bool) -> Iterator[Callable[[Block], None]]:
    """Write rows block by block, and their number to the header at the end."""
    header = {"descr": npy.dtype_to_descr(columns.dtype), "fortran_order": False}
    n_rows = 0

    def write_header() -> None:  # it has space for more digits
        npy.write_array_header_1_0(file, {**header, "shape": (n_rows, len(columns.names))})

    def write(block: Block) -> None:
        nonlocal n_rows
        file.write(block.X.data)
        n_rows += len(block.X)

    with atomic_file(path, overwrite=overwrite) as file:
        write_header()
        yield write
        file.seek(0)
        write_header()
