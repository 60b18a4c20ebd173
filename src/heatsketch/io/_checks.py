"""Selection of columns, and errors of files."""

from __future__ import annotations

import errno
import importlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import file_errors
from heatsketch._core.checks import is_missing
from heatsketch._core.memory import physical_memory
from heatsketch.exceptions import (
    FileFormatError,
    HeatSketchError,
    HeatSketchWarning,
    MemoryBudgetError,
)

FEW = 8  # most names in a message
LONGEST_CAUSE = 300  # characters: some libraries include the file in their messages
# Errors of the system, not of the file contents: libraries also raise OSError for damaged files.
OF_THE_SYSTEM = {errno.ENOENT, errno.EACCES, errno.EIO, errno.EISDIR, errno.ENOTDIR}
MOST_COMPARED = 10_000  # most names compared for a suggestion: a million take a minute


class Selection(NamedTuple):
    """The arguments of :func:`heatsketch.io.open_table`."""

    columns: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    ids: str | None = None
    key: str | None = None
    header: bool | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of ids and labels."""
        return (*(() if self.ids is None else (self.ids,)), *self.labels)


def numbered_names(n_columns: int) -> tuple[str, ...]:
    """Return scikit-learn's names for unnamed columns: x0, x1, ..."""
    return tuple(f"x{column}" for column in range(n_columns))


def check_matrix(path: Any, shape: tuple[int, ...], dtype: Any, name: str = "the array") -> None:
    """Raise if an array is not a table of real numbers."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf" or dtype.names is not None:
        cause = f"{name} must hold real numbers, got dtype {dtype}"
        raise FileFormatError(path, cause, "save it as numbers, for instance with X.astype(float)")
    if len(shape) != 2 or min(shape) < 0 or shape[1] == 0:
        cause = f"{name} must have two axes, rows and columns, got shape {shape}"
        raise FileFormatError(path, cause, "save it as X.reshape(len(X), -1)")


def check_length(path: Any, what: str, shape: tuple[int, ...], n_rows: int) -> None:
    """Raise if ids, labels or names are not one value for each row or column."""
    if shape != (n_rows,):
        cause = f"{what} must have shape ({n_rows},), got {shape}"
        raise FileFormatError(path, cause, "use one value for each row or column")


def find_table(path: Any, shapes: Mapping[str, tuple[int, ...]], key: str | None) -> str:
    """Return ``key`` if it is an array, or the only array that can be a table."""
    if key is not None:
        return find_name(path, key, shapes, "key")
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(tables) == 1 or len(shapes) == 1:
        return (tables or list(shapes))[0]
    cause = f"{len(tables)} of its {len(shapes)} arrays have two axes: {tables[:FEW]}"
    raise FileFormatError(path, cause, "name one with key=")


def find_name(path: Any, name: str, known: Collection[str], argument: str) -> str:
    """Return ``name`` if it is known; otherwise raise with a similar name."""
    if name in known:
        return name
    near = [other for other in known if other.lower() == name.lower()]
    near += get_close_matches(name, list(islice(known, MOST_COMPARED)), n=1)
    more = f" and {len(known) - FEW} more" if len(known) > FEW else ""
    remedy = f"did you mean {near[0]!r}?" if near else f"it has {list(known)[:FEW]}{more}"
    raise FileFormatError(path, f"{argument}={name!r} is not in it", remedy)


def check_unique(path: Any, names: Sequence[str], what: str) -> None:
    """Raise if a name occurs twice."""
    twice, times = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise FileFormatError(path, f"{what}: {twice!r} occurs twice", "use different names")


def choose_columns(
    path: Any, dtypes: Mapping[str, Any], selection: Selection, indexes: Collection[str]
) -> tuple[str, ...]:
    """Return the feature names: those selected, or all but indexes and those passed through.

    ``dtypes`` has the dtype of each column, and None for text.
    """
    for name in selection.beside:
        find_name(path, name, dtypes, "labels" if name in selection.labels else "ids")
    if selection.columns is not None:
        check_unique(path, selection.columns, "columns")
        features = tuple(find_name(path, name, dtypes, "columns") for name in selection.columns)
    else:
        features = tuple(name for name in dtypes if name not in {*selection.beside, *indexes})
    texts = [name for name in features if dtypes[name] is None][:FEW]
    others = [name for name in features if dtypes[name] is not None and name][:FEW]
    if "" in features and selection.columns is None:
        cause = f"column {list(dtypes).index('')} has no name, like a row index written by pandas"
        remedy = f"write it without the index (index=False), or choose columns={others}"
        raise FileFormatError(path, cause, remedy)
    if texts:
        cause = f"columns {texts} do not hold numbers"
        remedy = f"choose columns={others}, or use labels={texts} or ids={texts[0]!r}"
        raise FileFormatError(path, cause, remedy)
    if not features and selection.columns is None:
        raise FileFormatError(path, "it has no columns of numbers", "choose other columns")
    return features


def carried(values: Any) -> np.ndarray:
    """Return ids or labels in one of five dtypes that every format supports.

    These are bool, int64, uint64 (for 64-bit unsigned integers only), float64, and object for text:
    str, or None where a value is missing. Dates and all other types become text.
    """
    array = np.asarray(values)
    if array.dtype.kind in "Mm":
        array = np.where(np.isnat(array), None, array.astype(str))  # type: ignore[call-overload]
    if array.dtype.kind in "biuf":
        plain = {"b": bool, "f": np.float64, "i": np.int64, "u": np.int64}[array.dtype.kind]
        return array.astype(np.uint64 if array.dtype == np.uint64 else plain)
    text = np.empty(array.shape, dtype=object)
    text[...] = [_text(value) for value in array.tolist()] if array.ndim == 1 else None
    return text


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode()
    return None if is_missing(value) else str(value)


# --- errors ------------------------------------------------------------------------------------


@contextmanager
def reading(path: Any) -> Iterator[None]:
    """Convert errors of readers to FileFormatError with the path and the cause.

    Parsers raise almost any error for damaged or malicious files: ``np.load`` alone raises
    SyntaxError, TypeError, EOFError and TokenError.
    """
    try:
        yield
    except (HeatSketchError, HeatSketchWarning):
        raise
    except Exception as error:
        # Remote file systems raise errors without a number.
        is_absent = isinstance(error, FileNotFoundError | PermissionError)
        if (is_absent and "://" in str(path)) or getattr(error, "errno", None) in OF_THE_SYSTEM:
            with file_errors(path, doing="read"):
                raise
        cause = " ".join(str(error).split())[:LONGEST_CAUSE] or "no message"
        cause = f"cannot be read ({type(error).__name__}: {cause})"
        remedy = "check that the file is complete and matches its extension"
        raise FileFormatError(path, cause, remedy) from error


def module_of(name: str, path: Any) -> Any:
    """Import a module of this package, or raise an error with the install command."""
    try:
        return importlib.import_module(f"heatsketch.io.{name}")
    except ImportError as error:
        raise ImportError(
            f"{path}: files of this kind need {error.name}; install it with: "
            'pip install "heatsketch[files]".'
        ) from error


def check_memory(path: Any, n_bytes: int, what: str, remedy: str = "read it in blocks") -> None:
    """Raise if an object would exceed the memory, before it is allocated."""
    if n_bytes > physical_memory():
        raise MemoryBudgetError(
            f"{path}: {what} needs {n_bytes / 2**30:.3g} GiB of memory, but this machine has "
            f"{physical_memory() / 2**30:.3g} GiB; {remedy}."
        )
