"""Columns that number the rows, although nothing says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.exceptions import HeatSketchWarning
from heatsketch.io._columns import FEW

FEWEST_ROWS = 10  # of fewer, random integers increase too often: those of 9 in one of 4e5 columns
FIRST_ROWS = 10  # compared in all columns at once, which leaves few


class RowNumbers:
    """Columns whose integers increase from row to row, in all blocks so far.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.io._row_numbers import RowNumbers
    >>> numbers = RowNumbers(2)
    >>> numbers.keep(np.array([[1.0, 5.0], [2.0, 4.0]]))
    >>> numbers.columns
    array([0])
    """

    def __init__(self, n_columns: int) -> None:
        self.columns = np.arange(n_columns)
        self._last = np.full(n_columns, -np.inf)

    def keep(self, X: Any) -> None:
        """Keep the columns that go on increasing in the next block."""
        if not len(self.columns) or not len(X):
            return
        first = np.vstack([self._last, X[:FIRST_ROWS, self.columns]])
        columns = self.columns[(first[1:] > first[:-1]).all(axis=0)].tolist()
        self.columns = np.array([c for c in columns if _are_increasing(X[:, c])], dtype=int)
        self._last = X[-1, self.columns]

    def warn(self, path: Path, names: tuple[str, ...], n_rows: int) -> None:
        """Warn about the columns that are left after all rows."""
        if n_rows < FEWEST_ROWS or not len(self.columns):
            return
        found = [names[column] for column in self.columns]
        others = [name for name in names if name not in set(found)][:FEW]
        which = f"columns {found[:FEW]} hold" if found[1:] else f"column {found[0]!r} holds"
        message = (
            f"{path}: {which} integers that increase from row to row, like row numbers, and count "
            f"as features; choose the features with columns={others or found[:FEW]}."
        )
        warnings.warn(HeatSketchWarning(message, columns=others or found[:FEW]), stacklevel=3)


def _are_increasing(values: np.ndarray) -> bool:
    """Return True for integers, each larger than the one before."""
    return bool((values[1:] > values[:-1]).all() and (values == np.floor(values)).all())
