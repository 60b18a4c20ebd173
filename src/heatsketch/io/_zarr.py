"""Zarr folders of chunks, ``.zarr``.

zarr reads a missing chunk as zeros; here it is an error. Files written here therefore have a
checksum in every chunk, and include chunks of zeros. (``zarr`` is imported in this module only.)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from heatsketch._core.atomic_file import atomic_folder, file_errors
from heatsketch.exceptions import FileFormatError
from heatsketch.io import _checks as checks
from heatsketch.io._output import Columns
from heatsketch.io._table import Block, Table, array_table, joined, slices

MARK = "heatsketch"  # attribute of the groups written here
CHUNK_BYTES = 2**22


def open_zarr(path: Path, selection: checks.Selection) -> Table:
    """Read metadata, ids and labels, and check that all chunks are present."""
    root = zarr.open(str(path), mode="r")
    if any(entry.is_symlink() for entry in path.rglob("*")):
        raise FileFormatError(path, "it has links, which are not followed", "copy it without links")
    ours: Any = dict(root.attrs).get(MARK)
    arrays = {"": root} if isinstance(root, zarr.Array) else _arrays(root)
    key = "X" if ours and selection.key is None else selection.key and selection.key.strip("/")
    key = checks.find_table(path, {name: array.shape for name, array in arrays.items()}, key)
    array = arrays[key]
    checks.check_matrix(path, array.shape, array.dtype, f"array {key!r}")
    _check_stored(path, array)
    n_rows, n_columns = array.shape
    names = tuple(ours["names"]) if ours and key == "X" else checks.numbered_names(n_columns)
    checks.check_length(path, "names", (len(names),), n_columns)
    known = ours["columns"] if ours else {name: name for name in arrays}

    def beside(name: str, argument: str) -> np.ndarray:
        column = arrays[known[checks.find_name(path, name, known, argument)]]
        checks.check_length(path, f"{argument}={name!r}", column.shape, n_rows)
        _check_stored(path, column)
        return checks.carried(column[:])

    def read(rows: int) -> Iterator[np.ndarray]:
        chunk = (array.shards or array.chunks)[0]
        step = max(1, rows // chunk) * chunk  # so that each chunk is decompressed once
        for X in slices(array, step):
            yield from slices(X, rows)
        _check_stored(path, array)  # a chunk removed meanwhile would be read as zeros

    facts: dict[str, Any] = {"n_rows": n_rows, "dtype": array.dtype, "array": array}
    return array_table(path, selection, names, read, beside=beside, **facts)


def _arrays(root: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about files that are not of zarr
        members = root.members(max_depth=None)
    return {name: member for name, member in members if isinstance(member, zarr.Array)}


def _check_stored(path: Path, array: Any) -> None:
    """Raise if a chunk is missing, and if reading may run code or take too much memory."""
    codecs = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    if "pickle" in json.dumps(codecs, default=str).lower():
        cause = f"array {array.path!r} needs pickle, which can run any code"
        raise FileFormatError(path, cause, "save it as numbers")
    size, what = prod(array.shards or array.chunks) * array.dtype.itemsize, f"array {array.path!r}"
    checks.check_memory(path, size, f"a chunk of {what}", "write it in smaller chunks")
    n_missing = array.nchunks - array.nchunks_initialized
    if n_missing > 0:
        cause = f"{n_missing} chunks of {what} are missing; zarr reads them as zeros"
        remedy = "copy the folder again, or write it with write_empty_chunks=True"
        raise FileFormatError(path, cause, remedy)


# --- writing -----------------------------------------------------------------------------------


@contextmanager
def write_zarr(path: Path, columns: Columns, overwrite: bool) -> Iterator[Callable[[Block], None]]:
    """Write rows in complete chunks as they arrive.

    Chunks are written one at a time, so that no thread of zarr still writes after an error.
    """
    chunk = max(1, CHUNK_BYTES // (len(columns.names) * columns.dtype.itemsize))
    stored = {name: f"column{place}" for place, name in enumerate(columns.beside)}
    arrays: dict[str, Any] = {}
    waiting: list[Block] = []

    def write(block: Block) -> None:
        block = joined([*waiting, block])
        n_whole = len(block.X) // chunk * chunk
        append(block.rows(slice(n_whole)))
        waiting[:] = [block.rows(slice(n_whole, None))]

    def append(block: Block) -> None:
        beside = columns.by_name(block)
        members = {"X": block.X} | {stored[name]: beside[name] for name in stored}
        with file_errors(path):
            for start in range(0, len(block.X), chunk):
                for name, values in members.items():
                    _append(folder, arrays, name, values[start : start + chunk], chunk)

    with atomic_folder(path, overwrite=overwrite) as folder:
        with file_errors(path):
            root = zarr.open_group(folder, mode="w", zarr_format=3)
            root.attrs[MARK] = {"names": list(columns.names), "columns": stored}
        yield write
        append(joined(waiting))


def _append(
    folder: Path, arrays: dict[str, Any], name: str, values: np.ndarray, chunk: int
) -> None:
    is_text = values.dtype.kind == "O"
    if is_text:
        values = np.array([text or "" for text in values], dtype=object)
    if name not in arrays:
        arrays[name] = zarr.create_array(
            folder / name,  # not a path in the group, which zarr would write at the same time
            shape=(0, *values.shape[1:]),
            chunks=(chunk, *values.shape[1:]),
            dtype=str if is_text else values.dtype,
            # The checksum comes last, over the bytes written to disk.
            compressors=[ZstdCodec(level=1), Crc32cCodec()],
            config={"write_empty_chunks": True},
        )
    arrays[name].append(values)
