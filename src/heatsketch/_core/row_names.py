"""Conversion of row names to the row numbers that random numbers depend on.

A random number depends on the seed, the column and the number of its row. Row numbers are computed
from row names alone, so the same item has the same random numbers in every table. Embeddings can
then be compared even if rows were reordered, added or removed.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import numpy as np

from heatsketch.exceptions import DtypeError, HeatSketchError

# Names that are integers below this are their own numbers; larger numbers are hashes of text.
FIRST_HASH = 2**62
WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)


def row_number(name: str) -> int:
    """Return the number of a row name, the same on all machines and in all versions.

    An integer below 2**62, without leading zeros, is its own number. Any other text has the number
    2**62 plus its SHA-256, truncated to 62 bits.

    Examples
    --------
    >>> from heatsketch._core.row_names import row_number
    >>> row_number("7"), row_number("007") > 2**62
    (7, True)
    """
    if WHOLE_NUMBER.fullmatch(name) and int(name) < FIRST_HASH:
        return int(name)
    digest = sha256(name.encode()).digest()
    return FIRST_HASH + int.from_bytes(digest[:8], "big") % FIRST_HASH


def row_numbers(names: Any) -> np.ndarray:
    """Return the numbers of row names, for ``fit(X, ids=...)``.

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
            f"ids must be integers or text, got dtype {names.dtype}; other values may change when "
            "they are saved and read again."
        )
    if names.dtype.kind in "iu" and ((names >= 0) & (names < FIRST_HASH)).all():
        numbers = names.astype(np.int64)
    else:
        numbers = np.array([row_number(str(name)) for name in names.tolist()], dtype=np.int64)
    _check_unique(names, numbers)
    return numbers


def _check_unique(names: np.ndarray, numbers: np.ndarray) -> None:
    order = np.argsort(numbers, kind="stable")
    twins = np.flatnonzero(np.diff(numbers[order]) == 0)
    if len(twins):
        first, second = order[twins[0]], order[twins[0] + 1]
        raise HeatSketchError(
            f"ids must be different, but rows {first} and {second} would share random numbers "
            f"({names[first]!r} and {names[second]!r}); rename one of them."
        )
