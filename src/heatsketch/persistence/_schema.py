"""Schema of model files: a table of parts, and code to store and load them.

A model file contains named arrays and named plain values. The name of a part of a model is its
attribute path, for instance ``neighbors_.lists.order``, and the table defines its type. A part
is validated when it is read: dtype and shape must be those of the table, where a letter stands
for the same size throughout a model (``n`` rows, ``k`` components, ``d`` features, ``u`` distinct
points, ``*`` for any), and indices must be in range. So no file can make a compiled loop read out
of bounds.

Objects that occur twice in a model are stored once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.diffusion._all_pairs import AllPairs
from heatsketch.diffusion._bandwidth import EpsilonEstimate
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._heat_trace import HeatTrace
from heatsketch.diffusion._normalization import Scaling
from heatsketch.diffusion._operator import HeatOperator, Scaled
from heatsketch.exceptions import NotStorableError
from heatsketch.graph._ivf import Level, ListTree, NeighborLists
from heatsketch.graph._metrics import LIST_METRICS, METRICS
from heatsketch.graph._neighbors import Neighbors

DEEPEST_TREE = 16
SCALARS = ("float32", "float64", "int32", "int64", "bool")
KINDS = {"F": "f", "float": "f", "int": "iu"}  # kinds of dtypes; F is the dtype of the model


@dataclass(frozen=True)
class Array:
    """Type of an array, with a letter for each axis."""

    shape: str
    dtype: str = "F"
    finite: bool = True
    optional: bool = False
    is_valid: Callable[[np.ndarray], bool] = lambda array: True


def _is_interval(array: np.ndarray) -> bool:
    return array.shape == (2,) and -1 <= array[0] < array[1] <= 1


@dataclass(frozen=True)
class Csr:
    """Type of a CSR matrix with the dtype of the model."""

    shape: str


@dataclass(frozen=True)
class Names:
    """Type of an array of strings."""

    shape: str


def is_permutation(order: np.ndarray) -> bool:
    """Return True if ``order`` is a permutation of 0, ..., n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.persistence._schema import is_permutation
    >>> is_permutation(np.array([2, 0, 1])), is_permutation(np.array([1, 2, 3]))
    (True, False)
    """
    if not order.size or order.min() < 0 or order.max() >= order.size:
        return False
    return bool((np.bincount(order, minlength=order.size) == 1).all())


def is_rising(starts: np.ndarray, end: int, *, strictly: bool = False) -> bool:
    """Return True if the numbers increase from zero to ``end``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.persistence._schema import is_rising
    >>> is_rising(np.array([0, 2, 5]), 5), is_rising(np.array([0, 7, 5]), 5)
    (True, False)
    """
    if not starts.size or starts[0] != 0 or starts[-1] != end:
        return False
    rises = np.greater if strictly else np.greater_equal
    return bool(rises(starts[1:], starts[:-1]).all())


def _maybe(part: Any) -> dict[str, Any]:
    return {"none": None, "some": part}


def _matrix(shape: str) -> dict[str, Any]:
    return {"dense": Array(shape), "sparse": Csr(shape)}


ORDER = Array("n", "int64", is_valid=is_permutation)
CURVE = Array("t", "float", finite=False)
# The type of a part is an Array, a Csr, Names, a tuple of types of plain values, or a class, whose
# fields follow. A dict lists alternatives; the file names one of them in the value "name?".
FEATURES: dict[str, Any] = {
    "n_features_in_": (int,),
    "feature_names_in_": Names("d"),
}
EMBEDDING: dict[str, Any] = {
    "order_": ORDER,
    **FEATURES,
    "embedding_": Array("nk"),
    "row_ids_": Array("n", "int", is_valid=lambda ids: len(np.unique(ids)) == len(ids)),
    "epsilon_": {"none": None, "local": Array("n", "float"), "one": (float,)},
    "epsilon_estimate_": EpsilonEstimate,
    "epsilon_estimate_.epsilon": (float,),
    "epsilon_estimate_.dimension": (float,),
    "epsilon_estimate_.epsilons": Array("g", "float64"),
    "epsilon_estimate_.dimensions": Array("g", "float64"),
    "n_connected_components_": (int,),
    "component_labels_": Array("n", "int32", is_valid=lambda labels: labels.min() >= 0),
    "scaling_": Scaling,
    "scaling_.previous": Array("n", "float64", optional=True),
    "scaling_.current": Array("n", "float64"),
    "scaling_.n_iter": (int,),
    "scaling_.residual": (float,),
    "stationary_length_": (float,),
    "before_last_": Array("nk"),
    "neighbors_": Neighbors,
    "neighbors_.points": _matrix("ud"),
    "neighbors_.order": ORDER,
    "neighbors_.metric": (str,),
    "neighbors_.n_neighbors": (int, type(None)),
    "neighbors_.radii": _maybe(Array("u", finite=False)),
    "neighbors_.lists": _maybe(NeighborLists),
    "neighbors_.lists.tree": ListTree,
    "neighbors_.lists.tree.0": Level,
    "neighbors_.lists.tree.0.centroids": Array("*d"),
    "neighbors_.lists.tree.0.starts": Array("*", "int64"),
    "neighbors_.lists.points": Array("ud"),
    "neighbors_.lists.order": Array("u", "int64", is_valid=is_permutation),
    "neighbors_.lists.probes": Array("u*", "int32"),
    "neighbors_.starts": Array("*", "int64", optional=True),
    "neighbors_.ties": Array("u", "float64", finite=False, optional=True),
    "heat_operator_": HeatOperator,
    "heat_operator_.matrix": {
        "sparse": Csr("nn"),
        "shared": SharedRows,
        "all pairs": AllPairs,
        "scaled": Scaled,
    },
    "heat_operator_.matrix.matrix": Csr("uu"),
    "heat_operator_.matrix.starts": Array("*", "int64"),
    "heat_operator_.matrix.neighbors": Neighbors,
    "heat_operator_.matrix.scales": _maybe(Array("n", "float")),
    "heat_operator_.matrix.bandwidth": (float,),
    "heat_operator_.matrix.in_tiles": (bool,),
    "heat_operator_.matrix.K": _matrix("nn"),
    "heat_operator_.matrix.left": Array("n"),
    "heat_operator_.matrix.right": Array("n"),
    "heat_operator_.s": Array("n", "float64"),
    "heat_operator_.stationary": Array("n"),
    "fingerprints_": Array("n", "float64", finite=False),
    "row_names_": {"numbers": Array("n", "int64"), "text": Names("n")},
}
TABLES: dict[str, dict[str, Any]] = {
    "HeatSketch": {
        **EMBEDDING,
        "seed_": (int,),
        "power_": (int, float),
        "stationary_coefficients_": Array("k"),
        "interval_": Array("*", "float64", is_valid=_is_interval),
        "n_products_": (int,),
        "component_offsets_": Array("ck"),
        "heat_trace_": HeatTrace,
        "heat_trace_.powers": Array("t", "int"),
        "heat_trace_.trace": CURVE,
        "heat_trace_.error": CURVE,
        "heat_trace_.directions": CURVE,
    },
    "DiffusionMap": {**EMBEDDING, "eigenvalues_": Array("k", "float")},
    "NearIsometry": {
        **FEATURES,
        "components_": Array("kd"),
        "log_distortion_": (float,),
        "n_pairs_": (int,),
        "is_certified_": (bool,),
        "converged_": (bool,),
        "history_": Array("*", "float", finite=False),
    },
}
# Attributes that only some fits have; neighbors_ is missing for precomputed affinities.
OPTIONAL = {
    "feature_names_in_",
    "epsilon_estimate_",
    "heat_trace_",
    "neighbors_",
    "interval_",
    "n_products_",
    "component_labels_",
    "component_offsets_",
    "fingerprints_",
    "row_names_",
}
# Attributes that describe individual points and are not needed for distances.
TRAINING_DATA = {
    "before_last_",
    "neighbors_",
    "heat_operator_",
    "scaling_",
    "component_labels_",
    "fingerprints_",
    "row_names_",
}


# --- consistency of parts ---------------------------------------------------------------------


def _neighbors_fit(neighbors: Neighbors) -> bool:
    n_points, n_neighbors = neighbors.points.shape[0], neighbors.n_neighbors
    starts = np.arange(n_points + 1) if neighbors.starts is None else neighbors.starts
    listable = neighbors.metric in LIST_METRICS and not sparse.issparse(neighbors.points)
    return (
        neighbors.metric in {*METRICS, "precomputed"}
        and len(starts) == n_points + 1
        and is_rising(starts, len(neighbors.order), strictly=True)
        and (n_neighbors is None) == (neighbors.radii is None)
        and (n_neighbors is None or 1 <= n_neighbors <= n_points)
        and (neighbors.lists is None or (listable and n_neighbors is not None))
    )


def _lists_fit(lists: NeighborLists) -> bool:
    """Return True if the levels of the tree and the list order are consistent."""
    n_nodes = 1
    for centroids, starts in lists.tree.levels:
        if len(starts) != n_nodes + 1 or not is_rising(starts, len(centroids)):
            return False
        n_nodes = len(centroids)
    probes = lists.probes
    return bool(
        probes.size
        and -1 <= probes.min() <= probes.max() < n_nodes
        and probes[0, 0] >= 0
        and (probes[1:, 0] >= probes[:-1, 0]).all()
    )


def _shared_rows_fit(shared: SharedRows) -> bool:
    starts, n_points = shared.starts, shared.matrix.shape[0]
    return len(starts) == n_points + 1 and is_rising(starts, int(starts[-1]), strictly=True)


FITS: dict[type, Callable[[Any], bool]] = {
    Neighbors: _neighbors_fit,
    NeighborLists: _lists_fit,
    SharedRows: _shared_rows_fit,
    HeatOperator: lambda operator: operator.shape[1] == len(operator.s),
}


# --- storing and loading ----------------------------------------------------------------------


class InvalidPart(Exception):  # noqa: N818 - becomes a FileFormatError where the path is known
    """A part of a file that does not match the table."""


@dataclass
class Entries:
    """Arrays and plain values of a file; when reading, also the sizes of letters."""

    table: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, Any] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)

    def _kind(self, name: str) -> Any:
        """Return the type of a part; all levels of a tree share one row of the table."""
        name = name.replace("heat_operator_.matrix.neighbors.", "neighbors_.")
        return self.table.get(re.sub(r"\.\d+", ".0", name))

    def _fields(self, name: str, kind: Any) -> dict[str, str]:
        """Return the fields of an object that are in the table."""
        names = {key: f"{name}.{key}" for key in kind.__match_args__}
        return {key: path for key, path in names.items() if self._kind(path) is not None}

    def put(self, name: str, value: Any) -> None:
        """Store a part of a model."""
        kind = self._kind(name)
        if isinstance(kind, dict):
            words = [word for word, option in kind.items() if _is_a(value, option)]
            self.values[f"{name}?"] = words[0] if words else None
            kind = kind[words[0]] if words else ()
        if value is None and (kind is None or getattr(kind, "optional", False)):
            return
        if not _is_a(value, kind):
            what = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
            raise NotStorableError(
                f"{name} is a {what}, which model files do not hold; use pickle, or engine=None "
                "and arrays in memory."
            )
        if isinstance(kind, Array):
            self._put_array(name, value)
        elif isinstance(kind, Csr):
            self.values[name] = list(value.shape)
            for part in ("data", "indices", "indptr"):
                self._put_array(f"{name}.{part}", getattr(value, part))
        elif isinstance(kind, Names):
            self.values[name] = [str(word) for word in value]
        elif isinstance(kind, tuple):
            is_scalar = isinstance(value, np.generic)
            self.values[name] = [value.dtype.name, value.item()] if is_scalar else value
        else:
            self._put_object(name, kind, value)

    def _put_array(self, name: str, array: np.ndarray) -> None:
        if self._is_known(name, array):
            return
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            # Keep the memory layout, which determines how sums are rounded.
            array, self.values[name] = array.T, "transposed"
        self.arrays[name] = array

    def _put_object(self, name: str, kind: Any, value: Any) -> None:
        if kind is ListTree:
            self.values[name] = len(value.levels)
            for i, level in enumerate(value.levels):
                self.put(f"{name}.{i}", level)
        elif not self._is_known(name, value):
            self.objects[name] = value
            for key, path in self._fields(name, kind).items():
                self.put(path, getattr(value, key))

    def _is_known(self, name: str, value: Any) -> bool:
        """Return True if an object is already stored, and refer to its name."""
        for other, known in (self.arrays | self.objects).items():
            if known is value:
                self.values[name] = {"same": other}
                return True
        return False

    def get(self, name: str) -> Any:
        """Return a part of a model, or raise InvalidPart."""
        kind = self._kind(name)
        if isinstance(kind, dict):
            word = self._value(f"{name}?")
            if not isinstance(word, str) or word not in kind:
                raise InvalidPart(f"{name} is {word!r}")
            kind = kind[word]
        if kind is None:
            return None
        if isinstance(kind, Array):
            return self._get_array(name, kind)
        if isinstance(kind, Csr):
            return self._get_csr(name, kind)
        if isinstance(kind, Names):
            return self._get_names(name, kind)
        if isinstance(kind, tuple):
            return self._get_value(name, kind)
        return self._get_object(name, kind)

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise InvalidPart(f"there is no {name}")
        return self.values[name]

    def _bind(self, name: str, letters: str, sizes: Any) -> None:
        """Bind letters to sizes, or raise if a letter has another size already."""
        if len(letters) != len(sizes):
            raise InvalidPart(f"{name} has shape {sizes}, and should have {len(letters)} axes")
        for letter, size in zip(letters, sizes, strict=True):
            known = size if letter == "*" else self.sizes.setdefault(letter, size)
            if known != size:
                raise InvalidPart(f"{name} has {letter}={size}, elsewhere it is {known}")

    def _get_array(self, name: str, kind: Array) -> Any:
        found = self.values.get(name)
        if kind.optional and found is None and name not in self.arrays:
            return None
        source = found.get("same") if isinstance(found, dict) else name
        if not isinstance(source, str) or source not in self.arrays:
            raise InvalidPart(f"there is no array {source}")
        array = self.arrays[source].T if found == "transposed" else self.arrays[source]
        self._bind(name, kind.shape, array.shape)
        if not _is_a(array, kind):
            raise InvalidPart(f"{name} is of {array.dtype}")
        if kind.dtype == "F":
            self._bind(name, "F", [array.dtype.name])
        if array.dtype.kind == "f" and kind.finite and not np.isfinite(array).all():
            raise InvalidPart(f"{name} holds numbers that are not finite")
        if not kind.is_valid(array):
            raise InvalidPart(f"{name} holds numbers that are not valid")
        return array

    def _get_csr(self, name: str, kind: Csr) -> sparse.csr_array:
        shape = self._value(name)
        if not isinstance(shape, list) or [type(size) for size in shape] != [int, int]:
            raise InvalidPart(f"{name} has the shape {shape!r}")
        self._bind(name, kind.shape, shape)
        data = self._get_array(f"{name}.data", Array("*"))
        indices = self._get_array(f"{name}.indices", Array("*", "int"))
        indptr = self._get_array(f"{name}.indptr", Array("*", "int"))
        if not {indices.dtype, indptr.dtype} <= {np.dtype(np.int32), np.dtype(np.int64)}:
            raise InvalidPart(f"{name} has indices of {indices.dtype} and {indptr.dtype}")
        within = not indices.size or 0 <= indices.min() <= indices.max() < shape[1]
        lengths = len(indices) == len(data) and len(indptr) == shape[0] + 1
        if not (within and lengths and is_rising(indptr, len(data))):
            raise InvalidPart(f"{name} has entries beyond its shape")
        return sparse.csr_array((data, indices, indptr), shape=tuple(shape))

    def _get_names(self, name: str, kind: Names) -> np.ndarray:
        names = self._value(name)
        if not isinstance(names, list) or not all(isinstance(word, str) for word in names):
            raise InvalidPart(f"{name} holds no names")
        self._bind(name, kind.shape, [len(names)])
        return np.array(names, dtype=object)

    def _get_value(self, name: str, kind: tuple[type, ...]) -> Any:
        found = self._value(name)
        is_scalar = isinstance(found, list) and len(found) == 2 and found[0] in SCALARS
        value = found[1] if is_scalar else found
        try:
            if type(value) not in kind:
                raise TypeError
            with np.errstate(over="raise"):
                return np.dtype(found[0]).type(value) if is_scalar else value
        except (OverflowError, ValueError, TypeError, FloatingPointError):
            raise InvalidPart(f"{name} is {found!r}") from None

    def _get_object(self, name: str, kind: Any) -> Any:
        if kind is ListTree:
            n_levels = self._get_value(name, (int,))
            if not 0 <= n_levels <= DEEPEST_TREE:
                raise InvalidPart(f"{name} has {n_levels} levels")
            return ListTree(tuple(self.get(f"{name}.{i}") for i in range(n_levels)))
        found = self.values.get(name)
        if isinstance(found, dict):
            made = self.objects.get(str(found.get("same")))
            if not isinstance(made, kind):
                raise InvalidPart(f"{name} is {found!r}")
            return made
        made = kind(**{key: self.get(path) for key, path in self._fields(name, kind).items()})
        if kind in FITS and not FITS[kind](made):
            raise InvalidPart(f"the parts of {name} do not fit together")
        self.objects[name] = made
        return made


def _is_a(value: Any, kind: Any) -> bool:
    """Return True if a value has the given type, ignoring its shape."""
    if isinstance(kind, Array):
        return isinstance(value, np.ndarray) and (
            value.dtype.kind in KINDS.get(kind.dtype, ()) or value.dtype.name == kind.dtype
        )
    if isinstance(kind, Csr):
        return sparse.issparse(value) and value.format == "csr"
    if isinstance(kind, Names):
        return isinstance(value, np.ndarray) and all(isinstance(v, str) for v in value.tolist())
    if kind is None:
        return value is None
    return isinstance(value.item() if isinstance(value, np.generic) else value, kind)
