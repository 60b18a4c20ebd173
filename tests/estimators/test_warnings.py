"""Warnings: what they advise can be done there and then."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

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


# What is fitted, what is advised, and what that comes to.
SITUATIONS = {
    "neighbours": (
        (CLUSTERS, {"n_neighbors": 5}),
        "n_neighbors",
        (CLUSTERS, {"n_neighbors": 30, "weights": 1e3}),
    ),
    "all pairs": (
        (CLUSTERS, {"n_neighbors": None, "weights": 0.5}),
        "bandwidth",
        (CLUSTERS, {"n_neighbors": None, "weights": 1e3}),
    ),
    "distances, sparse": (
        (distances(5), {"metric": "precomputed"}),
        "bandwidth",
        (distances(30), {"metric": "precomputed", "weights": 1e3}),
    ),
    "a graph": ((sparse.csr_array(BLOCKS), {}), "links", (sparse.csr_array(BLOCKS + 0.1), {})),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_advised_connects_the_graph(situation, estimator):
    (X, options), advice, (more, followed) = SITUATIONS[situation]
    with pytest.warns(DisconnectedGraphWarning, match="2 connected") as caught:
        ESTIMATORS[estimator](**options).fit(X)
    (warning,) = caught
    assert advice in str(warning.message)
    # An option that is rejected, or has no effect, is not advised.
    for word in ("n_neighbors", "bandwidth", "links"):
        assert (word in str(warning.message)) == (word == advice)
    assert ESTIMATORS[estimator](**followed).fit(more).graph_.n_connected_components == 1


def test_fits_of_other_data_on_one_line_each_warn():
    with pytest.warns(DisconnectedGraphWarning) as caught:
        for n_points in (40, 38):
            HeatSketch(3, n_neighbors=5).fit(CLUSTERS[:n_points])
    assert len(caught) == 2
