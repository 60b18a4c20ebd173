r"""Who is near whom: squared distances between points, all of them or the nearest ones.

.. math::

    d^2_{ij} = d(x_i, x_j)^2 \quad\text{where}\quad
    d(x_i, x_j) \le r_i \;\text{ or }\; d(x_i, x_j) \le r_j,

with :math:`r_i` the distance from :math:`x_i` to the ``n_neighbors``-th nearest training
point, itself included. Without ``n_neighbors`` every pair is kept, as in the paper.

The rule mentions no positions and breaks no ties, so it holds for a new point exactly as
for a training point: a training point given again has the row that it had, whatever comes
with it, duplicates or not. Only the radii need to be remembered.

Distances are sums of squared differences in float64, one pair at a time: exactly
symmetric, exactly zero between duplicates, and the same whatever is computed beside them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MemoryBudgetError,
    ScaleError,
)

__all__ = [
    "METRICS",
    "count_components",
    "index_dtype",
    "neighbor_graph",
    "neighbor_radii",
    "neighbor_rows",
]

TILE_ENTRIES = 4_000_000  # 32 MB of float64 at a time for each thread
# A fit with all pairs holds at its peak, measured: distances, exponents, affinities and links.
DENSE_COPIES = 4


def neighbor_graph(X: Any, *, n_neighbors: int | None = None, metric: Any = "euclidean") -> Any:
    r"""Squared distances :math:`d(x_i, x_j)^2` between the points of ``X`` that are neighbours.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_points, n_features)
        Points; with ``metric="precomputed"`` their distances, dense or sparse.
    n_neighbors : int or None, default=None
        Keep a pair if one of the two is among the ``n_neighbors`` nearest of the other;
        a point is the first neighbour of itself, and ties are all kept.
        None keeps every pair.
    metric : str or callable, default="euclidean"
        A name from ``METRICS``, ``"precomputed"``, or a function of two points.

    Returns
    -------
    array or CSR array of shape (n_points, n_points)
        Symmetric bit for bit, in the dtype of ``X``. In the sparse form a stored zero is a
        distance of zero, and what is not stored is no neighbour.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import neighbor_graph
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> neighbor_graph(X)
    array([[0., 1., 9.],
           [1., 0., 4.],
           [9., 4., 0.]])
    >>> neighbor_graph(X, n_neighbors=2).toarray()  # 0 and 2 are not neighbours
    array([[0., 1., 0.],
           [1., 0., 4.],
           [0., 4., 0.]])
    """
    X = _floats(X)
    if metric == "precomputed" and sparse.issparse(X):
        return _symmetric_squares(X)
    if callable(metric) and not sparse.issparse(X):
        _refuse_asymmetric(metric, X)
    if n_neighbors is None:
        return neighbor_rows(X, X, metric=metric)
    if not 1 <= n_neighbors <= X.shape[0]:
        raise HeatSketchError(
            f"n_neighbors={n_neighbors} is not between 1 and the {X.shape[0]} points of X; "
            "use another number, or n_neighbors=None for all pairs."
        )
    radii = _over_tiles(lambda _, d2: _radii(d2, n_neighbors), X, X, metric)
    return neighbor_rows(X, X, metric=metric, n_neighbors=n_neighbors, radii=np.concatenate(radii))


def neighbor_rows(
    X_new: Any,
    X: Any,
    *,
    metric: Any = "euclidean",
    n_neighbors: int | None = None,
    radii: np.ndarray | None = None,
) -> Any:
    """Squared distances from new points to the training points that are their neighbours.

    Parameters
    ----------
    X_new : array or sparse matrix of shape (n_new, n_features)
        New points; with ``metric="precomputed"`` their distances to the training points.
    X : array or sparse matrix of shape (n_points, n_features)
        Training points.
    metric, n_neighbors :
        As for :func:`neighbor_graph`.
    radii : array of shape (n_points,), optional
        Squared radii of the training points, see :func:`neighbor_radii`; they belong to
        ``n_neighbors``.

    Returns
    -------
    array or CSR array of shape (n_new, n_points)

    Examples
    --------
    A training point given again has its old row:

    >>> import numpy as np
    >>> from heatsketch.graph import neighbor_graph, neighbor_radii, neighbor_rows
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> d2 = neighbor_graph(X, n_neighbors=2)
    >>> radii = neighbor_radii(d2, 2)
    >>> neighbor_rows(X[1:2], X, n_neighbors=2, radii=radii).toarray()
    array([[1., 0., 4.]])
    """
    X_new, X = _floats(X_new), _floats(X)
    if metric == "precomputed" and sparse.issparse(X_new):
        return _squares(X_new)
    if metric == "cosine":
        _refuse_zero_rows(X_new)
    if n_neighbors is None:
        shape = (X_new.shape[0], X.shape[0])
        _refuse_beyond_memory(shape, X_new.dtype)
        d2 = np.empty(shape, X_new.dtype)
        _over_tiles(d2.__setitem__, X_new, X, metric)
        return d2
    return _stack(_over_tiles(lambda _, d2: _near(d2, n_neighbors, radii), X_new, X, metric))


def neighbor_radii(d2: sparse.csr_array, n_neighbors: int) -> np.ndarray:
    """Squared distance of every point to its ``n_neighbors``-th neighbour, from its graph.

    Parameters
    ----------
    d2 : CSR array
        What :func:`neighbor_graph` returned.
    n_neighbors : int
        As given there.

    Returns
    -------
    array of shape (n_points,)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph import neighbor_graph, neighbor_radii
    >>> neighbor_radii(neighbor_graph(np.array([[0.0], [1.0], [3.0]]), n_neighbors=2), 2)
    array([1., 1., 4.])
    """
    row_of = np.repeat(np.arange(d2.shape[0]), np.diff(d2.indptr))
    by_distance = np.lexsort((d2.data, row_of))
    return d2.data[by_distance][d2.indptr[:-1] + n_neighbors - 1]


def count_components(K: Any) -> int:
    """Count the pieces into which an affinity matrix falls.

    A link counts if it is stronger than rounding: an affinity below machine precision
    times the largest of its row carries no heat in any number of steps that one could take.

    Parameters
    ----------
    K : array or sparse matrix of shape (n, n)

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph import count_components
    >>> count_components(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    2
    """
    eps = np.finfo(K.dtype if K.dtype.kind == "f" else np.float64).eps
    if sparse.issparse(K):
        links = sparse.csr_array(K, copy=True)
        largest = links.max(axis=1).toarray().ravel()
        links.data = links.data > np.repeat(eps * largest, np.diff(links.indptr))
        links.eliminate_zeros()
    else:
        links = eps * K.max(axis=1, keepdims=True) < K
        if links.all():
            return 1
        links = sparse.csr_array(links)
    return int(connected_components(links, directed=False, return_labels=False))


def index_dtype(n_columns: int, n_stored: int) -> type[np.signedinteger]:
    """Return the narrowest index type that can address so many stored entries.

    Examples
    --------
    >>> from heatsketch.graph import index_dtype
    >>> index_dtype(10**6, 15 * 10**6).__name__, index_dtype(2 * 10**8, 3 * 10**9).__name__
    ('int32', 'int64')
    """
    return np.int32 if max(n_columns, n_stored) <= np.iinfo(np.int32).max else np.int64


# --- metrics: squared distances between all rows of one tile and all points ---------------


def _euclidean(X_new: Any, X: Any) -> np.ndarray:
    if not sparse.issparse(X):
        return cdist(X_new, X, "sqeuclidean")
    X_new, X = X_new.astype(np.float64), X.astype(np.float64)
    norms_new, norms = (np.asarray(Z.multiply(Z).sum(axis=1)).ravel() for Z in (X_new, X))
    _refuse_cancellation(X, norms)
    inner = (X_new @ X.T).toarray()
    # |x|^2 + |y|^2 comes first: the difference is then symmetric to the last bit.
    sums = norms_new[:, np.newaxis] + norms
    d2 = sums - 2 * inner
    # What rounding leaves between duplicates is a distance of zero, not a tiny one.
    return np.where(d2 > 64 * np.finfo(np.float64).eps * sums, d2, 0)


def _cosine(X_new: Any, X: Any) -> np.ndarray:
    # 1 - cos(x, y) is half the squared distance between the unit vectors.
    return (_euclidean(_unit_rows(X_new), _unit_rows(X)) / 2) ** 2


def _by_cdist(X_new: Any, X: Any, *, metric: Any) -> np.ndarray:
    if metric == "jaccard":
        X_new, X = X_new != 0, X != 0
    return cdist(X_new, X, metric) ** 2


METRICS: dict[str, Callable[..., np.ndarray]] = {
    "euclidean": _euclidean,
    "cosine": _cosine,
    "manhattan": partial(_by_cdist, metric="cityblock"),
    "chebyshev": partial(_by_cdist, metric="chebyshev"),
    "hamming": partial(_by_cdist, metric="hamming"),
    "jaccard": partial(_by_cdist, metric="jaccard"),
}


def _unit_rows(X: Any) -> Any:
    X = X.astype(np.float64)
    squares = X.multiply(X) if sparse.issparse(X) else X * X
    norms = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    return sparse.diags_array(1 / norms) @ X if sparse.issparse(X) else X / norms[:, np.newaxis]


# --- tiles --------------------------------------------------------------------------------


def _over_tiles(function: Callable, X_new: Any, X: Any, metric: Any) -> list:
    """Apply a function to (rows, their squared distances), a few rows at a time, in threads."""
    squares = _squared_distances_to(X, metric)
    # A function of the user's own takes its time, and Ctrl-C waits for the end of a tile.
    entries = TILE_ENTRIES // 1000 if callable(metric) else TILE_ENTRIES
    step = max(1, entries // X.shape[0])

    def apply(start: int) -> Any:
        rows = slice(start, start + step)
        # Compared and stored in the dtype of X, so that a radius read back from the graph
        # is the radius that made the graph.
        with np.errstate(over="ignore", invalid="ignore"):
            d2 = squares(X_new[rows]).astype(X_new.dtype, copy=False)
        _refuse_infinite(d2, start, metric)
        return function(rows, d2)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(apply, range(0, X_new.shape[0], step)))


def _squared_distances_to(X: Any, metric: Any) -> Callable[[Any], np.ndarray]:
    if metric == "precomputed":
        return np.square
    if sparse.issparse(X) and metric not in {"euclidean", "cosine"}:
        raise DtypeError(
            f"metric={metric!r} does not take a sparse X of shape {X.shape}; use "
            'metric="euclidean" or "cosine", or pass X.toarray() if it fits in memory.'
        )
    if callable(metric):
        return partial(_by_cdist, X=X, metric=metric)
    if metric not in METRICS:
        raise HeatSketchError(
            f"metric={metric!r} is unknown; use one of {sorted(METRICS)}, 'precomputed', or a "
            "function of two points."
        )
    return partial(METRICS[metric], X=X)


def _radii(d2: np.ndarray, n_neighbors: int) -> np.ndarray:
    # A copy: a view would keep the whole tile alive.
    return np.partition(d2, n_neighbors - 1, axis=1)[:, n_neighbors - 1].copy()


def _near(d2: np.ndarray, n_neighbors: int, radii: np.ndarray | None) -> sparse.csr_array:
    near = d2 <= _radii(d2, n_neighbors)[:, np.newaxis]
    if radii is not None:
        near |= d2 <= radii
    indptr = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
    # Built by hand: scipy would drop the zeros, which are distances of zero.
    return sparse.csr_array((d2[near], np.nonzero(near)[1], indptr), shape=d2.shape)


def _stack(blocks: list[sparse.csr_array]) -> sparse.csr_array:
    """Stack blocks of rows, with indices as narrow as their total number allows."""
    starts = np.cumsum([0] + [block.nnz for block in blocks], dtype=np.int64)
    n_columns = blocks[0].shape[1]
    dtype = index_dtype(n_columns, int(starts[-1]))
    ends = [block.indptr[1:] + start for block, start in zip(blocks, starts[:-1], strict=True)]
    indptr = np.concatenate([[0], *ends]).astype(dtype)
    indices = np.concatenate([block.indices for block in blocks]).astype(dtype)
    data = np.concatenate([block.data for block in blocks])
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _squares(distances: Any) -> sparse.csr_array:
    squared = sparse.csr_array(distances, copy=True)
    squared.sum_duplicates()  # sorts, too
    squared.data **= 2
    return squared


def _symmetric_squares(distances: Any) -> sparse.csr_array:
    """Square a sparse graph of distances, in both directions and with a zero diagonal.

    scipy's ``maximum`` or ``+`` would drop stored zeros, which are duplicates of a point;
    so the entries are listed twice, summed, and divided by how often they were listed.
    """
    d2 = _squares(distances).tocoo()
    diagonal = np.arange(d2.shape[0])
    i, j = np.concatenate([d2.row, d2.col, diagonal]), np.concatenate([d2.col, d2.row, diagonal])
    values = np.concatenate([d2.data, d2.data, np.zeros_like(d2.data, shape=len(diagonal))])
    total, times = (
        sparse.coo_array((data, (i, j)), shape=d2.shape).tocsr()
        for data in (values, np.ones_like(values))
    )
    total.data /= times.data
    return total


def _floats(X: Any) -> Any:
    """Return floats: whole numbers would wrap around or be cut off."""
    return X if X.dtype.kind == "f" else X.astype(np.float64)


# --- refusals -----------------------------------------------------------------------------


def _refuse_zero_rows(X: Any) -> None:
    sizes = np.asarray(abs(X).sum(axis=1)).ravel()
    if not sizes.all():
        raise AffinityError(
            f'metric="cosine" has no angle for row {int(np.argmin(sizes))} of X, which is all '
            'zeros; drop such rows, or use metric="euclidean".'
        )


def _refuse_infinite(d2: np.ndarray, first_row: int, metric: Any) -> None:
    if np.isfinite(d2).all():
        return
    row, column = (int(place) for place in np.argwhere(~np.isfinite(d2))[0])
    raise ScaleError(
        f"metric={metric!r} gives {d2[row, column]} as the squared distance of row "
        f"{first_row + row} of X to training point {column} in {d2.dtype}; rescale X, or correct "
        "the metric if it is your own."
    )


def _refuse_asymmetric(metric: Callable, X: Any) -> None:
    """Try a metric of the user's own on a few points, in both directions."""
    d = cdist(X[:10], X[:10], metric)
    with np.errstate(invalid="ignore"):  # infinite distances are refused later, by their place
        asymmetry = np.abs(d - d.T)
    if asymmetry.max() > np.sqrt(np.finfo(d.dtype).eps) * d.max():
        row, column = (int(place) for place in np.unravel_index(asymmetry.argmax(), d.shape))
        raise AffinityError(
            f"metric={metric!r} is not symmetric: row {row} of X is {d[row, column]:.3g} from row "
            f"{column}, but {d[column, row]:.3g} the other way; average the two directions."
        )


def _refuse_cancellation(X: sparse.csr_array, norms: np.ndarray) -> None:
    """Refuse sparse points so near to each other that |x|^2 + |y|^2 - 2 x y is rounding."""
    center, square = np.asarray(X.mean(axis=0)).ravel(), float(norms.mean())
    spread = square - float(center @ center)
    if spread < 1e-10 * square:
        raise ScaleError(
            f"X is sparse and its points are {np.sqrt(square):.3g} from zero but only about "
            f"{np.sqrt(max(spread, 0)):.3g} from each other, which is lost in rounding; "
            "pass X.toarray(), or drop the duplicates if all points are equal."
        )


def _refuse_beyond_memory(shape: tuple[int, int], dtype: np.dtype) -> None:
    needed = DENSE_COPIES * shape[0] * shape[1] * np.dtype(dtype).itemsize
    available = _physical_memory()
    if needed > available:
        raise MemoryBudgetError(
            f"n_neighbors=None keeps all {shape[0]} x {shape[1]} distances, which with their "
            f"affinities need {needed / 2**30:.1f} GiB of the {available / 2**30:.1f} GiB here; "
            "use n_neighbors=30 or so."
        )


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return float("inf")
