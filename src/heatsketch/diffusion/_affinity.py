r"""From squared distances to affinities: the Gaussian kernel.

.. math:: K_{ij} = \exp(-d^2_{ij} / \varepsilon)

The diagonal is kept, :math:`K_{ii} = 1`: with it a symmetric ``K`` always has a bistochastic
normalization, no row is empty, and a walk on a bipartite graph does not oscillate for ever.

Other tools write the same kernel otherwise. Our ``epsilon`` is

* ``1 / gamma`` of scikit-learn's ``rbf_kernel``,
* ``4 * epsilon`` of pyDiffMap,
* ``2 * sigma**2`` of destiny and of those who write a Gaussian density.

Where the density varies much, each point may have a scale of its own: see :func:`local_scales`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.checks import check_rows, plain_distances
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import RowBlocks, is_lazy
from heatsketch._core.row_chunks import by_chunks, scaled_values
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph._pairwise import DistanceTiles

LOCAL_NEIGHBOR = 7  # whose distance is the local scale of a point
SELF_LOOP = 0.1  # of a node of a graph, over its strongest link; docs/background/parameters.md
TILE_ENTRIES = 2_000_000  # of all distances, looked at by each thread at a time


def gaussian_affinity(d2: Any, *, epsilon: float) -> Any:
    r"""Gaussian affinity, :math:`K_{ij} = \exp(-d^2_{ij} / \varepsilon)`.

    Parameters
    ----------
    d2 : array or sparse matrix
        Squared distances. In a sparse matrix the stored entries are the neighbours, stored
        zeros included; what is not stored has no affinity. Other formats become CSR, and other
        numbers float32 if that holds them exactly, or else float64.
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
    if isinstance(d2, RowBlocks):
        return d2.map_blocks(partial(gaussian_affinity, epsilon=epsilon))
    epsilon, d2 = _checked_epsilon(epsilon), _squares(d2)
    if isinstance(d2, DistanceTiles):
        return d2.map_entries(partial(_affinities, epsilon=epsilon))
    if is_lazy(d2):
        return d2.map_blocks(partial(_affinities, epsilon=epsilon), dtype=d2.dtype)
    if not sparse.issparse(d2):
        return _affinities(d2, epsilon)
    K = copy(d2)  # which shares the indices
    K.data = _affinities(d2.data, epsilon)
    return K


def _squares(d2: Any) -> Any:
    """Return squared distances that are in memory as plain floats; others are made of such."""
    is_elsewhere = isinstance(d2, DistanceTiles) or is_lazy(d2)
    return d2 if is_elsewhere else plain_distances(d2, "d2")


def _checked_epsilon(epsilon: float) -> float:
    if np.ndim(epsilon) or isinstance(epsilon, str) or epsilon is None or not epsilon > 0:
        raise HeatSketchError(
            f"epsilon={epsilon!r} must be positive; use estimate_epsilon(d2).epsilon, for instance."
        )
    limits = np.finfo(np.float64)  # of an integer beyond, or of infinity: 0 / 0 is nan
    return min(max(float(epsilon), float(limits.tiny)), float(limits.max))


def _affinities(d2: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the affinities of an array, by the same polynomial on every machine."""
    d2 = np.ascontiguousarray(d2)
    K = np.empty_like(d2)
    entries, out = d2.reshape(-1), K.reshape(-1)
    parts = [slice(i, i + TILE_ENTRIES) for i in range(0, d2.size, TILE_ENTRIES)]
    in_threads(lambda some: kernels.gaussian_affinities(entries[some], epsilon, out[some]), parts)
    return K


def gaussian_affinity_rows(d2: Any, *, epsilon: float) -> Any:
    """Gaussian affinity of new points to the training points, each row up to a factor.

    The weights of a new point do not depend on such a factor (see
    :mod:`heatsketch.diffusion._normalization`), so every row is scaled to have its largest affinity
    equal to one. That leaves a training point as it was, and keeps a point far from all
    others from losing its whole row to underflow.

    Parameters
    ----------
    d2 : array or CSR array of shape (n_new, n_points)
    epsilon : float

    Returns
    -------
    array or CSR array of shape (n_new, n_points)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._affinity import gaussian_affinity_rows
    >>> gaussian_affinity_rows(np.array([[1e6, 1e6 + 1]]), epsilon=1.0).round(3)
    array([[1.   , 0.368]])
    """
    nearest = nearest_squares(d2)
    if sparse.issparse(d2):
        shifted = d2.copy()
        shifted.data = d2.data - np.repeat(nearest, np.diff(d2.indptr))
        return gaussian_affinity(shifted, epsilon=epsilon)
    return gaussian_affinity(d2 - nearest[:, np.newaxis], epsilon=epsilon)


def nearest_squares(d2: Any) -> np.ndarray:
    """Return the smallest squared distance in each row, stored ones only if sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._affinity import nearest_squares
    >>> nearest_squares(np.array([[4.0, 1.0], [0.0, 9.0]]))
    array([1., 0.])
    """
    if not sparse.issparse(d2):
        return d2.min(axis=1)
    nearest = np.zeros(d2.shape[0], d2.dtype)
    filled = np.diff(d2.indptr) > 0
    nearest[filled] = np.minimum.reduceat(d2.data, d2.indptr[:-1][filled])
    return nearest


def local_scales(d2: Any, *, least: float = 0.0) -> np.ndarray:
    r"""Local scale of each point, :math:`\sigma_i = d(x_i, x_{(7)})`: how far its neighbours are.

    The seventh is meant that is not a copy of the point itself.

    With it the kernel tunes itself to the density (Zelnik-Manor and Perona, 2004),
    :math:`K_{ij} = \exp(-d^2_{ij} / \sigma_i \sigma_j)`. A new point finds its own from its
    distances to the training points.

    Parameters
    ----------
    d2 : array, sparse matrix or DistanceTiles of shape (n_rows, n_points)
        Squared distances, those to itself included.
    least : float, default=0.0
        A scale for points all of whose neighbours are copies; the smallest one found if it is 0.

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
    d2 = _squares(d2)
    check_rows(d2, "d2")
    scales = np.sqrt(_neighbor_squares(d2).astype(np.float64))
    # Where all are copies of each other, any scale will do.
    least = least or float(np.where(scales > 0, scales, np.inf).min())
    return np.maximum(scales, least if least < np.inf else 1.0)


def locally_scaled(d2: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    r"""Squared distances in units of the local scales, :math:`d^2_{ij} / (\sigma_i \sigma_j)`.

    Parameters
    ----------
    d2 : array, CSR array or DistanceTiles of shape (n_rows, n_points)
    rows, columns : arrays
        Scales :math:`\sigma` of both.

    Returns
    -------
    array, CSR array or DistanceTiles like ``d2``
        Its affinity has the bandwidth one.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._affinity import locally_scaled
    >>> locally_scaled(np.array([[8.0]]), np.array([2.0]), np.array([4.0]))
    array([[1.]])
    """
    if isinstance(d2, RowBlocks):
        return d2.scaled(1 / rows, 1 / columns)
    if isinstance(d2, DistanceTiles):
        return replace(d2, scales=(1 / rows).astype(d2.dtype))
    if not sparse.issparse(d2):
        scaled = np.multiply.outer((1 / rows).astype(d2.dtype), (1 / columns).astype(d2.dtype))
        scaled *= d2
        return scaled
    if (len(rows), len(columns)) != d2.shape:
        raise HeatSketchError(
            f"rows and columns have {len(rows)} and {len(columns)} scales for d2 of shape "
            f"{d2.shape}; pass a scale for each row and each column, from local_scales."
        )
    scaled = copy(d2)  # which shares the indices
    scaled.data = scaled_values(d2, 1 / rows, 1 / columns)
    return scaled


def _neighbor_squares(d2: Any) -> np.ndarray:
    """Return the seventh smallest entry above zero of each row, or the last; 0 if there is none."""
    if isinstance(d2, RowBlocks):
        return d2.map_rows(_neighbor_squares)
    if sparse.issparse(d2):
        out = np.zeros(d2.shape[0], d2.dtype)
        arrays = d2.indptr, d2.data, LOCAL_NEIGHBOR, out
        by_chunks(partial(kernels.positive_places, *arrays), d2.shape[0])
        return out
    rows = d2.tile if isinstance(d2, DistanceTiles) else d2.__getitem__
    step = max(1, TILE_ENTRIES // d2.shape[1])
    starts = range(0, d2.shape[0], step)
    # A chunk at a time, since numpy would make copies of all.
    return np.concatenate(in_threads(lambda i: _places(rows(slice(i, i + step))), starts))


def _places(squares: np.ndarray) -> np.ndarray:
    above = np.where(squares > 0, squares, np.inf)
    place = min(LOCAL_NEIGHBOR, squares.shape[1]) - 1
    found = np.partition(above, place, axis=1)[:, place]
    return np.where(found < np.inf, found, squares.max(axis=1)).astype(squares.dtype)


def with_self_loops(K: Any) -> Any:
    r"""Give every node of a graph that has no self-loop one, a tenth of its strongest link.

    .. math:: K_{ii} = \tfrac{1}{10} \max_j K_{ij}

    A walk that cannot stay where it is may oscillate for ever: on a bipartite graph it never mixes.
    A heavier self-loop would hold heat at nodes of low degree, and their rows would outweigh all
    others. The self-loop of a node without any link is one.

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
    missing = K.diagonal() == 0
    if not missing.any():
        return K
    largest = K.max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(largest) else largest
    loops = np.where(missing, np.where(largest == 0, 1, SELF_LOOP * largest), 0).astype(K.dtype)
    if not sparse.issparse(K):
        return K + np.diag(loops)
    return sparse.csr_array(K + sparse.diags_array(loops, format="csr", dtype=K.dtype))


def strongest_columns(K: Any) -> np.ndarray:
    """Return the column of the largest entry of each row, the first of several.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._affinity import strongest_columns
    >>> strongest_columns(np.array([[0.5, 1.0], [1.0, 0.5]]))
    array([1, 0])
    """
    return np.asarray(K.argmax(axis=1)).ravel()


def isolated_fraction(K: Any, sums: Any, *, linked_only: bool = False) -> float:
    """Fraction of points whose affinity is to themselves alone, but for a millionth.

    Parameters
    ----------
    K : array, sparse matrix or RowBlocks of shape (n, n)
    sums : vector of shape (n,)
        ``K 1``.
    linked_only : bool, default=False
        Whether points without any link are left out: an isolated node of a graph is a connected
        component of its own. Where all are isolated, none is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._affinity import isolated_fraction
    >>> K = np.array([[1.0, 1e-9, 1e-9], [1e-9, 1.0, 0.5], [1e-9, 0.5, 1.0]])
    >>> isolated_fraction(K, K @ np.ones(3))
    0.3333333333333333
    """
    diagonal = K.map_rows(_diagonal) if isinstance(K, RowBlocks) else K.diagonal()
    links = 1 - diagonal / sums
    isolated = links < 1e-6
    if linked_only and (links > 0).any():
        isolated = isolated[links > 0]
    return float(np.mean(isolated))


def _diagonal(block: sparse.csr_array) -> np.ndarray:
    return block.diagonal()
