r"""The random matrix ``G``, whose entries depend only on seed, row id and column.

They do not depend on the number of rows or columns, the chunk, the thread or the machine. So the
first columns of a wide matrix are the narrow matrix, every worker computes its own rows without
communication, and two data sets that share row ids share ``G``.

The stream, version 1, never changes. The four 64-bit words at tile ``t`` of a row are
Philox4x64-10, as in ``numpy.random.Philox``, under the key ``(seed mod 2**64, seed div 2**64)`` at
the counter ``(t, row, kind, 1)``. Kind 1 is for Gaussians, 2 for Rademacher entries. Kinds 3 to 6
are Gaussians for other purposes, which must not depend on ``G``: see :class:`Kind`.

* A Rademacher entry is one bit, 256 columns per tile: column ``c`` is bit ``c mod 64`` of word
  ``(c mod 256) div 64``, and a set bit means -1.
* Gaussians come in pairs by the Box-Muller transform, one pair per word, 8 columns per tile:
  with :math:`u` from the high half of the word and :math:`\theta` from the low half,

  .. math:: G = \sqrt{-2 \log u}\,(\cos\theta, \sin\theta).

Both are bit-identical on every machine; float32 entries are rounded from float64.
"""

from __future__ import annotations

from enum import IntEnum
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from heatsketch._core import kernels
from heatsketch._core.checks import check_integer
from heatsketch._core.parallel import in_threads
from heatsketch.exceptions import DtypeError

ROWS_AT_A_TIME = 16_384  # per thread
MOST_COLUMNS = 2**62  # the compiled loops number columns by integers of 64 bits
STREAM_VERSION = 1


class Kind(IntEnum):
    """Purpose of the words of a stream."""

    GAUSSIAN = 1  # the random matrix
    RADEMACHER = 2  # the random matrix, of Rademacher entries
    SAMPLE = 3  # points whose distances are used to estimate a bandwidth
    TRIAL = 4  # sketches that determine how many inverted lists to search
    PERMUTATION = 5  # keys that compare sorts to permute units
    LEADING = 6  # columns from which the leading directions of a sketch are computed


def gaussian_matrix(
    rows: int | ArrayLike,
    n_columns: int,
    *,
    seed: int,
    first_column: int = 0,
    dtype: DTypeLike = np.float64,
) -> NDArray:
    r"""Standard Gaussians :math:`G_{rc} \sim N(0, 1)` by row id and column.

    With this matrix, :func:`sketch` is Algorithm 4 of the paper.

    Parameters
    ----------
    rows : int or array of int
        Row ids; a number ``n`` stands for ``0, ..., n - 1``.
    n_columns : int
        Number of columns.
    seed : int
        Integer from 0 to ``2**128 - 1``.
    first_column : int, default=0
        Index of the first column.
    dtype : float32 or float64, default=float64

    Returns
    -------
    ndarray of shape (n_rows, n_columns)

    Examples
    --------
    The entries do not depend on the number of rows and columns requested:

    >>> from heatsketch.diffusion import gaussian_matrix
    >>> wide = gaussian_matrix(1000, 64, seed=0)
    >>> narrow = gaussian_matrix([7, 500], 3, seed=0, first_column=10)
    >>> bool((narrow == wide[[7, 500], 10:13]).all())
    True
    """
    return random_block(Kind.GAUSSIAN, rows, n_columns, seed, first_column, dtype)


def rademacher_matrix(
    rows: int | ArrayLike,
    n_columns: int,
    *,
    seed: int,
    first_column: int = 0,
    dtype: DTypeLike = np.float64,
) -> NDArray:
    r"""Rademacher numbers, :math:`P(G_{rc} = \pm 1) = 1/2`, by row id and column.

    With this matrix, :func:`sketch` is Algorithm 5 of the paper.

    Parameters
    ----------
    rows : int or array of int
        Row ids; a number ``n`` stands for ``0, ..., n - 1``.
    n_columns : int
        Number of columns.
    seed : int
        Integer from 0 to ``2**128 - 1``.
    first_column : int, default=0
        Index of the first column.
    dtype : float32 or float64, default=float64

    Returns
    -------
    ndarray of shape (n_rows, n_columns)

    Examples
    --------
    >>> from heatsketch.diffusion import rademacher_matrix
    >>> rademacher_matrix(2, 6, seed=0).astype(int)
    array([[-1, -1,  1, -1,  1,  1],
           [ 1, -1,  1, -1,  1, -1]])
    """
    return random_block(Kind.RADEMACHER, rows, n_columns, seed, first_column, dtype)


def random_block(
    kind: Kind,
    rows: int | ArrayLike,
    n_columns: int,
    seed: int = 0,
    first_column: int = 0,
    dtype: DTypeLike = np.float64,
) -> NDArray:
    """Return random entries of a kind, which are independent of those of all other kinds."""
    is_sign = kind == Kind.RADEMACHER
    fill = kernels.rademacher_entries if is_sign else kernels.gaussian_entries
    rows = _row_ids(rows)
    n_columns = check_integer("n_columns", n_columns, least=0, most=MOST_COLUMNS)
    first_column = check_integer("first_column", first_column, least=0, most=MOST_COLUMNS)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise DtypeError(f"dtype must be float32 or float64, got {dtype!r}; convert the block.")
    out = np.empty((len(rows), n_columns), dtype)
    address, key = np.array([kind, STREAM_VERSION], np.uint64), stream_key(seed)
    in_threads(
        lambda some: fill(out[some], rows[some], first_column, address, key),
        [slice(start, start + ROWS_AT_A_TIME) for start in range(0, len(rows), ROWS_AT_A_TIME)],
    )
    return out


def _row_ids(rows: int | ArrayLike) -> NDArray:
    if isinstance(rows, Integral) and not isinstance(rows, bool) and int(rows) >= 0:
        return np.arange(int(rows), dtype=np.uint64)
    ids = np.asarray(rows)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or (ids.size and ids.min() < 0):
        raise DtypeError(
            "rows must be a number of rows or a vector of row ids, integers from 0 to 2**64 - 1, "
            f"got {rows!r}; number the rows first."
        )
    return ids.astype(np.uint64)


def stream_key(seed: int) -> NDArray:
    """Return the key of Philox for a seed."""
    if not (isinstance(seed, Integral) and 0 <= int(seed) < 2**128):
        raise ValueError(f"seed must be an integer from 0 to 2**128 - 1, got {seed!r}.")
    return np.array([int(seed) % 2**64, int(seed) // 2**64], np.uint64)
