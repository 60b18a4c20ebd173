"""Conversion of row names to the row numbers that random numbers depend on.

A random number depends on the seed, the column and the number of its row. If numbers are computed
from row names alone, the same item has the same number in two tables. Then the two embeddings can
be compared, in any order of rows, and if rows were added or removed.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import numpy as np

from heatsketch.exceptions import DtypeError, HeatSketchError

# Numbers from here on are hashes of text; smaller ones are integer names.
FIRST_OF_TEXT = 2**62
WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)


def row_number(name: str) -> int:
    """Return the number of a row name, fixed for all machines and versions.

    An integer below 2**62, without leading zeros, is its own number. Any other text has the number
    2**62 plus its SHA-256, truncated to 62 bits.

    Examples
    --------
    >>> from heatsketch._core.row_names import row_number
    >>> row_number("7"), row_number("007") > 2**62
    (7, True)
    """
    if WHOLE_NUMBER.fullmatch(name) and int(name) < FIRST_OF_TEXT:
        return int(name)
    digest = sha256(name.encode()).digest()
    return FIRST_OF_TEXT + int.from_bytes(digest[:8], "big") % FIRST_OF_TEXT


def row_numbers(names: Any) -> np.ndarray:
    """Return the numbers of row names, for ``fit(X, row_ids=...)``.

    Parameters
    ----------
    names : array of str or int
        All distinct.

    Returns
    -------
    array of int64

    Examples
    --------
    >>> from heatsketch._core.row_names import row_numbers
    >>> row_numbers([7, 8]).tolist()
    [7, 8]
    """
    names = np.asarray(names)
    if names.dtype.kind not in "iuOU":
        raise DtypeError(
            f"ids have dtype {names.dtype}, of which no two need be the same when written and read "
            "again; use integers or text."
        )
    plain = names.dtype.kind in "iu" and (not names.size or 0 <= names.min() <= names.max() < 2**62)
    numbers = (
        names.astype(np.int64)
        if plain
        else np.array([row_number(str(name)) for name in names.tolist()], dtype=np.int64)
    )
    _check_unique(names, numbers)
    return numbers


def _check_unique(names: np.ndarray, numbers: np.ndarray) -> None:
    order = np.argsort(numbers, kind="stable")
    twins = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(twins):
        first, second = order[twins[0]], order[twins[0] + 1]
        raise HeatSketchError(
            f"ids: row {first} is {names[first]!r} and row {second} is {names[second]!r}, which "
            "would share their random numbers; give each row an id of its own."
        )
