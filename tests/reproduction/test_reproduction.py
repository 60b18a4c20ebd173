"""The paper's experiments: against a literal transcription, and however they are run."""

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import paper
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from heatsketch import __version__
from heatsketch.cli import app
from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from heatsketch.exceptions import HeatSketchError
from heatsketch.reproduction import (
    CATALOGUE,
    CLAIMS,
    ISOMETRIES,
    METHODS,
    PAPER,
    PORTRAITS,
    Run,
    run_experiments,
)
from heatsketch.reproduction.claims import (
    Claim,
    ahead,
    alike,
    judge,
    level,
    rises,
    shrinks,
    torus_separation,
    wider,
)
from heatsketch.reproduction.figures import STYLES, draw_curves
from heatsketch.reproduction.runner import Results, Trial, run_trial, sample

REPRODUCE = [sys.executable, "-m", "heatsketch", "reproduce"]


def literal_log_L(name, trial, seed):  # noqa: N802
    """One trial, by the transcription alone; only the points and G are taken over."""
    experiment = CATALOGUE[name]
    X, _, block_seed = sample(name, trial, seed)
    A = {
        "symmetric": paper.algorithm_1(X, experiment.epsilon),
        "bistochastic": paper.algorithm_2(X, experiment.epsilon),
    }
    widest = max(experiment.dimensions)
    G = {
        "G": gaussian_matrix(len(X), widest, seed=block_seed),
        "GPSB": rademacher_matrix(len(X), widest, seed=block_seed),
    }
    distances = {
        (kind, p): paper.euclidean_distance(X)
        if experiment.distance == "euclidean"
        else paper.diffusion_distance(A[kind], p)
        for kind in A
        for p in experiment.powers
    }
    found = {}
    for method in experiment.methods:
        kind = "symmetric" if method.endswith("S") else "bistochastic"
        found[method] = []
        for k, p in experiment.grid:
            if method.startswith("DM"):
                Y = paper.algorithm_3(A[kind], k, p)
            else:
                block = G["GPSB" if method.startswith("GPSB") else "G"]
                Y = paper.algorithm_4_and_5(A[kind], block[:, :k], p)
            found[method].append(paper.log_L(Y, distances[kind, p]))
    return found


@pytest.mark.parametrize("name", PAPER)
def test_one_trial_is_the_paper_to_the_letter(name):
    trial, literal = run_trial(name, 0, seed=7), literal_log_L(name, 0, seed=7)
    assert set(trial.log_L) == set(CATALOGUE[name].methods)
    for method, values in trial.log_L.items():
        np.testing.assert_allclose(values, literal[method], rtol=0, atol=1e-8, err_msg=method)


def test_the_catalogue_is_the_papers():
    parameters = {
        name: (e.trials, e.n_points, e.epsilon, e.dimensions[0], e.dimensions[-1], e.powers[-1])
        for name, e in PAPER.items()
    }
    assert parameters == {
        "circle": (200, 300, 0.25, 2, 8, 8),
        "torus": (100, 500, 0.3, 2, 12, 10),
        "klein": (100, 500, 2.0, 3, 20, 4),
        "outliers": (100, 200, 0.5, 2, 5, 4),
        "clouds": (100, 300, 4.0, 2, 12, 4),
        "multiscale-torus": (100, 500, 0.3, 8, 8, 1024),
        "multiscale-circle": (100, 300, 0.25, 2, 2, 256),
    }


@pytest.mark.parametrize("name", ISOMETRIES)
def test_maps_of_least_distortion_are_compared_on_the_papers_terms(name):
    short, _, kind = name.split("-")
    ours = CATALOGUE[name]
    assert ours == replace(PAPER[short], trials=20, figures=ours.figures)
    assert {METHODS[method].normalization for method in ours.methods} == {kind}


def test_samples_are_shared_and_trials_differ():
    X, operators, block_seed = sample("circle", 3, seed=0)
    assert set(operators) == {"symmetric", "bistochastic"}
    assert operators["symmetric"].matrix.K is operators["bistochastic"].matrix.K
    other, _, other_seed = sample("circle", 4, seed=0)
    assert abs(X - other).max() > 0.1
    assert block_seed != other_seed


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


@pytest.mark.nightly
def test_any_number_of_processes_gives_the_same_bits(tmp_path):
    for processes in (1, 2):
        seen = []
        run = Run(tuple(PAPER), tmp_path / str(processes), trials=2, seed=3)
        run_experiments(run, processes=processes, on_trial=seen.append)
        assert sorted(seen) == sorted(2 * list(PAPER))
    assert len(files(tmp_path / "1")) == len(PAPER)
    assert files(tmp_path / "1") == files(tmp_path / "2")


@pytest.mark.untraced
@pytest.mark.parametrize("processes", [pytest.param("1", marks=pytest.mark.nightly), "2"])
def test_an_interrupted_run_goes_on_and_ends_the_same(tmp_path, processes):
    arguments = ["outliers", "--trials", "40", "--seed", "5", "--processes", processes]
    results = tmp_path / "out" / "reproduction" / "outliers.jsonl"
    with subprocess.Popen(
        [*REPRODUCE, *arguments, "--out", str(tmp_path / "out")], stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 120
        while not results.exists() or results.read_text().count("\n") < 5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
    done = results.read_text().count("\n") - 1
    assert process.returncode == 130
    assert b"the same call goes on from here" in message
    assert b"Traceback" not in message
    assert 0 < done < 40
    # What an interruption in the middle of a line would leave.
    with results.open("a") as file:
        file.write('{"trial": 39, "log_L"')
    run = Run(("outliers",), tmp_path / "out" / "reproduction", trials=40, seed=5)
    run_experiments(run, processes=1)
    whole = Run(("outliers",), tmp_path / "whole", trials=40, seed=5)
    run_experiments(whole, processes=2)
    assert files(tmp_path / "out" / "reproduction") == files(tmp_path / "whole")


def test_more_trials_go_on_and_another_seed_overwrites_nothing(tmp_path):
    first = run_experiments(Run(("outliers",), tmp_path, trials=2), processes=1)[0]
    more = run_experiments(Run(("outliers",), tmp_path, trials=3), processes=1)[0]
    np.testing.assert_array_equal(more.log_L("GPS")[:2], first.log_L("GPS"))
    before = files(tmp_path)
    with pytest.raises(HeatSketchError, match=r"holds 3 trials of another seed.*another folder"):
        run_experiments(Run(("outliers",), tmp_path, trials=2, seed=1), processes=1)
    assert files(tmp_path) == before
    elsewhere = Run(("outliers",), tmp_path / "elsewhere", trials=2, seed=1)
    other = run_experiments(elsewhere, processes=1)[0]
    assert other.log_L("GPS").tolist() != first.log_L("GPS").tolist()


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    """The whole command, as a person would call it, with three trials."""
    folder = tmp_path_factory.mktemp("reproduction")
    start = time.monotonic()
    result = CliRunner().invoke(app, ["reproduce", "--trials", "3", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert time.monotonic() - start < 180
    return folder


FIGURES = [name for experiment in PAPER.values() for name in experiment.figures]


@pytest.mark.parametrize("name", [*FIGURES, *PORTRAITS])
def test_every_figure_is_a_picture(reproduction, name):
    pixels = imread(reproduction / "reproduction" / f"{name}.png")[:, :, :3]
    assert min(pixels.shape[:2]) > 500
    ink = pixels.min(axis=2) < 0.9
    assert 0.005 < ink.mean() < 0.5
    # Nothing is cut off: the border is blank.
    assert not (ink[0].any() or ink[-1].any() or ink[:, 0].any() or ink[:, -1].any())
    assert "<svg" in (reproduction / "reproduction" / f"{name}.svg").read_text()[:2000]


@pytest.mark.parametrize("name", PAPER)
def test_figures_show_the_right_series(reproduction, name):
    run = Run((name,), reproduction / "reproduction", trials=3)
    results = run_experiments(run, processes=1)[0]
    for methods in CATALOGUE[name].figures.values():
        axes = draw_curves(results, methods).axes[0]
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert [label.split(":")[0] for label in labels] == list(methods)
        for method, bars in zip(methods, axes.containers, strict=True):
            np.testing.assert_allclose(
                bars.lines[0].get_ydata(), results.log_L(method).mean(axis=0)
            )


def test_the_page_shows_every_figure_and_every_claim(reproduction):
    page = (reproduction / "reproduction.md").read_text()
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (reproduction / picture).exists()
    assert all(f"/{name}.png" in page for name in [*FIGURES, *PORTRAITS])
    for claim in CLAIMS:
        row = next(line for line in page.splitlines() if line.startswith(f"| {claim.says} |"))
        assert re.search(r"\*\*(holds|holds in part|does not hold|undecided)\*\* \|$", row)


def test_curves_of_a_figure_can_be_told_apart_without_their_colour():
    assert set(STYLES) == set(METHODS)
    for experiment in CATALOGUE.values():
        for methods in experiment.figures.values():
            marks = {(STYLES[name]["marker"], STYLES[name]["linestyle"]) for name in methods}
            assert len({marker for marker, _ in marks}) == len(marks) == len(methods)


def test_an_interruption_is_no_error_of_the_program(monkeypatch, tmp_path):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("heatsketch.reproduction.run_experiments", interrupted)
    result = CliRunner().invoke(app, ["reproduce", "outliers", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "goes on from here" in result.output


def test_a_folder_that_cannot_be_written_is_rejected(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["reproduce", "outliers", "--out", str(tmp_path / "file")])
    assert result.exit_code == 5
    assert "Not a directory" in result.output


def test_the_version_is_told():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, __version__)


def test_notes_are_for_full_runs_only(reproduction):
    assert "the points that fall out" not in (reproduction / "reproduction.md").read_text()


def test_an_unknown_experiment_is_rejected():
    result = CliRunner().invoke(app, ["reproduce", "sphere"])
    assert result.exit_code == 2
    assert "'sphere' is unknown" in result.output


# --- verdicts -------------------------------------------------------------------------------


def made_up(name="circle", trials=50, **log_L):
    """Results with given means, and noise of 0.1."""
    rng, size = np.random.default_rng(0), (trials, len(CATALOGUE[name].axis))
    rows = {method: rng.normal(mean, 0.1, size) for method, mean in log_L.items()}
    return {
        name: Results(
            name,
            tuple(
                Trial(i, {method: list(row[i]) for method, row in rows.items()}, {})
                for i in range(trials)
            ),
        )
    }


def word(test, found):
    return judge([Claim("?", tuple(found), "?", test)], found)[0].word


def test_a_lead_at_all_points_holds_and_at_none_does_not():
    k = np.arange(7)
    better = partial(ahead, name="circle", better="DMS", worse="GPS")
    assert word(better, made_up(DMS=0 * k, GPS=1 + 0 * k)) == "holds"
    assert word(better, made_up(DMS=1 + 0 * k, GPS=0 * k)) == "does not hold"
    assert word(better, made_up(DMS=0 * k, GPS=k - 3)) == "holds in part"
    assert word(better, made_up(DMS=0 * k, GPS=0 * k)) == "undecided"


@pytest.mark.parametrize(
    ("n_ahead", "n_behind", "says"),
    [(1, 0, "undecided"), (3, 0, "undecided"), (4, 0, "holds in part"), (1, 1, "holds in part")],
)
def test_few_points_that_agree_decide_nothing_unless_others_contradict(n_ahead, n_behind, says):
    lead = np.zeros(7)
    lead[:n_ahead], lead[7 - n_behind :] = 1, -1
    better = partial(ahead, name="circle", better="DMS", worse="GPS")
    assert word(better, made_up(DMS=np.zeros(7), GPS=lead)) == says


def test_worst_point_is_the_one_nearest_to_failing():
    found = made_up(DMS=np.zeros(7), GPS=[5, 4, 3, 2, 3, 4, 5])
    claim = Claim("?", ("circle",), "?", partial(ahead, name="circle", better="DMS", worse="GPS"))
    verdict = judge([claim], found)[0]
    assert verdict.worst.where == "k = 5"
    assert verdict.n_agree == verdict.n_points == 7


def test_the_other_tests_can_hold_and_fail():
    k = np.arange(7.0)
    found = made_up(DMS=0 * k, GPS=1 + k)
    assert word(partial(rises, name="circle", method="GPS", at=(2, 3, 4)), found) == "holds"
    assert word(partial(rises, name="circle", method="DMS", at=(2, 3)), found) == "undecided"
    falls = partial(shrinks, name="circle", better="DMS", worse="GPS", early=8, late=2)
    assert word(falls, found) == "holds"
    grows = partial(shrinks, name="circle", better="DMS", worse="GPS", early=2, late=8)
    assert word(grows, found) == "does not hold"
    pairs = (("DMS", "GPS"),)
    assert word(partial(alike, name="circle", pairs=pairs, margin=2, at=(2,)), found) == "holds"
    far = partial(alike, name="circle", pairs=pairs, margin=2, at=(8,))
    assert word(far, found) == "does not hold"
    three = partial(level, name="circle", method="GPS", at=(2,), between=(2, 4))
    assert word(three, found) == "holds"
    nine = partial(level, name="circle", method="GPS", at=(2,), between=(9, 10))
    assert word(nine, found) == "does not hold"


def test_leads_on_two_data_sets_are_compared():
    k = np.arange(7.0)
    small, large = (
        made_up(DMS=0 * k, GPS=1 + 0 * k),
        made_up("outliers", DMS=np.zeros(4), GPS=np.full(4, 3.0)),
    )
    found = {**small, **large}
    test = partial(wider, first="outliers", second="circle", better="DMS", worse="GPS")
    assert judge([Claim("?", ("circle", "outliers"), "?", test)], found)[0].word == "holds"


@pytest.mark.parametrize(("name", "low", "high"), [("klein", 0.1, 1.0), ("clouds", 0.0, 0.01)])
def test_fourth_powers_explain_where_signs_vary_less(name, low, high):
    """What two notes of the page say: how much of d^4 is the sum of (a_il - a_jl)^4."""
    X, operators, _ = sample(name, 0, seed=0)
    A = operators["bistochastic"] @ np.eye(len(X))
    rows = np.linalg.matrix_power(A, CATALOGUE[name].powers[0])
    i, j = np.triu_indices(len(X), 1)
    gaps = (rows[i] - rows[j])[::11]
    share = (gaps**4).sum(axis=1) / (gaps**2).sum(axis=1) ** 2
    assert low < np.median(share) < high


def test_claims_wait_for_their_experiments():
    waiting = judge(CLAIMS, {})
    assert [verdict.word for verdict in waiting] == ["holds"]  # the one that is pure theory


def test_the_exact_diffusion_map_of_the_torus_is_one_to_one_from_eight_on():
    assert [torus_separation(k) == 0 for k in range(2, 10)] == [True] * 6 + [False] * 2
    assert torus_separation(8) == 2
