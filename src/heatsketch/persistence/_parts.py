"""Values as trees of plain values and named arrays, and back.

A tree is what JSON can hold. A dataclass has an entry for each field, and its ``"type"``; an array
is ``{"array": name}``, with ``"text"`` for an array of text, as code points.

A tree that was read may hold anything. :class:`Part` returns its parts, and checks the
type, dtype, shape and range of indices of each, and that numbers are finite. So no file can make a
compiled loop read out of bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_places
from heatsketch.exceptions import NotStorableError

PLAIN = (type(None), bool, int, float, str)
FLOATS, I64 = ("float32", "float64"), ("int64",)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LARGEST_CODE_POINT = 0x10FFFF
Shape = tuple[int | None, ...]


# --- writing ----------------------------------------------------------------------------------


class Writer:
    """Makes trees of values, and collects their arrays, each of them once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._nodes: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}  # by id of the array

    def tree(self, value: Any, name: str = "") -> Any:
        """Return the tree of a value, whose path is ``name``."""
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) in PLAIN:
            return value
        if isinstance(value, np.ndarray):
            if id(value) not in self._nodes:
                self._nodes[id(value)] = value, self._array(value, name)
            return self._nodes[id(value)][1]
        parts = _parts(value, name)
        trees = {key: self.tree(part, f"{name}.{key}".strip(".")) for key, part in parts.items()}
        return {"type": type(value).__name__, **trees}

    def _array(self, array: np.ndarray, name: str) -> dict[str, Any]:
        node: dict[str, Any] = {"array": name}
        if array.dtype.kind in "OU" and array.ndim == 1:
            node = {"text": name, "is_object": array.dtype.kind == "O"}
            dtype = str if node["is_object"] else array.dtype.newbyteorder("=")
            text = np.array([str(entry) for entry in array.tolist()], dtype)
            if text.tolist() != array.tolist():
                raise NotStorableError(
                    f"{name} must be integers or text in a model file; name the rows by integers "
                    "or text, or use pickle."
                )
            array = text.view(np.uint32).reshape(len(text), -1)
        elif array.flags.f_contiguous and not array.flags.c_contiguous:
            # The layout affects how sums are rounded.
            array, node["is_transposed"] = array.T, True
        if array.dtype.name not in (*FLOATS, *INTEGERS, "bool"):
            raise NotStorableError(
                f"{name} has dtype {array.dtype}, which a model file cannot hold; use pickle."
            )
        self.arrays[name] = array
        return node


def _parts(value: Any, name: str) -> Mapping[str, Any]:
    """Return the parts of a value by their names."""
    if isinstance(value, sparse.csr_array):
        return {key: getattr(value, key) for key in ("data", "indices", "indptr", "shape")}
    if type(value) in (list, tuple):
        return {str(place): part for place, part in enumerate(value)}
    if isinstance(value, dict):
        return value
    module = type(value).__module__
    if module.startswith("heatsketch.") and not module.startswith("heatsketch.engines."):
        if hasattr(value, "_stored_parts"):
            return value._stored_parts()
        if is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        if hasattr(value, "_asdict"):
            return value._asdict()
    raise NotStorableError(
        f"{name or 'The model'} is a {type(value).__name__}, which a model file cannot hold: it "
        "may be code, or stored on a cluster. Use a name or a number instead, pickle if everyone "
        "who loads it trusts you, or embedding.to_zarr(path) for an embedding on a cluster."
    )


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A part of a tree that was read, whose own parts are checked.

    The ValueError for one that is not valid becomes a FileFormatError where the path is known.
    """

    tree: dict[str, Any]
    arrays: Mapping[str, np.ndarray]
    path: str = ""

    def __getitem__(self, name: str) -> Part:
        """Return a part that has parts of its own."""
        node = self.tree.get(name)
        if not isinstance(node, dict):
            raise ValueError(f"{self.path}{name} is {node!r:.50}")
        return Part(node, self.arrays, f"{self.path}{name}.")

    def check(self, is_valid: Any, name: str, problem: str = "is not valid") -> None:
        """Raise unless a part is valid."""
        if not is_valid:
            raise ValueError(f"{self.path}{name} {problem}")

    def has(self, name: str) -> bool:
        """Return True if a part exists and is not None."""
        return self.tree.get(name) is not None

    def plain(self, name: str, *kinds: type) -> Any:
        """Return a plain value of one of some types."""
        value = self.tree.get(name)
        self.check(name in self.tree and type(value) in kinds, name, f"is {value!r:.50}")
        return value

    def count(self, name: str, least: int = 1, most: int = 2**53) -> int:
        """Return an integer in a range."""
        value = self.plain(name, int)
        self.check(least <= value <= most, name, f"is {value}")
        return value

    def plain_dict(self, name: str) -> dict[str, Any]:
        """Return settings: plain values by name."""
        part = self[name]
        return {key: part.plain(key, *PLAIN) for key in part.tree if key != "type"}

    def array(
        self, name: str, dtypes: Any, shape: Shape, *, finite: bool = True, least: int = 1
    ) -> np.ndarray:
        """Return an array of one of some dtypes; None is any size from ``least`` on."""
        node = self[name]
        array = self._stored(node, "array")
        array = array.T if node.tree.get("is_transposed") else array
        sizes = zip(array.shape, shape, strict=True) if array.ndim == len(shape) else [(0, 1)]
        fits = all(size == n or (n is None and size >= least) for size, n in sizes)
        problem = f"has shape {array.shape} and dtype {array.dtype}, not {shape} and {dtypes}"
        self.check(fits and array.dtype.name in dtypes, name, problem)
        is_exact = not finite or array.dtype.kind != "f"
        self.check(is_exact or np.isfinite(array).all(), name, "has values that are not finite")
        return array

    def indices(self, name: str, dtypes: Any, shape: Shape, end: int, **options: Any) -> np.ndarray:
        """Return an array of integers from ``start=0`` up to ``end``, which is not included."""
        start = options.pop("start", 0)
        array = self.array(name, dtypes, shape, **options)
        is_within = not array.size or start <= array.min() <= array.max() < end
        self.check(is_within, name, "has indices out of range")
        return array

    def permutation(self, name: str, n: int) -> np.ndarray:
        """Return a permutation of 0, ..., n - 1."""
        order = self.indices(name, I64, (n,), n)
        self.check((np.bincount(order, minlength=n) == 1).all(), name, "is not a permutation")
        return order

    def starts(self, name: str, n: int | None = None, *, end: int | None = None) -> np.ndarray:
        """Return ``n + 1`` numbers that do not fall, from 0 to ``end``."""
        starts = self.array(name, I64, (None if n is None else n + 1,))
        # Compared, since a difference may overflow.
        rises = starts[0] == 0 and (starts[1:] >= starts[:-1]).all()
        self.check(
            rises and end in (None, starts[-1]), name, "must rise from 0 to the number of rows"
        )
        return starts

    def csr(self, name: str, dtype: str, shape: tuple[int, int | None]) -> sparse.csr_array:
        """Return a CSR matrix; None is any number of columns."""
        part, integers = self[name], ("int32", "int64")
        n_columns = part["shape"].count("1")
        part.check(shape[1] in (None, n_columns), "shape", f"has {n_columns} columns")
        indptr = part.array("indptr", integers, (shape[0] + 1,))
        indices = part.array("indices", integers, (None,), least=0)
        data = part.array("data", (dtype,), indices.shape, least=0)
        matrix = sparse.csr_array((data, indices, indptr), shape=(shape[0], n_columns))
        check_places(matrix, name)
        return matrix

    def matrix(self, name: str, dtype: str, shape: tuple[int, int | None]) -> Any:
        """Return a dense array or a CSR matrix."""
        is_sparse = "data" in self[name].tree
        return self.csr(name, dtype, shape) if is_sparse else self.array(name, (dtype,), shape)

    def names(self, name: str, n: int | None = None, dtypes: Any = INTEGERS) -> np.ndarray:
        """Return an array of text, or of other dtypes."""
        node = self[name]
        if "text" not in node.tree:
            return self.array(name, dtypes, (n,))
        codes = np.ascontiguousarray(self._stored(node, "text"))
        fits = codes.dtype == np.uint32 and codes.ndim == 2 and n in (None, len(codes))
        self.check(fits and codes.size and codes.max() <= LARGEST_CODE_POINT, name)
        text = codes.view(f"U{codes.shape[1]}")[:, 0]
        return text.astype(object) if node.tree.get("is_object") else text

    def _stored(self, node: Part, kind: str) -> np.ndarray:
        stored = node.plain(kind, str)
        node.check(stored in self.arrays, kind, "is missing")
        return self.arrays[stored]
