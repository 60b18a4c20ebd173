r"""Clusters of the rows of a heat operator: k-means on normalized rows.

.. math:: z_i = \frac{c_i}{|c_i|}, \qquad
          c_i = (v_{i0}, \; \lambda_1 v_{i1}, \ldots, \lambda_{k+1} v_{i,k+1})

with the stationary direction :math:`v_0` of ``A`` and its next ``k + 1`` eigenvectors, for ``k``
clusters. Ng, Jordan and Weiss (2001) take :math:`v_0, \ldots, v_{k-1}`. Two more find clusters that
are joined by a few links (docs/how_to/cluster.md has the measurements). Since
:math:`\lambda_l v_l = A v_l`, the coordinates of a new point follow from its row of ``A``, and a
training point has the same coordinates when it is passed as a new one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch._core.partitioned import in_memory
from heatsketch.diffusion._spectral import SPARE, ritz_pairs
from heatsketch.heat import HeatGraph, sketch

MORE_VECTORS = 1  # eigenvectors beyond the number of clusters, the stationary one not counted
TOLERANCE = 1e-4  # of the eigenvectors
WIDTH, FIRST_STEPS = 64, 16  # least columns of the sketch that starts the iteration, and its power
KMEANS_ROWS, KMEANS_STARTS = 50_000, 10  # rows used for k-means, and number of starts
ENTRIES = 2**22  # differences from centres in memory at a time


def cluster_vectors(graph: HeatGraph, n_clusters: int) -> np.ndarray:
    """Leading nonstationary eigenvectors of the heat operator, which separate clusters.

    Parameters
    ----------
    graph : HeatGraph
    n_clusters : int

    Returns
    -------
    array of shape (n, n_clusters + 1), or (n, n - 1) if that is less
    """
    n_pairs = min(n_clusters + MORE_VECTORS, graph.n_samples - 1)
    width = min(max(n_pairs + SPARE, WIDTH), graph.n_samples)
    made = sketch(graph, width, power=FIRST_STEPS, n_leading=0, weighting="symmetric")
    block = in_memory(made.embedding)[in_memory(graph.order)]
    pairs = ritz_pairs(graph.local()[0], block, n_pairs, tolerance=TOLERANCE)
    return np.ascontiguousarray(pairs.vectors)


def cluster_rows(A: Any, vectors: np.ndarray, length: float) -> np.ndarray:
    """Return the normalized rows ``z`` of training or new points, in float64.

    Parameters
    ----------
    A : HeatOperator
        Of the training points, or the rows of new points.
    vectors : array of shape (n, m)
        From :func:`cluster_vectors`.
    length : float
        Length of the stationary direction of the training points.

    Returns
    -------
    array of shape (n_rows, m + 1)
    """
    others = (A @ vectors).astype(np.float64)
    rows = np.column_stack([A.stationary.astype(np.float64) / length, others])
    rows /= np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return rows


def cluster_centers(rows: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Return k-means centres, the best of ten starts on at most 50,000 rows."""
    from sklearn.cluster import KMeans  # slow to import

    if len(rows) > KMEANS_ROWS:
        some = np.random.default_rng(seed).choice(len(rows), KMEANS_ROWS, replace=False)
        rows = rows[np.sort(some)]
    means = KMeans(n_clusters, n_init=KMEANS_STARTS, random_state=seed % 2**32)
    return means.fit(rows).cluster_centers_


def nearest_centers(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the nearest centre of each row, independently of the other rows."""
    step = max(1, ENTRIES // centers.size)
    parts = (rows[start : start + step, np.newaxis] for start in range(0, len(rows), step))
    # Not as a matrix product, whose rounding depends on the number of rows.
    return np.concatenate([((part - centers) ** 2).sum(axis=2).argmin(axis=1) for part in parts])
