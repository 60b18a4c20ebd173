"""Pictures: each looks as it did when someone looked at it, and refuses what it cannot draw."""

import subprocess
import sys

import numpy as np
import pytest

from heatsketch import HeatSketch, plot
from heatsketch.confidence import distance_estimate
from heatsketch.exceptions import HeatSketchError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.testing.compare import compare_images  # noqa: E402
from pictures import BASELINE, PICTURES, crowd, digits, model, save  # noqa: E402

# Root mean square of the difference of pixels, from 0 to 255: room for letters that another version
# of matplotlib puts half a pixel elsewhere.
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


def test_many_points_are_one_image_and_few_are_dots():
    many, few = crowd()[0], crowd()[0][:1000]
    assert (len(plot.embedding(many).images), len(plot.embedding(few).images)) == (1, 0)


def test_labels_have_a_legend_and_values_a_scale():
    labelled = plot.embedding(model(), digits()[1].astype(str), label="digit")
    assert [text.get_text() for text in labelled.get_legend().get_texts()] == list("0123456789")
    valued = plot.embedding(model(), np.arange(600), label="place")
    assert valued.get_legend() is None
    assert valued.figure.axes[1].get_ylabel() == "place"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.embedding(model(), by="magic"), "by='magic' is unknown"),
        (lambda: plot.embedding(np.zeros((5, 1))), r"Y of shape \(5, 1\) has no two columns"),
        (lambda: plot.embedding(model(), [1, 2]), r"color of shape \(2,\) must be 600"),
        (lambda: plot.embedding(model(), np.arange(600).astype(str)), "600 labels, of which 24"),
        (lambda: plot.heat_trace(HeatSketch(4, power=2).fit(digits()[0])), 'with power="auto"'),
        (lambda: plot.epsilon(HeatSketch(4, power=2).fit(digits()[0])), 'with epsilon="auto"'),
        (lambda: plot.distances(distance_estimate(np.eye(3), 0.9), [1]), r"exact of shape \(1,\)"),
    ],
    ids=["by", "columns", "colours", "kinds", "trace", "epsilon", "truth"],
)
def test_refusals_give_a_remedy(draw, message):
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
