"""Files of rows, read as a whole or in blocks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import float_dtype, is_missing
from heatsketch.exceptions import FileFormatError, HeatSketchError, HeatSketchWarning
from heatsketch.io._checks import FEW, Selection, check_memory, check_unique, find_name, reading

BLOCK_BYTES = 2**26  # default size of a block
FEWEST_NUMBERED = 10  # rows; fewer may increase by chance: 9 do in one of 400,000 columns


class Block(NamedTuple):
    """Some rows of a table, with their ids and labels.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array of shape (n_rows, n_columns)
        float32 or float64.
    ids : array of shape (n_rows,) or None
        One name or number for each row.
    labels : dict of str to array
        The passthrough columns. Numbers are bool, int64, uint64 or float64; text is an object array
        of str, with None where a value is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.io import Block
    >>> Block(np.eye(2), ids=np.array(["a", "b"])).labels
    {}
    """

    X: Any
    ids: Any = None
    labels: Mapping[str, Any] = {}

    def rows(self, some: Any) -> Block:
        """Return some of the rows: a slice, or positions."""
        ids = None if self.ids is None else self.ids[some]
        return Block(self.X[some], ids, {name: v[some] for name, v in self.labels.items()})


@dataclass(frozen=True, eq=False)
class Table:
    """A file of rows with a checked header; its rows can be read repeatedly.

    Returned by :func:`heatsketch.io.open_table`. It keeps no file open between reads.

    Attributes
    ----------
    path : pathlib.Path or str
        A str for a URL.
    names : tuple of str
        Names of the columns of ``X``.
    n_rows : int
    dtype : dtype
        Dtype of ``X``: float32 if it represents all values of the columns exactly, as for float16,
        float32, bool and integers of at most 16 bits; float64 otherwise.
    is_sparse : bool
        Whether ``X`` is a ``scipy.sparse.csr_array``.
    has_ids : bool
        Whether blocks have ids.
    label_names : tuple of str
        Names of the labels of blocks.
    are_declared : bool
        Whether the columns of ``X`` were requested by their names. Otherwise, reading warns about
        columns that look like row numbers in the first block.
    stream : callable
        Takes a number of rows, and yields all rows in order in blocks of at most that many.
    files : tuple of str
        The files of a table of text, Parquet or Arrow.
    array : zarr.Array or None
        The array of a ``.zarr`` folder.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.io import open_table
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.ones((5, 2), dtype="uint8"))
    ...     table = open_table(Path(folder, "a.npy"))
    ...     sums = [float(block.X.sum()) for block in table.blocks(2)]
    >>> table.names, table.n_rows, table.dtype, sums
    (('x0', 'x1'), 5, dtype('float32'), [4.0, 4.0, 2.0])
    """

    path: Any
    names: tuple[str, ...]
    n_rows: int
    dtype: np.dtype
    stream: Callable[[int], Iterator[Block]]
    is_sparse: bool = False
    has_ids: bool = False
    label_names: tuple[str, ...] = ()
    are_declared: bool = False
    files: tuple[str, ...] = ()
    array: Any = None

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Iterate over all rows in order, with one block in memory.

        Parameters
        ----------
        rows : int or None, default=None
            Maximum number of rows of a block; None for blocks of 64 MiB.

        Yields
        ------
        Block
        """
        if rows is None:
            rows = max(1, BLOCK_BYTES // (max(1, len(self.names)) * self.dtype.itemsize))
        if rows < 1:
            raise HeatSketchError(f"rows={rows!r} must be at least 1.")
        n_read = 0
        with reading(self.path):
            for block in self.stream(rows):
                _check_ids(self.path, block.ids, n_read)
                # A square matrix holds pairs of rows, whose columns are not features.
                if not (n_read or self.are_declared or len(self.names) == self.n_rows):
                    _warn_of_row_numbers(self.path, self.names, block.X)
                n_read += block.X.shape[0]
                if n_read > self.n_rows:
                    break
                yield block
            if n_read != self.n_rows:
                cause = f"it had {self.n_rows} rows when it was opened, but has {n_read} now"
                raise FileFormatError(self.path, cause, "do not write to it while it is read")

    def read(self) -> Block:
        """Return all rows as one block."""
        shape = (0 if self.is_sparse else self.n_rows, len(self.names))
        check_memory(self.path, shape[0] * shape[1] * self.dtype.itemsize, "X")
        X, start = np.empty(shape, dtype=self.dtype), 0
        parts = []
        for block in self.blocks():
            if not self.is_sparse:
                X[start : start + len(block.X)] = block.X
                start += len(block.X)
                block = block._replace(X=X[:0])  # otherwise X would be in memory twice
            parts.append(block)
        none = np.empty(0, dtype=object)  # without rows, ids and labels are text
        empty = Block(X[:0], none if self.has_ids else None, dict.fromkeys(self.label_names, none))
        whole = joined(parts or [empty])
        return whole if self.is_sparse else whole._replace(X=X)


def joined(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks as one block."""
    is_sparse = any(sparse.issparse(block.X) for block in blocks)
    stack = partial(sparse.vstack, format="csr") if is_sparse else np.concatenate
    has_ids = all(block.ids is not None for block in blocks)
    return Block(
        stack([block.X for block in blocks]),
        np.concatenate([block.ids for block in blocks]) if has_ids else None,
        {
            name: np.concatenate([block.labels[name] for block in blocks])
            for name in blocks[0].labels
        },
    )


def _check_ids(path: Any, ids: Any, start: int) -> None:
    """Raise for missing ids; ``start`` is the number of rows before."""
    if ids is not None and ids.dtype.kind in "Of":
        missing = list(map(is_missing, ids.tolist()))
        if True in missing:
            row = start + missing.index(True)
            remedy = "fill it in, or use another column for ids"
            raise FileFormatError(path, f"row {row} has no id", remedy)


def _warn_of_row_numbers(path: Any, names: tuple[str, ...], X: Any) -> None:
    """Warn about columns that look like row numbers, in the first rows of a table."""
    if sparse.issparse(X) or len(X) < FEWEST_NUMBERED:
        return
    first = X[:FEWEST_NUMBERED]
    columns = np.flatnonzero((first[1:] > first[:-1]).all(axis=0)).tolist()
    numbers = [names[column] for column in columns if _are_increasing(X[:, column])]
    if numbers:
        others = [name for name in names if name not in set(numbers)][:FEW] or numbers[:FEW]
        message = (
            f"{path}: columns {numbers[:FEW]} are used as features, but look like row numbers: "
            "they hold integers that increase from row to row. Choose features with "
            f"columns={others}."
        )
        warnings.warn(HeatSketchWarning(message), stacklevel=3)


def _are_increasing(values: np.ndarray) -> bool:
    """Return True for integers, each larger than the one before."""
    return bool((values[1:] > values[:-1]).all() and (values == np.floor(values)).all())


def array_table(
    path: Any,
    selection: Selection,
    names: tuple[str, ...],
    read: Callable[[int], Iterator[Any]],
    *,
    n_rows: int,
    dtype: Any,
    is_sparse: bool = False,
    array: Any = None,
    beside: Callable[[str, str], np.ndarray] | None = None,
    ids: Any = None,
) -> Table:
    """Return a table of one matrix, with ids and labels in memory.

    ``read`` takes a number of rows, and yields all rows of the matrix, at most that many at a time.
    ``beside`` returns an array of ids or labels by its name, and by the argument that names it.
    """
    dtype = float_dtype(dtype)
    labels: dict[str, np.ndarray] = {}
    if beside is not None:
        ids = ids if selection.ids is None else beside(selection.ids, "ids")
        labels = {name: beside(name, "labels") for name in selection.labels}
    elif selection.labels or selection.ids is not None:
        cause = f"labels={selection.labels} and ids={selection.ids!r} are not supported for it"
        raise FileFormatError(path, cause, "remove them")
    positions: Any = slice(None)
    if selection.columns is not None:
        check_unique(path, selection.columns, "columns")
        place = {name: position for position, name in enumerate(names)}
        names = tuple(find_name(path, name, place, "columns") for name in selection.columns)
        positions = [place[name] for name in names]
    carried = Block(np.empty((n_rows, 0)), ids, labels)

    def stream(rows: int) -> Iterator[Block]:
        start = 0
        for X in read(rows):
            X = X[:, positions]
            X = X.astype(dtype) if is_sparse else np.ascontiguousarray(X, dtype)
            part = slice(start, start := start + X.shape[0])
            yield carried.rows(part)._replace(X=X)

    facts: dict[str, Any] = {
        "has_ids": ids is not None,
        "label_names": selection.labels,
        "array": array,
    }
    return Table(path, names, n_rows, dtype, stream, is_sparse, **facts)


def slices(X: Any, rows: int) -> Iterator[Any]:
    """Yield the rows of an array that can be sliced, at most ``rows`` at a time."""
    yield from (X[start : start + rows] for start in range(0, X.shape[0], rows))


def checked_csr(X: Any) -> sparse.csr_array:
    """Return a sparse matrix by rows, and raise if an index exceeds its shape."""
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)  # otherwise products would read out of bounds
    return sparse.csr_array(X)
