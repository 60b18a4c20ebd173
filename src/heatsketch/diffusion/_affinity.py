r"""From squared distances to affinities: the Gaussian kernel.

.. math:: K_{ij} = \exp(-d^2_{ij} / \varepsilon)

The diagonal is kept, :math:`K_{ii} = 1`. So a symmetric ``K`` always has a bistochastic
normalization, no row is empty, and a random walk on a bipartite graph does not oscillate forever.

Other tools parametrize the same kernel differently. Our ``epsilon`` is

* ``1 / gamma`` of scikit-learn's ``rbf_kernel``,
* ``4 * epsilon`` of pyDiffMap,
* ``2 * sigma**2`` of destiny and of a Gaussian density.

Where the density varies a lot, each point may have its own scale: see :func:`local_scales`.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.checks import check_rows, plain_distances
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import RowBlocks
from heatsketch._core.row_chunks import by_chunks
from heatsketch.diffusion._operator import scaled_matrix
from heatsketch.exceptions import HeatSketchError

LOCAL_NEIGHBOR = 7  # the distance to this neighbour is the local scale of a point
SELF_LOOP = 0.1  # relative to the strongest link of a node; see docs/background/parameters.md
TILE_ENTRIES = 2_000_000  # distances that each thread processes at a time


def gaussian_affinity(d2: Any, *, epsilon: float) -> Any:
    r"""Gaussian affinity, :math:`K_{ij} = \exp(-d^2_{ij} / \varepsilon)`.

    Parameters
    ----------
    d2 : array or sparse matrix
        Squared distances. In a sparse matrix the stored entries are the neighbours, stored
        zeros included; entries that are not stored have no affinity. Other formats are converted
        to CSR, and other dtypes to float32 if it represents them exactly, or else to float64.
    epsilon : float
        Bandwidth, in the units of the squared distances.

    Returns
    -------
    array or sparse matrix like ``d2``

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import gaussian_affinity
    >>> gaussian_affinity(np.array([[0.0, 1.0], [1.0, 0.0]]), epsilon=0.5).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """
    epsilon = _checked_epsilon(epsilon)
    if isinstance(d2, RowBlocks):
        return d2.map_blocks(partial(gaussian_affinity, epsilon=epsilon))
    d2 = plain_distances(d2, "d2")
    if not sparse.issparse(d2):
        return _affinities(d2, epsilon)
    K = copy(d2)  # a shallow copy: it shares the indices
    K.data = _affinities(d2.data, epsilon)
    return K


def _checked_epsilon(epsilon: float) -> float:
    if not (isinstance(epsilon, Real) and epsilon > 0):
        raise HeatSketchError(
            f"epsilon must be a number > 0, got {epsilon!r}; use estimate_epsilon(d2).epsilon, for "
            "instance."
        )
    limits = np.finfo(np.float64)  # clip tiny and infinite values, since 0 / 0 is NaN
    return min(max(float(epsilon), float(limits.tiny)), float(limits.max))


def _affinities(d2: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the affinities of an array, with the same bits on all machines."""
    d2 = np.ascontiguousarray(d2)
    K = np.empty_like(d2)
    entries, out = d2.reshape(-1), K.reshape(-1)
    parts = [slice(i, i + TILE_ENTRIES) for i in range(0, d2.size, TILE_ENTRIES)]
    in_threads(lambda some: kernels.gaussian_affinities(entries[some], epsilon, out[some]), parts)
    return K


def gaussian_affinity_rows(d2: Any, *, epsilon: float) -> Any:
    """Gaussian affinity of new to training points, each row up to a factor.

    Every row is scaled so that its largest affinity is one. So the row of a point far from all
    others does not underflow to zero, and the row of a training point is unchanged. The weights of
    a new point do not depend on the factor (see :mod:`heatsketch.diffusion._normalization`).

    Parameters
    ----------
    d2 : array or CSR array of shape (n_new, n_points)
    epsilon : float

    Returns
    -------
    array or CSR array of shape (n_new, n_points)
    """
    nearest = nearest_squares(d2)
    if sparse.issparse(d2):
        shifted = d2.copy()
        shifted.data = d2.data - np.repeat(nearest, np.diff(d2.indptr))
        return gaussian_affinity(shifted, epsilon=epsilon)
    return gaussian_affinity(d2 - nearest[:, np.newaxis], epsilon=epsilon)


def nearest_squares(d2: Any) -> np.ndarray:
    """Return the smallest squared distance in each row, of the stored ones if sparse."""
    if not sparse.issparse(d2):
        return d2.min(axis=1)
    nearest = np.zeros(d2.shape[0], d2.dtype)
    filled = np.diff(d2.indptr) > 0
    nearest[filled] = np.minimum.reduceat(d2.data, d2.indptr[:-1][filled])
    return nearest


def local_scales(d2: Any, *, least: float = 0.0) -> np.ndarray:
    r"""Local scale of each point, :math:`\sigma_i = d(x_i, x_{(7)})`.

    It is the distance to the seventh nearest neighbour, duplicates of the point not counted. With
    it the kernel adapts to the density (Zelnik-Manor and Perona, 2004),
    :math:`K_{ij} = \exp(-d^2_{ij} / \sigma_i \sigma_j)`. The scale of a new point is computed from
    its distances to the training points.

    Parameters
    ----------
    d2 : array or sparse matrix of shape (n_rows, n_points)
        Squared distances, including that of each point to itself.
    least : float, default=0.0
        Lower bound of the scales, for points whose neighbours are all duplicates. If 0, the
        smallest positive scale is used.

    Returns
    -------
    array of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import local_scales
    >>> from heatsketch.graph import neighbor_graph
    >>> local_scales(neighbor_graph(np.arange(20.0)[:, np.newaxis]))[[0, 10]]
    array([7., 4.])
    """
    if not isinstance(d2, RowBlocks):
        d2 = plain_distances(d2, "d2")
    check_rows(d2, "d2")
    scales = np.sqrt(_neighbor_squares(d2).astype(np.float64))
    # If all points are duplicates, the scale has no effect.
    least = least or float(np.where(scales > 0, scales, np.inf).min())
    return np.maximum(scales, least if least < np.inf else 1.0)


def locally_scaled(d2: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    r"""Scaled squared distances, :math:`d^2_{ij} / (\sigma_i \sigma_j)`.

    Parameters
    ----------
    d2 : array or CSR array of shape (n_rows, n_points)
    rows, columns : arrays
        Scales :math:`\sigma` of rows and columns.

    Returns
    -------
    array or CSR array like ``d2``
        To be used with a bandwidth of one.
    """
    if isinstance(d2, RowBlocks):
        return d2.scaled(1 / rows, 1 / columns)
    if not sparse.issparse(d2):
        scaled = np.multiply.outer((1 / rows).astype(d2.dtype), (1 / columns).astype(d2.dtype))
        scaled *= d2
        return scaled
    return scaled_matrix(d2, 1 / rows, 1 / columns)


def _neighbor_squares(d2: Any) -> np.ndarray:
    """Return the seventh smallest positive entry of each row, or the largest."""
    if isinstance(d2, RowBlocks):
        return d2.map_rows(_neighbor_squares)
    entries = (d2.indptr, d2.data) if sparse.issparse(d2) else entries_of_rows(d2)
    out = np.zeros(d2.shape[0], d2.dtype)
    by_chunks(partial(kernels.positive_places, *entries, LOCAL_NEIGHBOR, out), len(out))
    return out


def entries_of_rows(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where rows start, and all entries, as ``indptr`` and ``data`` of a CSR array."""
    return np.arange(array.shape[0] + 1) * array.shape[1], array.ravel()


def with_self_loops(K: Any) -> Any:
    r"""Add missing self-loops to a graph: a tenth of each node's strongest link.

    .. math:: K_{ii} = \tfrac{1}{10} \max_j K_{ij}

    Without self-loops a random walk on a bipartite graph oscillates forever. With heavier ones,
    heat stays at nodes of low degree, and their rows outweigh all others. An isolated node gets a
    self-loop of one.

    Parameters
    ----------
    K : array or sparse matrix of shape (n, n)
        Affinities.

    Returns
    -------
    array or CSR array of shape (n, n)
        ``K`` itself if no diagonal entry is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import with_self_loops
    >>> with_self_loops(np.array([[0.0, 2.0], [2.0, 3.0]]))
    array([[0.2, 2. ],
           [2. , 3. ]])
    """
    rows = np.flatnonzero(np.asarray(K.diagonal()) == 0)
    return add_self_loops(K, rows, rows)


def add_self_loops(K: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Add a tenth of the strongest link of each of some rows, at the given columns."""
    if not len(rows):
        return K
    largest = K.max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(largest) else np.asarray(largest)
    dtype = np.result_type(K.dtype, np.float32)  # a tenth of an integer is not an integer
    loops = np.where(largest == 0, 1, SELF_LOOP * largest).astype(dtype)[rows]
    added = sparse.csr_array((loops, (rows, columns)), shape=K.shape)
    return sparse.csr_array(K + added) if sparse.issparse(K) else K + added.toarray()


def strongest_columns(K: Any) -> np.ndarray:
    """Return the column of the largest entry of each row; ties give the first column."""
    return np.asarray(K.argmax(axis=1)).ravel()


def isolated_fraction(K: Any, sums: Any, *, linked_only: bool = False) -> float:
    """Fraction of points with less than a millionth of affinity to other points.

    Parameters
    ----------
    K : array, sparse matrix or RowBlocks of shape (n, n)
    sums : vector of shape (n,)
        ``K 1``.
    linked_only : bool, default=False
        Whether to ignore points without any link, such as isolated nodes of a graph. If no point
        has a link, none is ignored.
    """
    diagonal = K.map_rows(_diagonal) if isinstance(K, RowBlocks) else K.diagonal()
    links = 1 - diagonal / sums
    isolated = links < 1e-6
    if linked_only and (links > 0).any():
        isolated = isolated[links > 0]
    return float(np.mean(isolated))


def _diagonal(block: sparse.csr_array) -> np.ndarray:
    return block.diagonal()
