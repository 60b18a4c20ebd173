"""Folders of chunks, ``.zarr``.

zarr gives zeros for a chunk that is not there. So ours have a checksum in every chunk, write empty
chunks, too, and carry a manifest with the SHA-256 of every file, which is written last. A folder
that says it has a manifest is read only with it, and as far as it agrees. A folder from elsewhere
is read if all its chunks are there. (``zarr`` is imported in this file only.)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.atomic_file import atomic_folder, file_errors
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import (
    Wanted,
    carried,
    check_matrix,
    column_positions,
    find_name,
    float_dtype,
    numbered_names,
)
from heatsketch.io._failures import needed, refuse_beyond_memory
from heatsketch.io._output import Columns
from heatsketch.io._packed_chunks import refuse_bombs
from heatsketch.io._table import Block, Table

__all__ = ["open_zarr", "write_zarr"]

# In the folder of the array: zarr warns of files that it does not know in the folder of a group.
MANIFEST = "X/heatsketch-manifest.json"
MARK = "heatsketch"  # attribute of the groups that we write
CHUNK_BYTES = 2**22
TEXT_ROWS = 2**16  # of a chunk of ids or labels
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


def open_zarr(path: Path, wanted: Wanted) -> Table:
    """Look at the metadata, and whether all chunks are there; read the ids and labels."""
    if not path.is_dir():
        raise FileFormatError(path, "it is a file, not a folder", "unpack it into a folder first")
    zarr = needed("zarr", path)
    _refuse_pickles(path)
    root = zarr.open(str(path), mode="r")
    ours = dict(root.attrs).get(MARK)
    manifest = _manifest(path, must_be_there=ours is not None)
    arrays = _arrays(zarr, root)
    key = _table_key(path, arrays, "X" if ours and wanted.key is None else wanted.key)
    array = arrays[key]
    check_matrix(path, array.shape, array.dtype, f"array {key!r}")
    _check_chunks(path, array, manifest)
    n_rows, n_columns = array.shape
    names = tuple(ours["names"]) if ours and key == "X" else numbered_names(n_columns)
    known = ours["columns"] if ours else {name: name for name in arrays}

    def beside(name: str, argument: str) -> np.ndarray:
        column = arrays[known[find_name(path, name, known, argument)]]
        if column.shape != (n_rows,) or (column.dtype.hasobject and column.dtype.kind != "T"):
            raise FileFormatError(
                path,
                f"{argument}={name!r} has shape {column.shape} and dtype {column.dtype}",
                f"name an array of numbers or text with one value for each of the {n_rows} rows",
            )
        _check_chunks(path, column, manifest)
        _check_digests(path, _chunk_files(path, column), manifest)
        refuse_bombs(path, column, _chunk_files(path, column))
        return carried(column[:])

    return ZarrTable(
        path=path,
        names=names if wanted.columns is None else wanted.columns,
        n_rows=n_rows,
        dtype=float_dtype(array.dtype),
        array=array,
        manifest=manifest,
        positions=column_positions(path, names, wanted.columns),
        ids=None if wanted.ids is None else beside(wanted.ids, "ids"),
        labels={name: beside(name, "labels") for name in wanted.labels},
    )


def _refuse_pickles(path: Path) -> None:
    """Refuse the codec that runs whatever is in a chunk."""
    for name in METADATA:
        for file in path.rglob(name):
            codecs = _values_of(json.loads(file.read_bytes()), ("id", "name", "object_codec"))
            if any("pickle" in str(codec).lower() for codec in codecs):
                raise FileFormatError(
                    path,
                    f"{file.relative_to(path)} asks for pickle, which can run anything",
                    "save it as numbers",
                )


def _values_of(node: Any, keys: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in keys and isinstance(value, str):
                yield value
            if key not in ("attributes", "attrs"):
                yield from _values_of(value, keys)
    elif isinstance(node, list):
        for value in node:
            yield from _values_of(value, keys)


def _arrays(zarr: Any, root: Any) -> dict[str, Any]:
    if isinstance(root, zarr.Array):
        return {"": root}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of files that are none of zarr's
        members = root.members(max_depth=None)
    return {name: member for name, member in members if isinstance(member, zarr.Array)}


def _table_key(path: Path, arrays: dict[str, Any], key: str | None) -> str:
    if key is not None:
        return find_name(path, key.strip("/"), arrays, "key")
    if len(arrays) == 1:
        return next(iter(arrays))
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) == 1:
        return tables[0]
    some = ", ".join(f"{name!r} {array.shape}" for name, array in list(arrays.items())[:8])
    raise FileFormatError(
        path,
        f"{len(tables)} of its arrays have two axes: {some or 'it holds none'}",
        "name the one with key=",
    )


# --- all chunks, and those that were written ---------------------------------------------------


def _outer_chunks(array: Any) -> tuple[int, ...]:
    """Return the shape of what one file holds: a shard where there are shards."""
    return tuple(array.shards or array.chunks)


def _chunk_files(path: Path, array: Any, rows: slice = slice(None)) -> Iterator[Path]:
    counts = [ceil(n / chunk) for n, chunk in zip(array.shape, _outer_chunks(array), strict=True)]
    grid = [range(count) for count in counts]
    grid[0] = grid[0][rows]
    for place in _places(grid):
        yield path / array.path / array.metadata.encode_chunk_key(place)


def _places(grid: list[range]) -> Iterator[tuple[int, ...]]:
    """Give what itertools.product gives, which holds all of a grid that may be made up."""
    if not grid:
        yield ()
        return
    for first in grid[0]:
        yield from ((first, *rest) for rest in _places(grid[1:]))


def _check_chunks(path: Path, array: Any, manifest: dict[str, str] | None) -> None:
    chunk = prod(_outer_chunks(array)) * array.dtype.itemsize
    remedy = "write it in smaller chunks"
    refuse_beyond_memory(path, chunk, f"a chunk of array {array.path!r}", remedy)
    inside = path.resolve()
    for file in _chunk_files(path, array):
        name = file.relative_to(path).as_posix()
        if not file.is_file():
            raise FileFormatError(
                path,
                f"chunk {name!r} is missing, which zarr would read as zeros",
                "copy the folder again; if its writer leaves out chunks of zeros, have it write "
                "them with write_empty_chunks=True",
            )
        if inside not in file.resolve().parents:
            raise FileFormatError(path, f"chunk {name!r} is a link to elsewhere", "distrust it")
        if manifest is not None and name not in manifest:
            raise FileFormatError(
                path, f"chunk {name!r} is not in the manifest", "copy the folder again"
            )


def _manifest(path: Path, *, must_be_there: bool) -> dict[str, str] | None:
    """Read the manifest, and hold the metadata against it; None if there need not be one."""
    place = path / MANIFEST
    if not place.is_file():
        if must_be_there:
            raise FileFormatError(path, f"{MANIFEST} is missing", "copy the folder again")
        return None
    content = json.loads(place.read_bytes())
    files = content["files"]
    if content["format"] != 1 or content["complete"] is not True:
        raise FileFormatError(path, "its manifest is of no complete folder", "write it again")
    for name in files:
        if not (path / name).is_file():
            raise FileFormatError(path, f"{name!r} is missing", "copy the folder again")
    metadata = [path / name for name in files if name.rpartition("/")[2] in METADATA]
    _check_digests(path, metadata, files)
    return files


def _check_digests(path: Path, files: Iterable[Path], manifest: dict[str, str] | None) -> None:
    for file in files if manifest is not None else ():
        name = file.relative_to(path).as_posix()
        if manifest is not None and _digest(file) != manifest[name]:
            raise FileFormatError(
                path, f"{name!r} is not as it was written (SHA-256)", "copy the folder again"
            )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ZarrTable(Table):
    """One array of a folder, and those beside it."""

    array: Any
    manifest: dict[str, str] | None
    positions: tuple[int, ...] | None
    ids: Any
    labels: dict[str, Any]

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return self.ids is not None, tuple(self.labels)

    def _blocks(self, rows: int) -> Iterator[Block]:
        chunk = _outer_chunks(self.array)[0]
        step = max(1, rows // chunk)  # chunks, so that each is unpacked once
        for first in range(0, ceil(self.n_rows / chunk), step):
            files = list(_chunk_files(self.path, self.array, slice(first, first + step)))
            _check_digests(self.path, files, self.manifest)
            refuse_bombs(self.path, self.array, files)
            X = self.array[first * chunk : (first + step) * chunk]
            if not all(file.is_file() for file in files):
                raise FileFormatError(
                    self.path, "a chunk vanished while it was read", "let nobody write to it"
                )
            for start in range(0, len(X), rows):
                yield self._block(X[start : start + rows], first * chunk + start)

    def _block(self, X: np.ndarray, start: int) -> Block:
        part = slice(start, start + len(X))
        X = X if self.positions is None else X[:, list(self.positions)]
        return Block(
            X.astype(self.dtype, order="C"),
            None if self.ids is None else self.ids[part],
            {name: values[part] for name, values in self.labels.items()},
        )


# --- writing -----------------------------------------------------------------------------------


@contextmanager
def write_zarr(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows as they come, in whole chunks; ids, labels and the manifest at the end."""
    zarr = needed("zarr", path)
    carried_along: list[Block] = []

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        with file_errors(path):
            rows.append(X)
        carried_along.append(Block(None, ids, labels))

    with atomic_folder(path, overwrite=overwrite) as folder:
        with file_errors(path):
            root = zarr.open_group(str(folder), mode="w", zarr_format=3)
            rows = _ChunkedRows(root, columns)
        yield write
        with file_errors(path):
            rows.finish()
            _finish(folder, root, columns, carried_along)


def _finish(folder: Path, root: Any, columns: Columns, carried_along: list[Block]) -> None:
    """Write the ids, the labels and, last of all, the manifest."""
    stored = {}
    for place, name in enumerate((columns.ids, *columns.labels)):
        if name is not None:
            pieces = [b.ids if place == 0 else b.labels[name] for b in carried_along]
            stored[name] = f"column{place}"
            _write_column(root, stored[name], pieces)
    root.attrs[MARK] = {"names": list(columns.names), "columns": stored}
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    digests = {file.relative_to(folder).as_posix(): _digest(file) for file in files}
    content = {"format": 1, "complete": True, "files": digests}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1))


def _new_array(root: Any, name: str, **options: Any) -> Any:
    # Imported here, where zarr is known to be there.
    codecs = needed("zarr.codecs", Path())
    return root.create_array(
        name,
        # The checksum comes last, over the bytes that reach the disk.
        compressors=[codecs.ZstdCodec(level=1), codecs.Crc32cCodec()],
        config={"write_empty_chunks": True},
        **options,
    )


class _ChunkedRows:
    """An array that grows by whole chunks, so that none is written twice."""

    def __init__(self, root: Any, columns: Columns) -> None:
        n_columns = len(columns.names)
        self._chunk = max(1, CHUNK_BYTES // (n_columns * columns.dtype.itemsize))
        shapes = {"shape": (0, n_columns), "chunks": (self._chunk, n_columns)}
        self._array = _new_array(root, "X", dtype=columns.dtype, **shapes)
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0

    def append(self, X: np.ndarray) -> None:
        self._waiting.append(X.copy())
        self._n_waiting += len(X)
        if self._n_waiting >= self._chunk:
            self._flush(self._n_waiting // self._chunk * self._chunk)

    def finish(self) -> None:
        if self._n_waiting:
            self._flush(self._n_waiting)

    def _flush(self, n_rows: int) -> None:
        X = np.concatenate(self._waiting)
        start = self._array.shape[0]
        self._array.resize((start + n_rows, X.shape[1]))
        self._array[start:] = X[:n_rows]
        self._waiting = [X[n_rows:].copy()]
        self._n_waiting = len(X) - n_rows


def _write_column(root: Any, name: str, pieces: list[np.ndarray]) -> None:
    values = np.concatenate(pieces) if pieces else np.empty(0, dtype=object)
    kind: Any = values.dtype
    if values.dtype.kind == "O":
        values = np.array(["" if value is None else value for value in values], dtype=object)
        kind = str
    array = _new_array(root, name, shape=values.shape, chunks=(TEXT_ROWS,), dtype=kind)
    if len(values):
        array[:] = values
