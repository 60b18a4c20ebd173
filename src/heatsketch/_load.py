"""Loading of everything that has a method ``save``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from heatsketch.estimators._base import MACHINE_CONSTRAINTS
from heatsketch.estimators.diffusion_map import DiffusionMap
from heatsketch.estimators.heat_clustering import HeatClustering
from heatsketch.estimators.heat_labels import HeatLabels, _Rule
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.heat._stored import read_graph, read_sketch
from heatsketch.near_isometry import NearIsometry
from heatsketch.persistence import Part, restored, saved_header
from heatsketch.persistence._parts import FLOATS, I64, INTEGERS, PLAIN

F64 = ("float64",)


def load(path: Any) -> Any:
    r"""Load what ``save`` wrote, with bit-identical results.

    Nothing in the file is executed. Every bit of it is covered by a digest, and every array is
    checked before it is used. The affinities of all pairs of points (``n_neighbors=None``) are
    computed again from the points.

    Parameters
    ----------
    path : str or path-like
        File written by ``save``.

    Returns
    -------
    HeatGraph, Sketch, HeatSketch, DiffusionMap, HeatLabels, HeatClustering or NearIsometry

    Raises
    ------
    FileFormatError
        If the file is not a model file, or has changed since it was written.
    ModelVersionError
        If only a later version of heatsketch can read it.
    FileError
        If the file cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import heatsketch
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = heatsketch.HeatSketch(8).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.heatsketch")
    ...     model.save(path)
    ...     again = heatsketch.load(path)
    >>> bool((again.transform(X[:5]) == model.transform(X[:5])).all())
    True
    """
    return restored(path, READERS)


def model_info(path: Any) -> dict[str, Any]:
    r"""Return a summary of a model file from its header alone.

    The header is checked, the arrays are not read.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        Plain values: ``class``, ``version`` of heatsketch, ``format``, ``bytes``, ``n_samples``,
        ``n_features`` and what else applies: the settings of the graph (``n_neighbors``,
        ``metric``, ``weights``, ``normalization``, ``n_connected_components``, ...), and those of
        the sketch (``n_components``, ``power``, ``first_power``, ``seed``, ``has_graph``, ...).

    Raises
    ------
    FileFormatError, ModelVersionError, FileError
        As for :func:`load`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import heatsketch
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.heatsketch")
    ...     heatsketch.HeatSketch(8, power=4).fit(X).save(path)
    ...     info = heatsketch.model_info(path)
    >>> [info[name] for name in ("class", "n_samples", "n_features", "n_components", "power")]
    ['HeatSketch', 100, 3, 8, 4]
    """
    return saved_header(path)


def _heat_sketch(part: Part) -> dict[str, Any]:
    made = read_sketch(part["sketch_"])
    part.check(made.graph is not None, "sketch_", "has no graph")
    return {"sketch_": made, "embedding_": made.embedding, "graph_": made.graph}


def _diffusion_map(part: Part) -> dict[str, Any]:
    graph = read_graph(part["graph_"])
    values = part.array("eigenvalues_", FLOATS, (None,))
    shape, dtypes = (graph.n_samples, len(values)), (graph.dtype.name,)
    blocks = {name: part.array(name, dtypes, shape) for name in ("embedding_", "_before_last")}
    return {"graph_": graph, "eigenvalues_": values, **blocks}


def _heat_clustering(part: Part) -> dict[str, Any]:
    graph = read_graph(part["graph_"])
    vectors = part.array("_vectors", (graph.dtype.name,), (graph.n_samples, None))
    centers = part.array("cluster_centers_", F64, (None, vectors.shape[1] + 1))
    labels = part.indices("labels_", I64, (graph.n_samples,), len(centers))
    return {"graph_": graph, "labels_": labels, "cluster_centers_": centers, "_vectors": vectors}


def _heat_labels(part: Part) -> dict[str, Any]:
    graph = read_graph(part["graph_"])
    n, classes = graph.n_samples, part.names("classes_", dtypes=(*FLOATS, *INTEGERS, "bool"))
    distributions = part.array("label_distributions_", F64, (n, len(classes)))
    held_out = part.indices("held_out_", I64, (None,), n, least=0)
    return {
        "graph_": graph,
        "classes_": classes,
        "transduction_": classes[distributions.argmax(axis=1)],
        "label_distributions_": distributions,
        "held_out_": held_out,
        "_labels": part.indices("_labels", I64, (n,), len(classes), start=-1),
        "_rules": tuple(_rule(part["_rules"][which], n, len(classes)) for which in ("0", "1")),
        "_held_out_scores": part.array("_held_out_scores", F64, held_out.shape),
    }


def _rule(part: Part, n: int, n_classes: int) -> _Rule:
    has_label = part.array("has_label", ("bool",), (n_classes,))
    n_columns = int(has_label.sum())
    return _Rule(
        potentials=part.array("potentials", F64, (n, n_columns)),
        scale=part.plain("scale", float),
        weights=part.array("weights", F64, (n_columns,)),
        has_label=has_label,
    )


def _near_isometry(part: Part) -> dict[str, Any]:
    shape = None, part.count("n_features_in_")
    return {
        "components_": part.array("components_", FLOATS, shape),
        "log_distortion_": part.plain("log_distortion_", float),
        "n_pairs_": part.count("n_pairs_", least=0),
        "is_certified_": part.plain("is_certified_", bool),
        "converged_": part.plain("converged_", bool),
        "history_": part.array("history_", F64, (None,), finite=False, least=0),
    }


def _estimator(kind: Any, fitted: Callable[[Part], dict[str, Any]]) -> Callable[[Part], Any]:
    """Return the function that reads an estimator and its fitted attributes."""

    def read(part: Part) -> BaseEstimator:
        given, machine = part["parameters"], {"engine", *MACHINE_CONSTRAINTS}
        names = given.tree.keys() - {"type"}
        part.check(names == set(kind._get_param_names()) - machine, "parameters")
        model = kind(**{name: _parameter(given, name) for name in names})
        model._validate_params()
        model.n_features_in_ = part.count("n_features_in_")
        if part.has("feature_names_in_"):
            model.feature_names_in_ = part.names("feature_names_in_", model.n_features_in_)
        vars(model).update(fitted(part))
        return model

    return read


def _parameter(part: Part, name: str) -> Any:
    if isinstance(part.tree[name], dict):
        return part.array(name, (*FLOATS, *INTEGERS), (None,))
    return part.plain(name, *PLAIN)


READERS: dict[str, Callable[[Part], Any]] = {
    "HeatGraph": read_graph,
    "Sketch": read_sketch,
    "HeatSketch": _estimator(HeatSketch, _heat_sketch),
    "DiffusionMap": _estimator(DiffusionMap, _diffusion_map),
    "HeatClustering": _estimator(HeatClustering, _heat_clustering),
    "HeatLabels": _estimator(HeatLabels, _heat_labels),
    "NearIsometry": _estimator(NearIsometry, _near_isometry),
}
