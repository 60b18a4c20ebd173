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

# Many more tasks than threads, since rows differ in length.
TASKS = 64
DENSE_ENTRIES = 4_000_000  # entries of a dense matrix converted at a time
FEWEST_CHUNKS = 8  # per task, below which a thread costs more than it gains


def by_chunks(work: Callable[[int, int], None], n_rows: int) -> None:
    """Call ``work(start, stop)`` until all chunks of rows are done."""
    n_chunks = -(-n_rows // kernels.CHUNK)
    n_tasks = min(max(1, n_chunks // FEWEST_CHUNKS), TASKS)
    cuts = np.linspace(0, n_chunks, n_tasks + 1).astype(np.intp).tolist()
    in_threads(lambda cut: work(*cut), pairwise(cuts))


def check_length(name: str, array: Any, wanted: int) -> None:
    """Raise for an array of the wrong length, before a compiled loop reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.row_chunks import check_length
    >>> check_length("block", np.ones((3, 2)), 3)
    """
    if len(array) != wanted:
        raise HeatSketchError(
            f"the {name} has shape {array.shape}, but {wanted} rows are wanted; make it for the "
            "same points."
        )


def is_compiled(K: Any) -> bool:
    """Return True if there are compiled loops for a matrix."""
    return sparse.issparse(K) and K.format == "csr" and K.dtype in (np.float32, np.float64)


def multiply_vector(K: Any, vector: Any) -> Any:
    """Return ``K @ vector``, in float64 and without a copy of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch._core.row_chunks import multiply_vector
    >>> multiply_vector(sparse.csr_array(np.eye(2, dtype=np.float32)), np.array([0.1, 0.2]))
    array([0.1, 0.2])
    """
    if isinstance(K, np.ndarray) and K.dtype != vector.dtype:
        # numpy would copy the whole matrix to the wider dtype.
        strips = np.array_split(K, max(1, K.size // DENSE_ENTRIES))
        return np.concatenate([strip.astype(vector.dtype) @ vector for strip in strips])
    if not (is_compiled(K) and isinstance(vector, np.ndarray)):
        return K @ vector
    if vector.shape != K.shape[1:]:
        raise HeatSketchError(
            f"vector of shape {vector.shape} must have an entry for each of the {K.shape[1]} "
            f"columns of K, whose shape is {K.shape}; pass one of that length."
        )
    double, out = vector.astype(np.float64, copy=False), np.empty(K.shape[0])

    def work(start: int, stop: int) -> None:
        kernels.row_products(K.indptr, K.indices, K.data, double, out, start, stop)

    by_chunks(work, K.shape[0])
    return out


def scaled_values(K: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the values of ``diag(left) K diag(right)``, for a CSR matrix ``K``.

    A compiled loop avoids temporary arrays as long as the values.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch._core.row_chunks import scaled_values
    >>> scaled_values(sparse.csr_array(np.eye(2)), np.array([2.0, 3.0]), np.array([5.0, 7.0]))
    array([10., 21.])
    """
    check_length("weights of rows", left, K.shape[0])
    check_length("weights of columns", right, K.shape[1])
    values = np.empty_like(K.data)
    arrays = K.indptr, K.indices, K.data, left, right, values
    by_chunks(partial(kernels.scaled_values, *arrays), K.shape[0])
    return values
