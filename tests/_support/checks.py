"""Checks of affinities, operators and estimators, each with a number if it fails."""

from typing import Any

import numpy as np
from models import fitted, new_result, rows_of, training_result


def tolerance(dtype: Any, *, terms: int = 1) -> float:
    r"""Rounding error to expect in a sum of ``terms`` numbers.

    .. math:: 16\,\epsilon\sqrt{n}
    """
    return float(16 * np.finfo(dtype).eps * np.sqrt(terms))


def check_affinity(K: Any, *, seed: int = 0) -> None:
    r"""Check that ``K @ block`` multiplies by a symmetric nonnegative matrix.

    .. math:: K(aX + bY) = aKX + bKY, \qquad X^T (K Y) = (K X)^T Y, \qquad K 1 > 0
    """
    n_rows = K.shape[0]
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((n_rows, 3)).astype(K.dtype) for _ in range(2))
    KX, KY = np.asarray(K @ X), np.asarray(K @ Y)
    assert KX.dtype == K.dtype, f"K @ block has dtype {KX.dtype}, not {K.dtype} as K and block have"
    atol = tolerance(K.dtype, terms=n_rows) * max(np.abs(KX).max(), np.abs(KY).max())
    both = np.asarray(K @ np.hstack([X, Y]))
    require_close(both, np.hstack([KX, KY]), atol, "columns of K @ block depend on each other")
    total = np.asarray(K @ (2 * X - 3 * Y))
    require_close(total, 2 * KX - 3 * KY, 5 * atol, "K @ block is not linear")
    require_close(X.T @ KY, KX.T @ Y, n_rows * atol, "K is not symmetric")
    sums = np.asarray(K @ np.ones(n_rows))
    assert sums.dtype == np.float64, f"row sums accumulate in {sums.dtype}, not in float64"
    assert sums.min() > 0, f"row {sums.argmin()} of K sums to {sums.min()}"


def check_heat_operator(A: Any, *, seed: int = 0) -> None:
    r"""Check that ``A`` is symmetric, never expands, and keeps its ``v_0``.

    .. math:: A v_0 = v_0, \qquad |A x| \le |x|
    """
    n_rows = A.shape[0]
    atol = tolerance(A.dtype, terms=n_rows)
    v = np.asarray(A.stationary)
    require_close(A @ v, v, atol * np.abs(v).max(), "A v0 is not v0")
    rng = np.random.default_rng(seed)
    X, Y = (rng.standard_normal((n_rows, 4)).astype(A.dtype) for _ in range(2))
    AX, AY = np.asarray(A @ X), np.asarray(A @ Y)
    require_close(X.T @ AY, AX.T @ Y, atol * np.sqrt(n_rows), "A is not symmetric")
    growth = np.linalg.norm(AX, axis=0) / np.linalg.norm(X, axis=0)
    assert growth.max() <= 1 + atol, f"A expands a vector {growth.max()} times"
    left = v @ A.deflate(X) / np.linalg.norm(v)
    require_close(left, 0 * left, atol, "deflate leaves some of v0 in")


def check_extension(estimator: Any, X: Any, *, rtol: float = 1e-12, batch: int = 7) -> None:
    r"""Check that training points, given as new ones, have the results of the fit.

    The training points are passed in any order, all at once and in batches.

    .. math:: \mathrm{transform}(X_{\text{some}}) = \mathrm{fit\_transform}(X)_{\text{some}}
    """
    model = fitted(estimator, X)
    wanted = training_result(model)
    n_rows = len(wanted)
    shuffled = np.random.default_rng(0).permutation(n_rows)
    batches = np.array_split(shuffled, range(batch, n_rows, batch))
    for name, orders in (("all at once", [np.arange(n_rows)]), ("in batches", batches)):
        for rows in orders:
            found = new_result(model, rows_of(X, rows))
            error = np.sqrt(np.mean((found - wanted[rows]) ** 2) / np.mean(wanted**2))
            assert error <= rtol, f"transform {name} differs from fit_transform by {error:.3g}"


def require_close(actual: Any, expected: Any, atol: float, message: str) -> None:
    error = float(np.max(np.abs(np.asarray(actual) - np.asarray(expected))))
    assert error <= atol, f"{message}: off by {error:.3g}, more than {atol:.3g}"
