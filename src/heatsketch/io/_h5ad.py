"""Files of single-cell tools, ``.h5ad``, read and written by ``anndata``.

The table is ``X``, or the layer or entry of obsm named by ``key``, dense or sparse by rows. Labels
are columns of obs; ids are the names of obs, or another column of it. Embeddings are written to
obsm, with ids and labels in obs. (``h5py`` and ``anndata`` are imported in this module only.)
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil, prod
from pathlib import Path
from typing import Any

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
    find_name,
)
from heatsketch.io._failures import check_memory, needed
from heatsketch.io._output import Columns, joined
from heatsketch.io._table import Block, Table, array_table, slices

EMBEDDING = "obsm/X_heatsketch"


def open_h5ad(path: Path, wanted: Wanted) -> Table:
    """Read obs, the names of the columns, and the shape of the matrix."""
    h5py, anndata = needed("h5py", path), needed("anndata.io", path)
    with h5py.File(path, "r") as file:
        key = _table_key(path, file, wanted.key)
        for name in (key, "obs", "var"):
            _check_stored(path, file[name])
        obs = anndata.read_elem(file["obs"])
        X = _matrix(path, file, key)
        n_rows, n_columns = X.shape
        names = tuple(f"{key.removeprefix('obsm/')}_{column}" for column in range(n_columns))
        if not key.startswith("obsm/"):
            names = tuple(map(str, anndata.read_elem(file["var"]).index))
        dtype, is_sparse = X.dtype, not isinstance(X, h5py.Dataset)
    check_matrix(path, (n_rows, n_columns), dtype, key)
    check_length(path, "obs", (len(obs),), n_rows)
    check_length(path, "var", (len(names),), n_columns)

    def read(rows: int) -> Iterator[Any]:
        with h5py.File(path, "r") as file:
            X = _matrix(path, file, key)
            if getattr(X, "format", None) == "csc":
                X = X.to_memory().tocsr()
            yield from map(_checked, slices(X, rows))

    ids = obs.index if wanted.ids is None else obs[find_name(path, wanted.ids, obs, "ids")]
    return array_table(
        path,
        wanted,
        names,
        read,
        ids=carried(ids),
        labels={name: carried(obs[find_name(path, name, obs, "labels")]) for name in wanted.labels},
        n_rows=n_rows,
        dtype=float_dtype(dtype),
        is_sparse=is_sparse,
    )


def _table_key(path: Path, file: Any, key: str | None) -> str:
    inside = [f"{folder}/{name}" for folder in ("obsm", "layers") for name in file.get(folder, ())]
    tables = [*(["X"] if "X" in file else []), *inside]
    if key is None and "X" not in tables:
        raise FileFormatError(path, "it has no X", f"name one of {tables[:8]} with key=")
    # A name without its folder is accepted if it is unique.
    bare = [table for table in tables if table.rpartition("/")[2] == key]
    return find_name(path, bare[0] if len(bare) == 1 else key or "X", tables, "key")


def _matrix(path: Path, file: Any, key: str) -> Any:
    """Return an HDF5 dataset, or a sparse matrix that is read in slices."""
    node = file[key]
    layout = node.attrs.get("encoding-type")
    if hasattr(node, "dtype"):
        return node
    if layout not in ("csr_matrix", "csc_matrix"):
        raise FileFormatError(
            path, f"{key} is stored as {layout!r}", "write it as an array or a CSR matrix"
        )
    return needed("anndata.io", path).sparse_dataset(node)


def _checked(X: Any) -> Any:
    """Return rows, and raise if an index of a sparse matrix exceeds its shape."""
    if not sparse.issparse(X):
        return X
    X = sparse.csr_array(X)
    X.check_format(full_check=True)  # otherwise products would read out of bounds
    return X


def _check_stored(path: Path, node: Any) -> None:
    """Raise for data in other files, and for chunks read by HDF5 as zeros."""
    elsewhere = Path(node.file.filename) != path
    if not elsewhere and not hasattr(node, "dtype"):
        for part in node:
            _check_stored(path, node[part])
        return
    if elsewhere or node.external or node.is_virtual:
        raise FileFormatError(path, f"{node.name} lies in another file", "distrust it")
    n_chunks, n_stored = 1, node.id.get_storage_size() > 0
    if node.chunks:
        size = prod(node.chunks) * node.dtype.itemsize
        check_memory(path, size, f"a chunk of {node.name}", "write it in smaller chunks")
        n_chunks = prod(map(ceil, np.divide(node.shape, node.chunks)))
        n_stored = node.id.get_num_chunks()
    if node.size and n_stored < n_chunks:
        raise FileFormatError(
            path,
            f"{node.name} of shape {node.shape} has parts that were never written, which HDF5 "
            "would read as zeros",
            "write it again",
        )


@contextmanager
def write_h5ad(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Keep all rows in memory, and write them at the end.

    HDF5 writes to memory, too: if the disk is full, it would crash the process.
    """
    h5py, pandas = needed("h5py", path), needed("pandas", path)
    anndata, write_elem = needed("anndata", path), needed("anndata.io", path).write_elem
    for name in (*columns.labels, *([] if columns.ids is None else [columns.ids])):
        if "/" in name or name in ("", ".", "..", "_index"):
            raise HeatSketchError(f"{path}: {name!r} is no name for a column of obs; rename it.")
    blocks: list[Block] = []
    with atomic_file(path, overwrite=overwrite) as output:
        yield lambda X, ids, labels: blocks.append(Block(X.copy(), ids, labels))
        X = [np.empty((0, len(columns.names)), columns.dtype), *(block.X for block in blocks)]
        check_memory(path, 3 * sum(part.nbytes for part in X), "writing it", "write .zarr")
        embedding, values = np.concatenate(X), joined(columns, blocks)
        ids = np.arange(len(embedding)) if columns.ids is None else values.pop(columns.ids)
        text = {n: pandas.Categorical(v) for n, v in values.items() if v.dtype.kind == "O"}
        index = pandas.Index([str(name) for name in ids], dtype=object, name=columns.ids)
        image = io.BytesIO()
        with h5py.File(image, "w") as file:
            write_elem(file, "/", anndata.AnnData(shape=(len(embedding), 0)))
            write_elem(file, "obs", pandas.DataFrame({**values, **text}, index=index))
            # Every chunk has a checksum.
            write_elem(file, EMBEDDING, embedding, dataset_kwargs={"fletcher32": True})
        output.write(image.getbuffer())
