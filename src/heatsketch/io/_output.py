"""Columns of an output, and validation of the blocks written to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch.exceptions import HeatSketchError
from heatsketch.io._columns import carried
from heatsketch.io._table import Block


class Columns(NamedTuple):
    """The columns of an output: numbers, ids, and passthrough labels."""

    names: tuple[str, ...]
    dtype: np.dtype
    ids: str | None
    labels: tuple[str, ...]


def joined(columns: Columns, blocks: list[Block]) -> dict[str, np.ndarray]:
    """Return ids and labels of all blocks by name; text if there are no blocks."""
    parts = {name: [block.labels[name] for block in blocks] for name in columns.labels}
    if columns.ids is not None:
        parts = {columns.ids: [block.ids for block in blocks], **parts}
    return {n: np.concatenate(values or [np.empty(0, object)]) for n, values in parts.items()}


class TableWriter:
    """Writer of a file of rows, from :func:`heatsketch.io.table_writer`.

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    """

    def __init__(
        self, path: Path, columns: Columns, write: Callable[[Any, Any, Any], None]
    ) -> None:
        self.n_rows = 0
        self._path = path
        self._columns = columns
        self._write = write
        self._kinds: dict[str, str] = {}

    def append(self, block: Block) -> None:
        """Append rows to the file.

        Parameters
        ----------
        block : Block
            Must have ids and labels if and only if they were declared.
        """
        X = np.ascontiguousarray(block.X, dtype=self._columns.dtype)
        if X.ndim != 2 or X.shape[1] != len(self._columns.names):
            raise HeatSketchError(
                f"block.X has shape {X.shape}, and {self._path} has "
                f"{len(self._columns.names)} columns; give rows of that many numbers."
            )
        if (block.ids is None) != (self._columns.ids is None):
            there = "no ids" if block.ids is None else "ids"
            raise HeatSketchError(
                f"block has {there}, but {self._path} was opened with ids={self._columns.ids!r}; "
                "declare them in table_writer, or leave them out."
            )
        if set(block.labels) != set(self._columns.labels):
            raise HeatSketchError(
                f"block.labels has {sorted(block.labels)}, but {self._path} was opened with "
                f"labels={list(self._columns.labels)}; give the same names to both."
            )
        ids = None if block.ids is None else self._checked("ids", block.ids, len(X))
        labels = {name: self._checked(name, block.labels[name], len(X)) for name in block.labels}
        if len(X):
            self._write(X, ids, labels)
            self.n_rows += len(X)

    def _checked(self, name: str, values: Any, n_rows: int) -> np.ndarray:
        array = carried(values)
        if array.shape != (n_rows,):
            raise HeatSketchError(
                f"{name} of a block has shape {array.shape}, but the block has {n_rows} rows; "
                "give one value for each."
            )
        kind = self._kinds.setdefault(name, array.dtype.kind) if n_rows else array.dtype.kind
        if kind != array.dtype.kind:
            raise HeatSketchError(
                f"{name} of this block has dtype {array.dtype}, and that of those before it was "
                "of another kind; convert all blocks alike, for instance with astype(str)."
            )
        if kind == "O" and any("\0" in value for value in array if value is not None):
            raise HeatSketchError(
                f"{name} holds text with a NUL character, which most formats cut off; remove it."
            )
        return array
