"""Compiled loops over arrays: products, neighbours, pairs, random numbers, components.

They are written in C++; the comment at the top of each file is its contract. There is an extension
module for each instruction set: ``_baseline``, ``_avx2`` and ``_avx512``. The best one that the
processor supports is imported, or the one named by the environment variable ``HEATSKETCH_CPU``.
Their results are bit-identical: the order and rounding of all operations is fixed, and no sum
depends on the number of threads.

The loops check types and lengths, but not the range of indices: callers check that first.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

import heatsketch._core.kernels._baseline as _baseline

CPUS = ("avx512", "avx2", "baseline")


def _chosen_cpu() -> str:
    cpu = os.environ.get("HEATSKETCH_CPU", "")
    usable = [level for level in CPUS if _baseline.supports(level)]
    if cpu and cpu not in usable:
        raise ImportError(
            f"HEATSKETCH_CPU must be one of {', '.join(usable)}, which this processor and this "
            f"build of heatsketch support, got {cpu!r}; set one of them, or unset it."
        )
    return cpu or usable[0]


CPU = _chosen_cpu()  # the instruction set in use
_loops: Any = import_module(f"{__name__}._{CPU}")

CHUNK: int = _loops.CHUNK


def __getattr__(name: str) -> Any:
    """Return a loop that needs no wrapper, by its name in ``module.cpp``."""
    return getattr(_loops, name)


def scaled_values(indptr, indices, data, left, right, out, start, stop):
    """Multiply values in some chunks of rows by ``left[i] * right[j]``."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    _loops.scaled_values(indptr, indices, data, left, right, out, start, stop)


def sparse_squares(rows, columns, row_norms, norms, out):
    """Fill ``out``, initially zero, with squared distances of sparse rows."""
    _loops.sparse_squares(*rows, *columns, row_norms, norms, out)


def fill_union(one, other, union, first, last):
    """Merge the rows of two matrices with sorted rows, each ``(indptr, ids, squares)``."""
    _loops.fill_union(*one, *other, *union, first, last)


def reverse(indptr, ids, squares, n_columns, zero):
    """Return the transpose, with sorted rows and ids of the type of ``zero``."""
    ends = np.zeros(n_columns + 1, np.int64)
    back_ids, back_squares = np.empty(len(ids), np.dtype(type(zero))), np.empty_like(squares)
    _loops.reverse(indptr, ids, squares, ends, back_ids, back_squares)
    return ends.astype(indptr.dtype, copy=False), back_ids, back_squares


def label_components(indptr, indices, data, eps):
    """Return the number of components, and the component of each row."""
    if data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float64)
    labels = np.empty(len(indptr) - 1, np.int32)
    return _loops.label_components(indptr, indices, data, float(eps), labels), labels
