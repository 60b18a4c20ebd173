"""The door: what comes in is looked at once, here, and is sound everywhere behind.

scikit-learn's own checks turn the strings ``"1"`` and ``"2"`` into numbers, pass pandas'
missing values on as objects and say "array" where a person said ``X``. These are stricter, and
their messages name the row and the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MissingValueError,
    ScaleError,
)

__all__ = [
    "check_affinities",
    "check_distances",
    "check_numbers",
    "check_row_ids",
    "check_scale",
    "check_square",
]

_NUMBERS = "biuf"  # kinds of dtype: bool, int, uint, float


def check_numbers(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return ``X`` as finite numbers: a float32 or float64 array, or a CSR array of them.

    Parameters
    ----------
    estimator : estimator
        Whose ``n_features_in_`` and feature names are set, or compared with.
    X : array, sparse matrix or data frame
    reset : bool
        True in ``fit``.
    """
    X = _native_numbers(X)
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        accept_sparse="csr",
        ensure_all_finite=False,
    )
    _check_finite(X, getattr(estimator, "feature_names_in_", None))
    if reset and X.shape[0] < 2:
        raise HeatSketchError(
            f"X has n_samples={X.shape[0]} (shape={X.shape}), and one point has no distance to "
            "anything; give at least 2 points."
        )
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def check_scale(X: Any) -> None:
    """Refuse points whose squared distances leave the range of their dtype."""
    values = X.data if sparse.issparse(X) else X
    if not values.size:
        return
    low, high = float(values.min()), float(values.max())
    spread = high / 2 - low / 2  # half of it: the whole may overflow
    limits = np.finfo(X.dtype)
    if spread > np.sqrt(float(limits.max) / X.shape[1]) / 2:
        raise ScaleError(
            f"X spreads over {low:.3g} to {high:.3g}, whose squared distances overflow "
            f"{X.dtype}; divide X by {max(abs(low), abs(high)):.0e} first."
        )
    if 0 < spread < np.sqrt(float(limits.tiny)):
        raise ScaleError(
            f"X spreads over {low:.3g} to {high:.3g}, whose squared distances underflow "
            f"{X.dtype}; multiply X by {1 / max(abs(low), abs(high), 1e-300):.0e} first."
        )


def check_square(X: Any, *, name: str) -> None:
    """Refuse a matrix over all pairs of points that is not square and symmetric."""
    if X.shape[0] != X.shape[1]:
        raise AffinityError(
            f"{name} makes X a square matrix over pairs of points, "
            f"but X has shape {X.shape}; give one row and one column for each point."
        )
    asymmetry, scale = abs(X - X.T).max(), abs(X).max()
    if asymmetry > 10 * np.finfo(X.dtype).eps * scale:
        raise AffinityError(
            f"{name} needs a symmetric X, but X and its transpose differ by up to "
            f"{asymmetry:.3g}; use (X + X.T) / 2 if that is what is meant."
        )


def check_distances(X: Any) -> None:
    """Refuse negative distances and rows without any."""
    _refuse_negative(X, "metric='precomputed'", "distances are at least 0")
    if sparse.issparse(X) and not np.diff(X.indptr).all():
        row = int(np.argmin(np.diff(X.indptr)))
        raise AffinityError(
            f"metric='precomputed': row {row} of X stores no distance at all; "
            "store at least one neighbour for each point."
        )


def check_affinities(X: Any) -> None:
    """Refuse negative affinities and points without any."""
    _refuse_negative(X, "affinity='precomputed'", "affinities are at least 0")
    sums = np.asarray(X.sum(axis=1)).ravel()
    if not sums.all():
        raise AffinityError(
            f"affinity='precomputed': row {int(np.argmin(sums))} of X is all zeros, a point that "
            "is like no point, not even itself; put a positive number on its diagonal or drop it."
        )


def check_row_ids(row_ids: Any, n_rows: int) -> Any:
    """Return distinct integers, one for each row."""
    if row_ids is None:
        return n_rows
    ids = np.asarray(row_ids)
    if ids.shape != (n_rows,) or ids.dtype.kind not in "iu" or ids.min() < 0:
        raise DtypeError(
            f"row_ids={row_ids!r} must be {n_rows} integers of at least 0, one for each row of X; "
            "number the rows, for instance with numpy.arange(len(X))."
        )
    if len(np.unique(ids)) < n_rows:
        raise HeatSketchError(
            f"row_ids={row_ids!r} repeats itself, so that two rows would share their random "
            "numbers; give each row an id of its own."
        )
    return ids


def _refuse_negative(X: Any, name: str, rule: str) -> None:
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise AffinityError(f"{name}: X holds {values.min():.3g}, but {rule}; correct X.")


# --- numbers only, of this machine's byte order -------------------------------------------


def _native_numbers(X: Any) -> Any:
    """Return ``X`` with every entry a real number in native byte order, or say which is not."""
    if sparse.issparse(X):
        _refuse_kind(X.dtype)
        return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        _refuse_strange_columns(X)
        return X
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise MissingValueError(
            f"X is a masked array with {np.ma.count_masked(X)} masked values; "
            "fill them in (sklearn.impute), or drop their rows."
        )
    array = np.asarray(X)
    if array.dtype.kind == "O":
        return _numbers_from_objects(X, array)
    _refuse_kind(array.dtype)
    return X if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _refuse_kind(dtype: Any, where: str = "X") -> None:
    kind = np.dtype(dtype).kind if isinstance(dtype, np.dtype) else getattr(dtype, "kind", "O")
    if kind == "c":
        raise DtypeError(
            f"Complex data not supported: {where} has dtype {dtype}; "
            "pass real and imaginary parts as columns of their own."
        )
    if kind not in _NUMBERS:
        raise DtypeError(
            f"{where} has dtype {dtype}, which is not a number; encode it as numbers "
            "(sklearn.preprocessing), or leave it out."
        )


def _refuse_strange_columns(frame: Any) -> None:
    """Look at a pandas or polars frame column by column."""
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        where = f"column {name!r} of X"
        if hasattr(dtype, "is_numeric"):  # polars
            if not (dtype.is_numeric() or str(dtype) == "Boolean"):
                _refuse_kind(str(dtype), where)
            missing = frame[name].is_null().to_numpy()
        else:
            _refuse_kind(dtype, where)
            missing = frame[name].isna().to_numpy()
        if missing.any():
            raise MissingValueError(
                f"{where} has {missing.sum()} missing values (NaN), the first in row "
                f"{int(np.argmax(missing))}; fill them in (sklearn.impute), or drop their rows."
            )


def _numbers_from_objects(X: Any, array: np.ndarray) -> Any:
    """Accept an array of Python numbers, refuse one of anything else."""
    for index, value in np.ndenumerate(array):
        if value is None:
            raise MissingValueError(
                f"X{list(index)} is None, which is no number (NaN); "
                "fill it in (sklearn.impute), or drop its row."
            )
        if isinstance(value, complex):
            _refuse_kind(np.dtype(complex))
        if not isinstance(value, int | float | np.number | np.bool_):
            raise DtypeError(
                f"X{list(index)} is {value!r}; the argument must be numeric, and a "
                f"{type(value).__name__} is not, nor is a string that looks like a number; "
                "convert X to floats first."
            )
    return X


def _check_finite(X: Any, names: Any) -> None:
    values = X.data if sparse.issparse(X) else X
    if np.isfinite(values).all():
        return
    entries = sparse.coo_array(X) if sparse.issparse(X) else None
    bad = np.argwhere(~np.isfinite(entries.data if entries is not None else X))
    place = bad[0] if entries is None else (entries.row[bad[0, 0]], entries.col[bad[0, 0]])
    row, column = int(place[0]), int(place[1])
    value = X[row, column]
    what = "NaN" if np.isnan(value) else f"infinity (inf): {value}"
    label = f" ({names[column]!r})" if names is not None else ""
    raise MissingValueError(
        f"X contains {what} in row {row}, column {column}{label}, and {len(bad)} such values in "
        "all; fill them in (sklearn.impute), or drop their rows."
    )
