"""The paper's experiments: against a literal transcription, and however they are run."""

import re
from functools import partial

import numpy as np
import pytest
import transcription
from matplotlib.image import imread

from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from paper.__main__ import main
from paper.catalogue import CATALOGUE, ISOMETRIES, PAPER, PORTRAITS
from paper.claims import (
    CLAIMS,
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
from paper.methods import METHODS
from paper.runner import Results, run_experiment, run_trial, sample


def literal_log_L(name, trial, seed):  # noqa: N802
    """One trial, by the transcription alone; only the points and G are taken over."""
    experiment = CATALOGUE[name]
    X, _, block_seed = sample(name, trial, seed)
    A = {
        "symmetric": transcription.algorithm_1(X, experiment.epsilon),
        "bistochastic": transcription.algorithm_2(X, experiment.epsilon),
    }
    widest = max(experiment.dimensions)
    G = {
        "G": gaussian_matrix(len(X), widest, seed=block_seed),
        "GPSB": rademacher_matrix(len(X), widest, seed=block_seed),
    }
    distances = {
        (kind, p): transcription.euclidean_distance(X)
        if experiment.distance == "euclidean"
        else transcription.diffusion_distance(A[kind], p)
        for kind in A
        for p in experiment.powers
    }
    log_L = {}
    for method in experiment.methods:
        kind = "symmetric" if method.endswith("S") else "bistochastic"
        log_L[method] = []
        for k, p in experiment.grid:
            if method.startswith("DM"):
                Y = transcription.algorithm_3(A[kind], k, p)
            else:
                block = G["GPSB" if method.startswith("GPSB") else "G"]
                Y = transcription.algorithm_4_and_5(A[kind], block[:, :k], p)
            log_L[method].append(transcription.log_L(Y, distances[kind, p]))
    return log_L


@pytest.mark.parametrize("name", PAPER)
def test_trial_equals_literal_transcription(name):
    trial, literal = run_trial(name, 0, seed=7)["log_L"], literal_log_L(name, 0, seed=7)
    assert set(trial) == set(CATALOGUE[name].methods)
    for method, values in trial.items():
        np.testing.assert_allclose(values, literal[method], rtol=0, atol=1e-8, err_msg=method)


def test_catalogue_has_parameters_of_the_paper():
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
    for name in ISOMETRIES:
        kinds = {METHODS[method].normalization for method in CATALOGUE[name].methods}
        assert kinds == {name.split("-")[-1]}


def test_run_is_the_same_for_any_processes_and_interruptions(tmp_path):
    run_experiment("outliers", tmp_path / "one", trials=4, seed=5, n_jobs=1)
    whole = (tmp_path / "one" / "outliers.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "two").mkdir()
    # What an interruption in the middle of a line leaves.
    (tmp_path / "two" / "outliers.jsonl").write_text("".join(lines[:2]) + lines[2][:30])
    results = run_experiment("outliers", tmp_path / "two", trials=4, seed=5, n_jobs=2)
    assert (tmp_path / "two" / "outliers.jsonl").read_text() == whole
    assert [trial["trial"] for trial in results.trials] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"another seed .* not of seed=1"):
        run_experiment("outliers", tmp_path / "one", trials=4, seed=1)
    assert (tmp_path / "one" / "outliers.jsonl").read_text() == whole


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Page of the whole command for two experiments, with a few trials."""
    folder = tmp_path_factory.mktemp("paper")
    main(["circle", "outliers", "--trials", "10", "--jobs", "1", "--out", str(folder)])
    return folder / "reproduction.md"


def test_command_draws_every_figure(page):
    names = {"circle", "outliers", *PORTRAITS}
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", page.read_text())
    assert set(pictures) == {f"reproduction/{name}.png" for name in names}
    for picture in pictures:
        pixels = imread(page.parent / picture)[:, :, :3]
        assert min(pixels.shape[:2]) > 500
        ink = pixels.min(axis=2) < 0.9
        assert 0.005 < ink.mean() < 0.5
        assert "<svg" in (page.parent / picture).with_suffix(".svg").read_text()[:2000]


def test_claims_hold_as_far_as_ten_trials_decide(page):
    judged = [
        claim
        for claim in CLAIMS
        if not claim.experiments or {*claim.experiments} <= {"circle", "outliers"}
    ]
    rows = [line for line in page.read_text().splitlines() if line.endswith("** |")]
    assert len(rows) == len(judged) == 7
    for claim, row in zip(judged, rows, strict=True):
        assert row.startswith(f"| {claim.statement} |")
        # The size of a mean needs more trials than the order of two methods.
        decided = claim.test.func is not level
        assert row.endswith(("**holds** |",) if decided else ("**holds** |", "**undecided** |"))


# --- verdicts -------------------------------------------------------------------------------


def made_up(name="circle", trials=50, **log_L):
    """Results with given means, and noise of 0.1."""
    rng, size = np.random.default_rng(0), (trials, len(CATALOGUE[name].axis))
    rows = {method: rng.normal(mean, 0.1, size) for method, mean in log_L.items()}
    return Results(
        name, [{"log_L": {method: row[i] for method, row in rows.items()}} for i in range(trials)]
    )


def verdict(test, *results):
    names = tuple(one.name for one in results)
    claim = Claim("?", names, "?", test)
    return judge([claim], dict(zip(names, results, strict=True)))[0]


def word(test, *results):
    return verdict(test, *results).word


def test_lead_at_all_points_holds_and_at_none_does_not():
    k = np.arange(7)
    better = partial(ahead, better="DMS", worse="GPS")
    assert word(better, made_up(DMS=0 * k, GPS=1 + 0 * k)) == "holds"
    assert word(better, made_up(DMS=1 + 0 * k, GPS=0 * k)) == "does not hold"
    assert word(better, made_up(DMS=0 * k, GPS=k - 3)) == "holds in part"
    assert word(better, made_up(DMS=0 * k, GPS=0 * k)) == "undecided"


def test_other_tests_can_hold_and_fail():
    k = np.arange(7.0)
    results = made_up(DMS=0 * k, GPS=1 + k)
    pairs = (("DMS", "GPS"),)
    lead = {"better": "DMS", "worse": "GPS"}
    for test, expected in (
        (partial(rises, method="GPS", at=(2, 3, 4)), "holds"),
        (partial(rises, method="DMS", at=(2, 3)), "undecided"),
        (partial(shrinks, **lead, early=8, late=2), "holds"),
        (partial(shrinks, **lead, early=2, late=8), "does not hold"),
        (partial(alike, pairs=pairs, margin=2, at=(2,)), "holds"),
        (partial(alike, pairs=pairs, margin=2, at=(8,)), "does not hold"),
        (partial(level, method="GPS", at=(2,), between=(2, 4)), "holds"),
        (partial(level, method="GPS", at=(2,), between=(9, 10)), "does not hold"),
    ):
        assert word(test, results) == expected
    larger = made_up("outliers", DMS=np.zeros(4), GPS=np.full(4, 6.0))
    assert word(partial(wider, **lead), larger, results) == "holds"


def test_exact_diffusion_map_of_the_torus_is_one_to_one_from_eight_on():
    assert [torus_separation(k) == 0 for k in range(2, 10)] == [True] * 6 + [False] * 2
    assert torus_separation(8) == 2
