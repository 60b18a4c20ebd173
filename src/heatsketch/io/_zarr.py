"""Zarr folders of chunks, ``.zarr``.

zarr reads a missing chunk as zeros; here it is an error. Files written here therefore have a
checksum in every chunk, and include chunks of zeros. (``zarr`` is imported in this module only.)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil, prod
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from heatsketch._core.atomic_file import atomic_folder, file_errors
from heatsketch._core.checks import float_dtype
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import (
    Wanted,
    carried,
    check_length,
    check_matrix,
    find_name,
    find_table,
    numbered_names,
)
from heatsketch.io._failures import check_memory, needed
from heatsketch.io._output import Columns, joined
from heatsketch.io._table import Block, Table, array_table, slices

MARK = "heatsketch"  # attribute of the groups written here
CHUNK_BYTES = 2**22
TEXT_ROWS = 2**16  # rows of a chunk of ids or labels


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ZarrTable(Table):
    """One array of a folder, with ids and labels in other arrays."""

    array: Any


def open_zarr(path: Path, wanted: Wanted) -> Table:
    """Read metadata, ids and labels, and check that all chunks are present."""
    if not path.is_dir():
        raise FileFormatError(path, "it is a file, not a folder", "unpack it into a folder first")
    zarr = needed("zarr", path)
    root = zarr.open(str(path), mode="r")
    ours = dict(root.attrs).get(MARK)
    arrays = {"": root} if isinstance(root, zarr.Array) else _arrays(zarr, root)
    key = "X" if ours and wanted.key is None else wanted.key and wanted.key.strip("/")
    key = find_table(path, {name: array.shape for name, array in arrays.items()}, key)
    array = arrays[key]
    check_matrix(path, array.shape, array.dtype, f"array {key!r}")
    _check_stored(path, array)
    n_rows, n_columns = array.shape
    names = tuple(ours["names"]) if ours and key == "X" else numbered_names(n_columns)
    check_length(path, "names", (len(names),), n_columns)
    known = ours["columns"] if ours else {name: name for name in arrays}

    def beside(name: str, argument: str) -> np.ndarray:
        column = arrays[known[find_name(path, name, known, argument)]]
        check_length(path, f"{argument}={name!r}", column.shape, n_rows)
        _check_stored(path, column)
        return carried(column[:])

    return array_table(
        path,
        wanted,
        names,
        partial(_read, path, array),
        ids=None if wanted.ids is None else beside(wanted.ids, "ids"),
        labels={name: beside(name, "labels") for name in wanted.labels},
        kind=ZarrTable,
        array=array,
        n_rows=n_rows,
        dtype=float_dtype(array.dtype),
    )


def _read(path: Path, array: Any, rows: int) -> Iterator[np.ndarray]:
    chunk = (array.shards or array.chunks)[0]
    step = max(1, rows // chunk) * chunk  # so that each chunk is decompressed once
    for X in slices(array, step):
        yield from slices(X, rows)
    _check_stored(path, array)  # a chunk removed meanwhile would be read as zeros


def _arrays(zarr: Any, root: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about foreign files
        members = root.members(max_depth=None)
    return {name: member for name, member in members if isinstance(member, zarr.Array)}


def _check_stored(path: Path, array: Any) -> None:
    """Raise if a chunk is missing or links outside, or if reading may run code."""
    codecs = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    if "pickle" in json.dumps(codecs, default=str).lower():
        raise FileFormatError(
            path, f"array {array.path!r} needs pickle, which can run any code", "save it as numbers"
        )
    outer = array.shards or array.chunks
    what, size = f"a chunk of array {array.path!r}", prod(outer) * array.dtype.itemsize
    check_memory(path, size, what, "write it in smaller chunks")
    inside = path.resolve()
    for index in np.ndindex(*map(ceil, np.divide(array.shape, outer))):
        name = Path(array.path, array.metadata.encode_chunk_key(index)).as_posix()
        if not (path / name).is_file():
            raise FileFormatError(
                path,
                f"chunk {name!r} is missing, which zarr would read as zeros",
                "copy the folder again; if its writer leaves out chunks of zeros, have it write "
                "them with write_empty_chunks=True",
            )
        if inside not in (path / name).resolve().parents:
            raise FileFormatError(path, f"chunk {name!r} is a link to elsewhere", "distrust it")


# --- writing -----------------------------------------------------------------------------------


@contextmanager
def write_zarr(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows in complete chunks as they arrive; ids and labels at the end."""
    zarr = needed("zarr", path)
    n_columns = len(columns.names)
    chunk = max(1, CHUNK_BYTES // (n_columns * columns.dtype.itemsize))
    blocks: list[Block] = []
    waiting = np.empty((0, n_columns), columns.dtype)

    def append(n_rows: int) -> None:
        nonlocal waiting
        start = array.shape[0]
        array.resize((start + n_rows, n_columns))
        array[start:] = waiting[:n_rows]
        waiting = waiting[n_rows:].copy()

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        nonlocal waiting
        waiting = np.concatenate([waiting, X])
        blocks.append(Block(None, ids, labels))
        with file_errors(path):
            if len(waiting) >= chunk:
                append(len(waiting) // chunk * chunk)

    with atomic_folder(path, overwrite=overwrite) as folder, _local_store(path, folder) as store:
        with file_errors(path):
            root = zarr.open_group(store, mode="w", zarr_format=3)
            shapes = {"shape": (0, n_columns), "chunks": (chunk, n_columns)}
            array = _new_array(path, root, "X", dtype=columns.dtype, **shapes)
        yield write
        with file_errors(path):
            if len(waiting):
                append(len(waiting))
            _write_columns(path, root, columns, joined(columns, blocks))


@contextmanager
def _local_store(path: Path, folder: Path) -> Iterator[Any]:
    """Yield a zarr file store with sequential writes, which stop after the block.

    zarr writes in several threads. Threads that still run after one has failed, or after Ctrl-C,
    would write into the folder while it is removed.
    """
    storage = needed("zarr.storage", path)
    turn, ended = Lock(), False

    class Store(storage.LocalStore):  # type: ignore[name-defined]
        async def set(self, key: str, value: Any) -> None:
            with turn:
                if ended:
                    raise RuntimeError(f"{key} comes too late")
                target = folder / key
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(value.to_bytes())

        async def set_if_not_exists(self, key: str, value: Any) -> None:
            if not (folder / key).exists():
                await self.set(key, value)

    try:
        yield Store(folder)
    finally:
        with turn:
            ended = True


def _write_columns(path: Path, root: Any, columns: Columns, values: dict[str, np.ndarray]) -> None:
    stored = {name: f"column{place}" for place, name in enumerate(values)}
    for name, column in values.items():
        kind: Any = column.dtype
        if kind.kind == "O":
            column, kind = np.array([text or "" for text in column], dtype=object), str
        options = {"shape": column.shape, "chunks": (TEXT_ROWS,), "dtype": kind}
        array = _new_array(path, root, stored[name], **options)
        if len(column):
            array[:] = column
    root.attrs[MARK] = {"names": list(columns.names), "columns": stored}


def _new_array(path: Path, root: Any, name: str, **options: Any) -> Any:
    codecs = needed("zarr.codecs", path)
    return root.create_array(
        name,
        # The checksum comes last, over the bytes written to disk.
        compressors=[codecs.ZstdCodec(level=1), codecs.Crc32cCodec()],
        config={"write_empty_chunks": True},
        **options,
    )
