"""What a fitted model consists of, part by part, and what must be true of each.

A model is taken apart into arrays and plain values, and put together again from them; no code is
stored. Each part is declared with its dtype and with its shape in letters: ``n`` points, ``k``
columns, ``d`` features. All letters must mean the same throughout a model, indices must lie where
they point to, and permutations must be permutations. So whatever a file says, no compiled loop
reads where it should not.

What a model holds twice is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from heatsketch.exceptions import NotStorableError
from heatsketch.graph._ivf import Level, ListTree, NeighborLists

__all__ = [
    "Array",
    "Choice",
    "Csr",
    "Kept",
    "Names",
    "Optional",
    "Part",
    "Record",
    "Refused",
    "Tree",
    "Value",
    "is_permutation",
    "lies_in_order",
    "lists_fit",
]

DEEPEST_TREE = 16
SCALARS = {name: np.dtype(name).type for name in ("float32", "float64", "int32", "int64", "bool")}


class Refused(Exception):  # noqa: N818 - becomes a FileFormatError where the path is known
    """A part that is not what it is declared to be."""


@dataclass
class Kept:
    """The parts of one model, by name, and what its letters have been found to mean."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    letters: dict[str, Any] = field(default_factory=dict)
    whole: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def put_once(self, part: Part, name: str, value: Any) -> bool:
        """Keep the name of an object that has been kept already; say whether it is the first."""
        for other, (kind, known) in self.whole.items():
            if known is value and kind is part:
                self.values[name] = {"same": other}
                return False
        self.whole[name] = part, value
        return True

    def get_once(self, part: Part, name: str) -> Any:
        """Return what has been made already under another name, or None."""
        found = self.values.get(name)
        if not isinstance(found, dict):
            return None
        kind, made = self.whole.get(str(found.get("same")), (None, None))
        if kind is not part:
            raise Refused(f"{name} is {found!r}")
        return made

    def put_array(self, name: str, array: np.ndarray) -> None:
        """Keep an array, or the name of the same one."""
        for other, known in self.arrays.items():
            if known is array:
                self.values[name] = {"same": other}
                return
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            # The order in memory decides in which order sums are rounded.
            self.arrays[name], self.values[name] = array.T, "transposed"
        else:
            self.arrays[name] = array

    def get_array(self, name: str) -> np.ndarray:
        """Return an array as it was."""
        found = self.values.get(name)
        if isinstance(found, dict):
            return self._array(found.get("same"))
        array = self._array(name)
        return array.T if found == "transposed" else array

    def _array(self, name: Any) -> np.ndarray:
        if not isinstance(name, str) or name not in self.arrays:
            raise Refused(f"there is no array {name}")
        return self.arrays[name]

    def value(self, name: str) -> Any:
        """Return a plain value."""
        if name not in self.values:
            raise Refused(f"there is no {name}")
        return self.values[name]

    def bind(self, letter: str, meaning: Any, name: str) -> None:
        """Refuse a letter that meant something else before."""
        if self.letters.setdefault(letter, meaning) != meaning:
            raise Refused(f"{name} has {letter}={meaning}, elsewhere it is {self.letters[letter]}")


class Part(Protocol):
    """What a declaration can do: take a part of a model apart, and put it together again."""

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep a value under a name."""

    def get(self, kept: Kept, name: str) -> Any:
        """Return it as it was, or refuse it."""


@dataclass(frozen=True)
class Array:
    """An array whose shape is a word of letters.

    ``dtype`` is the name of one, "F" for that of the model, "float" or "int" for any such.
    """

    shape: str
    dtype: str = "F"
    finite: bool = True
    is_right: Callable[[np.ndarray], bool] = lambda array: True

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep an array under a name."""
        if not isinstance(value, np.ndarray):
            raise NotStorableError(
                f"{name} is a {type(value).__name__} and no array in memory; use pickle, or an "
                "engine that keeps it in memory (engine=None)."
            )
        kept.put_array(name, value)

    def get(self, kept: Kept, name: str) -> np.ndarray:
        """Return it as it was, or refuse it."""
        array = kept.get_array(name)
        if array.ndim != len(self.shape):
            raise Refused(f"{name} has shape {array.shape}, and should have {len(self.shape)} axes")
        for letter, size in zip(self.shape, array.shape, strict=True):
            kept.bind(letter, size, name)
        self._check_dtype(kept, name, array)
        if array.dtype.kind == "f" and self.finite and not np.isfinite(array).all():
            raise Refused(f"{name} holds numbers that are not finite")
        if not self.is_right(array):
            raise Refused(f"{name} holds numbers that cannot be")
        return array

    def _check_dtype(self, kept: Kept, name: str, array: np.ndarray) -> None:
        kinds = {"F": "f", "float": "f", "int": "iu"}.get(self.dtype, "")
        if array.dtype.kind not in kinds and array.dtype.name != self.dtype:
            raise Refused(f"{name} is of {array.dtype}")
        if self.dtype == "F":
            kept.bind("dtype", array.dtype.name, name)


@dataclass(frozen=True)
class Optional:
    """An array that is there, or None."""

    part: Array

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep an array under a name, or nothing."""
        if value is not None:
            self.part.put(kept, name, value)

    def get(self, kept: Kept, name: str) -> np.ndarray | None:
        """Return it as it was, or refuse it."""
        if name in kept.arrays or name in kept.values:
            return self.part.get(kept, name)
        return None


def is_permutation(order: np.ndarray) -> bool:
    """Say whether every number below the length appears once.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.persistence._schema import is_permutation
    >>> is_permutation(np.array([2, 0, 1])), is_permutation(np.array([1, 2, 3]))
    (True, False)
    """
    if order.size == 0 or order.min() < 0 or order.max() >= order.size:
        return False
    return bool((np.bincount(order, minlength=order.size) == 1).all())


def lies_in_order(starts: np.ndarray, end: int) -> bool:
    """Say whether parts begin one after another, from zero to the end.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.persistence._schema import lies_in_order
    >>> lies_in_order(np.array([0, 2, 5]), 5), lies_in_order(np.array([0, 7, 5]), 5)
    (True, False)
    """
    return bool(
        starts.size and starts[0] == 0 and starts[-1] == end and (starts[1:] >= starts[:-1]).all()
    )


@dataclass(frozen=True)
class Csr:
    """A sparse matrix in rows, whose shape is two letters."""

    shape: str
    dtype: str = "F"

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep a matrix under a name."""
        kept.values[name] = list(value.shape)
        for part in ("data", "indices", "indptr"):
            kept.put_array(f"{name}.{part}", getattr(value, part))

    def get(self, kept: Kept, name: str) -> sparse.csr_array:
        """Return it as it was, or refuse it."""
        n_rows, n_columns = shape = _shape(kept.value(name), name)
        for letter, size in zip(self.shape, shape, strict=True):
            kept.bind(letter, size, name)
        entries = f"entries of {name}"
        data = Array("e", self.dtype).get(kept, f"{name}.data")
        indices = Array("e", "int").get(kept, f"{name}.indices")
        indptr = Array("r", "int").get(kept, f"{name}.indptr")
        del kept.letters["e"], kept.letters["r"]  # which mean something for this matrix only
        within = not data.size or (indices.min() >= 0 and indices.max() < n_columns)
        if not within or len(indptr) != n_rows + 1 or not lies_in_order(indptr, data.size):
            raise Refused(f"{entries} are not where they could be")
        if not {indices.dtype, indptr.dtype} <= {np.dtype(np.int32), np.dtype(np.int64)}:
            raise Refused(f"{entries} are counted in {indices.dtype} and {indptr.dtype}")
        return sparse.csr_array((data, indices, indptr), shape=shape)


def _shape(value: Any, name: str) -> tuple[int, int]:
    if not isinstance(value, list) or [type(size) for size in value] != [int, int]:
        raise Refused(f"{name} has the shape {value!r}")
    return value[0], value[1]


@dataclass(frozen=True)
class Value:
    """A number, a word or nothing, of one of the types given; ``letter`` is what it counts."""

    types: tuple[type, ...]
    letter: str = ""
    most: str = ""

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep a value under a name."""
        if isinstance(value, np.generic):
            value = [value.dtype.name, value.item()]
        kept.values[name] = value

    def get(self, kept: Kept, name: str) -> Any:
        """Return it as it was, or refuse it."""
        value = found = kept.value(name)
        if isinstance(found, list) and len(found) == 2 and isinstance(found[0], str):
            value = found[1]
        if type(value) not in self.types:
            raise Refused(f"{name} is {found!r}")
        if self.letter:
            kept.bind(self.letter, value, name)
        if self.most and value is not None and not 1 <= value <= kept.letters[self.most]:
            raise Refused(f"{name} is {found!r}, with {self.most}={kept.letters[self.most]}")
        return value if value is found else _numpy_scalar(found[0], value, name)


def _numpy_scalar(dtype: str, value: Any, name: str) -> Any:
    try:
        with np.errstate(over="raise"):
            return SCALARS[dtype](value)
    except (KeyError, OverflowError, ValueError, TypeError, FloatingPointError):
        raise Refused(f"{name} is {value!r} of {dtype!r}") from None


@dataclass(frozen=True)
class Names:
    """Names of features."""

    shape: str

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep names under a name."""
        kept.values[name] = [str(word) for word in value]

    def get(self, kept: Kept, name: str) -> np.ndarray:
        """Return them as they were, or refuse them."""
        words = kept.value(name)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise Refused(f"{name} holds no words")
        kept.bind(self.shape, len(words), name)
        return np.array(words, dtype=object)


@dataclass(frozen=True)
class Record:
    """A class made from its fields, in the order in which they are declared."""

    type: Callable[..., Any]
    fields: Mapping[str, Part]
    is_right: Callable[[Any], bool] = lambda made: True

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep all fields, once."""
        if not kept.put_once(self, name, value):
            return
        for place, part in self.fields.items():
            part.put(kept, f"{name}.{place}", getattr(value, place))

    def get(self, kept: Kept, name: str) -> Any:
        """Make it again from its fields, or refuse it."""
        made = kept.get_once(self, name)
        if made is not None:
            return made
        found = {place: part.get(kept, f"{name}.{place}") for place, part in self.fields.items()}
        made = self.type(**found)
        if not self.is_right(made):
            raise Refused(f"the parts of {name} do not fit together")
        kept.whole[name] = self, made
        return made


@dataclass(frozen=True)
class Choice:
    """One of several parts; which, is said by a word. ``None`` as a part stands for itself."""

    options: Mapping[str, tuple[Callable[[Any], bool], Part | None]]

    def put(self, kept: Kept, name: str, value: Any) -> None:
        """Keep the word, and the part that it stands for."""
        for word, (is_it, part) in self.options.items():
            if is_it(value):
                kept.values[f"{name}?"] = word
                if part is not None:
                    part.put(kept, name, value)
                return
        raise NotStorableError(
            f"{name} is a {type(value).__name__}, which model files do not hold; use pickle, or "
            "engine=None and arrays in memory."
        )

    def get(self, kept: Kept, name: str) -> Any:
        """Return it as it was, or refuse it."""
        word = kept.value(f"{name}?")
        if not isinstance(word, str) or word not in self.options:
            raise Refused(f"{name} is {word!r}")
        part = self.options[word][1]
        return None if part is None else part.get(kept, name)


@dataclass(frozen=True)
class Tree:
    """A tree of lists."""

    def put(self, kept: Kept, name: str, value: ListTree) -> None:
        """Keep all levels."""
        kept.values[name] = len(value.levels)
        for i, level in enumerate(value.levels):
            kept.put_array(f"{name}.{i}.centroids", level.centroids)
            kept.put_array(f"{name}.{i}.starts", level.starts)

    def get(self, kept: Kept, name: str) -> ListTree:
        """Return it as it was, or refuse it."""
        n_levels = kept.value(name)
        if type(n_levels) is not int or not 0 <= n_levels <= DEEPEST_TREE:
            raise Refused(f"{name} has {n_levels!r} levels")
        levels, n_nodes = [], 1
        for i in range(n_levels):
            centroids = Array("cd").get(kept, f"{name}.{i}.centroids")
            starts = Array("s", "int64").get(kept, f"{name}.{i}.starts")
            del kept.letters["c"], kept.letters["s"]
            if len(starts) != n_nodes + 1 or not lies_in_order(starts, len(centroids)):
                raise Refused(f"the nodes of {name} are not where they could be")
            levels.append(Level(centroids, starts))
            n_nodes = len(centroids)
        if n_nodes < 1:
            raise Refused(f"{name} has no lists")
        return ListTree(tuple(levels))


def lists_fit(lists: NeighborLists) -> bool:
    """Say whether points lie in the order of their lists, and probe lists that there are."""
    first, n_lists = lists.probes[:, 0], lists.tree.n_lists
    return bool(
        lists.probes.size
        and lists.probes.min() >= -1
        and lists.probes.max() < n_lists
        and first.min() >= 0
        and (first[1:] >= first[:-1]).all()
    )
