"""Conversion of inputs to Python integers, native floats and canonical CSR.

Compiled loops accept two float dtypes and one sparse format. They would misread other inputs, or
reject them with messages that do not name the argument. Inputs that need no conversion are not
copied. scikit-learn converts the strings ``"1"`` and ``"2"`` to numbers; these checks are stricter,
and name the row and the column.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from heatsketch._core.partitioned import from_each_block, is_lazy
from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MissingValueError,
    ScaleError,
)

_NUMBERS = "biuf"  # kinds of dtype: bool, int, uint, float
MISSING = {"NoneType", "NAType", "NaTType"}  # None, pandas.NA and pandas.NaT, by their types
# The column name that pandas gives to an index without a name.
INDEX_NAME = re.compile(r"__index_level_\d+__")
# Dtypes of columns of pandas, polars and Arrow, in lower case, such as int8 for Int8.
_NUMERIC = re.compile(r"(sparse\[)?(bool|u?int\d|float|halffloat|double|decimal)")
_EXACT_IN_FLOAT32 = {
    *("bool", "boolean", "float16", "halffloat", "float32", "float"),
    *("int8", "int16", "uint8", "uint16"),
}
_STRIP_ENTRIES = 4_000_000  # entries of a dense matrix compared with its transpose at a time
_COMPRESSED = {"csr", "csc", "bsr"}  # formats with indices and indptr
_PADDED = {"bsr", "dia"}  # formats that store zeros as padding


def check_integer(name: str, value: Any, *, least: int = 1, most: float = math.inf) -> int:
    """Return a value as a Python integer; integral floats such as 1e4 are valid."""
    bounds = f"from {least} to {most}" if most < math.inf else f">= {least}"
    try:
        number = int(value)
        is_integer = number == value and not isinstance(value, bool | np.bool_)
    except (TypeError, ValueError, OverflowError):
        is_integer = False
    if is_integer and least <= number <= most:
        return number
    error, shown = (HeatSketchError, number) if is_integer else (DtypeError, reprlib.repr(value))
    raise error(f"{name} must be an integer {bounds}, got {shown}.")


def check_integers(name: str, values: Any, *, least: int = 1) -> list[int]:
    """Return one integer or several as a list."""
    given = list(values) if isinstance(values, Iterable) else [values]
    if not given:
        raise HeatSketchError(f"{name} must have at least one integer, got none.")
    return [check_integer(name, value, least=least) for value in given]


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise unless a value is one of some words."""
    if not isinstance(value, str) or value not in choices:
        raise HeatSketchError(f"{name} must be one of {sorted(choices)}, got {value!r}.")


# --- points and matrices ------------------------------------------------------------------


def plain_numbers(X: Any, *, least: int = 1, metric: Any = None) -> Any:
    """Return ``X`` as a float32 or float64 array or CSR array of finite numbers.

    The dtype is float32 if that represents all values of the dtype of ``X`` exactly. ``least`` is
    the least number of rows.
    """
    if is_lazy(X):
        return _check_lazy(X, least)
    if metric == "precomputed":
        check_not_filled(X, "X")
    X = native_numbers(X)
    names = list(_dtypes(X) or ())
    # A long double beyond float64 becomes infinity, which check_finite rejects with its position.
    with np.errstate(over="ignore"):
        # Row-major, so that sums over a row round the same way for every layout. A copy, which the
        # caller cannot change, if X is kept.
        X = check_array(
            X,
            dtype=_dtype_of(X),
            accept_sparse="csr",
            ensure_all_finite=False,
            order="C",
            copy=least > 1,
            input_name="X",
        )
    check_finite(X, names if len(names) == X.shape[1] else None)
    if X.shape[0] < least:
        raise HeatSketchError(
            f"X must have at least {least} points, got n_samples={X.shape[0]} (shape={X.shape})."
        )
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=not X.has_canonical_format)
        X.sum_duplicates()
    return X


def plain_floats(X: Any, name: str = "X") -> Any:
    """Return ``X`` as a float array, or a CSR matrix without duplicate entries.

    The dtype is that of :func:`float_dtype`. Stored zeros are kept.
    """
    X = native_numbers(X, name)
    if sparse.issparse(X):
        check_rows(X, name)
        X = X if X.format == "csr" else sparse.csr_array(X)
        if not X.has_canonical_format:
            summed = X.copy()
            summed.sum_duplicates()  # also sorts the rows, which is not needed
            X = summed if summed.nnz < X.nnz else X
    elif (X := np.asarray(X)).dtype.kind == "O":  # a data frame with nulls
        return _numbers_from_objects(X, name)
    # Long doubles that overflow float64 become infinity, which check_finite reports with its place.
    with np.errstate(over="ignore"):
        return X.astype(float_dtype(X.dtype), copy=False)


def plain_distances(d2: Any, name: str) -> Any:
    """Return distances or their squares as plain floats; raise for negative ones and NaN."""
    check_not_filled(d2, name)
    d2 = plain_floats(d2, name)
    values = stored(d2)
    if values.size and not values.min() >= 0:  # also if it is NaN
        entries = sparse.coo_array(d2)  # also of a dense array, in which zeros are valid
        bad = np.flatnonzero(~(entries.data >= 0))[0]
        place, value = [int(axis[bad]) for axis in entries.coords], entries.data[bad]
        error = MissingValueError if np.isnan(value) else AffinityError
        raise error(f"{name}{place} is {value:.3g}; distances must be numbers >= 0.")
    return d2


def float_dtype(*dtypes: Any) -> np.dtype:
    """Return float32 if it represents all values of the dtypes, else float64.

    Booleans, integers of at most 16 bits and half precision become float32, which represents all
    integers up to 2**24; float32 is kept. Integers of 32 and 64 bits become float64, which
    represents all integers up to 2**53.
    """
    common = np.result_type(np.float32, *dtypes)
    return np.dtype(np.float32 if common == np.float32 else np.float64)


def _dtype_of(X: Any) -> np.dtype:
    """Return float32 if it represents all columns exactly, else float64."""
    dtypes = _dtypes(X)
    if dtypes is None:
        return float_dtype(X.dtype)
    is_exact = {str(dtype).lower() for dtype in dtypes.values()} <= _EXACT_IN_FLOAT32
    return np.dtype(np.float32 if is_exact else np.float64)


def _check_lazy(X: Any, least: int) -> Any:
    """Check a lazy array block by block, where its blocks are stored."""
    check_dtype(X.dtype)
    if X.ndim != 2 or not X.shape[0] >= least:  # unknown sizes are NaN, for which this is True
        raise HeatSketchError(
            f"X has shape {X.shape}, but must have a row of numbers for each of at least {least} "
            "points; call X.compute_chunk_sizes() if their number is unknown."
        )
    n_before = 0
    for n_rows, place in from_each_block(_first_invalid, X):
        if place is not None:
            raise MissingValueError(
                f"X contains NaN or infinity in row {n_before + place[0]}, column {place[1]}; fill "
                "it in (sklearn.impute), or drop its row."
            )
        n_before += n_rows
    return X


def _first_invalid(block: np.ndarray) -> tuple[int, list[int] | None]:
    invalid = np.argwhere(~np.isfinite(block))
    return len(block), invalid[0].tolist() if len(invalid) else None


def check_not_filled(X: Any, name: str) -> None:
    """Raise for sparse formats whose padding zeros could be distances."""
    if sparse.issparse(X) and X.format in _PADDED:
        raise AffinityError(
            f"{name} is in {X.format.upper()} format, which stores zeros as padding that would be "
            f"read as distances of zero; pass the CSR matrix from which {name} was made."
        )


def check_rows(X: Any, name: str = "X") -> None:
    """Raise unless ``X`` is two-dimensional and not empty."""
    if len(X.shape) != 2:
        raise HeatSketchError(
            f"{name} must have two dimensions, one row for each point, got shape {X.shape}; "
            f"use {name}.reshape(-1, 1) if each number is a point."
        )
    if 0 in X.shape:
        raise HeatSketchError(
            f"{name} must have at least one row and one column, got shape {X.shape}."
        )


def check_points(X: Any, *, dtype: Any = None, is_new: bool = False) -> None:
    """Raise if sums of squares over a row overflow or underflow the dtype.

    New points may be arbitrarily small, since the training points determine the scale.
    """
    dtype = X.dtype if dtype is None else dtype
    values = stored(X)
    largest = max(from_each_block(_largest, values)) if values.size else 0.0
    limits = np.finfo(dtype)
    # Half of the range, since points on opposite sides of zero are twice as far apart.
    if largest > np.sqrt(float(limits.max) / X.shape[1]) / 2:
        problem, remedy = "squares overflow", f"divide X by {largest:.0e}"
    # Differences that are much smaller must have normal squares, too: subnormal ones lack digits.
    elif not is_new and 0 < largest < np.sqrt(float(limits.tiny / limits.eps)):
        factor = 1 / max(largest, 1e-300)
        problem, remedy = "squared differences may underflow", f"multiply X by {factor:.0e}"
    else:
        return
    raise ScaleError(
        f"X has numbers as large as {largest:.3g}, whose {problem} in {dtype}; {remedy} first."
    )


def _largest(block: np.ndarray) -> float:
    return max(abs(float(block.min())), abs(float(block.max()))) if block.size else 0.0


def check_finite(
    X: Any, columns: Any = None, name: str = "X", *, ids: Any = None, first_row: int = 0
) -> None:
    """Raise for NaN and infinity, with row and column, and their names if known.

    Rows are counted from ``first_row``.
    """
    values = stored(X)
    with np.errstate(over="ignore", invalid="ignore"):
        # If an entry is not finite, neither is the sum, which needs no memory.
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    entries = sparse.coo_array(X) if sparse.issparse(X) else None
    bad = np.argwhere(~np.isfinite(X if entries is None else entries.data))
    place = bad[0] if entries is None else [axis[bad[0, 0]] for axis in entries.coords]
    row, column = map(int, place)
    value = X[row, column]
    what = "NaN" if np.isnan(value) else f"infinity (inf): {value}"
    of_row = "" if ids is None else f" ({ids[row]!r})"
    of_column = "" if columns is None else f" ({columns[column]!r})"
    raise MissingValueError(
        f"{name} contains {what} in row {first_row + row}{of_row}, column {column}{of_column} "
        f"({len(bad)} in total); fill them in (sklearn.impute) or drop their rows."
    )


# --- distances and weights between all points -----------------------------------------------


def check_square(X: Any, *, name: str) -> None:
    """Raise for a matrix over all pairs of points that is not square."""
    if X.shape[0] != X.shape[1]:
        raise AffinityError(
            f"X must be a square matrix with {name}, got shape {X.shape}; "
            "pass one row and one column for each point."
        )


def check_symmetric(X: Any, *, name: str) -> None:
    """Raise for a matrix that differs from its transpose by more than rounding."""
    asymmetry, scale = _asymmetry(X), max(X.max(), -X.min())
    if asymmetry > 10 * np.finfo(X.dtype).eps * scale:
        raise AffinityError(
            f"X must be symmetric with {name}, but X and its transpose differ by up to "
            f"{asymmetry:.3g}; use (X + X.T) / 2 to average both directions."
        )


def _asymmetry(X: Any) -> Any:
    if sparse.issparse(X):
        return abs(X - X.T).max()
    step = max(1, _STRIP_ENTRIES // len(X))
    strips = [slice(start, start + step) for start in range(0, len(X), step)]
    return max(np.abs(X[strip] - X[:, strip].T).max() for strip in strips)


def check_distance_matrix(X: Any) -> None:
    """Raise unless ``X`` holds distances of all pairs, or sparse ones of neighbours."""
    check_distances(X)
    check_square(X, name="metric='precomputed'")
    diagonal = X.diagonal()
    row = int(np.argmax(diagonal))
    # Distances computed from inner products have a large rounding error on the diagonal: the square
    # root of machine precision times the norm of the points.
    if diagonal[row] > 1e3 * np.sqrt(np.finfo(X.dtype).eps) * X.max():
        raise AffinityError(
            f"X[{row}, {row}] must be 0 with metric='precomputed', got {diagonal[row]:.3g}; set "
            "the diagonal of X to 0, or use HeatGraph.from_affinity(X) if X holds weights and not "
            "distances."
        )
    if not sparse.issparse(X):  # a sparse graph of nearest neighbours need not be symmetric
        check_symmetric(X, name="metric='precomputed'")


def check_distances(X: Any) -> None:
    """Raise for negative distances, and for rows without distances."""
    check_nonnegative(X, "metric='precomputed'", "distances must be >= 0")
    if sparse.issparse(X) and not np.diff(X.indptr).all():
        row = int(np.argmin(np.diff(X.indptr)))
        raise AffinityError(
            f"metric='precomputed': row {row} of X has no distance; give at least one neighbour of "
            "each point."
        )


def check_nonnegative(X: Any, name: str, rule: str) -> None:
    """Raise for negative numbers, with the rule that they violate."""
    values = stored(X)
    if values.size and values.min() < 0:
        raise AffinityError(f"X contains {values.min():.3g}, but {rule} ({name}).")


def stored(X: Any) -> np.ndarray:
    """Return the entries of an array, or the stored entries of a sparse matrix."""
    return X.data if sparse.issparse(X) else X


# --- kinds of objects and dtypes ----------------------------------------------------------


def is_graph(X: Any) -> bool:
    """Return True for graphs of networkx and igraph, and for our own :class:`Graph`."""
    return callable(getattr(X, "is_directed", None))


def is_arrow_table(X: Any) -> bool:
    """Return True for a table of pyarrow."""
    return hasattr(X, "column_names") and hasattr(X, "schema")


def is_missing(value: Any) -> bool:
    """Return True for None, NaN, and NA and NaT of pandas."""
    return type(value).__name__ in MISSING or value != value


def native_numbers(X: Any, name: str = "X") -> Any:
    """Return ``X`` as real numbers in native byte order; raise for other entries."""
    if sparse.issparse(X):
        check_dtype(X.dtype, name)
        check_places(X, name)
        return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))
    if hasattr(X, "collect"):  # a lazy frame of polars holds a query and no data
        raise DtypeError(
            f"{name} must hold numbers, got a {type(X).__name__}; pass {name}.collect()."
        )
    if is_arrow_table(X):
        X = X.drop_columns(list(index_columns(X.schema)))
    if (dtypes := _dtypes(X)) is not None:
        for column, dtype in dtypes.items():
            _check_column(X[column], dtype, f"column {column!r} of {name}")
        return X
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise MissingValueError(
            f"{name} has {np.ma.count_masked(X)} masked values; "
            "fill them in (sklearn.impute) or drop their rows."
        )
    array = as_array(X, name)
    if array.dtype.kind == "O":
        return _numbers_from_objects(array, name)
    check_dtype(array.dtype, name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_array(values: Any, name: str) -> np.ndarray:
    """Convert values to an array, and raise if that is not possible."""
    remedy = "all rows must have the same length"
    if hasattr(values, "detach"):  # a PyTorch tensor, which may be on another device
        remedy = f"pass {name}.detach().cpu().numpy()"
    try:
        return np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:
        raise DtypeError(
            f"{name}={reprlib.repr(values)} cannot be converted to an array ({error}); {remedy}."
        ) from error


def check_places(X: Any, name: str) -> None:
    """Raise for a sparse matrix with entries outside its shape."""
    if sparse.issparse(X) and X.format in _COMPRESSED and len(X.shape) == 2:
        try:
            if (X.indptr[1:] < X.indptr[:-1]).any():  # not noticed by scipy if the last is negative
                raise ValueError("indptr decreases")
            copy(X).check_format(full_check=True)  # a shallow copy, since it may be changed
        except ValueError as error:
            raise HeatSketchError(
                f"{name}.indices or {name}.indptr of shape {X.shape} are wrong ({error}); build "
                f"{name} again."
            ) from error


def check_dtype(dtype: Any, where: str = "X") -> None:
    """Raise for a dtype that is not real."""
    kind = getattr(dtype, "kind", "O")
    if kind == "c":
        raise DtypeError(
            f"Complex data not supported: {where} has dtype {dtype}; "
            "pass real and imaginary parts as separate columns."
        )
    if kind not in _NUMBERS:
        raise DtypeError(
            f"{where} must hold numbers, got dtype {dtype}; encode it "
            "(sklearn.preprocessing) or remove it."
        )


def index_columns(schema: Any) -> set[str]:
    """Return the columns of an Arrow schema in which pandas stored the index of a frame.

    They are also recognized by name, since other programs drop the metadata that lists them.
    """
    listed = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in schema.names if name in listed or INDEX_NAME.fullmatch(name)}


def _dtypes(X: Any) -> dict[Any, Any] | None:
    """Return the dtypes of the columns of a data frame or an Arrow table; None for others."""
    if is_arrow_table(X):
        return dict(zip(X.column_names, X.schema.types, strict=True))
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return dict(zip(X.columns, X.dtypes, strict=True)) if is_frame else None


def _check_column(column: Any, dtype: Any, where: str) -> None:
    if str(dtype) == "object":
        _numbers_from_objects(np.asarray(column), where)  # raises for missing values
    elif not _NUMERIC.match(str(dtype).lower()):
        check_dtype(dtype, where)


def _numbers_from_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Convert an array of Python numbers to floats; raise for other objects."""
    for index, value in np.ndenumerate(array):
        where = f"{name}{list(index)}" if index else name
        if type(value).__name__ in MISSING:
            raise MissingValueError(
                f"{where} is {value} (NaN); fill it in (sklearn.impute) or drop its row."
            )
        # In numpy, timedelta is a subclass of integer.
        if not isinstance(value, int | float | np.bool_ | np.number) or isinstance(
            value, np.timedelta64 | np.complexfloating
        ):
            raise DtypeError(
                f"{where} is {reprlib.repr(value)}; the argument must be numeric, got a "
                f"{type(value).__name__}; convert strings and other objects to numbers first, and "
                "stack lists into columns (numpy.stack)."
            )
    try:
        return array.astype(np.float64)
    except OverflowError as error:
        largest = reprlib.repr(max(array.flat, key=abs))
        raise ScaleError(
            f"{name} contains {largest}, which overflows float64 ({error}); divide {name} by it."
        ) from error
