"""Base classes of estimators: parameters of the graph, and scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from heatsketch._core.checks import is_graph, native_numbers
from heatsketch._core.parallel import at_most, n_threads
from heatsketch._core.progress import show_progress
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.engines import Engine, LocalEngine
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph._metrics import ALIASES, METRICS
from heatsketch.heat import HeatGraph
from heatsketch.heat._checks import N_NEIGHBORS, is_affinity
from heatsketch.heat._graph import NewRows
from heatsketch.persistence import Saved

Method = TypeVar("Method", bound=Callable[..., Any])


def checks_parameters(fit: Method) -> Method:
    """Let scikit-learn validate the parameters before a fit; keep type hints."""
    return _fit_context(prefer_skip_nested_validation=True)(fit)


Count = partial(Interval, Integral, 1, None, closed="left")  # for parameters that count something
# Constraints of parameters that do not change the results.
MACHINE_CONSTRAINTS: dict[str, list[Any]] = {
    "n_jobs": [Count(), Interval(Integral, None, -1, closed="right"), None],
    "verbose": ["verbose", None],
}
# Parameters of the graph, with the defaults that a given graph requires.
GRAPH_DEFAULTS = {
    "n_neighbors": N_NEIGHBORS,
    "metric": "euclidean",
    "weights": "local",
    "normalization": "auto",
    "engine": None,
}


def check_features(model: BaseEstimator, X: Any) -> None:
    """Raise if features of new points are not those of the fit.

    Call this before other checks: a data frame with the wrong columns may also have missing values.
    """
    numbers = native_numbers(X)
    if len(numbers.shape) == 2:
        validate_data(model, numbers, reset=False, skip_check_array=True)


class SavedEstimator(Saved, BaseEstimator):
    """Base class of estimators that can be saved."""

    _fitted: ClassVar[tuple[str, ...]]  # what a file holds besides the parameters

    def _stored_parts(self) -> dict[str, Any]:
        check_is_fitted(self)
        parameters = {
            name: np.asarray(value) if isinstance(value, list | tuple) else value
            for name, value in self.get_params(deep=False).items()
            if name not in ("engine", *MACHINE_CONSTRAINTS)
        }
        names = ("n_features_in_", "feature_names_in_", *self._fitted)
        return {"parameters": parameters, **{name: getattr(self, name, None) for name in names}}

    def _summary(self) -> dict[str, Any]:
        check_is_fitted(self)
        made = getattr(self, "sketch_", getattr(self, "graph_", None))
        sizes = {"n_components", "n_clusters"} & self.get_params().keys()
        return {
            "n_features": self.n_features_in_,
            **{name: getattr(self, name) for name in sizes},
            **({} if made is None else made._summary()),
        }


class HeatEstimator(SavedEstimator):
    """Base class of estimators that take points or a graph."""

    graph_: HeatGraph

    _parameter_constraints: ClassVar[dict] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left"), None],
        "metric": [StrOptions({*METRICS, *ALIASES, "precomputed"}), callable],
        "weights": [Interval(Real, 0, None, closed="neither"), StrOptions({"local", "gaussian"})],
        "normalization": [StrOptions({"auto", *SCALINGS})],
        "engine": [Engine, None],
        **MACHINE_CONSTRAINTS,
    }

    @contextmanager
    def _working(self, X: Any) -> Iterator[None]:
        """Limit threads, show progress, and connect to the engine."""
        engine = X.engine if isinstance(X, HeatGraph) else self.engine or LocalEngine()
        with at_most(n_threads(self.n_jobs)), show_progress(self.verbose), engine.working():
            yield

    def _graph_of(self, X: Any, ids: Any = None) -> HeatGraph:
        """Return the graph of points, or a given graph."""
        options = {name: getattr(self, name) for name in GRAPH_DEFAULTS}
        if isinstance(X, HeatGraph):
            unused = [name for name in GRAPH_DEFAULTS if options[name] != GRAPH_DEFAULTS[name]]
            unused += [] if ids is None else ["ids"]
            if unused:
                raise HeatSketchError(
                    f"{', '.join(unused)} is ignored when X is a HeatGraph; pass it when making "
                    "the graph instead."
                )
            return X
        # The sums of given weights are informative; the density of points depends on the sampling.
        has_weights = is_affinity(X, self.metric)
        if self.normalization == "auto":
            options["normalization"] = "degree" if has_weights else "symmetric"
        if has_weights:
            kept = {name: options[name] for name in ("normalization", "engine")}
            return HeatGraph.from_affinity(X, ids=ids, **kept)
        return HeatGraph.from_points(X, ids=ids, **options)

    def _accept(self, X: Any, graph: HeatGraph, **fitted: Any) -> None:
        """Set all fitted attributes and the names of features, at the end of a fit."""
        features = BaseEstimator()
        if isinstance(X, HeatGraph | str) or is_graph(X) or not hasattr(X, "__len__"):
            features.n_features_in_ = graph.n_features_in
        else:
            validate_data(features, native_numbers(X), skip_check_array=True)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(vars(features) | fitted | {"graph_": graph})

    def _rows(self, X: Any) -> NewRows:
        """Return the rows of the heat operator for new points."""
        if not is_graph(X):
            check_features(self, X)
        return self.graph_.rows(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


class EmbeddingEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, HeatEstimator):
    """Base class of estimators that embed points or a graph."""

    embedding_: np.ndarray

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Embed the points of ``X`` and return the embedding.

        Parameters
        ----------
        X, y :
            As for :meth:`fit`.
        **fit_params :
            As for :meth:`fit`.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self.fit(X, y, **fit_params).embedding_

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
