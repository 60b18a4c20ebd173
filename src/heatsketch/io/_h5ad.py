"""Files of single-cell tools, ``.h5ad``, read by ``anndata``.

The table is ``X``, or the layer or entry of obsm named by ``key``, dense or sparse by rows. Labels
are columns of obs; ids are the names of obs, or another column of it. (``h5py`` and ``anndata`` are
imported in this module only.)

Only obs, var and rows of the table are read: ``anndata.read_h5ad(backed="r")`` would load all
layers and obsm.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod
from pathlib import Path
from typing import Any

import anndata.io
import h5py
import numpy as np

from heatsketch.exceptions import FileFormatError
from heatsketch.io import _checks as checks
from heatsketch.io._table import Table, array_table, checked_csr, slices


def open_h5ad(path: Path, selection: checks.Selection) -> Table:
    """Read obs, the names of the columns, and the shape of the matrix."""
    with h5py.File(path, "r") as file:
        key = _table_key(path, file, selection.key)
        for name in (key, "obs", "var"):
            _check_stored(path, file[name])
        obs = anndata.io.read_elem(file["obs"])
        X = _matrix(path, file, key)
        (n_rows, n_columns), dtype, is_sparse = X.shape, X.dtype, not isinstance(X, h5py.Dataset)
        names = tuple(f"{key.removeprefix('obsm/')}_{column}" for column in range(n_columns))
        if not key.startswith("obsm/"):
            names = tuple(map(str, anndata.io.read_elem(file["var"]).index))
    checks.check_matrix(path, (n_rows, n_columns), dtype, key)
    checks.check_length(path, "obs", (len(obs),), n_rows)
    checks.check_length(path, "var", (len(names),), n_columns)

    def beside(name: str, argument: str) -> np.ndarray:
        return checks.carried(obs[checks.find_name(path, name, obs, argument)])

    def read(rows: int) -> Iterator[Any]:
        with h5py.File(path, "r") as file:
            X = _matrix(path, file, key)
            if getattr(X, "format", None) == "csc":
                X = X.to_memory().tocsr()
            yield from map(checked_csr, slices(X, rows)) if is_sparse else slices(X, rows)

    facts = {"n_rows": n_rows, "dtype": dtype, "is_sparse": is_sparse}
    ids = checks.carried(obs.index)
    return array_table(path, selection, names, read, beside=beside, ids=ids, **facts)


def _table_key(path: Path, file: Any, key: str | None) -> str:
    inside = [f"{folder}/{name}" for folder in ("obsm", "layers") for name in file.get(folder, ())]
    tables = [*(["X"] if "X" in file else []), *inside]
    # A name without its folder is accepted if it is unique.
    bare = [table for table in tables if table.rpartition("/")[2] == key]
    return checks.find_name(path, bare[0] if len(bare) == 1 else key or "X", tables, "key")


def _matrix(path: Path, file: Any, key: str) -> Any:
    """Return an HDF5 dataset, or a sparse matrix that is read in slices."""
    node = file[key]
    if hasattr(node, "dtype"):
        return node
    layout = node.attrs.get("encoding-type")
    if layout not in ("csr_matrix", "csc_matrix"):
        cause = f"key={key!r} is stored as {layout!r}"
        raise FileFormatError(path, cause, "write it as an array or a CSR matrix")
    return anndata.io.sparse_dataset(node)


def _check_stored(path: Path, node: Any) -> None:
    """Raise for data in other files, and for chunks read by HDF5 as zeros."""
    is_elsewhere = Path(node.file.filename) != path
    if not is_elsewhere and not hasattr(node, "dtype"):
        for part in node:
            _check_stored(path, node[part])
        return
    if is_elsewhere or node.external or node.is_virtual:
        cause = f"{node.name} is in another file; links outside the file are not followed"
        raise FileFormatError(path, cause, "write it into this file")
    n_chunks, n_stored = 1, node.id.get_storage_size() > 0
    if node.chunks:
        size = prod(node.chunks) * node.dtype.itemsize
        checks.check_memory(path, size, f"a chunk of {node.name}", "write it in smaller chunks")
        n_chunks = prod(map(ceil, np.divide(node.shape, node.chunks)))
        n_stored = node.id.get_num_chunks()
    if node.size and n_stored < n_chunks:
        cause = f"parts of {node.name} were never written; HDF5 reads them as zeros"
        raise FileFormatError(path, cause, "write it again")
