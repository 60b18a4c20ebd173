"""Warnings: what they advise can be done there and then, and they come once for each cause."""

import re
import warnings
from uuid import uuid4

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline

from heatsketch import DiffusionMap, HeatSketch
from heatsketch.exceptions import DisconnectedGraphWarning

ESTIMATORS = {
    "HeatSketch": lambda **given: HeatSketch(3, power=2, **given),
    "DiffusionMap": lambda **given: DiffusionMap(3, **given),
}
CLUSTERS = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + at for at in (0, 40)])
BLOCKS = np.kron(np.eye(2), np.exp(-np.abs(np.subtract.outer(np.arange(20), np.arange(20)) / 5)))


def distances(n_neighbors):
    return kneighbors_graph(CLUSTERS, n_neighbors, mode="distance")


# What is fitted, what the warning advises, and what that comes to.
SITUATIONS = {
    "neighbours": (
        (CLUSTERS, {"n_neighbors": 5}),
        "more neighbours than n_neighbors=.* larger number for epsilon",
        (CLUSTERS, {"n_neighbors": 30, "epsilon": 1e3}),
    ),
    "neighbours, a number for epsilon": (
        (CLUSTERS, {"n_neighbors": 5, "epsilon": 4.0}),
        "more neighbours than n_neighbors=.* larger number for epsilon",
        (CLUSTERS, {"n_neighbors": 30, "epsilon": 1e3}),
    ),
    "all pairs": (
        (CLUSTERS, {"n_neighbors": None, "epsilon": 0.5}),
        "larger number for epsilon",
        (CLUSTERS, {"n_neighbors": None, "epsilon": 1e3}),
    ),
    "as many neighbours as points": (
        (CLUSTERS, {"n_neighbors": 40, "epsilon": 0.5}),
        "larger number for epsilon",
        (CLUSTERS, {"n_neighbors": 40, "epsilon": 1e3}),
    ),
    "distances, sparse": (
        (distances(5), {"metric": "precomputed"}),
        "more neighbours of each point in X .* larger number for epsilon",
        (distances(30), {"metric": "precomputed", "epsilon": 1e3}),
    ),
    "distances, all": (
        (distances(39).toarray(), {"metric": "precomputed", "n_neighbors": 5}),
        "more neighbours than n_neighbors=.* larger number for epsilon",
        (distances(39).toarray(), {"metric": "precomputed", "n_neighbors": 30, "epsilon": 1e3}),
    ),
    "a graph": (
        (sparse.csr_array(BLOCKS), {"affinity": "precomputed"}),
        "[Aa]dd edges",
        (sparse.csr_array(BLOCKS + 0.1), {"affinity": "precomputed"}),
    ),
    "a graph, dense": (
        (BLOCKS, {"affinity": "precomputed"}),
        "[Aa]dd edges",
        (BLOCKS + 0.1, {"affinity": "precomputed"}),
    ),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_advised_connects_the_graph(situation, estimator):
    (X, options), advice, (more, followed) = SITUATIONS[situation]
    with pytest.warns(DisconnectedGraphWarning, match="has 2 connected") as caught:
        ESTIMATORS[estimator](**options).fit(X)
    (warning,) = caught
    assert re.search(advice, str(warning.message))
    # Nothing else is advised: a word for an option that is rejected, or has no effect, is none.
    for option in ("n_neighbors", "epsilon"):
        assert (option in str(warning.message)) == (option in advice)
    assert ESTIMATORS[estimator](**followed).fit(more).n_connected_components_ == 1


LABELS = np.arange(40) % 2
SEARCHES = {
    "grid search": "GridSearchCV(model, grid, cv=3).fit(CLUSTERS, LABELS)",
    "threads": "GridSearchCV(model, grid, cv=3, n_jobs=2, refit=False).fit(CLUSTERS, LABELS)",
    "cross-validation": "cross_val_score(model, CLUSTERS, LABELS, cv=3)",
}


def shown(search, action="default"):
    """Return the warnings of a search, on a line that no other test has used."""
    model = make_pipeline(HeatSketch(2, power=2, n_neighbors=5), LogisticRegression())
    grid = {"heatsketch__n_neighbors": [3, 4, 5]}
    code = compile(search, f"<{uuid4()}>", "exec")
    with warnings.catch_warnings(record=True) as caught, parallel_config("threading"):
        warnings.simplefilter(action)
        given = {"CLUSTERS": CLUSTERS, "LABELS": LABELS, "model": model, "grid": grid}
        exec(code, {**given, "GridSearchCV": GridSearchCV, "cross_val_score": cross_val_score})
    return [each for each in caught if each.category is DisconnectedGraphWarning]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_warns_once(search):
    assert len(shown(SEARCHES[search])) == 1


@pytest.mark.parametrize(("action", "times"), [("default", 2), ("always", 6)])
def test_each_search_warns_and_who_asks_for_all_warnings_has_them(action, times):
    assert len(shown(f"{SEARCHES['cross-validation']}\n" * 2, action)) == times


def test_an_error_is_one_in_every_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with pytest.raises(DisconnectedGraphWarning):
                HeatSketch(3, n_neighbors=5).fit(CLUSTERS)


def test_fits_of_other_data_on_one_line_each_warn():
    with pytest.warns(DisconnectedGraphWarning) as caught:
        for n_points in (40, 38):
            HeatSketch(3, n_neighbors=5).fit(CLUSTERS[:n_points])
    assert len(caught) == 2
