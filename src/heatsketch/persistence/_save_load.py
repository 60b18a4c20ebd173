"""Saving models to files and loading them.

A file names a class of heatsketch, and nothing in it is executed.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.partitioned import is_lazy
from heatsketch.diffusion._random_matrix import STREAM_VERSION
from heatsketch.exceptions import FileFormatError, NotStorableError, TrainingDataError
from heatsketch.graph._metrics import metric_of
from heatsketch.persistence._container import (
    FORMAT_VERSION,
    REMEDY,
    read_model_file,
    write_model_file,
)
from heatsketch.persistence._schema import OPTIONAL, TABLES, TRAINING_DATA, Entries, InvalidPart

# Parameters that do not affect results and are not stored in files.
OF_MACHINE = ("engine", "n_jobs", "verbose")
LARGEST_POWER = 2**53  # not all larger integers are floats, and growing would not terminate


class SaveMixin:
    """Mixin of models that can be saved."""

    get_params: Callable[..., dict[str, Any]]  # provided by scikit-learn's BaseEstimator

    def save(self, path: Any, *, overwrite: bool = False, training_data: bool = True) -> None:
        """Save the fitted model to a file that :func:`heatsketch.load` reads.

        The file is written atomically, so that it is complete or absent. Every bit of it is covered
        by a digest, and loading executes no code. The loaded model gives bit-identical results.

        Parameters
        ----------
        path : str or path-like
            Path of the file, by convention with the extension ``.heatsketch``.
        overwrite : bool, default=False
            Whether an existing file may be replaced.
        training_data : bool, default=True
            Whether to store the training points and the heat operator. Without them the file is
            smaller, and the only data of individual points are their embeddings, their ids and
            their indices in ``order_``, in which near points may be adjacent. It also contains
            summaries of all points, such as ``epsilon_estimate_``. Distances and drift work without
            training data; :meth:`transform` and methods that diffuse further do not.

        Raises
        ------
        NotStorableError
            If a parameter is a function or an object of another package, if the class is not one
            of heatsketch, or if the model is kept on a cluster.
        TrainingDataError
            If ``training_data=True`` and the model was saved without its training data.
        OutputExistsError, FileError
            If the file already exists, or cannot be written.
        """
        check_is_fitted(self)
        fitted = self.get_params(deep=False) | getattr(self, "parameters_", {})
        parameters = {
            name: _plain(name, value) for name, value in fitted.items() if name not in OF_MACHINE
        }
        entries, present = _entries(self, training_data)
        about = {
            "class": type(self).__name__,
            "parameters": parameters,
            "seed": getattr(self, "seed_", None),
            "stream_version": STREAM_VERSION,
            "versions": _versions(),
            "training_data": training_data,
            "attributes": present,
            "values": entries.values,
        }
        write_model_file(path, about, entries.arrays, overwrite=overwrite)

    def _plain_parameters(self) -> dict[str, Any]:
        """Return the parameters that affect results, as plain values.

        Aliases of metrics are replaced by their names.
        """
        plain = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
            if name not in OF_MACHINE
        }
        return plain | {"metric": metric_of(plain["metric"])} if "metric" in plain else plain


def _entries(model: Any, training_data: bool) -> tuple[Entries, list[str]]:
    """Return the entries to store for a model, and the names of its attributes."""
    kind = type(model)
    if kind.__name__ not in TABLES or not kind.__module__.startswith("heatsketch."):
        raise NotStorableError(
            f"a {kind.__name__} is none of {sorted(TABLES)}, which are what model files hold; "
            "use pickle, if all who load it trust you."
        )
    if is_lazy(getattr(model, "embedding_", None)):
        raise NotStorableError(
            f"engine={model.engine!r} keeps the model in its storage, and a model file holds what "
            "fits into memory; write the embedding with model.embedding_.to_zarr(path), and keep "
            "that folder: a fit of the same points with the same options finds its graph there."
        )
    if training_data and getattr(model, "heat_operator_", ...) is None:
        raise TrainingDataError(
            "training_data=True, but this model was itself saved without its training data; "
            "pass training_data=False."
        )
    entries = Entries(TABLES[kind.__name__])
    present = [name for name in _stored(kind, training_data) if hasattr(model, name)]
    for name in present:
        entries.put(name, _without_scales(name, getattr(model, name), training_data))
    return entries, present


def _stored(kind: type, training_data: bool) -> list[str]:
    """Return the names of the attributes that a file may contain."""
    left_out = set() if training_data else TRAINING_DATA
    return [name for name in TABLES[kind.__name__] if "." not in name and name not in left_out]


def _without_scales(name: str, value: Any, training_data: bool) -> Any:
    """Return an attribute, but None for local scales without training data."""
    is_scales = name == "epsilon_" and isinstance(value, np.ndarray)
    return None if is_scales and not training_data else value


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as a value that JSON can represent."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    remedy = "fit with a name or a number for it"
    if name == "neighbors":
        remedy = "fit with neighbors=None and n_neighbors"
    raise NotStorableError(
        f"{name}={value!r} is code or state of your own, and a model file holds none; {remedy}, or "
        "use pickle, if all who load it trust you."
    )


def _versions() -> dict[str, str]:
    ours = sys.modules["heatsketch"].__version__  # avoids a circular import
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"heatsketch": ours, **others}


# --- loading ----------------------------------------------------------------------------------


def restored(path: Any, classes: Mapping[str, type]) -> Any:
    """Return the model stored in a file.

    Parameters
    ----------
    path : str or path-like
    classes : mapping of str to class
        Classes that may be created.
    """
    about, arrays = read_model_file(path)
    with invalid_in(path):
        name, values = typed(about, "class", str), typed(about, "values", dict)
        if name not in classes:
            raise InvalidPart(f"it holds a {name!r}, which is none of {sorted(classes)}")
        model = classes[name](**_parameters(about, classes[name]))
        try:
            model._validate_params()
        except ValueError as error:
            raise InvalidPart(str(error)) from error
        model.parameters_ = model._plain_parameters()
        entries = Entries(TABLES[name], arrays, values)
        _set_attributes(model, about, entries)
        _check_fit(model, entries.sizes)
        return model


@contextmanager
def invalid_in(path: Any) -> Iterator[None]:
    """Convert InvalidPart errors to a FileFormatError with the path."""
    try:
        yield
    except InvalidPart as error:
        raise FileFormatError(path, str(error), REMEDY) from error


def typed(about: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return an entry of a header, or raise if it has another type."""
    if type(about.get(name)) is not kind:
        raise InvalidPart(f"its {name} is {reprlib.repr(about.get(name))}")
    return about[name]


def _parameters(about: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    given = typed(about, "parameters", dict)
    known = set(kind._get_param_names()) - set(OF_MACHINE)
    # Files of later versions may contain parameters that this version can ignore.
    if about["format_version"] <= FORMAT_VERSION and not given.keys() <= known:
        raise InvalidPart(f"its parameters are {sorted(given)}")
    return {name: value for name, value in given.items() if name in known}


def _set_attributes(model: Any, about: Mapping[str, Any], entries: Entries) -> None:
    present = typed(about, "attributes", list)
    training_data = typed(about, "training_data", bool)
    for name in _stored(type(model), training_data):
        if name in present:
            setattr(model, name, _without_scales(name, entries.get(name), training_data))
        elif name not in OPTIONAL:
            raise InvalidPart(f"there is no {name}")
    if not training_data and "heat_operator_" in entries.table:
        model.heat_operator_ = None


def _check_fit(model: Any, sizes: dict[str, Any]) -> None:
    """Raise if the parameters are inconsistent with the fitted attributes."""
    n_features = sizes.setdefault("d", model.n_features_in_)
    if n_features != model.n_features_in_ or n_features < 1:
        raise InvalidPart(f"n_features_in_={model.n_features_in_}, with {sizes}")
    if sizes["k"] < 1 or sizes["k"] != model.n_components:
        raise InvalidPart(f"n_components={model.n_components}, with {sizes}")
    if not hasattr(model, "epsilon_"):
        return
    if "precomputed" in (model.metric, model.affinity) and n_features != sizes["n"]:
        # Rows of this width are multiplied by columns of length n.
        raise InvalidPart(f"there are {sizes['n']} points, with affinities to {n_features}")
    gaussian, local = model.affinity == "gaussian", model.epsilon == "local"
    has_epsilon = gaussian and not (local and model.heat_operator_ is None)
    is_positive = model.epsilon_ is not None and bool(np.all(model.epsilon_ > 0))
    is_local = isinstance(model.epsilon_, np.ndarray)
    if is_positive != has_epsilon or is_local != (has_epsilon and local):
        raise InvalidPart(f"epsilon={model.epsilon!r}, with epsilon_={model.epsilon_!r}")
    if not 1 <= getattr(model, "power_", 1) <= LARGEST_POWER:
        raise InvalidPart(f"power_={model.power_!r}")
    if model.heat_operator_ is not None and gaussian != hasattr(model, "neighbors_"):
        raise InvalidPart(f"affinity={model.affinity!r}, and neighbors_ do not fit")
    if hasattr(model, "neighbors_") and model.neighbors_.metric != model.metric:
        raise InvalidPart(f"metric={model.metric!r}, with {model.neighbors_.metric!r}")
