"""Checks for custom engines, affinities and estimators.

An object that passes them works wherever the built-in ones do. Each check returns None if the
property holds, and raises ``AssertionError`` with a number if it does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from heatsketch.diffusion._affinity import gaussian_affinity
from heatsketch.engines import Engine

__all__ = [
    "check_affinity",
    "check_engine",
    "check_extension",
    "check_heat_operator",
    "tolerance",
]


def tolerance(dtype: Any, *, terms: int = 1) -> float:
    r"""Rounding error to expect in a sum of ``terms`` numbers.

    .. math:: 16\,\epsilon\sqrt{n}

    Parameters
    ----------
    dtype : float32 or float64
    terms : int, default=1

    Returns
    -------
    float

    Examples
    --------
    >>> from heatsketch.testing import tolerance
    >>> tolerance("float64", terms=100) < 1e-13 < tolerance("float32")
    True
    """
    return float(16 * np.finfo(dtype).eps * np.sqrt(terms))


def check_affinity(K: Any, *, seed: int = 0) -> None:
    r"""Check that ``K @ block`` multiplies by a symmetric nonnegative matrix.

    .. math:: K(aX + bY) = aKX + bKY, \qquad X^T (K Y) = (K X)^T Y, \qquad K 1 > 0

    Parameters
    ----------
    K : object of shape (n, n) that supports ``K @ block``
    seed : int, default=0
        Seed of the test blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.testing import check_affinity
    >>> check_affinity(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> check_affinity(np.array([[1.0, 0.5], [0.2, 1.0]]))
    Traceback (most recent call last):
      ...
    AssertionError: K is not symmetric: off by ...
    """
    n_rows = K.shape[0]
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((n_rows, 3)).astype(K.dtype) for _ in range(2))
    KX, KY = np.asarray(K @ X), np.asarray(K @ Y)
    assert KX.dtype == K.dtype, f"K @ block has dtype {KX.dtype}, not {K.dtype} as K and block have"
    atol = tolerance(K.dtype, terms=n_rows) * max(np.abs(KX).max(), np.abs(KY).max())
    both = np.asarray(K @ np.hstack([X, Y]))
    _require_close(both, np.hstack([KX, KY]), atol, "columns of K @ block depend on each other")
    total = np.asarray(K @ (2 * X - 3 * Y))
    _require_close(total, 2 * KX - 3 * KY, 5 * atol, "K @ block is not linear")
    _require_close(X.T @ KY, KX.T @ Y, n_rows * atol, "K is not symmetric")
    sums = np.asarray(K @ np.ones(n_rows))
    assert sums.dtype == np.float64, f"row sums accumulate in {sums.dtype}, not in float64"
    assert sums.min() > 0, f"row {sums.argmin()} of K sums to {sums.min()}"


def check_heat_operator(A: Any, *, seed: int = 0) -> None:
    r"""Check that ``A`` is symmetric, never expands, and keeps its ``v_0``.

    .. math:: A v_0 = v_0, \qquad |A x| \le |x|

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    seed : int, default=0
        Seed of the test blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> from heatsketch.testing import check_heat_operator
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> check_heat_operator(heat_operator(K, symmetric_scaling(K)))
    """
    n_rows = A.shape[0]
    atol = tolerance(A.dtype, terms=n_rows)
    v = np.asarray(A.stationary)
    _require_close(A @ v, v, atol * np.abs(v).max(), "A v0 is not v0")
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((n_rows, 4)).astype(A.dtype) for _ in range(2))
    AX, AY = np.asarray(A @ X), np.asarray(A @ Y)
    _require_close(X.T @ AY, AX.T @ Y, atol * np.sqrt(n_rows), "A is not symmetric")
    growth = np.linalg.norm(AX, axis=0) / np.linalg.norm(X, axis=0)
    assert growth.max() <= 1 + atol, f"A expands a vector {growth.max()} times"
    left = v @ A.deflate(X) / np.linalg.norm(v)
    _require_close(left, 0 * left, atol, "deflate leaves some of v0 in")


def check_engine(engine: Engine, *, seed: int = 0, metric: Any = "euclidean") -> None:
    r"""Check an engine's distances, and that training points keep their rows.

    .. math:: d^2_{ij} \text{ kept if } d_{ij} < r_i \text{ or } d_{ij} < r_j,
              \text{ and only if } d_{ij} \le r_i \text{ or } d_{ij} \le r_j

    Parameters
    ----------
    engine : Engine
    seed : int, default=0
        Seed of the test points, which include duplicates.
    metric : str, default="euclidean"

    Examples
    --------
    >>> from heatsketch import LocalEngine
    >>> from heatsketch.testing import check_engine
    >>> check_engine(LocalEngine())
    """
    X = np.random.default_rng(seed).standard_normal((60, 3))
    X[50:] = X[:10]
    full = np.asarray(engine.neighbors(X, metric=metric, n_neighbors=None, n_columns=1)[1])
    _require_close(full, full.T, 0, "distances are not symmetric to the last bit")
    _require_close(full.diagonal(), np.zeros(60), 0, "a point is not at distance 0 from itself")
    if metric == "euclidean":
        direct = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
        _require_close(full, direct, tolerance(X.dtype) * full.max(), "not squared distances")
    neighbors, graph = engine.neighbors(X, metric=metric, n_neighbors=7, n_columns=1)
    full = full[neighbors.order][:, neighbors.order]
    radii = np.sort(full, axis=1)[:, 6]
    inside = (full < radii[:, np.newaxis]) | (full < radii)
    within = (full <= radii[:, np.newaxis]) | (full <= radii)
    again = neighbors.distances_to(X[neighbors.order[::-1]])
    fitted, new = (
        gaussian_affinity(sparse.csr_array(distances), epsilon=1.0).toarray()
        for distances in (graph, again)
    )
    assert ((fitted > 0).sum(axis=1) >= 7).all(), "some points have too few neighbours"
    # Among points exactly at the radius, an engine may choose some.
    affinities = gaussian_affinity(full, epsilon=1.0)
    wanted = np.where(inside | (within & (fitted > 0)), affinities, 0)
    for name, K, rows in (("fitted", fitted, wanted), ("new", new, wanted[::-1])):
        _require_close(K, rows, 0, f"{name} points do not have the neighbours that the rule names")


def check_extension(estimator: Any, X: Any, *, rtol: float = 1e-12, batch: int = 7) -> None:
    r"""Check that ``transform`` of training points returns their embedding.

    The training points are passed in any order, all at once and in batches.

    .. math:: \mathrm{transform}(X_{\text{some}}) = \mathrm{fit\_transform}(X)_{\text{some}}

    Parameters
    ----------
    estimator : estimator
    X : array or sparse matrix of shape (n_samples, n_features)
    rtol : float, default=1e-12
        Largest root mean square of the difference, relative to that of the embedding; 0 requires
        bit-identical results.
    batch : int, default=7
        Size of the batches.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import HeatSketch
    >>> from heatsketch.testing import check_extension
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> check_extension(HeatSketch(8), X)
    >>> check_extension(HeatSketch(8, n_neighbors=5), X, rtol=0)
    """
    fitted = clone(estimator)
    embedding = np.asarray(fitted.fit_transform(X))
    n_rows = embedding.shape[0]
    shuffled = np.random.default_rng(0).permutation(n_rows)
    batches = np.array_split(shuffled, range(batch, n_rows, batch))
    for name, orders in (("all at once", [np.arange(n_rows)]), ("in batches", batches)):
        for rows in orders:
            found = np.asarray(fitted.transform(X[rows]))
            error = np.sqrt(np.mean((found - embedding[rows]) ** 2) / np.mean(embedding**2))
            assert error <= rtol, f"transform {name} differs from fit_transform by {error:.3g}"


def _require_close(found: Any, wanted: Any, atol: float, message: str) -> None:
    error = float(np.max(np.abs(np.asarray(found) - np.asarray(wanted))))
    assert error <= atol, f"{message}: off by {error:.3g}, more than {atol:.3g}"
