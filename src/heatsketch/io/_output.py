"""Columns of an output, and validation of the blocks written to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch.exceptions import HeatSketchError
from heatsketch.io._checks import carried
from heatsketch.io._table import Block

BLOCK_ENTRIES = 2**22  # numbers written at a time


class Columns(NamedTuple):
    """The columns of an output: numbers, ids, and passthrough labels."""

    names: tuple[str, ...]
    dtype: np.dtype
    ids: str | None
    labels: tuple[str, ...]

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the columns of ids and labels."""
        return (*([] if self.ids is None else [self.ids]), *self.labels)

    def by_name(self, block: Block) -> dict[str, np.ndarray]:
        """Return the columns of a block: ids, numbers and labels."""
        ids = {} if self.ids is None else {self.ids: block.ids}
        return {**ids, **dict(zip(self.names, block.X.T, strict=True)), **block.labels}


class TableWriter:
    """Writer of a file of rows, from :func:`heatsketch.io.table_writer`."""

    def __init__(self, path: Path, columns: Columns, write: Callable[[Block], None]) -> None:
        self.path, self.columns, self.n_rows = path, columns, 0
        self._write = write
        self._dtypes: dict[str, np.dtype] = {}

    def append(self, block: Block) -> None:
        """Append rows to the file.

        Parameters
        ----------
        block : Block
            Its ids and labels are written if they were declared, and must then be there.
        """
        n_rows, n_columns = len(block.X), len(self.columns.names)
        if np.shape(block.X)[1:] != (n_columns,):
            raise HeatSketchError(
                f"{self.path}: block.X must have {n_columns} columns, got shape {block.X.shape}."
            )
        beside: dict[Any, Any] = {self.columns.ids: block.ids, **block.labels}
        for name in self.columns.beside:
            beside[name] = self._checked(name, beside.get(name), n_rows)
        labels = {name: beside[name] for name in self.columns.labels}
        ids = None if self.columns.ids is None else beside[self.columns.ids]
        checked = Block(block.X, ids, labels)
        step = max(1, BLOCK_ENTRIES // n_columns)
        for start in range(0, n_rows, step):
            part = checked.rows(slice(start, start + step))
            self._write(part._replace(X=np.ascontiguousarray(part.X, dtype=self.columns.dtype)))
        self.n_rows += n_rows

    def _checked(self, name: str, values: Any, n_rows: int) -> np.ndarray:
        array, cause = carried(values), None
        if array.shape != (n_rows,):
            cause = f"must have one value for each of {n_rows} rows, got shape {array.shape}"
        elif array.dtype != self._dtypes.setdefault(name, array.dtype):
            cause = f"has dtype {array.dtype} in this block only; convert all with astype(str)"
        elif array.dtype.kind == "O" and any("\0" in (value or "") for value in array):
            cause = "has text with a NUL character, where some formats cut it off; remove it"
        if cause is not None:
            raise HeatSketchError(f"{self.path}: column {name!r} {cause}.")
        return array
