"""Pictures: each looks as it did when someone looked at it, and rejects what it cannot draw."""

import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.testing.compare import compare_images
from pictures import BASELINE, PICTURES, compared, crowd, digits, model, save
from registry import cloud

from heatsketch import HeatSketch, plot
from heatsketch.diffusion._confidence import distance_estimate
from heatsketch.exceptions import HeatSketchError
from heatsketch.plot._axes import OKABE_ITO
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


def test_another_picture_is_told_from_the_baseline(tmp_path):
    ax = plot.embedding(model().embedding_[:, 2:4])
    ax.figure.savefig(tmp_path / "other.png", dpi=60)
    expected = BASELINE / "embedding-plain.png"
    assert compare_images(expected, tmp_path / "other.png", TOLERANCE) is not None


def test_every_function_has_a_picture():
    drawn = {name.partition("-")[0] for name in PICTURES}
    assert set(plot.__all__) <= drawn


def test_axes_that_are_given_are_drawn_on_and_returned():
    _, ax = plt.subplots()
    assert plot.embedding(model(), ax=ax) is ax
    assert plot.epsilon(model(), ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def test_axes_say_how_the_plane_was_found():
    assert "Ritz" in plot.embedding(model()).get_xlabel()
    shares = plot.embedding(model(), by="pca").get_xlabel()
    assert shares.startswith("principal component 1 of 64 columns (")
    assert plot.embedding(model().embedding_).get_xlabel() == shares


def test_our_style_is_for_those_who_ask_for_it():
    before = dict(plt.rcParams)
    plot.embedding(model())
    assert dict(plt.rcParams) == before
    with plt.style.context("heatsketch.plot.heatsketch"):
        assert not plt.rcParams["axes.spines.top"]
        colors = plt.rcParams["axes.prop_cycle"].by_key()["color"]
        assert [to_hex(color) for color in colors] == [color.lower() for color in OKABE_ITO]


def test_many_points_are_one_image_and_few_are_dots():
    many, few = crowd()[0], crowd()[0][:1000]
    assert (len(plot.embedding(many).images), len(plot.embedding(few).images)) == (1, 0)


def test_labels_have_a_legend_and_values_a_scale():
    labelled = plot.embedding(model(), digits()[1].astype(str), label="digit")
    assert [text.get_text() for text in labelled.get_legend().get_texts()] == list("0123456789")
    valued = plot.embedding(model(), np.arange(600), label="place")
    assert valued.get_legend() is None
    assert valued.figure.axes[1].get_ylabel() == "place"


def test_missing_labels_are_a_kind_of_their_own():
    labels = pd.array(["a", None, "b"] * 200, dtype="string")
    legend = plot.embedding(model(), labels).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "missing"]


def test_a_comparison_colours_the_rows_that_are_flagged():
    fitted, found = compared()
    others, flagged = plot.compare(fitted, found).collections
    assert (len(others.get_offsets()), len(flagged.get_offsets())) == (1619, 87)
    np.testing.assert_array_equal(
        np.sort(flagged.get_array()), np.sort(found.effect[found.flagged])
    )
    none = fitted.compare(np.arange(len(found.z)) % 2)
    assert not none.flagged.any()
    assert len(plot.compare(fitted, none).collections) == 1


@pytest.mark.parametrize("power", [3, 8.5])
@pytest.mark.parametrize("stationary", ["drop", "keep"])
@pytest.mark.parametrize("weighting", ["symmetric", "random_walk"])
def test_exact_distances_are_those_of_the_eigenvectors(power, stationary, weighting):
    options = {"power": power, "stationary": stationary, "weighting": weighting}
    sketched = HeatSketch(4, epsilon=2.0, n_neighbors=None, **options).fit(cloud(40))
    A, pairs = sketched.heat_operator_, np.array([[0, 1], [2, 30]])
    matrix = A.deflate(A @ np.eye(40))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    rows = (vectors * values.clip(0) ** power) @ vectors.T
    v = A.stationary / np.linalg.norm(A.stationary)
    rows += np.outer(v, v) * (stationary == "keep")
    rows /= v[:, np.newaxis] if weighting == "random_walk" else 1
    wanted = [np.linalg.norm(rows[i] - rows[j]) for i, j in pairs]
    np.testing.assert_allclose(_exact(sketched, pairs), wanted, rtol=1e-6)
    assert plot.distances(sketched).get_xlabel() == "exact diffusion distance"
    assert plot.distortion(sketched, n_points=9).get_xlabel() == "components k"


def test_the_truth_may_be_a_list():
    estimate = distance_estimate(np.eye(2), 0.9)
    assert plot.distances(estimate, [1.0, 2.0]).get_title().endswith("of 2 intervals miss")


def narrow():
    return HeatSketch(1, power=2).fit(digits()[0])


def without_data():
    left = HeatSketch(4, power=2).fit(digits()[0])
    left.heat_operator_ = None  # as it is in a model that was saved without
    return left


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.embedding(model(), by="magic"), "by='magic' is unknown"),
        (lambda: plot.embedding(np.zeros((5, 1))), r"of shape \(5, 1\) has no two columns"),
        (lambda: plot.embedding(model(), [1, 2]), r"color of shape \(2,\) must be 600"),
        (lambda: plot.embedding(model(), np.arange(600).astype(str)), "600 labels, of which 24"),
        (lambda: plot.heat_trace(HeatSketch(4, power=2).fit(digits()[0])), 'with power="all"'),
        (lambda: plot.epsilon(HeatSketch(4, power=2).fit(digits()[0])), 'with epsilon="auto"'),
        (lambda: plot.distances(distance_estimate(np.eye(3), 0.9), [1]), r"exact of shape \(1,\)"),
        (lambda: plot.distances([1.0]), "found is a list, not a DistanceEstimate; give"),
        (
            lambda: plot.drift(model()),
            r"found is a HeatSketch, not a Drift; give what model\.drift",
        ),
        (lambda: plot.compare(model(), [0.5]), "found is a list; give what compare returned"),
        (lambda: plot.compare(model(), compared()[1]), "Y has 600 rows, and found has 1706; after"),
        (lambda: plot.multiscale(narrow()), r"shape \(600, 1\) has no two columns; use"),
        (lambda: plot.distances(without_data()), "exact distances needs the training data"),
        (lambda: plot.distortion(without_data()), "exact distances needs the training data"),
    ],
    ids=[
        "by",
        "columns",
        "colours",
        "kinds",
        "trace",
        "epsilon",
        "truth",
        "estimates",
        "drift",
        "comparison",
        "rows of a comparison",
        "times",
        "points",
        "distortion",
    ],
)
def test_errors_give_a_remedy(draw, message):
    with pytest.raises(HeatSketchError, match=message):
        draw()


def test_importing_draws_nothing_and_without_matplotlib_the_remedy_is_named():
    code = (
        "import sys; from heatsketch import plot; assert 'matplotlib' not in sys.modules; "
        "sys.modules['matplotlib'] = None\n"
        "try: plot.embedding([[1, 2], [3, 4]])\n"
        "except ImportError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "heatsketch[plot]"' in found.stdout
