"""Ways to measure how far two points are apart, by name.

Each gives the squared distances between all rows of one array and all rows of another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from heatsketch.exceptions import AffinityError, DtypeError, HeatSketchError, ScaleError

__all__ = [
    "ALIASES",
    "LIST_METRICS",
    "METRICS",
    "metric_of",
    "refuse_asymmetric",
    "refuse_other_width",
    "refuse_zero_rows",
    "squared_distances_to",
]


def squared_distances_to(X: Any, metric: Any) -> Callable[[Any], np.ndarray]:
    """Return the function that takes some rows to their squared distances to all rows of ``X``."""
    metric = metric_of(metric)
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
            f"metric={metric!r} is unknown; use one of {sorted([*METRICS, *ALIASES])}, "
            "'precomputed', or a function of two points."
        )
    return partial(METRICS[metric], X=X)


def _euclidean(X_new: Any, X: Any) -> np.ndarray:
    refuse_other_width(X_new, X)
    if not sparse.issparse(X):
        from heatsketch.compiled import neighbors  # numba is loaded when first needed

        d2 = np.empty((X_new.shape[0], X.shape[0]), X.dtype)
        neighbors.all_squares(np.ascontiguousarray(X_new), np.ascontiguousarray(X), d2)
        return d2
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
    return _cosine_squares(_euclidean(_unit_rows(X_new), _unit_rows(X)))


def _cosine_squares(squares: np.ndarray) -> np.ndarray:
    # 1 - cos(x, y) is half the squared distance between the unit vectors.
    return (squares / 2) ** 2


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


# Other names that scikit-learn has for them.
ALIASES = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}


def metric_of(metric: Any) -> Any:
    """Return a metric by the name that we have for it.

    Examples
    --------
    >>> from heatsketch.metrics import metric_of
    >>> metric_of("l1"), metric_of("cosine")
    ('manhattan', 'cosine')
    """
    return ALIASES.get(metric, metric) if isinstance(metric, str) else metric


def _unit_rows(X: Any) -> Any:
    if sparse.issparse(X):
        X = X.astype(np.float64)
        return sparse.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X
    norms = np.sqrt(np.square(X, dtype=np.float64).sum(axis=1, keepdims=True))
    return (X / norms).astype(X.dtype)


# Metrics whose neighbours are those of some points in Euclidean distance: how to make the points,
# and the squared distances from theirs.
LIST_METRICS: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "euclidean": (np.ascontiguousarray, np.asarray),
    "cosine": (_unit_rows, _cosine_squares),
}


# --- refusals -----------------------------------------------------------------------------


def refuse_other_width(X_new: Any, X: Any) -> None:
    """Refuse points of another space; the compiled loops would read beyond their rows."""
    if X_new.ndim != 2 or X.ndim != 2 or X_new.shape[1] != X.shape[1]:
        raise HeatSketchError(
            f"X_new of shape {X_new.shape} and X of shape {X.shape} must be tables with the same "
            "number of columns; pass the features of X, one row for each point."
        )


def refuse_zero_rows(X: Any) -> None:
    """Refuse points without a direction, which have no angle to others."""
    sizes = np.asarray(abs(X).sum(axis=1)).ravel()
    if not sizes.all():
        raise AffinityError(
            f'metric="cosine" has no angle for row {int(np.argmin(sizes))} of X, which is all '
            'zeros; drop such rows, or use metric="euclidean".'
        )


def refuse_asymmetric(metric: Callable, X: Any) -> None:
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
