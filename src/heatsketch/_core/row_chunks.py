"""Rows of a sparse matrix in chunks, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.parallel import in_threads
from heatsketch.exceptions import HeatSketchError

TASKS = 64  # many more than threads, since rows have different lengths
DENSE_ENTRIES = 4_000_000  # entries of a dense matrix converted at a time
FEWEST_CHUNKS = 8  # per task; with fewer, starting a thread takes longer than it saves


def by_chunks(work: Callable[[int, int], None], n_rows: int) -> None:
    """Call ``work(start, stop)`` until all chunks of rows are done."""
    n_chunks = -(-n_rows // kernels.CHUNK)
    n_tasks = min(max(1, n_chunks // FEWEST_CHUNKS), TASKS)
    cuts = np.linspace(0, n_chunks, n_tasks + 1).astype(np.intp).tolist()
    in_threads(lambda cut: work(*cut), pairwise(cuts))


def check_length(name: str, array: Any, n_rows: int) -> None:
    """Raise for an array of the wrong length, before a compiled loop reads it."""
    if len(array) != n_rows:
        raise HeatSketchError(
            f"The {name} must have {n_rows} rows, one for each point, got shape {array.shape}."
        )


def is_compiled(K: Any) -> bool:
    """Return True if there are compiled loops for a matrix."""
    return sparse.issparse(K) and K.format == "csr" and K.dtype in (np.float32, np.float64)


def multiply_vector(K: Any, vector: Any) -> Any:
    """Return ``K @ vector``, in float64 and without a copy of the matrix."""
    if isinstance(K, np.ndarray) and K.dtype != vector.dtype:
        # numpy would copy the whole matrix to the wider dtype.
        strips = np.array_split(K, max(1, K.size // DENSE_ENTRIES))
        return np.concatenate([strip.astype(vector.dtype) @ vector for strip in strips])
    if not (is_compiled(K) and isinstance(vector, np.ndarray)):
        return K @ vector
    if vector.shape != K.shape[1:]:
        raise HeatSketchError(
            f"vector must have shape ({K.shape[1]},), one entry for each of the {K.shape[1]} "
            f"columns of K, got shape {vector.shape}; pass a vector of that length."
        )
    double, out = vector.astype(np.float64, copy=False), np.empty(K.shape[0])

    def work(start: int, stop: int) -> None:
        kernels.row_products(K.indptr, K.indices, K.data, double, out, start, stop)

    by_chunks(work, K.shape[0])
    return out


def scaled_values(K: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the values of ``diag(left) K diag(right)``, for a CSR matrix ``K``.

    A compiled loop avoids temporary arrays as long as the values.
    """
    check_length("weights of rows", left, K.shape[0])
    check_length("weights of columns", right, K.shape[1])
    values = np.empty_like(K.data)
    arrays = K.indptr, K.indices, K.data, left, right, values
    by_chunks(partial(kernels.scaled_values, *arrays), K.shape[0])
    return values
