"""Metrics by name: functions for the squared distances between all rows of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from heatsketch._core import kernels
from heatsketch.exceptions import AffinityError, DtypeError, HeatSketchError, ScaleError


def squared_distances_to(X: Any, metric: Any) -> Callable[[Any], np.ndarray]:
    """Return a function that computes squared distances to all rows of ``X``."""
    metric = metric_of(metric)
    if metric == "precomputed":
        return np.square
    if sparse.issparse(X) and metric not in {"euclidean", "cosine"}:
        raise DtypeError(
            f"metric={metric!r} does not support a sparse X (shape {X.shape}); use 'euclidean' or "
            "'cosine', or pass X.toarray() if it fits in memory."
        )
    if sparse.issparse(X):
        return _SparsePoints(X, metric == "cosine").squared_distances
    if callable(metric):
        return partial(_by_cdist, X=X, metric=metric)
    if metric not in METRICS:
        raise HeatSketchError(
            f"metric must be one of {sorted([*METRICS, *ALIASES])}, 'precomputed' or a function "
            f"of two points, got {metric!r}."
        )
    return partial(METRICS[metric], X=X)


def _euclidean(X_new: np.ndarray, X: np.ndarray) -> np.ndarray:
    d2 = np.empty((X_new.shape[0], X.shape[0]), X.dtype)
    kernels.all_squares(np.ascontiguousarray(X_new), np.ascontiguousarray(X), d2)
    return d2


class _SparsePoints:
    """Sparse points, whose norms and columns are computed once."""

    def __init__(self, X: Any, is_cosine: bool) -> None:
        self.is_cosine = is_cosine
        X = self._rows(X)
        self.norms = _squared_norms(X)
        _check_cancellation(X, self.norms)
        self.columns = X.T.tocsr()

    def _rows(self, X: Any) -> sparse.csr_array:
        # Sort by column, so that sums over columns are the same for (x, y) and (y, x).
        X = sparse.csr_array(X, dtype=np.float64).sorted_indices()
        return _unit_rows(X) if self.is_cosine else X

    def squared_distances(self, X_new: Any) -> np.ndarray:
        """Return the squared distances from some rows to all points."""
        check_width(X_new, self.columns.T)
        X_new = self._rows(X_new)
        d2 = np.zeros((X_new.shape[0], len(self.norms)))
        rows, columns = ((Z.indptr, Z.indices, Z.data) for Z in (X_new, self.columns))
        kernels.sparse_squares(rows, columns, _squared_norms(X_new), self.norms, d2)
        return _cosine_squares(d2) if self.is_cosine else d2


def second_distances(X_new: Any, rows: np.ndarray, X: Any, places: np.ndarray) -> np.ndarray:
    """Return the second distances of pairs, which break ties; see :mod:`heatsketch.graph._ivf`."""
    seconds = np.empty(len(rows))
    if not sparse.issparse(X):
        arrays = np.ascontiguousarray(X_new), rows, np.ascontiguousarray(X), places
        kernels.second_distances(*arrays, seconds)
        return seconds
    weights = np.empty(X.shape[1])
    kernels.second_weights(weights)
    step = 100_000  # pairs at a time
    for e in range(0, len(rows), step):
        some = slice(e, e + step)
        one, other = X_new[rows[some]].astype(np.float64), X[places[some]].astype(np.float64)
        seconds[some] = abs(one - other) @ weights
    return seconds


def _squared_norms(X: sparse.csr_array) -> np.ndarray:
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def _cosine(X_new: np.ndarray, X: np.ndarray) -> np.ndarray:
    return _cosine_squares(_euclidean(_unit_rows(X_new), _unit_rows(X)))


def _cosine_squares(squares: np.ndarray) -> np.ndarray:
    # The distance 1 - cos(x, y) is half the squared Euclidean distance of the unit vectors.
    cosine = squares / 2
    cosine *= cosine
    return cosine


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


# Alternative names in scikit-learn.
ALIASES = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}


def metric_of(metric: Any) -> Any:
    """Replace an alias by the name of the metric in ``METRICS``."""
    return ALIASES.get(metric, metric) if isinstance(metric, str) else metric


def _unit_rows(X: Any) -> Any:
    if sparse.issparse(X):
        X = X.astype(np.float64)
        return sparse.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X
    norms = np.sqrt(np.square(X, dtype=np.float64).sum(axis=1, keepdims=True))
    return (X / norms).astype(X.dtype)


# Metrics that are functions of the Euclidean distance between transformed points. For each one, the
# transformation, and the function of the squared Euclidean distance.
LIST_METRICS: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "euclidean": (np.ascontiguousarray, np.asarray),
    "cosine": (_unit_rows, _cosine_squares),
}


# --- errors -------------------------------------------------------------------------------


def not_finite_error(value: np.floating, row: int, column: int, metric: Any) -> ScaleError:
    """Return the error for a squared distance that is NaN or infinity."""
    return ScaleError(
        f"metric={metric!r} gives {value} as the squared distance of row {row} of X to training "
        f"point {column} in {value.dtype}; rescale X, or correct the metric if it is a function."
    )


def check_width(X_new: Any, X: Any) -> None:
    """Raise if the numbers of columns differ, since compiled loops would read past the rows."""
    if X_new.ndim != 2 or X.ndim != 2 or X_new.shape[1] != X.shape[1]:
        raise HeatSketchError(
            "X_new and X must have two dimensions and the same number of columns, got shapes "
            f"{X_new.shape} and {X.shape}; pass the features of X, one row for each point."
        )


def check_nonzero_rows(X: Any) -> None:
    """Raise for rows of zeros, for which the cosine is not defined."""
    sizes = np.asarray(abs(X).sum(axis=1)).ravel()
    if not sizes.all():
        raise AffinityError(
            f"metric='cosine' is not defined for row {int(np.argmin(sizes))} of X, which is all "
            "zeros; drop such rows, or use metric='euclidean'."
        )


def check_symmetric_metric(metric: Callable, X: Any) -> None:
    """Check on a few points that a user-defined metric is symmetric."""
    d = cdist(X[:10], X[:10], metric)
    with np.errstate(invalid="ignore"):  # infinite distances are reported later
        asymmetry = np.abs(d - d.T)
    if asymmetry.max() > np.sqrt(np.finfo(d.dtype).eps) * d.max():
        raise AffinityError(
            f"metric={metric!r} is not symmetric: distances of rows of X in the two directions "
            f"differ by up to {asymmetry.max():.3g}; average the two directions."
        )


def _check_cancellation(X: sparse.csr_array, norms: np.ndarray) -> None:
    """Raise if |x|^2 + |y|^2 - 2 x y of sparse points would be mostly rounding error."""
    center, square = np.asarray(X.mean(axis=0)).ravel(), float(norms.mean())
    spread = square - float(center @ center)
    if spread < 1e-10 * square:
        raise ScaleError(
            f"The rows of the sparse X have norms of about {np.sqrt(square):.3g}, but distances of "
            f"only about {np.sqrt(max(spread, 0)):.3g}, which are below rounding error; "
            "pass X.toarray(), or drop duplicates if all rows are equal."
        )
