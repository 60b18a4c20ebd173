"""Points as dask arrays whose tasks read files."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from scipy import sparse

from heatsketch._core.checks import float_dtype
from heatsketch._core.partitioned import CHUNK_BYTES
from heatsketch.engines._dask._cluster import Cluster, delayed, lazy_array
from heatsketch.engines._dask._storage import read_block, write_block
from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io import open_table


def read_points(cluster: Cluster, X: Any) -> Any:
    """Return a file or a dask array as a dask array in chunks of whole rows.

    Other inputs are returned unchanged. The array is named by its content, so that the names of all
    results derive from the content.
    """
    if isinstance(X, str | Path):
        X = _from_file(Path(X))
    if type(X).__module__.partition(".")[0] == "zarr":
        X = da.from_array(X, chunks=(_rows(X.shape[1], X.dtype, X.chunks[0]), -1))
    if not isinstance(X, da.Array):
        return X
    if any(np.isnan(size) for size in X.shape):
        # Not through the journal, since the content of an array of this name may have changed.
        with dask.config.set(scheduler=cluster.connection.get):
            X = X.compute_chunk_sizes()
    if X.ndim != 2 or 0 in X.shape:
        raise HeatSketchError(f"X must have one row for each point, but it has shape {X.shape}.")
    X = X.rechunk({1: -1})
    X = X.astype(float_dtype(X.dtype), copy=False)
    task = cluster.storage.name("digest", X.name)
    reading = {(task, i): (_digest, (X.name, i, 0)) for i in range(X.numblocks[0])}
    sizes, digests = zip(*cluster.run(delayed(task, reading, [X]), stage="reading"), strict=True)
    if sizes != X.chunks[0]:
        raise HeatSketchError(
            f"X has shape {X.shape}, but its chunks have {sum(sizes)} rows; create the dask array "
            "again."
        )
    name = cluster.storage.name("points", digests, X.dtype.str)
    filled = [i for i, size in enumerate(sizes) if size]
    tasks = {(name, i, 0): (np.ascontiguousarray, (X.name, c, 0)) for i, c in enumerate(filled)}
    rows = tuple(sizes[c] for c in filled)
    return lazy_array(name, tasks, [X], (rows, X.chunks[1]), X.dtype)


def _digest(chunk: np.ndarray) -> tuple[int, str]:
    return len(chunk), sha256(np.ascontiguousarray(chunk).data).hexdigest()


def _rows(n_columns: int, dtype: Any, multiple: int = 1) -> int:
    """Return the number of rows per task, a multiple of the chunks of the file."""
    rows = CHUNK_BYTES // max(1, n_columns * np.dtype(dtype).itemsize)
    return max(multiple, rows // multiple * multiple)


def _from_file(path: Path) -> Any:
    table = open_table(path)
    if table.is_sparse:
        raise HeatSketchError(f"X={str(path)!r} is sparse; a cluster needs dense points.")
    if table.array is not None:
        array = table.array
        rows = _rows(array.shape[1], array.dtype, (array.shards or array.chunks)[0])
        return da.from_array(array, chunks=(rows, -1)).astype(table.dtype)
    files = [Path(file) for file in table.files] or [path]
    # A column may be an index in only one file of a folder.
    columns = table.names if table.files else None
    read = partial(_read_file, columns=columns, dtype=table.dtype)
    sizes = [open_table(file).n_rows for file in files]
    if sum(sizes) != table.n_rows:
        raise FileFormatError(
            path,
            f"the number of rows changed from {table.n_rows} to {sum(sizes)}",
            "do not modify it while it is read",
        )
    name = f"file-{tokenize(str(path), [file.stat().st_mtime_ns for file in files])}"
    tasks = {(name, i, 0): (read, file) for i, file in enumerate(files)}
    return lazy_array(name, tasks, [], (tuple(sizes), (len(table.names),)), table.dtype)


def _read_file(path: Path, columns: tuple[str, ...] | None, dtype: Any) -> np.ndarray:
    return open_table(path, columns=columns).read().X.astype(dtype)


def points_in_files(cluster: Cluster, X: Any) -> da.Array:
    """Write points in memory to files; return an array whose tasks read them."""
    if isinstance(X, da.Array):
        return X
    if sparse.issparse(X):
        raise HeatSketchError(
            f"X of shape {X.shape} is sparse; a cluster needs dense points. Pass X.toarray(), or "
            "use engine=None."
        )
    name = cluster.storage.name("points", X.shape, X.dtype.str, X)
    rows = _rows(X.shape[1], X.dtype)
    starts = range(0, len(X), rows)
    tasks = {}
    for i, start in enumerate(starts):
        path = cluster.storage.block(name, i)
        write_block(X[start : start + rows], path)
        tasks[name, i, 0] = (read_block, path)
    sizes = tuple(len(X[start : start + rows]) for start in starts)
    return lazy_array(name, tasks, [], (sizes, (X.shape[1],)), X.dtype)
