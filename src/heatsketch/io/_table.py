"""Files of rows, read as a whole or in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io._columns import Wanted, column_positions
from heatsketch.io._failures import check_memory, reading
from heatsketch.io._row_numbers import RowNumbers

BLOCK_BYTES = 2**26  # default size of a block


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


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Table:
    """A file of rows with a checked header; its rows can be read repeatedly.

    Returned by :func:`heatsketch.io.open_table`. It keeps no file open between reads.

    Attributes
    ----------
    path : pathlib.Path
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
        Whether the columns of ``X`` were requested by their names. Otherwise, reading all rows
        warns about columns that look like row numbers.
    stream : callable
        Takes a number of rows, and yields all rows in order in blocks of at most that many.

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

    path: Path
    names: tuple[str, ...]
    n_rows: int
    dtype: np.dtype
    stream: Callable[[int], Iterator[Block]]
    is_sparse: bool = False
    has_ids: bool = False
    label_names: tuple[str, ...] = ()
    are_declared: bool = False

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
            raise HeatSketchError(f"rows={rows!r} of a block must be at least 1; give more.")
        n_seen, numbers = 0, RowNumbers(len(self.names) if self._has_features else 0)
        with reading(self.path):
            for block in self.stream(rows):
                n_seen += block.X.shape[0]
                if n_seen > self.n_rows:
                    break
                self._check_ids(block.ids, n_seen)
                numbers.keep(block.X)
                yield block
            if n_seen != self.n_rows:
                raise FileFormatError(
                    self.path,
                    f"it had {self.n_rows} rows when it was opened, and has {n_seen} now",
                    "do not write to it while it is read",
                )
        numbers.warn(self.path, self.names, n_seen)

    def read(self) -> Block:
        """Return all rows as one block."""
        parts = []
        if not self.is_sparse:
            size = self.n_rows * len(self.names) * self.dtype.itemsize
            check_memory(self.path, size, f"X of {self.n_rows} rows")
            X = np.empty((self.n_rows, len(self.names)), dtype=self.dtype)
        start = 0
        for block in self.blocks():
            if not self.is_sparse:
                X[start : start + len(block.X)] = block.X
                start += len(block.X)
                block = block._replace(X=None)  # otherwise X would be in memory twice
            parts.append(block)
        if self.is_sparse:
            empty = sparse.csr_array((0, len(self.names)), dtype=self.dtype)
            X = sparse.vstack([empty, *(part.X for part in parts)], format="csr")
        none = np.empty(0, dtype=object)  # without rows, ids and labels are text
        ids = np.concatenate([part.ids for part in parts] or [none]) if self.has_ids else None
        labels = {
            name: np.concatenate([part.labels[name] for part in parts] or [none])
            for name in self.label_names
        }
        return Block(X, ids, labels)

    @property
    def _has_features(self) -> bool:
        """Whether columns may turn out to be row numbers: not if they are pairs of rows."""
        return not (self.are_declared or self.is_sparse or len(self.names) == self.n_rows)

    def _check_ids(self, ids: Any, stop: int) -> None:
        if ids is None or ids.dtype.kind not in "Of":
            return
        missing = [value is None or value != value for value in ids.tolist()]
        if True in missing:
            row = stop - len(ids) + missing.index(True)
            raise FileFormatError(
                self.path, f"row {row} has no id", "fill it in, or use another column for ids"
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({str(self.path)!r}, n_rows={self.n_rows}, "
            f"n_columns={len(self.names)}, dtype={self.dtype})"
        )


def array_table(
    path: Path,
    wanted: Wanted,
    names: tuple[str, ...],
    read: Callable[[int], Iterator[Any]],
    *,
    ids: Any = None,
    labels: Mapping[str, Any] = {},
    kind: type[Table] = Table,
    **fields: Any,
) -> Any:
    """Return a table of one matrix, with ids and labels in memory.

    ``read`` takes a number of rows, and yields all rows of the matrix, at most that many at a time.
    """
    positions = column_positions(path, names, wanted.columns)

    def stream(rows: int) -> Iterator[Block]:
        start = 0
        for X in read(rows):
            part = slice(start, start := start + X.shape[0])
            X = X if positions is None else X[:, list(positions)]
            dtype = fields["dtype"]
            yield Block(
                X.astype(dtype) if sparse.issparse(X) else np.ascontiguousarray(X, dtype),
                None if ids is None else ids[part],
                {name: values[part] for name, values in labels.items()},
            )

    return kind(
        path=path,
        names=names if wanted.columns is None else wanted.columns,
        stream=stream,
        has_ids=ids is not None,
        label_names=tuple(labels),
        **fields,
    )


def slices(X: Any, rows: int) -> Iterator[Any]:
    """Yield the rows of an array that can be sliced, at most ``rows`` at a time."""
    yield from (X[start : start + rows] for start in range(0, X.shape[0], rows))
