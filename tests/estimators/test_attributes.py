"""Parameters and fitted attributes: which there are, and what a failed fit does to them."""

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from models import ESTIMATORS, INPUTS, fitted, labels_for, new_result, training_result, with_copies
from registry import cloud
from sklearn.base import clone

from heatsketch import (
    HeatGraph,
    HeatSketch,
    NearIsometry,
)
from heatsketch.exceptions import HeatSketchError

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
ALL = {**ESTIMATORS, "NearIsometry": NearIsometry()}
X = cloud(90)
FRAME = pd.DataFrame(X, columns=list("abc"))


def attributes(model):
    """Public fitted attributes, without the names of features, which only frames have."""
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    return names - {"feature_names_in_"}


def documented(kind):
    text = inspect.getdoc(kind).split("Attributes\n---")[1].split("\nExamples\n")[0]
    lines = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return set(re.findall(r"\b\w+_\b", " ".join(line.split(":")[0] for line in lines)))


def kept(model):
    """Return all that a fit sets, and what follows from it, to the last bit."""
    results = training(model).tobytes(), new(model, FRAME[:9]).tobytes()
    return attributes(model), model.n_features_in_, [*model.feature_names_in_], *results


def training(model):
    return model.components_ if isinstance(model, NearIsometry) else training_result(model)


def new(model, X):
    return model.transform(X) if isinstance(model, NearIsometry) else new_result(model, X)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes_are_those_of_the_documentation(estimator, name):
    make, options = INPUTS[name]
    if estimator == "HeatLabels" and name in ("all pairs", "distances"):
        options = {**options, "n_neighbors": 12}
    model = fitted(clone(ESTIMATORS[estimator]).set_params(**options), make(with_copies(0)))
    assert attributes(model) == documented(type(model)) - {"feature_names_in_"}
    assert len(attributes(model)) <= 8
    assert hasattr(model, "feature_names_in_") == (name == "frame")


# --- a fit that fails -------------------------------------------------------------------------


class TooLongError(Exception):
    """As a limit of time raises it."""


def slow(x, y):
    raise TooLongError


# What is fitted after ninety points with three features, a parameter, and the error.
FAILURES = {
    "missing value": (np.full((90, 5), np.nan), {}, ValueError),
    "text": (np.full((90, 5), "x"), {}, TypeError),
    "parameter": (cloud(90, 5), {"n_jobs": 0}, ValueError),
    "metric": (cloud(90, 5), {"metric": slow}, TooLongError),
    "components": (cloud(20, 5), {"n_components": 90}, HeatSketchError),
    "clusters": (cloud(20, 5), {"n_clusters": 90}, HeatSketchError),
}
CASES = [
    (name, failure)
    for name, model in ALL.items()
    for failure, (_, options, _) in FAILURES.items()
    if model.get_params().keys() >= options.keys()
    and not (failure == "components" and isinstance(model, HeatSketch))
]


@pytest.mark.parametrize(("name", "failure"), CASES)
def test_a_failed_fit_keeps_the_last_one(name, failure):
    X_bad, options, error = FAILURES[failure]
    model = fitted(ALL[name], FRAME)
    parameters, before = model.get_params(), kept(model)
    model.set_params(**options)
    with pytest.raises(error):
        model.fit(X_bad, labels_for(X_bad))
    assert kept(model.set_params(**parameters)) == before


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_of_a_graph_is_a_fit_of_its_points(name):
    graph = HeatGraph.from_points(X)
    of_graph, of_points = (fitted(ESTIMATORS[name], given) for given in (graph, X))
    assert of_graph.graph_ is graph
    assert attributes(of_graph) == attributes(of_points)
    np.testing.assert_array_equal(training(of_graph), training(of_points))
    np.testing.assert_array_equal(new(of_graph, X + 0.01), new(of_points, X + 0.01))
    with pytest.raises(HeatSketchError, match="n_neighbors"):
        fitted(clone(ESTIMATORS[name]).set_params(n_neighbors=5), graph)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_of_networkx_is_a_fit_of_its_weights(name):
    of_graph, of_weights = (
        fitted(ESTIMATORS[name], INPUTS[form][0](X)) for form in ("networkx", "weights")
    )
    np.testing.assert_array_equal(training(of_graph), training(of_weights))


@pytest.mark.parametrize("name", ALL)
def test_clones_and_pickles_are_the_estimator(name):
    model = fitted(ALL[name], FRAME)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == model.get_params()
    assert kept(again) == kept(model)
    unfitted = clone(model)
    assert attributes(unfitted) == set()
    assert kept(fitted(unfitted, FRAME)) == kept(model)


@pytest.mark.parametrize("make", [np.random.RandomState, lambda seed: None])
def test_a_seed_may_come_from_anywhere(make):
    state, before = make(0), np.random.get_state()[1].copy()
    seeds = [HeatSketch(2, random_state=state).fit(X).sketch_.settings.seed for _ in range(2)]
    assert seeds[0] != seeds[1]
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    assert HeatSketch(2, random_state=7).fit(X).sketch_.settings.seed == 7
