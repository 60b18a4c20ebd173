"""Connected components of a graph."""

from __future__ import annotations

import numpy as np

from heatsketch.compiled._compile import compile_loop

__all__ = ["label_components"]


@compile_loop
def label_components(indptr, indices, data, eps):
    """Label the components of a symmetric graph whose links exceed ``eps`` times a row's largest.

    The row is that of either end. Each point is reached once, from one that was reached before
    or as the first of a component; components are numbered in the order of their first points.
    """
    n_rows = len(indptr) - 1
    least = np.zeros(n_rows, data.dtype)
    for i in range(n_rows):
        for e in range(indptr[i], indptr[i + 1]):
            least[i] = max(least[i], eps * data[e])
    labels, waiting = np.full(n_rows, -1, np.int32), np.empty(n_rows, indices.dtype)
    n_components = 0
    for first in range(n_rows):
        if labels[first] >= 0:
            continue
        labels[first], waiting[0], n_waiting = n_components, first, 1
        while n_waiting:
            n_waiting -= 1
            i = waiting[n_waiting]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if labels[j] < 0 and data[e] > min(least[i], least[j]):
                    labels[j], waiting[n_waiting] = n_components, j
                    n_waiting += 1
        n_components += 1
    return n_components, labels
