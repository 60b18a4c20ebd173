"""Compiled loops over arrays: products, neighbours, pairs, random numbers, components.

They are written in C++, in the files of this package, each of which states its contract. There is
an extension module for each instruction set, ``_baseline``, ``_avx2`` and ``_avx512``. The best one
that the processor supports is imported, or the one named by the environment variable
``HEATSKETCH_CPU``. Their results are bit-identical: each addition, multiplication, division, square
root and fused multiply-add is rounded in one prescribed way, and no sum depends on the number of
threads.

The loops check types and lengths, but not the range of indices: callers check that first.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

import heatsketch._core.kernels._baseline as _baseline

__all__ = [
    "CHUNK",
    "CPU",
    "add_pulls",
    "all_squares",
    "distinct_rows",
    "extreme_powers",
    "fill_union",
    "gaussian_affinities",
    "gaussian_entries",
    "heat_step",
    "label_components",
    "nearest",
    "pair_squares",
    "positive_places",
    "rademacher_entries",
    "reverse",
    "row_products",
    "scaled_values",
    "second_distances",
    "second_weights",
    "segment_sums",
    "sort_rows",
    "sparse_squares",
    "spread_step",
    "squares_between",
    "stationary_sums",
    "union_sizes",
    "within",
]

CPUS = ("avx512", "avx2", "baseline")


def _chosen_cpu() -> str:
    wanted = os.environ.get("HEATSKETCH_CPU", "")
    usable = [cpu for cpu in CPUS if _baseline.supports(cpu)]
    if wanted and wanted not in usable:
        raise ImportError(
            f"HEATSKETCH_CPU={wanted!r} must be one of {', '.join(usable)}, which this processor "
            "and this build of heatsketch have; set one of them, or unset it."
        )
    return wanted or usable[0]


CPU = _chosen_cpu()  # the instruction set in use
_loops: Any = import_module(f"{__name__}._{CPU}")

CHUNK: int = _loops.CHUNK
add_pulls = _loops.add_pulls
all_squares = _loops.all_squares
distinct_rows = _loops.distinct_rows
extreme_powers = _loops.extreme_powers
gaussian_affinities = _loops.gaussian_affinities
gaussian_entries = _loops.gaussian_entries
heat_step = _loops.heat_step
nearest = _loops.nearest
pair_squares = _loops.pair_squares
positive_places = _loops.positive_places
rademacher_entries = _loops.rademacher_entries
row_products = _loops.row_products
second_distances = _loops.second_distances
second_weights = _loops.second_weights
segment_sums = _loops.segment_sums
sort_rows = _loops.sort_rows
spread_step = _loops.spread_step
squares_between = _loops.squares_between
stationary_sums = _loops.stationary_sums
union_sizes = _loops.union_sizes
within = _loops.within


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
