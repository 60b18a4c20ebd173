"""The commands cluster and smooth: what they write is what the estimators return."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from registry import cloud
from typer.testing import CliRunner

from heatsketch import HeatClustering, load
from heatsketch.cli import app
from heatsketch.io import open_table


def run(arguments):
    return CliRunner().invoke(app, arguments.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Points with names, counts of the same rows in another order, and a model of each kind."""
    monkeypatch.chdir(tmp_path)
    X, names = cloud(90).astype(np.float32), [f"r{i}" for i in range(90)]
    rates = 3 * np.exp(np.column_stack([X, -X])[:, :5])
    counts = np.random.default_rng(0).poisson(rates)
    table = {"who": names, **{f"x{i}": column for i, column in enumerate(X.T)}, "kind": names}
    pq.write_table(pa.table(table), "points.parquet")
    turned = {"who": names[::-1], **{f"g{i}": c[::-1] for i, c in enumerate(counts.T)}}
    pq.write_table(pa.table(turned), "counts.parquet")
    np.save("points.npy", X)
    np.save("counts.npy", counts)
    np.save("few.npy", counts[:9])
    named = "embed points.parquet --ids who --columns x0,x1,x2 -o a.npz --model named"
    assert run(named).exit_code == 0
    assert run("embed points.npy -o a.npy --model plain").exit_code == 0
    return tmp_path


def test_clusters_are_those_of_the_estimator(folder):
    result = run("cluster named points.parquet -n 4 --ids who --labels kind -o out.parquet --json")
    assert result.exit_code == 0, result.output
    X, ids, _ = open_table("points.parquet", columns=["x0", "x1", "x2"], ids="who").read()
    found, who, labels = open_table("out.parquet", ids="who", labels=["kind"]).read()
    wanted = HeatClustering(4, load("named")).fit(None)
    np.testing.assert_array_equal(found[:, 0], wanted.labels_)
    assert who.tolist() == labels["kind"].tolist() == ids.tolist()
    assert json.loads(result.stdout)["sizes"] == np.bincount(wanted.labels_).tolist()
    assert run("cluster plain points.npy -n 4 -o new.npy").exit_code == 0
    numbers = np.load("new.npy")[:, 0]
    np.testing.assert_array_equal(numbers, HeatClustering(4).fit_predict(X))
    assert run("cluster plain points.npy -n 4 -o new.csv").exit_code == 0
    assert (folder / "new.csv").read_text().split() == ["cluster", *map(str, numbers)]


def test_rows_are_smoothed_by_their_ids(folder):
    result = run("smooth named counts.parquet --ids who --time 3 -o out.parquet")
    assert result.exit_code == 0, result.output
    assert run("smooth plain counts.npy --time 3 -o out.npy").exit_code == 0
    found, who, _ = open_table("out.parquet", ids="who").read()
    assert who.tolist() == [f"r{i}" for i in range(90)][::-1]
    wanted = load("plain").smooth(np.load("counts.npy"), time=3).values
    np.testing.assert_array_equal(np.load("out.npy"), wanted)
    # The graphs are the same, but rows come in another order, and so do sums.
    np.testing.assert_allclose(found[::-1], wanted, rtol=1e-4)
    assert not list(folder.glob(".heatsketch-*"))


def test_counts_may_be_divided_by_depths(folder):
    assert run("smooth plain counts.npy --depths -o out.npy").exit_code == 0
    wanted = load("plain").smooth(np.load("counts.npy"), sizes="sum").values
    np.testing.assert_array_equal(np.load("out.npy"), wanted)


def test_the_curve_of_the_choice_is_printed_and_blocks_change_nothing(folder, monkeypatch):
    monkeypatch.setattr("heatsketch.cli._smooth.BLOCK_ENTRIES", 20)
    result = run("smooth plain counts.npy -o out.zarr --json")
    assert result.exit_code == 0, result.output
    reply, wanted = json.loads(result.stdout), load("plain").smooth(np.load("counts.npy"))
    assert reply["time"] == wanted.time
    assert reply["scores"] == wanted.scores.tolist()
    np.testing.assert_array_equal(open_table("out.zarr").read().X, wanted.values)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("cluster plain points.npy -o out.csv", 2, "--clusters"),
        ("cluster plain points.npy -n 0 -o out.csv", 2, "no integer of at least 1"),
        ("cluster plain points.npy -n 91 -o out.csv", 4, "91 is more than the n_samples=90"),
        ("cluster plain counts.npy -n 3 -o out.csv", 4, "has 5 columns of numbers, and plain was"),
        ("cluster plain points.npy -n 3 -o points.npy", 5, "is also the input"),
        ("smooth plain few.npy -o out.csv", 4, "few.npy has 9 rows, and plain has 90"),
        ("smooth named counts.npy -o out.csv", 4, "name the column of ids that embed was given"),
        ("smooth plain counts.npy --time -1 -o out.csv", 2, "use auto or an integer of at least 0"),
        ("smooth plain counts.npy --time soon -o out.csv", 2, "'soon' is unknown; use auto"),
        ("smooth plain counts.npy -o out.xlsx", 5, "'.xlsx' is not that of a table"),
        ("smooth plain nowhere.npy -o out.npy", 3, "No such file"),
    ],
)
def test_mistakes(folder, arguments, code, says):
    result = run(arguments)
    assert result.exit_code == code, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not list(folder.glob("out.*"))
