"""Choice of reader or writer by extension, which only this module does."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import file_errors
from heatsketch.exceptions import DtypeError, FileFormatError, HeatSketchError, OutputError
from heatsketch.io._columns import Wanted
from heatsketch.io._csv import csv_names, open_csv, write_csv
from heatsketch.io._edge_tables import edge_columns, edges_in_columns, read_edges
from heatsketch.io._failures import reading
from heatsketch.io._graphs import Graph, read_edge_list, read_matrix_market
from heatsketch.io._h5ad import open_h5ad, write_h5ad
from heatsketch.io._npy import open_npy, write_npy
from heatsketch.io._npz import matrix_shape, open_npz, read_matrix, write_npz
from heatsketch.io._output import Columns, TableWriter
from heatsketch.io._parquet import open_parquet, parquet_names, write_parquet
from heatsketch.io._table import Table
from heatsketch.io._zarr import open_zarr, write_zarr


class _Format(NamedTuple):
    open: Callable[[Path, Wanted], Table]
    write: Callable[..., Any]
    options: frozenset[str]  # options of open_table, besides columns, that the format supports


TEXT = _Format(open_csv, write_csv, frozenset({"labels", "ids", "header"}))
ARRAYS = frozenset({"labels", "ids", "key"})
FORMATS = {
    ".npy": _Format(open_npy, write_npy, frozenset()),
    ".npz": _Format(open_npz, write_npz, ARRAYS),
    ".csv": TEXT,
    ".csv.gz": TEXT,
    ".tsv": TEXT,
    ".tsv.gz": TEXT,
    ".parquet": _Format(open_parquet, write_parquet, frozenset({"labels", "ids"})),
    ".zarr": _Format(open_zarr, write_zarr, ARRAYS),
    ".h5ad": _Format(open_h5ad, write_h5ad, ARRAYS),
}
GRAPHS = {".mtx": read_matrix_market, ".edges": read_edge_list, ".edgelist": read_edge_list}
# Tables that may be edge lists, with functions that return the names of their columns.
EDGE_TABLES: dict[str, Callable[[Path, bool | None], tuple[str, ...]]] = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), csv_names),
    ".parquet": parquet_names,
}
MATRIX = ".npz"
TABLE_EXTENSIONS = tuple(FORMATS)
GRAPH_EXTENSIONS = tuple(GRAPHS)


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
    path = Path(path)
    form = FORMATS[_extension(path, FORMATS, "a table")]
    wanted = Wanted(
        None if columns is None else _names("columns", columns),
        _names("labels", labels),
        ids,
        key,
        header,
    )
    for option in ("labels", "ids", "key", "header"):
        value = getattr(wanted, option)
        if option not in form.options and value not in (None, ()):
            fitting = ", ".join(name for name, other in FORMATS.items() if option in other.options)
            raise FileFormatError(
                path,
                f"{option}={value!r} means nothing here",
                f"it is for {fitting}; leave it out",
                **{option: value},
            )
    check_readable(path)
    with reading(path):
        return replace(form.open(path, wanted), are_declared=columns is not None)


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
    path = Path(path)
    extension = _extension(path, {**GRAPHS, **EDGE_TABLES, MATRIX: None}, "a graph")
    for option, value in (("columns", columns), ("header", header)):
        if value is not None and extension not in EDGE_TABLES:
            raise FileFormatError(
                path,
                f"{option}={value!r} means nothing here",
                "it is for tables; leave it out",
                **{option: value},
            )
    check_readable(path)
    with reading(path):
        if extension in GRAPHS:
            return GRAPHS[extension](path)
        if extension == MATRIX:
            return read_matrix(path)
        names = EDGE_TABLES[extension](path, header)
        chosen = edges_in_columns(
            path, names, None if columns is None else _names("columns", columns)
        )
        wanted = Wanted(columns=chosen[2:], labels=chosen[:2], header=header)
        return read_edges(FORMATS[extension].open(path, wanted), chosen[:2])


def graph_in_table(
    path: str | os.PathLike[str],
    *,
    carried: Iterable[str] = (),
    header: bool | None = None,
) -> str | None:
    r"""Return the reason why a table may be a graph, or None.

    Parameters
    ----------
    path : str or path-like
    carried : iterable of str, default=()
        Columns that are labels or ids.
    header : bool or None, default=None
        As for :func:`open_table`.

    Returns
    -------
    str or None

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.io import graph_in_table
    >>> with TemporaryDirectory() as folder:
    ...     length = Path(folder, "a.csv").write_text("source,target\n1,2\n")
    ...     print(graph_in_table(Path(folder, "a.csv")))
    its columns 'source' and 'target' are the ends of edges
    """
    path = Path(path)
    extension = _extension(path, FORMATS, "a table")
    check_readable(path)
    with reading(path):
        if extension == MATRIX:
            shape = matrix_shape(path)
            if shape is not None and shape[0] == shape[1]:
                return f"it holds a square sparse matrix of shape {shape}"
        elif extension in EDGE_TABLES:
            ends = edge_columns(EDGE_TABLES[extension](path, header), tuple(carried))[:2]
            if ends:
                return f"its columns {ends[0]!r} and {ends[1]!r} are the ends of edges"
    return None


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
        Must have one of the extensions in :data:`TABLE_EXTENSIONS`.
    names : sequence of str
        Names of the numeric columns. ``.npy`` and ``.h5ad`` (in obsm) keep only their number.
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
    who,x,y
    anna,1.0,0.0
    bert,0.0,1.0
    <BLANKLINE>
    """
    path = Path(path)
    extension = _extension(path, FORMATS, "a table")
    form = FORMATS[extension]
    columns = Columns(_names("names", names), np.dtype(dtype), ids, _names("labels", labels))
    if columns.dtype not in (np.float32, np.float64, np.int64) or not columns.dtype.isnative:
        raise DtypeError(
            f"dtype={dtype!r} of {path} must be float32, float64 or int64; use one of them."
        )
    if not columns.names:
        raise HeatSketchError(f"names={names!r} of {path} is empty; give a name to each column.")
    if "ids" not in form.options and (ids is not None or columns.labels):
        raise HeatSketchError(
            f"{path}: {extension} holds numbers only, but ids={ids!r} and "
            f"labels={list(columns.labels)}; leave them out, or write .parquet.",
            ids=ids,
            labels=list(columns.labels),
        )
    all_names = [*columns.names, *columns.labels, *([] if ids is None else [ids])]
    if len(set(all_names)) < len(all_names):
        raise HeatSketchError(
            f"{path}: ids={ids!r}, names and labels={list(columns.labels)} must all differ; rename "
            "those that are the same.",
            ids=ids,
            labels=list(columns.labels),
        )
    with form.write(path, columns, overwrite) as write:
        yield TableWriter(path, columns, write)


def check_different_files(
    inputs: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> None:
    """Raise if an output is also an input, under any name or link.

    Parameters
    ----------
    inputs : iterable of str or path-like
        Files and folders that are read.
    output : str or path-like
        Must not be one of the inputs, lie in one of them, or contain one of them.

    Examples
    --------
    >>> from heatsketch.io import check_different_files
    >>> check_different_files(["/tmp"], "/tmp/../tmp")
    Traceback (most recent call last):
    heatsketch.exceptions.OutputError: /tmp/../tmp is also the input /tmp; use another path...
    """
    output = Path(output)
    for given in map(Path, inputs):
        with file_errors(output):
            one, other = Path(os.path.realpath(given)), Path(os.path.realpath(output))
            same = given.exists() and output.exists() and os.path.samefile(given, output)
        if same or one == other or one in other.parents or other in one.parents:
            message = f"{output} is also the input {given}; use another path for one of them."
            raise OutputError(errno.EEXIST, message, str(output))


def _extension(path: Path, known: dict[str, Any], what: str) -> str:
    """Return the extension that sets the format of ``path``, in lower case."""
    name = path.name.lower()
    for extension in sorted(known, key=len, reverse=True):
        if name.endswith(extension) and name != extension:
            return extension
    if ".parquet" in known and path.is_dir() and any(path.glob("*.parquet")):
        return ".parquet"  # most tools write a folder, under any name
    other = [name for name in (GRAPHS if known is FORMATS else FORMATS) if name not in known]
    other_kind = "graphs" if known is FORMATS else "tables"
    also = f" ({', '.join(other)} hold {other_kind})"
    raise FileFormatError(
        path,
        f"extension {path.suffix!r} is not that of {what}",
        f"use one of {', '.join(known)}{also}",
    )


def check_readable(path: Path) -> None:
    """Raise if a path is missing, unreadable, empty, or neither file nor folder."""
    with file_errors(path, doing="read"):
        if path.is_dir():
            os.listdir(path)
            return
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise FileFormatError(path, "it is not a regular file", "copy it into one first")
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise FileFormatError(path, "it is empty", "check that it was written")


def _names(argument: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise HeatSketchError(f"{argument}={names!r} must be several names; give a list of str.")
    return tuple(names)
