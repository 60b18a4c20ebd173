r"""The random matrix ``G``, whose entries depend on seed, row id and column.

They depend on nothing else: not on the number of rows, the number of columns, the chunk, the
thread or the machine. So the first columns of a wide matrix are the narrow matrix, every
worker computes its own rows without communication, and two data sets that share row ids
share ``G``.

The stream, version 1, never changes. The four 64-bit words at tile ``t`` of a row are
Philox4x64-10 under the key ``(seed mod 2**64, seed div 2**64)`` at the counter
``(t, row, kind, 1)``, with kind 1 for Gaussians, 2 for Rademacher: the words that
``numpy.random.Philox`` guarantees. Kinds 3 and 4 are Gaussians as well. They sample points and
pairs for the construction of ``A``, which must not depend on ``G``. Kind 5 are Gaussians, too;
:func:`compare_groups` permutes units by their order.

* A Rademacher entry is one bit, 256 columns per tile: column ``c`` is bit ``c mod 64`` of word
  ``(c mod 256) div 64``, and a set bit means -1.
* Gaussians come in pairs by the Box-Muller transform, one pair per word, 8 columns per tile:
  with :math:`u` from the high half of the word and :math:`\theta` from the low half,

  .. math:: G = \sqrt{-2 \log u}\,(\cos\theta, \sin\theta).

Both are bit-identical on every machine; float32 entries are the rounded float64 ones.
"""

from __future__ import annotations

from enum import IntEnum
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from heatsketch._core import kernels
from heatsketch._core.checks import check_integer
from heatsketch._core.parallel import in_threads
from heatsketch.exceptions import DtypeError, HeatSketchError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

ROWS_AT_A_TIME = 16_384  # per thread
MOST_COLUMNS = 2**62  # limit of the compiled loops
STREAM_VERSION = 1


class Kind(IntEnum):
    """Purpose of the words of a stream."""

    GAUSSIAN = 1  # the random matrix
    RADEMACHER = 2  # the random matrix, of Rademacher entries
    SAMPLE = 3  # points from whose distances a bandwidth is estimated
    TRIAL = 4  # sketches that determine how many inverted lists to search
    PERMUTATION = 5  # keys by whose order units are permuted


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
    return _block(Kind.GAUSSIAN, rows, n_columns, first_column=first_column, seed=seed, dtype=dtype)


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
    return _block(
        Kind.RADEMACHER, rows, n_columns, first_column=first_column, seed=seed, dtype=dtype
    )


def gaussians_apart(
    kind: Kind,
    rows: int | ArrayLike,
    n_columns: int,
    *,
    seed: int = 0,
    first_column: int = 0,
    dtype: DTypeLike = np.float64,
) -> NDArray:
    """Return standard Gaussians independent of the random matrix of any seed.

    Examples
    --------
    >>> from heatsketch.diffusion import gaussian_matrix
    >>> from heatsketch.diffusion._random_matrix import Kind, gaussians_apart
    >>> bool((gaussians_apart(Kind.SAMPLE, 9, 1) == gaussian_matrix(9, 1, seed=0)).any())
    False
    """
    return _block(kind, rows, n_columns, first_column=first_column, seed=seed, dtype=dtype)


def random_words(row: int, tile: int, *, kind: Kind, seed: int) -> NDArray[np.uint64]:
    """Return the four words of a tile of a row, from ``numpy.random.Philox``.

    This is the slow reference definition of the stream, against which the fast one is checked.

    Examples
    --------
    >>> from heatsketch.diffusion._random_matrix import Kind, random_words
    >>> random_words(row=0, tile=0, kind=Kind.GAUSSIAN, seed=0)[0]
    np.uint64(4209562134107424394)
    """
    counter = tile + (row << 64) + (kind << 128) + (STREAM_VERSION << 192)
    # NumPy increments its counter before it draws.
    generator = np.random.Philox(key=_key(seed), counter=counter - 1)
    return np.asarray(generator.random_raw(4))


def _block(kind, rows, n_columns, *, first_column, seed, dtype):
    is_sign = kind == Kind.RADEMACHER
    fill = kernels.rademacher_entries if is_sign else kernels.gaussian_entries
    rows, n_columns = _row_ids(rows), check_integer("n_columns", n_columns, least=0)
    first_column = check_integer("first_column", first_column, least=0)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise DtypeError(
            f"dtype={dtype!r} must be float32 or float64; convert the block afterwards."
        )
    if first_column + n_columns > MOST_COLUMNS:
        raise HeatSketchError(
            f"first_column={first_column} and n_columns={n_columns} reach beyond column 2**62; "
            "use smaller ones."
        )
    out = np.empty((len(rows), n_columns), dtype)
    address = np.array([kind, STREAM_VERSION], np.uint64)
    key = _key(seed)
    in_threads(
        lambda some: fill(out[some], rows[some], first_column, address, key),
        [slice(start, start + ROWS_AT_A_TIME) for start in range(0, len(rows), ROWS_AT_A_TIME)],
    )
    return out


def _row_ids(rows):
    if isinstance(rows, Integral) and not isinstance(rows, bool) and int(rows) >= 0:
        return np.arange(int(rows), dtype=np.uint64)
    ids = np.asarray(rows)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or (ids.size and ids.min() < 0):
        raise DtypeError(
            f"rows={rows!r} must be a number of rows or a vector of row ids, "
            "which are integers from 0 to 2**64 - 1; number the rows first."
        )
    return ids.astype(np.uint64)


def _key(seed):
    if not (isinstance(seed, Integral) and 0 <= int(seed) < 2**128):
        raise ValueError(f"seed={seed!r} must be an integer from 0 to 2**128 - 1.")
    return np.array([int(seed) % 2**64, int(seed) // 2**64], np.uint64)
