"""Embeddings in files of single-cell tools, ``.h5ad``: in obsm, with ids and labels in obs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from heatsketch.atomic_file import atomic_file
from heatsketch.exceptions import HeatSketchError
from heatsketch.io._failures import needed
from heatsketch.io._output import Columns
from heatsketch.io._table import Block

__all__ = ["write_h5ad"]

EMBEDDING = "obsm/X_heatsketch"
CHUNK_BYTES = 2**20


class _Shielded:
    """A file that never fails while HDF5 writes to it, and tells afterwards.

    HDF5 does not survive a write that fails, be the disk full or a key pressed: the process ends
    by a segmentation fault when what was open is freed. So it is told that all is well, and finds
    what it has written, which is kept in memory from then on. Whoever calls it looks at ``check``;
    the file that it was writing to is thrown away then.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._raw: Any = file.raw  # type: ignore[attr-defined] # a buffer keeps what it cannot write
        self._place = self._end = 0
        self._failure: BaseException | None = None
        self._unwritten: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raise what went wrong."""
        if self._failure is not None:
            raise self._failure

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._end}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int) -> bytes:
        data = bytearray(size)
        return bytes(data[: self.readinto(data)])

    def readinto(self, buffer: Any) -> int:
        data = bytearray(min(len(buffer), max(0, self._end - self._place)))
        self._tried(lambda: self._read_all(data, self._place))
        for start, written in self._unwritten:
            _copy_where_they_meet(written, start - self._place, data)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _read_all(self, data: bytearray, place: int) -> None:
        self._raw.seek(place)
        self._raw.readinto(data)  # what is not there yet is zeros

    def write(self, data: Any) -> int:
        written, place = bytes(data), self._place
        if self._failure is None:
            self._tried(lambda: self._write_all(written, place))
        if self._failure is not None:
            self._unwritten.append((place, written))
        self._place = place + len(written)
        self._end = max(self._end, self._place)
        return len(written)

    def _write_all(self, data: bytes, place: int) -> None:
        self._raw.seek(place)
        while data:
            data = data[self._raw.write(data) :]

    def truncate(self, size: int) -> int:
        self._end = size
        self._tried(lambda: self._raw.truncate(size))
        return size

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def _tried(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except BaseException as error:
            self._failure = self._failure or error


def _copy_where_they_meet(data: bytes, start: int, out: bytearray) -> None:
    """Copy what lies within, if ``data`` begins at ``start``, before or after the beginning."""
    first, last = max(0, start), min(len(out), start + len(data))
    if first < last:
        out[first:last] = data[first - start : last - start]


@contextmanager
def write_h5ad(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write an embedding into obsm as it comes, and ids and labels into obs at the end."""
    h5py = needed("h5py", path)
    for name in (*columns.labels, *([] if columns.ids is None else [columns.ids])):
        if "/" in name or name in ("", ".", "..", "_index"):
            raise HeatSketchError(f"{path}: {name!r} is no name for a column of obs; rename it.")
    carried_along: list[Block] = []
    n_columns = len(columns.names)
    chunk = max(1, CHUNK_BYTES // (n_columns * columns.dtype.itemsize))

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        n_rows = len(rows)
        rows.resize(n_rows + len(X), axis=0)
        rows[n_rows:] = X
        shielded.check()
        carried_along.append(Block(None, ids, labels))

    with atomic_file(path, overwrite=overwrite) as output:
        shielded = _Shielded(output)
        with h5py.File(shielded, "w") as file:
            rows = file.create_dataset(
                EMBEDDING,
                (0, n_columns),
                columns.dtype,
                maxshape=(None, n_columns),
                chunks=(chunk, n_columns),
                fletcher32=True,  # a checksum in every chunk
            )
            rows.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
            yield write
            _write_frames(path, file, columns, carried_along, len(rows))
        shielded.check()


def _write_frames(
    path: Path, file: Any, columns: Columns, carried_along: list[Block], n_rows: int
) -> None:
    pandas, anndata = needed("pandas", path), needed("anndata.io", path)
    data = {}
    index = [str(row) for row in range(n_rows)]
    if columns.ids is not None and carried_along:
        index = [str(name) for name in np.concatenate([block.ids for block in carried_along])]
    for name in columns.labels:
        pieces = [block.labels[name] for block in carried_along]
        values = np.concatenate(pieces) if pieces else np.empty(0, dtype=object)
        if values.dtype == object:
            values = pandas.Categorical(values)
        data[name] = values
    obs = pandas.DataFrame(data, index=pandas.Index(index, dtype=object, name=columns.ids))
    anndata.write_elem(file, "obs", obs)
    anndata.write_elem(file, "var", pandas.DataFrame(index=pandas.Index([], dtype=object)))
    for folder in ("layers", "obsp", "varm", "varp", "uns"):
        anndata.write_elem(file, folder, {})
    file["obsm"].attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
    file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
