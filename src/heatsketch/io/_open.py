from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io import _graphs
from heatsketch.io._checks import Selection, module_of, reading
from heatsketch.io._graphs import Graph
from heatsketch.io._output import Columns, TableWriter
from heatsketch.io._paths import ARROW, TEXT, check_readable, is_url, located
from heatsketch.io._table import Table

# Module and function by extension: a module is imported when it is needed, with its library.
READERS = {
    ".npy": ("_arrays", "open_npy"),
    ".npz": ("_arrays", "open_npz"),
    **dict.fromkeys(ARROW, ("_arrow", "open_arrow")),
    ".zarr": ("_zarr", "open_zarr"),
    ".h5ad": ("_h5ad", "open_h5ad"),
}
WRITERS = {
    ".npy": ("_arrays", "write_npy"),
    **dict.fromkeys(ARROW, ("_arrow", "write_arrow")),
    ".zarr": ("_zarr", "write_zarr"),
}
GRAPHS = {
    ".mtx": _graphs.read_matrix_market,
    ".edges": _graphs.read_edge_lines,
    ".edgelist": _graphs.read_edge_lines,
}
TABLE_EXTENSIONS, OUTPUT_EXTENSIONS = tuple(READERS), tuple(WRITERS)
GRAPH_EXTENSIONS = tuple(GRAPHS)
WITH_KEY = (".npz", ".zarr", ".h5ad")
WITH_LABELS = (*ARROW, ".zarr")  # of the outputs


def open_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    ids: str | None = None,
    key: str | None = None,
    header: bool | None = None,
) -> Table:
    r"""Open a file of rows and check its header.

    Parameters
    ----------
    path : str or path-like
        A file or folder with one of the extensions in :data:`TABLE_EXTENSIONS`.
    columns : sequence of str or None, default=None
        The features, by name and in this order; None for all columns that are neither labels nor
        ids, which must then all be numeric. Then columns of a Parquet file that pandas has written
        for an index are left out, and reading integers that increase from row to row gives a
        warning. Unnamed columns of arrays are called x0, x1, ... Pass ``()`` to read labels and ids
        only.
    labels : sequence of str, default=()
        Columns to pass through.
    ids : str or None, default=None
        The column of row ids. By default, the ids of a ``.h5ad`` file are the names of obs.
    key : str or None, default=None
        Array of a ``.npz`` or ``.zarr`` file, or layer or entry of obsm of a ``.h5ad`` file; needed
        only if there are several.
    header : bool or None, default=None
        Whether the first line of a text file holds column names. None assumes that it does, and
        raises if all of its fields are numbers.

    Returns
    -------
    Table

    Raises
    ------
    FileFormatError
        If the file is invalid, or lacks a requested column.
    FileError
        If the operating system cannot read the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.io import open_table
    >>> with TemporaryDirectory() as folder:
    ...     length = Path(folder, "a.csv").write_text("who,x,y,kind\nanna,1,2,a\nbert,3,4,b")
    ...     table = open_table(Path(folder, "a.csv"), ids="who", labels=["kind"])
    ...     X, ids, carried = table.read()
    >>> table.names, X.tolist(), ids.tolist(), carried["kind"].tolist()
    (('x', 'y'), [[1.0, 2.0], [3.0, 4.0]], ['anna', 'bert'], ['a', 'b'])
    """
    place, extension = located(path, READERS)
    _check_supported(place, extension, WITH_KEY, key=key)
    _check_supported(place, extension, TEXT, header=header)
    names = _names("columns", columns), _names("labels", labels)
    selection = Selection(*names, ids, key, header)
    check_readable(place)
    opened = _function(READERS[extension], place)
    with reading(place):
        return replace(opened(place, selection), are_declared=columns is not None)


def read_graph(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
) -> Graph:
    r"""Read a graph as a symmetric affinity matrix, with the ids of its nodes.

    Parameters
    ----------
    path : str or path-like
        A file with one of the extensions in :data:`GRAPH_EXTENSIONS`; an edge list in a ``.csv``,
        ``.tsv`` or ``.parquet`` table; or a square sparse matrix in a ``.npz`` file written by
        ``scipy.sparse.save_npz``. If an edge is listed in both directions, the weights must agree;
        edges without weights have weight 1.
    columns : sequence of str or None, default=None
        Columns of a table with the two ends of an edge, and optionally its weight. None finds them
        by their names (``source`` and ``target`` or similar, ``weight``), or uses all columns if
        there are two or three.
    header : bool or None, default=None
        As for :func:`open_table`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.io import read_graph
    >>> with TemporaryDirectory() as folder:
    ...     length = Path(folder, "a.edges").write_text("# a path\n7 8\n8 9")
    ...     affinity, ids = read_graph(Path(folder, "a.edges"))
    >>> ids.tolist(), affinity.nnz
    ([7, 8, 9], 4)
    """
    place, extension = located(path, (*GRAPHS, *ARROW, ".npz"))
    _check_supported(place, extension, ARROW, columns=columns, header=header)
    check_readable(place)
    if extension in GRAPHS:
        with reading(place):
            return GRAPHS[extension](place)
    module = module_of("_arrays" if extension == ".npz" else "_arrow", place)
    with reading(place):
        if extension == ".npz":
            return _graphs.graph_of_matrix(place, module.load_sparse(place))
        names = module.column_names(place, header)
        selected = _graphs.select_edge_columns(place, names, _names("columns", columns))
        selection = Selection(columns=selected[2:], labels=selected[:2], header=header)
        return _graphs.read_edge_table(module.open_arrow(place, selection), selected[:2])


@contextmanager
def table_writer(
    path: str | os.PathLike[str],
    names: Sequence[str],
    *,
    dtype: Any = np.float64,
    ids: str | None = None,
    labels: Sequence[str] = (),
    overwrite: bool = False,
) -> Iterator[TableWriter]:
    """Write a file of rows block by block; it appears only when it is complete.

    Parameters
    ----------
    path : str or path-like
        Must have one of the extensions in :data:`OUTPUT_EXTENSIONS`.
    names : sequence of str
        Names of the numeric columns. ``.npy`` keeps only their number.
    dtype : float32, float64 or int64, default=float64
        Dtype of the numeric columns.
    ids : str or None, default=None
        Name of the column of ids, if blocks have ids.
    labels : sequence of str, default=()
        Names of the labels of all blocks.
    overwrite : bool, default=False
        Whether an existing output may be replaced.

    Yields
    ------
    TableWriter
        Call its ``append`` with each :class:`Block`.

    Raises
    ------
    OutputExistsError, FileError
        As for :func:`heatsketch._core.atomic_file.atomic_file`.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.io import Block, open_table, table_writer
    >>> with TemporaryDirectory() as folder:
    ...     with table_writer(Path(folder, "a.csv"), ["x", "y"], ids="who") as writer:
    ...         writer.append(Block(np.eye(2), ids=["anna", "bert"]))
    ...     print(Path(folder, "a.csv").read_text())
    "who","x","y"
    "anna",1,0
    "bert",0,1
    <BLANKLINE>
    """
    place, extension = located(path, WRITERS)
    if is_url(place):
        raise FileFormatError(place, "outputs must be local files", "write a file, and upload it")
    columns = Columns(_names("names", names), np.dtype(dtype), ids, _names("labels", labels))
    _check_supported(place, extension, WITH_LABELS, ids=ids, labels=list(labels))
    all_names = [*columns.names, *columns.beside]
    if not columns.names or len({*all_names}) < len(all_names):
        message = f"names, ids={ids!r} and labels={list(labels)} must be distinct and not empty"
        raise HeatSketchError(f"{place}: {message}.")
    with _function(WRITERS[extension], place)(place, columns, overwrite) as write:
        writer = TableWriter(place, columns, write)
        yield writer
        if not writer.n_rows:
            raise HeatSketchError(f"{place}: no rows were written; append at least one.")


def _function(name: tuple[str, str], path: Any) -> Any:
    return getattr(module_of(name[0], path), name[1])


def _check_supported(path: Any, extension: str, extensions: Sequence[str], **options: Any) -> None:
    """Raise for an option that the files with an extension do not have."""
    for option, value in options.items():
        if value not in (None, (), []) and extension not in extensions:
            cause = f"{option}={value!r} is not supported for {extension} files"
            remedy = f"remove it, or use one of {', '.join(extensions)}"
            raise FileFormatError(path, cause, remedy)


def _names(argument: str, names: Sequence[str] | None) -> Any:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names or ()):
        raise HeatSketchError(f"{argument} must be a list of str, got {names!r}.")
    return names if names is None else tuple(names)
