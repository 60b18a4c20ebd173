"""Which parts our models have, and how a model goes to a file and comes back.

The registry is closed: a file names one of our classes, and says nothing of how it is made.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.partitioned import is_lazy
from heatsketch.diffusion._all_pairs import AllPairs
from heatsketch.diffusion._bandwidth import EpsilonEstimate
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._heat_trace import HeatTrace
from heatsketch.diffusion._normalization import Scaling
from heatsketch.diffusion._operator import HeatOperator, Scaled
from heatsketch.diffusion._random_matrix import STREAM_VERSION
from heatsketch.exceptions import (
    FileFormatError,
    NotStorableError,
    TrainingDataError,
)
from heatsketch.graph._ivf import NeighborLists
from heatsketch.graph._metrics import metric_of
from heatsketch.graph._neighbors import LIST_METRICS, METRICS, Neighbors
from heatsketch.persistence._container import (
    FORMAT_VERSION,
    REMEDY,
    read_model_file,
    write_model_file,
)
from heatsketch.persistence._schema import (
    Array,
    Choice,
    Csr,
    Kept,
    Names,
    Optional,
    Part,
    Record,
    Refused,
    Tree,
    Value,
    is_permutation,
    lies_in_order,
    lists_fit,
)

__all__ = ["PARTS", "SaveMixin", "refused_by", "restored", "typed"]


def _is_none(value: Any) -> bool:
    return value is None


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _is_csr(value: Any) -> bool:
    return sparse.issparse(value) and value.format == "csr"


def _is_numbers(value: Any) -> bool:
    return _is_array(value) and value.dtype == np.int64


def _is_text(value: Any) -> bool:
    return _is_array(value) and all(isinstance(name, str) for name in value.tolist())


def _matrix(shape: str, dtype: str = "F") -> Choice:
    return Choice(
        {"dense": (_is_array, Array(shape, dtype)), "sparse": (_is_csr, Csr(shape, dtype))}
    )


def _maybe(is_it: Any, part: Part) -> Choice:
    return Choice({"none": (_is_none, None), "some": (is_it, part)})


def _neighbors_fit(neighbors: Neighbors) -> bool:
    if neighbors.metric != "precomputed" and neighbors.metric not in METRICS:
        return False
    if not _copies_fit(neighbors):
        return False
    listed = neighbors.lists is not None
    if listed and (neighbors.metric not in LIST_METRICS or sparse.issparse(neighbors.points)):
        return False
    return (neighbors.n_neighbors is None) == (neighbors.radii is None) and (
        not listed or neighbors.n_neighbors is not None
    )


def _copies_fit(neighbors: Neighbors) -> bool:
    n_points, n_rows, starts = neighbors.points.shape[0], len(neighbors.order), neighbors.starts
    if starts is None:
        return n_points == n_rows
    return len(starts) == n_points + 1 and starts[-1] == n_rows and _are_starts(starts)


def _are_starts(starts: np.ndarray) -> bool:
    """Say whether each point has a copy: the first sums would be of nothing."""
    return lies_in_order(starts, int(starts[-1])) and bool((np.diff(starts) > 0).all())


ORDER = Array("n", "int64", is_right=is_permutation)
# Distinct points, where copies share rows, are u; elsewhere u is n.
LISTS = Record(
    NeighborLists,
    {
        "tree": Tree(),
        "points": Array("ud"),
        "order": Array("u", "int64", is_right=is_permutation),
        "probes": Array("up", "int32"),
    },
    lists_fit,
)
NEIGHBORS = Record(
    Neighbors,
    {
        "points": _matrix("ud"),
        "order": ORDER,
        "metric": Value((str,)),
        "n_neighbors": Value((int, type(None)), most="u"),
        "radii": _maybe(_is_array, Array("u", finite=False)),
        "lists": _maybe(lambda value: isinstance(value, NeighborLists), LISTS),
        "starts": Optional(Array("w", "int64")),
        "ties": Optional(Array("u", "float64", finite=False)),
    },
    _neighbors_fit,
)
WEIGHTS: dict[str, Part] = {"left": Array("n"), "right": Array("n")}
ALL_PAIRS = Record(
    AllPairs,
    {
        "neighbors": NEIGHBORS,
        "scales": _maybe(_is_array, Array("n", "float")),
        "bandwidth": Value((float,)),
        "in_tiles": Value((bool,)),
        **WEIGHTS,
    },
)
HEAT_OPERATOR = Record(
    HeatOperator,
    {
        "matrix": Choice(
            {
                "sparse": (_is_csr, Csr("nn")),
                "shared": (
                    lambda value: isinstance(value, SharedRows),
                    Record(
                        SharedRows,
                        {"matrix": Csr("uu"), "starts": Array("w", "int64")},
                        lambda shared: (
                            len(shared.starts) == shared.matrix.shape[0] + 1
                            and _are_starts(shared.starts)
                        ),
                    ),
                ),
                "all pairs": (lambda value: isinstance(value, AllPairs), ALL_PAIRS),
                "scaled": (
                    lambda value: isinstance(value, Scaled),
                    Record(Scaled, {"K": _matrix("nn"), **WEIGHTS}),
                ),
            }
        ),
        "s": Array("n", "float64"),
        "stationary": Array("n"),
    },
    lambda operator: operator.shape[1] == len(operator.s),
)
FEATURES: dict[str, Part] = {
    "n_features_in_": Value((int,), letter="d"),
    "feature_names_in_": Names("d"),
}
EMBEDDING: dict[str, Part] = {
    "order_": ORDER,
    **FEATURES,
    "embedding_": Array("nk"),
    "row_ids_": Array("n", "int", is_right=lambda ids: len(np.unique(ids)) == len(ids)),
    "epsilon_": Choice(
        {
            "none": (_is_none, None),
            "local": (_is_array, Array("n", "float")),
            "one": (lambda value: isinstance(value, float), Value((float,))),
        }
    ),
    "epsilon_estimate_": Record(
        EpsilonEstimate,
        {
            "epsilon": Value((float,)),
            "dimension": Value((float,)),
            "epsilons": Array("g", "float64"),
            "dimensions": Array("g", "float64"),
        },
    ),
    "n_connected_components_": Value((int,)),
    "component_labels_": Array("n", "int32", is_right=lambda labels: labels.min() >= 0),
    "scaling_": Record(
        Scaling,
        {
            "previous": Optional(Array("n", "float64")),
            "current": Array("n", "float64"),
            "n_iter": Value((int,)),
            "residual": Value((float,)),
        },
    ),
    "stationary_length_": Value((float,)),
    "before_last_": Array("nk"),
    "neighbors_": NEIGHBORS,
    "heat_operator_": HEAT_OPERATOR,
    "row_names_": Choice(
        {"numbers": (_is_numbers, Array("n", "int64")), "text": (_is_text, Names("n"))}
    ),
}
PARTS: dict[str, dict[str, Part]] = {
    "HeatSketch": {
        **EMBEDDING,
        "seed_": Value((int,)),
        "power_": Value((int, float)),
        "stationary_coefficients_": Array("k"),
        "n_products_": Value((int,)),
        "component_offsets_": Array("ck"),
        "heat_trace_": Record(
            HeatTrace,
            {
                "powers": Array("t", "int"),
                "trace": Array("t", "float", finite=False),
                "error": Array("t", "float", finite=False),
                "directions": Array("t", "float", finite=False),
            },
        ),
    },
    "DiffusionMap": {**EMBEDDING, "eigenvalues_": Array("k", "float")},
    "NearIsometry": {
        **FEATURES,
        "components_": Array("kd"),
        "log_distortion_": Value((float,)),
        "n_pairs_": Value((int,)),
        "is_certified_": Value((bool,)),
        "converged_": Value((bool,)),
        "history_": Array("h", "float", finite=False),
    },
}
# What tells about single points, and nobody needs who has their embedding.
TRAINING_DATA = (
    "before_last_",
    "neighbors_",
    "heat_operator_",
    "scaling_",
    "component_labels_",
    "row_names_",
)
# Parameters that say where and how to work, and not what comes out: a file does not hold them.
OF_MACHINE = ("engine", "n_jobs", "verbose")
LARGEST_POWER = 2**53  # beyond it floats are not whole, and growing would never end
# Attributes that only some fits have; neighbors_ is what precomputed affinities have not.
OPTIONAL = {
    "feature_names_in_",
    "epsilon_estimate_",
    "heat_trace_",
    "neighbors_",
    "n_products_",
    "component_labels_",
    "component_offsets_",
    "row_names_",
}


class SaveMixin:
    """A model that can be saved."""

    get_params: Callable[..., dict[str, Any]]  # of scikit-learn, beside which this is mixed in

    def save(self, path: Any, *, overwrite: bool = False, training_data: bool = True) -> None:
        """Write the fitted model to a file, from which :func:`heatsketch.load` makes it again.

        The file is there whole or not at all, whatever happens; no bit of it can change
        unnoticed; and loading it executes nothing. The model that is loaded gives the same
        numbers, bit for bit.

        Parameters
        ----------
        path : str or path-like
            The extension ``.heatsketch`` is customary.
        overwrite : bool, default=False
            Whether a file of that name may be replaced.
        training_data : bool, default=True
            Whether training points and heat operator come along. Without them the file is
            smaller, and all it tells of a point is its embedding, its id and its place in
            ``order_``, where near ones may stand together; of all points together there are
            numbers and curves, as ``epsilon_estimate_``. Distances and drift work,
            :meth:`transform` and all that diffuses further do not.

        Raises
        ------
        NotStorableError
            If a parameter is a function, or an object that is none of ours.
        OutputExistsError, FileError
            If the file exists already, or the system refuses.
        """
        check_is_fitted(self)
        _check_not_lazy(self)
        parts = _parts_of(self)
        if training_data and getattr(self, "heat_operator_", ...) is None:
            raise TrainingDataError(
                "training_data=True, but this model was itself saved without its training data; "
                "pass training_data=False."
            )
        left_out = () if training_data else TRAINING_DATA
        present = [name for name in parts if hasattr(self, name) and name not in left_out]
        fitted = self.get_params(deep=False) | getattr(self, "parameters_", {})
        parameters = {
            name: _plain(name, value) for name, value in fitted.items() if name not in OF_MACHINE
        }
        kept = Kept()
        for name in present:
            parts[name].put(kept, name, _told(name, getattr(self, name), training_data))
        about = {
            "class": type(self).__name__,
            "parameters": parameters,
            "seed": getattr(self, "seed_", None),
            "stream_version": STREAM_VERSION,
            "versions": _versions(),
            "training_data": training_data,
            "attributes": present,
            "values": kept.values,
        }
        write_model_file(path, about, kept.arrays, overwrite=overwrite)

    def _plain_parameters(self) -> dict[str, Any]:
        """Return what a model goes by once it is fitted, whatever is set then: its parameters.

        Not those of :data:`OF_MACHINE`. A metric has the one name that we have for it.
        """
        given = self.get_params(deep=False)
        plain = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in given.items()
            if name not in OF_MACHINE
        }
        return plain | {"metric": metric_of(plain["metric"])} if "metric" in plain else plain


def _told(name: str, value: Any, training_data: bool) -> Any:
    """Return a part, unless it is the scales of points: how far each is from its neighbours."""
    return None if name == "epsilon_" and _is_array(value) and not training_data else value


def _check_not_lazy(model: Any) -> None:
    if is_lazy(getattr(model, "embedding_", None)):
        raise NotStorableError(
            f"engine={model.engine!r} keeps the model in its storage, and a model file holds what "
            "fits into memory; write the embedding with model.embedding_.to_zarr(path), and keep "
            "that folder: a fit of the same points with the same options finds its graph there."
        )


def _parts_of(model: Any) -> dict[str, Part]:
    kind = type(model)
    if kind.__name__ not in PARTS or not kind.__module__.startswith("heatsketch."):
        raise NotStorableError(
            f"a {kind.__name__} is none of {sorted(PARTS)}, which are what model files hold; "
            "use pickle, if all who load it trust you."
        )
    return PARTS[kind.__name__]


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if name == "neighbors":
        raise NotStorableError(
            f"{name}={value!r} is not ours, and a model file holds no code; fit with "
            "neighbors=None and n_neighbors, or use pickle, if all who load it trust you."
        )
    raise NotStorableError(
        f"{name}={value!r} is code or state of your own, which only pickle could keep; use a "
        "name or a number for it, or pickle, if all who load it trust you."
    )


def _versions() -> dict[str, str]:
    ours = sys.modules["heatsketch"].__version__  # an import would be a circle
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"heatsketch": ours, **others}


# --- and back ---------------------------------------------------------------------------------


def restored(path: Any, classes: Mapping[str, type]) -> Any:
    """Return the model that a file holds.

    Parameters
    ----------
    path : str or path-like
    classes : mapping of str to class
        What may be made.
    """
    about, arrays = read_model_file(path)
    with refused_by(path):
        kept = Kept(arrays, typed(about, "values", dict))
        name = typed(about, "class", str)
        if name not in classes:
            raise Refused(f"it holds a {name!r}, which is none of {sorted(classes)}")
        model = classes[name](**_parameters(about, classes[name]))
        _validate(model)
        model.parameters_ = model._plain_parameters()
        _set_parts(model, about, kept)
        _check_fit(model, kept)
        return model


@contextmanager
def refused_by(path: Any) -> Iterator[None]:
    """Say which file it is that holds what is refused."""
    try:
        yield
    except Refused as error:
        raise FileFormatError(path, str(error), REMEDY) from error


def typed(about: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return what a header says under a name, if it is of the kind that it has to be."""
    if type(about.get(name)) is not kind:
        raise Refused(f"its {name} is {reprlib.repr(about.get(name))}")
    return about[name]


def _parameters(about: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    given = typed(about, "parameters", dict)
    given = {name: value for name, value in given.items() if name != "engine"}  # of older files
    known = set(kind._get_param_names()) - set(OF_MACHINE)
    # A later version may have parameters that it knows we do not need.
    if about["format_version"] <= FORMAT_VERSION and not given.keys() <= known:
        raise Refused(f"its parameters are {sorted(given)}")
    parameters = {name: value for name, value in given.items() if name in known}
    return parameters | _of_version_one(parameters, about)


def _of_version_one(given: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what "auto" was for, where a file was written when there was such a choice."""
    chosen: dict[str, Any] = {}
    values = typed(about, "values", dict)
    if given.get("power") == "auto":
        chosen["power"] = values.get("power_")
    if given.get("n_neighbors") == "auto":
        chosen["n_neighbors"] = values.get("neighbors_.n_neighbors")
    return chosen


def _validate(model: Any) -> None:
    try:
        model._validate_params()
    except ValueError as error:
        raise Refused(str(error)) from error


def _set_parts(model: Any, about: Mapping[str, Any], kept: Kept) -> None:
    parts, present = PARTS[type(model).__name__], typed(about, "attributes", list)
    training_data = typed(about, "training_data", bool)
    left_out = set() if training_data else set(TRAINING_DATA)
    for name, part in parts.items():
        if name in present and name not in left_out:
            setattr(model, name, _told(name, part.get(kept, name), training_data))
        elif name not in OPTIONAL | left_out:
            raise Refused(f"there is no {name}")
    if not training_data and "heat_operator_" in parts:
        model.heat_operator_ = None


def _check_fit(model: Any, kept: Kept) -> None:
    """Refuse parameters that cannot have led to such a fit."""
    letters = kept.letters
    if min(letters["d"], letters["k"]) < 1 or letters["k"] != model.n_components:
        raise Refused(f"n_components={model.n_components}, with {letters}")
    if not hasattr(model, "epsilon_"):
        return
    if "precomputed" in (model.metric, model.affinity) and letters["d"] != letters["n"]:
        # Rows of such a width are multiplied by columns of n numbers.
        raise Refused(f"there are {letters['n']} points, with affinities to {letters['d']}")
    gaussian, local = model.affinity == "gaussian", model.epsilon == "local"
    has_epsilon = gaussian and not (local and model.heat_operator_ is None)
    if (has_epsilon and local) != isinstance(model.epsilon_, np.ndarray):
        raise Refused(f"epsilon={model.epsilon!r}, with epsilon_={model.epsilon_!r}")
    if has_epsilon != (model.epsilon_ is not None and bool(np.all(model.epsilon_ > 0))):
        raise Refused(f"epsilon={model.epsilon!r}, with epsilon_={model.epsilon_!r}")
    if not 1 <= getattr(model, "power_", 1) <= LARGEST_POWER:
        raise Refused(f"power_={model.power_!r}")
    if model.heat_operator_ is not None and gaussian != hasattr(model, "neighbors_"):
        raise Refused(f"affinity={model.affinity!r}, and neighbors_ do not fit")
    if hasattr(model, "neighbors_") and model.neighbors_.metric != model.metric:
        raise Refused(f"metric={model.metric!r}, with {model.neighbors_.metric!r}")
