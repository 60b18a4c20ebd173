"""Selection and conversion of feature and passthrough columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch.exceptions import FileFormatError

NUMBERS = "biuf"  # kinds of dtype: bool, int, uint, float
# Digits beyond microseconds of units that Python lacks, and that numpy converts to integers.
FINER = {"ns": 3, "ps": 6, "fs": 9, "as": 12}
FEW = 8  # most names in a message
LOOKED_AT = 10_000  # most names compared for a suggestion: a million take a minute


class Wanted(NamedTuple):
    """Request for a file: the arguments of :func:`heatsketch.io.open_table`."""

    columns: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    ids: str | None = None
    key: str | None = None
    header: bool | None = None


def numbered_names(n_columns: int) -> tuple[str, ...]:
    """Return scikit-learn's names for unnamed columns: x0, x1, ..."""
    return tuple(f"x{column}" for column in range(n_columns))


def check_matrix(path: Path, shape: tuple[int, ...], dtype: Any, name: str = "the array") -> None:
    """Raise if an array is not a table of real numbers."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise FileFormatError(
            path,
            f"{name} holds Python objects, which only pickle reads, and a pickle can run anything",
            "save it as numbers, for instance with X.astype(float)",
        )
    if dtype.kind not in NUMBERS or dtype.names is not None:
        raise FileFormatError(
            path, f"{name} has dtype {dtype}, which is no real number", "save it as real numbers"
        )
    if len(shape) != 2:
        raise FileFormatError(
            path,
            f"{name} has shape {shape}, and a table has two axes, rows and columns",
            "save it as X.reshape(len(X), -1)",
        )
    if min(shape) < 0:
        raise FileFormatError(path, f"{name} has shape {shape}", "check that the file is whole")
    if shape[1] == 0:
        raise FileFormatError(path, f"{name} has no columns", "save at least one")


def check_length(path: Path, what: str, shape: tuple[int, ...], n_rows: int) -> None:
    """Raise if ids, labels or names are not one value for each row or column."""
    if shape != (n_rows,):
        remedy = "use one value for each row or column"
        raise FileFormatError(path, f"{what} has shape {shape}, not ({n_rows},)", remedy)


def find_table(path: Path, shapes: Mapping[str, tuple[int, ...]], key: str | None) -> str:
    """Return ``key`` if it is an array, or the only array that can be a table."""
    if key is not None:
        return find_name(path, key, shapes, "key")
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(tables) == 1 or len(shapes) == 1:
        return (tables or list(shapes))[0]
    some = ", ".join(f"{name!r} {shape}" for name, shape in list(shapes.items())[:FEW])
    raise FileFormatError(
        path,
        f"{len(tables)} of its arrays have two axes: {some or 'it holds none'}",
        "name one of them: key=",
    )


def find_name(path: Path, name: str, known: Collection[str], argument: str) -> str:
    """Return ``name`` if it is known; otherwise raise with similar names."""
    if name in known:
        return name
    near = get_close_matches(name, list(islice(known, LOOKED_AT)), n=3, cutoff=0.6)
    by_case = [other for other in known if other.lower() == name.lower()]
    some = ", ".join(repr(other) for other in list(known)[:FEW])
    meant = " or ".join(repr(other) for other in dict.fromkeys(by_case + near))
    remedy = f"perhaps {meant} is meant" if meant else f"it has {some}"
    remedy = remedy if len(known) <= FEW or meant else f"{remedy} and {len(known) - FEW} more"
    raise FileFormatError(path, f"{argument}={name!r} is not in it", remedy, **{argument: name})


def column_positions(
    path: Path, names: Sequence[str], columns: Sequence[str] | None
) -> tuple[int, ...] | None:
    """Return the positions of the wanted columns; None for all columns."""
    if columns is None:
        return None
    place = {name: position for position, name in enumerate(names)}
    check_unique(path, columns, "columns")
    return tuple(place[find_name(path, name, place, "columns")] for name in columns)


def choose_columns(
    path: Path,
    names: Sequence[str],
    numeric: Collection[str],
    wanted: Wanted,
    indexes: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the feature names: those wanted, or all but indexes and those passed through."""
    check_unique(path, names, "names of columns")
    for argument, given in (("labels", wanted.labels), ("ids", (wanted.ids,))):
        for name in given:
            if name is not None:
                find_name(path, name, names, argument)
    no_features = {*wanted.labels, wanted.ids, *indexes}
    if wanted.columns is not None:
        check_unique(path, wanted.columns, "columns")
        features = tuple(find_name(path, name, names, "columns") for name in wanted.columns)
    else:
        features = tuple(name for name in names if name not in no_features)
        if "" in features:
            raise _unnamed(path, names, [name for name in features if name and name in numeric])
    texts = [name for name in features if name not in numeric]
    if texts:
        raise _no_numbers(path, texts, [name for name in features if name in numeric])
    if not features and wanted.columns is None:
        raise FileFormatError(path, "it has no column of numbers", "choose other columns")
    return features


def _no_numbers(path: Path, texts: list[str], others: list[str]) -> FileFormatError:
    """Return the error for text columns, with all of their names if they are few."""
    cause = f"columns {texts[:FEW]} do" if texts[1:] else f"column {texts[0]!r} does"
    few, named, them = others[:FEW], texts[0], "them" if texts[1:] else "it"
    remedy = f"pass {them} through with labels={texts}, or use ids={named!r} for names of rows"
    if len(texts) > FEW:
        remedy = f"choose others, for instance columns={few}"
    parameters = {"labels": texts, "ids": named, "columns": few}
    return FileFormatError(path, f"{cause} not hold numbers", remedy, **parameters)


def _unnamed(path: Path, names: Sequence[str], others: list[str]) -> FileFormatError:
    """Return the error for a column without a name, which may be an index or a feature."""
    few = others[:FEW]
    return FileFormatError(
        path,
        f"column {list(names).index('')} has no name, as a row index written by pandas has none",
        f"write it without the index (index=False), or choose columns={few}",
        columns=few,
    )


def check_unique(path: Path, names: Sequence[str], what: str) -> None:
    """Raise if a name occurs twice."""
    twice, times = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise FileFormatError(path, f"{what} has {twice!r} twice", "give each a name of its own")


def carried(values: Any) -> np.ndarray:
    """Return ids or labels in one of five dtypes that every format supports.

    These are bool, int64, uint64 (for 64-bit unsigned integers only), float64, and object for text:
    str, or None where a value is missing. Dates and all other types become text.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        return array  # the caller raises for its shape
    if array.dtype.kind in "SU" and not isinstance(values, np.ndarray):
        # numpy's text dtype truncates at NUL, and converts mixed numbers to text.
        array = np.array([None, *values], dtype=object)[1:]
    kind = array.dtype.kind
    if kind == "b":
        return array.astype(bool)
    if kind == "i" or (kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64)
    if kind == "u":
        return array.astype(np.uint64)
    if kind == "f":
        return array.astype(np.float64)
    text = np.empty(len(array), dtype=object)
    text[:] = _times(array) if kind in "Mm" else [_text(value) for value in array.tolist()]
    return text


def _times(array: np.ndarray) -> list[str | None]:
    """Return dates or durations as text, with digits beyond microseconds."""
    unit = np.datetime_data(array.dtype)[0]
    if unit not in FINER:
        return [_text(value) for value in array.tolist()]
    whole = array.astype(f"{array.dtype.kind}8[us]")
    rests = (array - whole).astype(f"m8[{unit}]").tolist()
    return [
        _with_finer(text, rest, FINER[unit])
        for text, rest in zip(_times(whole), rests, strict=True)
    ]


def _with_finer(text: Any, rest: int | None, n_digits: int) -> str | None:
    if not rest:  # 0, or None for a missing value, whose text is None, too
        return text
    six = "" if "." in text else ".000000"
    return f"{text}{six}{rest:0{n_digits}}"


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    # NaN and pandas.NaT are not equal to themselves, and pandas.NA == pandas.NA is undefined.
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return str(value)
