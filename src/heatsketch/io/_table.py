"""A file of rows, read whole or in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io._failures import reading, refuse_beyond_memory

__all__ = ["Block", "Table"]

BLOCK_BYTES = 2**26  # of a block whose number of rows is left to us


class Block(NamedTuple):
    """Some rows of a table, with what is known of them.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array of shape (n_rows, n_columns)
        float32 or float64.
    ids : array of shape (n_rows,) or None
        One name or number for each row.
    labels : dict of str to array
        The columns that are carried along. Numbers are bool, int64, uint64 or float64; text is
        an object array of str, with None where a value is missing.

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
class Table(ABC):
    """A file of rows that has been looked at, and can be read as often as you like.

    Made by :func:`heatsketch.io.open_table`. It keeps no file open between two readings.

    Attributes
    ----------
    path : pathlib.Path
    names : tuple of str
        Of the columns of ``X``.
    n_rows : int
    dtype : dtype
        Of ``X``: float32 if that holds every value of the columns exactly, as it does for float16,
        float32, bool and integers of at most 16 bits; float64 otherwise.
    is_sparse : bool
        Whether ``X`` comes as ``scipy.sparse.csr_array``.
    has_ids : bool
        Whether blocks have ids.

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
    is_sparse: bool = False

    @abstractmethod
    def _blocks(self, rows: int) -> Iterator[Block]:
        """Give the rows in order, at most ``rows`` at a time."""

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Iterate over all rows in order, holding one block in memory.

        Parameters
        ----------
        rows : int or None, default=None
            Most rows of a block; None for as many as make 64 MiB.

        Yields
        ------
        Block
        """
        if rows is None:
            rows = max(1, BLOCK_BYTES // (max(1, len(self.names)) * self.dtype.itemsize))
        if rows < 1:
            raise HeatSketchError(f"rows={rows!r} of a block must be at least 1; give more.")
        n_seen = 0
        with reading(self.path):
            for block in self._blocks(rows):
                n_seen += block.X.shape[0]
                self._check_ids(block.ids, n_seen)
                yield block
            if n_seen != self.n_rows:
                raise FileFormatError(
                    self.path,
                    f"it had {self.n_rows} rows when it was opened, and has {n_seen} now",
                    "let nobody write to it while it is read",
                )

    def read(self) -> Block:
        """Return all rows as one block."""
        pieces = []
        if not self.is_sparse:
            size = self.n_rows * len(self.names) * self.dtype.itemsize
            refuse_beyond_memory(self.path, size, f"X of {self.n_rows} rows")
            X = np.empty((self.n_rows, len(self.names)), dtype=self.dtype)
        start = 0
        for block in self.blocks():
            if self.is_sparse:
                pieces.append(block)
            else:
                X[start : start + len(block.X)] = block.X
                start += len(block.X)
                pieces.append(block._replace(X=None))  # or all of X would be held twice
        if self.is_sparse:
            empty = sparse.csr_array((0, len(self.names)), dtype=self.dtype)
            X = sparse.vstack([empty, *(piece.X for piece in pieces)], format="csr")
        return Block(X, *self._joined(pieces))

    def _joined(self, pieces: list[Block]) -> tuple[Any, dict[str, Any]]:
        """Join the ids and the labels of all blocks; of no rows at all, they are text."""
        none = np.empty(0, dtype=object)
        has_ids, label_names = self._carries
        ids = [piece.ids for piece in pieces] or [none]
        labels = {
            name: np.concatenate([piece.labels[name] for piece in pieces] or [none])
            for name in label_names
        }
        return np.concatenate(ids) if has_ids else None, labels

    @property
    @abstractmethod
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        """Whether blocks have ids, and the names of their labels."""

    def _check_ids(self, ids: Any, stop: int) -> None:
        if ids is None or ids.dtype.kind not in "Of":
            return
        missing = [value is None or value != value for value in ids.tolist()]
        if True in missing:
            row = stop - len(ids) + missing.index(True)
            raise FileFormatError(
                self.path, f"row {row} has no id", "fill it in, or use another column for ids="
            )

    @property
    def has_ids(self) -> bool:
        """Whether blocks have ids."""
        return self._carries[0]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({str(self.path)!r}, n_rows={self.n_rows}, "
            f"n_columns={len(self.names)}, dtype={self.dtype})"
        )
