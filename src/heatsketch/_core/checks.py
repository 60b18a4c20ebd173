"""Conversion of inputs to Python integers, native floats and canonical CSR.

Compiled loops accept two float dtypes and one sparse format; other inputs they would reject with
messages of their own, or misread. Inputs that are plain already are returned without a copy.
"""

from __future__ import annotations

import math
import re
import reprlib
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MissingValueError,
    ScaleError,
)

_NUMBERS = "biuf"  # kinds of dtype: bool, int, uint, float
MISSING = {"NoneType", "NAType", "NaTType"}  # None, pandas.NA and pandas.NaT, by their types
INDEX_NAME = re.compile(r"__index_level_\d+__")  # of a column made of an index without a name
ARROW_NUMBERS = {
    *("bool", "halffloat", "float", "double"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
_STRIP_ENTRIES = 4_000_000  # entries of a dense matrix compared with its transpose at a time
_COMPRESSED = {"csr", "csc", "bsr"}  # formats with indices and indptr
_FILLED = {"bsr", "dia"}  # formats padded with explicit zeros


def check_integer(name: str, value: Any, *, least: int = 1, most: float = math.inf) -> int:
    """Return a value as a Python integer, without wrap-around; 1e4 is valid, too.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.checks import check_integer
    >>> check_integer("n_points", np.uint8(200)) + 100, check_integer("n_points", 1e4)
    (300, 10000)
    """
    wanted = f"from {least} to {most}" if most < math.inf else f"of at least {least}"
    try:
        number = int(value)
        is_integer = number == value and not isinstance(value, bool | np.bool_)
    except (TypeError, ValueError, OverflowError):
        is_integer = False
    if not is_integer:
        shown = reprlib.repr(value)
        raise DtypeError(f"{name}={shown} must be an integer {wanted}.", **{name: value})
    if not least <= number <= most:
        raise HeatSketchError(f"{name}={number} must be an integer {wanted}.", **{name: number})
    return number


# --- matrices -----------------------------------------------------------------------------


def float_dtype(*dtypes: Any) -> np.dtype:
    """Return float32 if it represents all values of the dtypes, else float64.

    Booleans, integers of at most 16 bits and half precision become float32, which represents all
    integers up to 2**24; float32 is kept. Integers of 32 and 64 bits become float64, which
    represents all integers up to 2**53.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.checks import float_dtype
    >>> float_dtype(np.uint8, np.float16), float_dtype(np.int32)
    (dtype('float32'), dtype('float64'))
    """
    common = np.result_type(np.float32, *dtypes)
    return np.dtype(np.float32 if common == np.float32 else np.float64)


def plain_floats(X: Any, name: str = "X") -> Any:
    """Return ``X`` as a float array, or a CSR matrix without duplicate entries.

    The dtype is that of :func:`float_dtype`. Stored zeros are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch._core.checks import plain_floats
    >>> twice = sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(2, 2))
    >>> plain_floats(twice).data
    array([3.])
    """
    X = native_numbers(X, name)
    if sparse.issparse(X):
        check_rows(X, name)
        return _one_entry_a_place(_floats(X))
    array = np.asarray(X)
    # Data frames with nulls also become object arrays.
    return _numbers_from_objects(array, name) if array.dtype.kind == "O" else _floats(array)


def _floats(X: Any) -> Any:
    # Long doubles beyond float64 become infinity, which check_finite rejects with its position.
    with np.errstate(over="ignore"):
        return X.astype(float_dtype(X.dtype), copy=False)


def _one_entry_a_place(X: Any) -> Any:
    X = X if X.format == "csr" else sparse.csr_array(X)
    if X.has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()  # this also sorts, but unsorted rows are harmless
    return summed if summed.nnz < X.nnz else X


def plain_distances(d2: Any, name: str) -> Any:
    """Return distances or squares as plain floats, neither negative nor NaN.

    Examples
    --------
    >>> from heatsketch._core.checks import plain_distances
    >>> plain_distances([[0, 1], [1, 0]], "d2")
    array([[0., 1.],
           [1., 0.]])
    """
    check_not_filled(d2, name)
    d2 = plain_floats(d2, name)
    values = stored(d2)
    if not values.size or values.min() >= 0:  # false for NaN
        return d2
    places = sparse.coo_array(d2).coords if sparse.issparse(d2) else np.indices(d2.shape)
    bad = np.flatnonzero(~(values.ravel() >= 0))[0]
    place = [int(axis.ravel()[bad]) for axis in places]
    value = values.ravel()[bad]
    if np.isnan(value):
        raise MissingValueError(f"{name}{place} is NaN, which is no distance; correct {name}.")
    raise AffinityError(
        f"{name}{place} is {value:.3g}, but distances are at least 0; correct {name}."
    )


def check_not_filled(X: Any, name: str) -> None:
    """Raise for sparse formats whose padding zeros could be distances."""
    if sparse.issparse(X) and X.format in _FILLED:
        raise AffinityError(
            f"{name} is in {X.format.upper()} format, which fills up with zeros that look like "
            f"distances of zero; give the CSR matrix that {name} was made from."
        )


def check_rows(X: Any, name: str = "X") -> None:
    """Raise unless ``X`` is two-dimensional and not empty."""
    if len(X.shape) != 2:
        raise HeatSketchError(
            f"{name} of shape {X.shape} must have two dimensions, one row for each point; "
            f"use {name}.reshape(-1, 1) if each number is a point."
        )
    if 0 in X.shape:
        raise HeatSketchError(
            f"{name} of shape {X.shape} is empty; give at least one row and one column."
        )


# --- distances between all points -----------------------------------------------------------


def check_square(X: Any, *, name: str) -> None:
    """Raise for a matrix over all pairs of points that is not square."""
    if X.shape[0] != X.shape[1]:
        raise AffinityError(
            f"{name} makes X a square matrix over pairs of points, "
            f"but X has shape {X.shape}; give one row and one column for each point.",
            **_parameter(name),
        )


def check_symmetric(X: Any, *, name: str) -> None:
    """Raise for a matrix that differs from its transpose by more than rounding."""
    asymmetry, scale = _asymmetry(X), max(X.max(), -X.min())
    if asymmetry > 10 * np.finfo(X.dtype).eps * scale:
        raise AffinityError(
            f"{name} needs a symmetric X, but X and its transpose differ by up to "
            f"{asymmetry:.3g}; use (X + X.T) / 2 if that is what is meant.",
            **_parameter(name),
        )


def _asymmetry(X: Any) -> Any:
    if sparse.issparse(X):
        return abs(X - X.T).max()
    step = max(1, _STRIP_ENTRIES // len(X))
    strips = [slice(start, start + step) for start in range(0, len(X), step)]
    return max(np.abs(X[strip] - X[:, strip].T).max() for strip in strips)


def check_zero_diagonal(X: Any) -> None:
    """Raise for points at a positive distance from themselves, beyond rounding.

    Distances computed from inner products have an error there of the square root of machine
    precision, relative to the norm of the points, which may be large relative to their distances.
    """
    diagonal = X.diagonal()
    row = int(np.argmax(diagonal))
    if diagonal[row] > 1e3 * np.sqrt(np.finfo(X.dtype).eps) * X.max():
        raise AffinityError(
            f"metric='precomputed': X[{row}, {row}] is {diagonal[row]:.3g}, but a point is at "
            "distance 0 from itself; set the diagonal of X to 0, or use affinity='precomputed' "
            "if X holds affinities."
        )


def check_distances(X: Any) -> None:
    """Raise for negative distances, and for rows without distances."""
    check_nonnegative(X, "metric='precomputed'", "distances are at least 0")
    if sparse.issparse(X) and not np.diff(X.indptr).all():
        row = int(np.argmin(np.diff(X.indptr)))
        raise AffinityError(
            f"metric='precomputed': row {row} of X stores no distance at all; "
            "store at least one neighbour for each point."
        )


def check_nonnegative(X: Any, name: str, rule: str) -> None:
    """Raise for negative numbers, with the rule that they break."""
    values = stored(X)
    if values.size and values.min() < 0:
        message = f"{name}: X holds {values.min():.3g}, but {rule}; correct X."
        raise AffinityError(message, **_parameter(name))


def _parameter(shown: str) -> dict[str, str]:
    """Return the parameter in ``name='value'``, if there is one."""
    name, _, value = shown.partition("=")
    return {name: value.strip("'")} if value else {}


def stored(X: Any) -> np.ndarray:
    """Return the entries of an array, or the stored entries of a sparse matrix."""
    return X.data if sparse.issparse(X) else X


# --- numeric dtypes in native byte order --------------------------------------------------


def native_numbers(X: Any, name: str = "X") -> Any:
    """Return ``X`` as real numbers in native byte order; raise for other entries."""
    if sparse.issparse(X):
        check_dtype(X.dtype, name)
        check_places(X, name)
        return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))
    if hasattr(X, "collect"):  # a lazy frame, which holds a query and no data
        raise DtypeError(
            f"{name} is a {type(X).__name__}, which holds no numbers yet; pass {name}.collect()."
        )
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        _check_names(list(X.columns), X.shape, name)
        X = _lists_as_columns(X, name)
        _check_columns(X, name)
        return X
    if is_arrow_table(X):
        return _numeric_table(X, name)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise MissingValueError(
            f"{name} is a masked array with {np.ma.count_masked(X)} masked values; "
            "fill them in (sklearn.impute), or drop their rows."
        )
    array = as_array(X, name)
    if array.dtype.kind == "O":
        return _numbers_from_objects(array, name)
    check_dtype(array.dtype, name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_places(X: Any, name: str) -> None:
    """Raise for a sparse matrix with entries beyond its shape.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch._core.checks import check_places
    >>> X = sparse.csr_array((np.ones(2), [0, 7], [0, 1, 2]), shape=(2, 3))
    >>> check_places(X, "X")
    Traceback (most recent call last):
    ...
    heatsketch.exceptions.HeatSketchError: X.indices go from 0 to 7, beyond a sparse matrix ...
    """
    if not sparse.issparse(X) or X.format not in _COMPRESSED or len(X.shape) != 2:
        return
    n_ends, n_places = np.floor_divide(X.shape, getattr(X, "blocksize", 1))
    if X.format == "csc":
        n_ends, n_places = n_places, n_ends
    ends, n_stored = X.indptr, min(len(X.indices), len(X.data))
    rises = len(ends) == n_ends + 1 and ends[0] == 0 and (np.diff(ends) >= 0).all()
    if not rises or ends[-1] > n_stored:
        raise HeatSketchError(
            f"{name}.indptr of a sparse matrix of shape {X.shape} must rise from 0 to at most "
            f"{n_stored} in {n_ends + 1} numbers; build {name} again."
        )
    places = X.indices[: ends[-1]]
    if places.size and not 0 <= places.min() <= places.max() < n_places:
        raise HeatSketchError(
            f"{name}.indices go from {places.min()} to {places.max()}, beyond a sparse matrix of "
            f"shape {X.shape}; build {name} again, with indices from 0 to {n_places - 1}."
        )


def as_array(values: Any, name: str) -> np.ndarray:
    """Convert values to an array, and raise if that is not possible."""
    remedy = "give all its rows the same length"
    if hasattr(values, "detach"):  # a tensor of PyTorch, perhaps on another device
        remedy = f"pass {name}.detach().cpu().numpy()"
    try:
        return np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:
        raise DtypeError(
            f"{name}={reprlib.repr(values)} does not make an array ({error}); {remedy}."
        ) from error


def check_dtype(dtype: Any, where: str = "X") -> None:
    """Raise for a dtype that is not real."""
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


def is_arrow_table(X: Any) -> bool:
    """Return True for a table of pyarrow."""
    return hasattr(X, "column_names") and hasattr(X, "schema")


def index_columns(schema: Any) -> set[str]:
    """Return the columns of an Arrow schema that pandas has made of the index of a frame.

    Other programs keep these columns, but not the metadata of pandas that lists them.
    """
    listed = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in schema.names if name in listed or INDEX_NAME.fullmatch(name)}


def _numeric_table(table: Any, X: str) -> Any:
    """Return an Arrow table without index columns, and check the types of the others."""
    indexes = index_columns(table.schema)
    _check_names(table.column_names, table.shape, X)
    table = table.select([name for name in table.column_names if name not in indexes])
    for field in table.schema:
        if str(field.type) not in ARROW_NUMBERS:
            check_dtype(str(field.type), f"column {field.name!r} of {X}")
    return table


def _check_names(names: list[Any], shape: tuple[int, ...], X: str) -> None:
    if not names:
        raise HeatSketchError(
            f"{X} is a frame of shape {shape}, which has no columns (0 feature(s)); "
            "give it at least one."
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise HeatSketchError(f"{X} has two columns named {twice!r}; rename one of them.")


def _lists_as_columns(frame: Any, X: str) -> Any:
    """Expand columns that hold lists of numbers, such as embeddings.

    A column ``e`` becomes ``e_0``, ``e_1``, ..., as in a Parquet file.
    """
    matrices = {
        name: matrix
        for name in frame.columns
        if (matrix := _matrix_of_lists(frame[name], f"column {name!r} of {X}")) is not None
    }
    if not matrices:
        return frame
    columns: dict[Any, Any] = {}
    for name in frame.columns:
        if name in matrices:
            columns |= {f"{name}_{i}": part for i, part in enumerate(matrices[name].T)}
        else:
            columns[name] = frame[name]
    return type(frame)(columns)


def _matrix_of_lists(column: Any, where: str) -> Any:
    """Return lists of numbers as rows of a matrix; None for other columns."""
    is_polars = hasattr(column.dtype, "is_numeric")
    lengths, numbers = _polars_lists(column) if is_polars else _pandas_lists(column)
    if numbers is None or numbers.dtype.kind not in _NUMBERS or numbers.ndim != 1:
        return None
    width = next(length for length in lengths if length is not None)
    for row, length in enumerate(lengths):
        if length is None:
            raise MissingValueError(
                f"row {row} of {where} holds no list (NaN); fill it in, or drop the row."
            )
        if length != width or not width:
            raise HeatSketchError(
                f"row {row} of {where} is a list of {length} numbers, where the first has {width}; "
                "make all lists of a column as long, and at least 1."
            )
    return numbers.reshape(-1, width)


def _polars_lists(column: Any) -> tuple[list[int | None], Any]:
    inner = getattr(column.dtype, "inner", None)
    if inner is None or not inner.is_numeric() or column.null_count() == len(column):
        return [], None
    # A polars Array has lists of one length, and therefore a shape.
    lists = column.arr.to_list() if hasattr(column.dtype, "shape") else column
    lengths = lists.list.len().to_list()
    if len(set(lengths)) > 1 or not lengths[0]:  # an error for the caller
        return lengths, np.empty(0)
    return lengths, lists.list.to_array(lengths[0]).to_numpy().ravel()


def _pandas_lists(column: Any) -> tuple[list[int | None], Any]:
    values = column.tolist() if getattr(column.dtype, "kind", "O") == "O" else []
    kinds = list | tuple | np.ndarray
    lists = [np.asarray(value) for value in values if isinstance(value, kinds)]
    lengths = [len(value) if isinstance(value, kinds) else None for value in values]
    return lengths, np.concatenate(lists) if lists and all(v.ndim for v in lists) else None


def _check_columns(frame: Any, X: str) -> None:
    """Check the dtype of each column of a pandas or polars frame.

    Nulls are left to :func:`check_finite`, since invalid column names are reported first.
    """
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        where = f"column {name!r} of {X}"
        if hasattr(dtype, "is_numeric"):  # polars
            if not (dtype.is_numeric() or str(dtype) == "Boolean"):
                check_dtype(str(dtype), where)
        elif isinstance(dtype, np.dtype) and dtype.hasobject and _are_numbers(frame[name]):
            _numbers_from_objects(np.asarray(frame[name]), where)  # raises for missing values
        else:
            check_dtype(dtype, where)


def _are_numbers(values: Any) -> bool:
    return all(map(_is_number_or_missing, values))


def _is_number_or_missing(value: Any) -> bool:
    # numpy counts a timedelta as an integer.
    is_real = isinstance(value, int | float | np.number | np.bool_)
    return type(value).__name__ in MISSING or (is_real and not isinstance(value, np.timedelta64))


def _numbers_from_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Convert an array of Python numbers to floats; raise for other objects."""
    for index, value in np.ndenumerate(array):
        where = f"{name}{list(index)}" if index else name
        if type(value).__name__ in MISSING:
            raise MissingValueError(
                f"{where} is {value}, which is no number (NaN); "
                "fill it in (sklearn.impute), or drop its row."
            )
        if isinstance(value, complex | np.complexfloating):
            check_dtype(np.dtype(complex), where)
        if not _is_number_or_missing(value):
            raise DtypeError(
                f"{where} is {reprlib.repr(value)}; the argument must be numeric, and a "
                f"{type(value).__name__} is not, nor is a string that looks like a number; "
                f"convert {name} to floats first."
            )
    try:
        return array.astype(np.float64)
    except OverflowError as error:
        largest = reprlib.repr(max(array.flat, key=abs))
        raise ScaleError(
            f"{name} holds {largest}, which is beyond float64 ({error}); divide {name} by it first."
        ) from error


def check_finite(
    X: Any, columns: Any = None, name: str = "X", *, ids: Any = None, first_row: int = 0
) -> None:
    """Raise for NaN and infinity, with row and column, and their names if known.

    Rows are counted from ``first_row``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch._core.checks import check_finite
    >>> check_finite(np.array([[1, np.nan]]), ["x", "y"], "a.csv", ids=["r7"], first_row=7)
    Traceback (most recent call last):
    ...
    heatsketch.exceptions.MissingValueError: a.csv contains NaN in row 7 ('r7'), column 1 ('y')...
    """
    values = stored(X)
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum is not finite if an entry is not, and needs no memory.
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    entries = sparse.coo_array(X) if sparse.issparse(X) else None
    bad = np.argwhere(~np.isfinite(entries.data if entries is not None else X))
    place = bad[0] if entries is None else (entries.row[bad[0, 0]], entries.col[bad[0, 0]])
    row, column = int(place[0]), int(place[1])
    value = X[row, column]
    what = "NaN" if np.isnan(value) else f"infinity (inf): {value}"
    of_row = "" if ids is None else f" ({ids[row]!r})"
    of_column = "" if columns is None else f" ({columns[column]!r})"
    raise MissingValueError(
        f"{name} contains {what} in row {first_row + row}{of_row}, column {column}{of_column}, and "
        f"{len(bad)} such values in all; fill them in (sklearn.impute), or drop their rows."
    )
