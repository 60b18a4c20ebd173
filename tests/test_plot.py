"""Pictures: each looks as it did when someone looked at it, and rejects what it cannot draw."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.testing.compare import compare_images
from pictures import BASELINE, PICTURES, compared, model, save
from registry import cloud

from heatsketch import HeatGraph, plot, sketch
from heatsketch.exceptions import HeatSketchError, TrainingDataError
from heatsketch.plot._curves import _exact

matplotlib.use("agg")

# Root mean square of the difference of pixels, from 0 to 255; letters may be half a pixel elsewhere
# in another version of matplotlib.
TOLERANCE = 12


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_look_as_they_did(name, tmp_path):
    assert compare_images(BASELINE / f"{name}.png", save(name, tmp_path), TOLERANCE) is None


def test_axes_that_are_given_are_drawn_on_and_returned():
    _, ax = plt.subplots()
    assert plot.embedding(model(), ax=ax) is ax
    assert plot.distances(model().sketch_, ax=ax) is ax
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("power", [3, 8])
@pytest.mark.parametrize("stationary", ["drop", "keep"])
@pytest.mark.parametrize("weighting", ["symmetric", "random_walk"])
def test_exact_distances_are_those_of_the_eigenvectors(power, stationary, weighting):
    ids = np.random.default_rng(0).permutation(40)
    graph = HeatGraph.from_points(cloud(40), weights=2.0, n_neighbors=None, ids=ids)
    made = sketch(graph, 4, power=power, stationary=stationary, weighting=weighting)
    A, pairs = graph.operator, np.array([[0, 1], [2, 30]])
    matrix = A.deflate(A @ np.eye(40))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    rows = (vectors * values.clip(0) ** power) @ vectors.T
    v = A.stationary / np.linalg.norm(A.stationary)
    rows += np.outer(v, v) * (stationary == "keep")
    rows /= v[:, np.newaxis] if weighting == "random_walk" else 1
    rows = graph.outer(rows)
    wanted = [np.linalg.norm(rows[i] - rows[j]) for i, j in pairs]
    np.testing.assert_allclose(_exact(made, pairs), wanted, rtol=1e-6)
    assert plot.distances(made).get_xlabel() == "exact diffusion distance"
    assert plot.distortion(made, n_points=9).get_xlabel() == "components k"


def sketched(k=4):
    return sketch(model(), k, power=2)


INVALID = {
    "shape": lambda: plot.embedding(np.zeros((5, 1))),
    "color": lambda: plot.embedding(model(), [1, 2]),
    "labels": lambda: plot.embedding(model(), np.arange(600).astype(str)),
    "power": lambda: plot.heat_trace(sketched()),
    "EpsilonEstimate": lambda: plot.epsilon(sketched()),
    "sketch": lambda: plot.distances([1.0]),
    "curves": lambda: plot.distortion([1.0]),
    "Drift": lambda: plot.drift(model()),
    "comparison": lambda: plot.compare(model(), [0.5]),
    "rows": lambda: plot.compare(model(), compared()[1]),
    "columns": lambda: plot.multiscale(sketched(1)),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_argument_is_named(name):
    with pytest.raises(HeatSketchError, match=name):
        INVALID[name]()


def test_distances_need_the_graph():
    with pytest.raises(TrainingDataError):
        plot.distances(replace(sketched(), graph=None))
