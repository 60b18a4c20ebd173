"""Pieces of a graph."""

from __future__ import annotations

import numpy as np

from heatsketch.compiled._compile import compile_loop

__all__ = ["count_pieces"]


@compile_loop
def count_pieces(indptr, indices, data, eps):
    """Count the pieces of a symmetric graph whose links exceed ``eps`` times the largest of a row.

    The row is that of either end. Each point is reached once, from one that was reached before
    or as the first of a piece.
    """
    n_rows = len(indptr) - 1
    least = np.zeros(n_rows, data.dtype)
    for i in range(n_rows):
        for e in range(indptr[i], indptr[i + 1]):
            least[i] = max(least[i], eps * data[e])
    reached, waiting = np.zeros(n_rows, np.bool_), np.empty(n_rows, indices.dtype)
    n_pieces = 0
    for first in range(n_rows):
        if reached[first]:
            continue
        n_pieces += 1
        reached[first], waiting[0], n_waiting = True, first, 1
        while n_waiting:
            n_waiting -= 1
            i = waiting[n_waiting]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if not reached[j] and data[e] > min(least[i], least[j]):
                    reached[j], waiting[n_waiting] = True, j
                    n_waiting += 1
    return n_pieces
