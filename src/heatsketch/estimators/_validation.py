"""Input validation. Later code assumes checked arrays.

scikit-learn's own checks convert the strings ``"1"`` and ``"2"`` to numbers, pass on missing values
of pandas as objects, and name the argument "array" instead of ``X``. The checks here are stricter,
and their messages name the row and the column.
"""

from __future__ import annotations

import reprlib
import secrets
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from heatsketch._core.checks import (
    MISSING,
    as_array,
    check_dtype,
    check_finite,
    check_nonnegative,
    check_not_filled,
    float_dtype,
    is_arrow_table,
    native_numbers,
    stored,
)
from heatsketch._core.partitioned import from_each_block, is_lazy
from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MissingValueError,
    ScaleError,
)

# Lower-case names of column dtypes of pandas and polars, including Int8 and Boolean.
_EXACT_IN_FLOAT32 = {
    *("bool", "boolean", "float16", "float32"),
    *("int8", "int16", "uint8", "uint16"),
}
_LARGEST_SUM = 1e100  # of a row of affinities; its square and inverse are in the range of floats


class Count(Interval):
    """Constraint for parameters that count something; booleans are invalid."""

    def __init__(self) -> None:
        super().__init__(Integral, 1, None, closed="left")

    def is_satisfied_by(self, val: Any) -> bool:
        """Return True if ``val`` is a valid count."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


# Constraints of parameters that do not change the results.
MACHINE_CONSTRAINTS: dict[str, list[Any]] = {
    "n_jobs": [Count(), Interval(Integral, None, -1, closed="right"), None],
    "verbose": ["verbose", None],
}


def is_missing(value: Any) -> bool:
    """Return True if a value is missing: None, NaN, or NA and NaT of pandas."""
    return type(value).__name__ in MISSING or value != value


def seed_of(random_state: Any) -> int:
    """Return the given integer, or a seed drawn from ``random_state``."""
    if random_state is None:
        return secrets.randbits(64)
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def check_numbers(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return ``X`` as a float32 or float64 array or CSR array of finite numbers.

    The dtype is float32 if that represents all values of the dtype of ``X`` exactly.

    Parameters
    ----------
    estimator : estimator
        Estimator whose ``n_features_in_`` and feature names are set or compared.
    X : array, sparse matrix or data frame
    reset : bool
        True in ``fit``.
    """
    if is_lazy(X):
        return _check_lazy(estimator, X, reset=reset)
    if getattr(estimator, "metric", None) == "precomputed":
        check_not_filled(X, "X")
    _check_not_a_series(X)
    X = native_numbers(X)
    columns = [name for name in getattr(X, "columns", ()) if isinstance(name, str)]
    # A long double beyond float64 becomes infinity, which check_finite rejects with its position.
    with np.errstate(over="ignore"):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=_float_dtype(X),
            accept_sparse="csr",
            ensure_all_finite=False,
            # Row-major, so that sums over a row round the same way for every layout. In fit, a
            # copy that the caller cannot change.
            order="C",
            copy=reset,
        )
    # Some versions of scikit-learn find no names in some polars data frames.
    names = columns if len(columns) == X.shape[1] else None
    check_finite(X, getattr(estimator, "feature_names_in_", names))
    _check_two_points(X, reset=reset)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def _check_not_a_series(X: Any) -> None:
    if hasattr(X, "to_frame") and len(X.shape) == 1:
        raise HeatSketchError(
            f"X is a {type(X).__name__} of {len(X)} values, which is one column; pass "
            "X.to_frame() if each value is a point."
        )


def _float_dtype(X: Any) -> np.dtype:
    """Return float32 if it represents all columns exactly, else float64."""
    if is_arrow_table(X):
        return float_dtype(*(field.type.to_pandas_dtype() for field in X.schema))
    if not hasattr(X, "columns"):
        return float_dtype(X.dtype)
    is_exact = {str(dtype).lower() for dtype in X.dtypes} <= _EXACT_IN_FLOAT32
    return np.dtype(np.float32 if is_exact else np.float64)


def _check_lazy(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check a lazy array block by block, where its blocks are stored."""
    check_dtype(X.dtype)
    if X.ndim != 2 or not X.shape[0] >= 1:  # unknown sizes are NaN, for which this is True
        raise HeatSketchError(
            f"X has shape {X.shape}; give one row of numbers for each point, and call "
            "X.compute_chunk_sizes() if their number is unknown."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)  # checks the columns
    n_before = 0
    for n_rows, invalid in from_each_block(_first_invalid, X):
        if invalid is not None:
            row, column, value = invalid
            raise MissingValueError(
                f"X contains {value} in row {n_before + row}, column {column}; fill it in "
                "(sklearn.impute), or drop its row."
            )
        n_before += n_rows
    _check_two_points(X, reset=reset)
    return X


def _check_two_points(X: Any, *, reset: bool) -> None:
    if reset and X.shape[0] < 2:
        raise HeatSketchError(
            f"X has n_samples={X.shape[0]} (shape={X.shape}), and one point has no distance to "
            "anything; give at least 2 points."
        )


def _first_invalid(block: np.ndarray) -> tuple[int, tuple[int, int, str] | None]:
    invalid = np.argwhere(~np.isfinite(block))
    if not len(invalid):
        return len(block), None
    row, column = invalid[0].tolist()
    value = block[row, column]
    return len(block), (row, column, "NaN" if np.isnan(value) else f"infinity (inf): {value}")


def _largest(block: np.ndarray) -> float:
    return max(abs(float(block.min())), abs(float(block.max()))) if block.size else 0.0


def check_scale(X: Any, *, dtype: Any, reset: bool) -> None:
    """Raise if sums of squares over a row overflow or underflow ``dtype``.

    New points may be arbitrarily small, since the training points determine the scale.
    """
    values = stored(X)
    largest = max(from_each_block(_largest, values)) if values.size else 0.0
    limits = np.finfo(dtype)
    # Half of the range, since two points may lie on opposite sides of zero.
    if largest > np.sqrt(float(limits.max) / X.shape[1]) / 2:
        problem, remedy = "squares overflow", f"divide X by {largest:.0e}"
    # Differences that are much smaller must have normal squares, too: subnormal ones lack digits.
    elif reset and 0 < largest < np.sqrt(float(limits.tiny / limits.eps)):
        factor = 1 / max(largest, 1e-300)
        problem, remedy = "squared differences may underflow", f"multiply X by {factor:.0e}"
    else:
        return
    raise ScaleError(
        f"X holds numbers as large as {largest:.3g}, whose {problem} {dtype}; {remedy} first."
    )


def check_idle_parameters(estimator: Any) -> None:
    """Raise for parameters that have no effect when affinities are given."""
    idle_values = {"epsilon": "local", "n_neighbors": 15, "metric": "euclidean", "neighbors": None}
    for name, idle in idle_values.items():
        value = getattr(estimator, name)
        if value != idle:
            raise HeatSketchError(
                f"{name}={value!r} has no use with affinity='precomputed', where X says itself "
                f"how alike two points are; leave it out.",
                **{name: value, "affinity": "precomputed"},
            )


def check_affinities(X: Any) -> None:
    """Raise for negative affinities, rows of zeros, and sums out of range."""
    check_nonnegative(X, "affinity='precomputed'", "affinities are at least 0")
    with np.errstate(over="ignore"):
        sums = X @ np.ones(X.shape[1])
    if not sums.all():
        raise AffinityError(
            f"affinity='precomputed': row {int(np.argmin(sums))} of X is all zeros, a point that "
            "is like no point, not even itself; put a positive number on its diagonal or drop it.",
            affinity="precomputed",
        )
    far_out = (sums < 1 / _LARGEST_SUM) | (sums > _LARGEST_SUM)
    if far_out.any():
        row = int(np.argmax(far_out))
        raise ScaleError(
            f"affinity='precomputed': row {row} of X sums to {sums[row]:.3g}, so that products "
            "leave the range of floats; divide X by its largest entry first.",
            affinity="precomputed",
        )


def check_row_ids(row_ids: Any, n_rows: int) -> np.ndarray:
    """Return distinct integers, one for each row; by default their positions."""
    if row_ids is None:
        return np.arange(n_rows)
    shown = f"row_ids={reprlib.repr(row_ids)}"
    ids = as_array(row_ids, "row_ids")
    # Numbering text by position would match unrelated rows of two data sets.
    remedy = "number the rows, for instance with numpy.arange(len(X))"
    if ids.dtype.kind in "OSTU":
        remedy = "number the rows by their names, with heatsketch.row_numbers(names)"
    wanted = f"must be {n_rows} integers of at least 0, one for each row of X; {remedy}."
    if ids.dtype.kind not in "iu":
        raise DtypeError(f"{shown} {wanted}")
    if ids.shape != (n_rows,) or ids.min() < 0:
        raise HeatSketchError(f"{shown} of shape {ids.shape} {wanted}")
    if len(np.unique(ids)) < n_rows:
        raise HeatSketchError(
            f"{shown} repeats itself, so that two rows would share their random "
            "numbers; give each row an id of its own."
        )
    return ids


def stored_like(training_points: Any, X: Any) -> Any:
    """Convert new points to the storage of the training points, dense or sparse."""
    if sparse.issparse(training_points):
        return sparse.csr_array(X)
    return X.toarray() if sparse.issparse(X) else X
