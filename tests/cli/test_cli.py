"""Laws of all commands, and their results against those of Python."""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import EACH, EMBED, REJECTED, WORKING, write_files
from registry import circle, cloud
from typer.testing import CliRunner

import heatsketch
from heatsketch import HeatClustering, HeatGraph, HeatLabels, HeatSketch, compare, smooth
from heatsketch.cli import app
from heatsketch.cli._program import COMMANDS
from heatsketch.io import open_table

WRITING = [name for name in EACH if " -o " in EACH[name]]


@pytest.fixture(scope="session")
def written_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture
def workspace(written_once, tmp_path, monkeypatch):
    folder = tmp_path / "workspace"
    shutil.copytree(written_once, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def run(arguments, stdin=None):
    words = arguments.split() if isinstance(arguments, str) else arguments
    return CliRunner().invoke(app, words, input=stdin)


def reply(arguments):
    """Run a command that works, and return its JSON object."""
    result = run(f"{arguments} --json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def contents(folder):
    """Return all files, including hidden ones, with their digests."""
    return {
        str(path.relative_to(folder)): path.is_file() and hashlib.md5(path.read_bytes()).digest()
        for path in sorted(folder.rglob("*"))
    }


# --- laws of all commands ---------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_options_are_rejected(workspace, name):
    result = run(f"{EACH[name]} --colour blue")
    assert result.exit_code == 2
    assert "--colour" in result.stderr


@pytest.mark.parametrize("arguments", WORKING)
def test_commands_print_text_and_one_json_object(workspace, arguments):
    result = run(arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()
    assert not [path for path in workspace.rglob("*") if path.name.startswith(".")]
    shutil.rmtree("out.zarr", ignore_errors=True)
    again = reply(f"{arguments} --overwrite" if " -o " in arguments else arguments)
    assert "error" not in again
    for path in (again.get("output"), again.get("model"), again.get("suspects")):
        assert path is None or Path(path).exists()


@pytest.mark.parametrize(("code", "arguments"), REJECTED)
def test_errors_have_exit_codes_and_change_no_file(workspace, code, arguments):
    before = contents(workspace)
    result = run(arguments, stdin="")
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert contents(workspace) == before
    if code > 2:
        assert result.stderr.startswith(("error: ", "warning: "))
        result = run(f"{arguments} --json")
        error = json.loads(result.stdout)
        assert (result.exit_code, error["exit_code"]) == (code, code)
        assert error["error"]
        assert re.fullmatch(r"[A-Z]\w+", error["type"])
        assert contents(workspace) == before


@pytest.mark.parametrize("arguments", [f"{EMBED} --labels kind", "embed ring.edges"])
def test_ids_and_labels_are_not_dropped_silently(workspace, arguments):
    result = run(f"{arguments} -o out.npy")
    assert result.exit_code in (3, 4)
    assert "out.npy" in result.stderr
    assert not Path("out.npy").exists()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "plan"])
def test_missing_inputs_have_their_exit_code(workspace, name):
    words = EACH[name].split()
    inputs = [place for place, word in enumerate(words) if Path(word).is_file()]
    assert inputs
    for place in inputs:
        missing = f"nowhere{Path(words[place]).suffix}"
        result = run([*words[:place], missing, *words[place + 1 :]])
        assert result.exit_code == 3, result.output
        assert missing in result.stderr


@pytest.mark.parametrize("name", WRITING)
def test_outputs_are_replaced_only_if_requested(workspace, name):
    arguments = EACH[name].replace("out.", "there.")
    output = Path(arguments.split()[arguments.split().index("-o") + 1])
    result = run(arguments)
    assert result.exit_code == 5
    assert output.name in result.stderr
    assert output.read_text() == "kept"
    assert run(f"{arguments} --overwrite").exit_code == 0
    assert len(output.read_text()) > 4


@pytest.mark.parametrize("command", ["info", "distances"])
def test_files_do_not_control_the_terminal(workspace, command):
    HeatSketch(4).fit(circle(60), ids=["\x1b[2J\r\x9b", *map(str, range(59))]).save("loud")
    words = ["distances", "loud", "\x1b[2J\r\x9b", "0"] if command == "distances" else ["info", "m"]
    for options in ([], ["--json"]):
        output = run([*words, *options]).output
        assert not set(output) & {"\x1b", "\r", "\x9b"}


def test_bugs_have_a_traceback_and_exit_code_1(workspace, monkeypatch):
    def broken(path):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("heatsketch.model_info", broken)
    result = run("info m.heatsketch")
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


def test_used_up_memory_has_its_exit_code(workspace, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("heatsketch.HeatSketch.fit", greedy)
    assert run("embed points.npy -o out.npy").exit_code == 6
    assert not os.path.exists("out.npy")


def test_warnings_are_printed_once_and_in_json(workspace):
    X = np.load("points.npy")
    np.save("clusters.npy", np.concatenate([X, X + 1e3]))
    result = run("embed clusters.npy -o out.npy --neighbors 5 --json")
    assert result.exit_code == 0
    (text,) = json.loads(result.stdout)["warnings"]
    assert result.stderr == f"warning: {text}\n"
    assert "2 connected components" in text


def test_a_square_sparse_matrix_may_be_a_graph(workspace):
    assert "use --graph" in run("embed ring.npz -o out.npy").stderr
    assert "use --graph" not in run("embed ring.npz --graph -o graph.npy").stderr
    assert "use --graph" not in run("embed points.npz -o points_out.npy").stderr


# --- results are those of Python --------------------------------------------------------------


def test_embed_equals_the_estimator_bit_for_bit(workspace):
    options = "--ids who --labels kind --components 16 --power 3 --seed 5 --neighbors 9"
    printed = reply(f"embed points.parquet -o out.parquet --model new.heatsketch {options}")
    X, ids, _ = open_table("points.parquet", ids="who", labels=["kind"]).read()
    expected = HeatSketch(16, power=3, random_state=5, n_neighbors=9).fit(X, ids=ids)
    Y, who, labels = open_table("out.parquet", ids="who", labels=["kind"]).read()
    assert Y.dtype == expected.embedding_.dtype == np.float32
    np.testing.assert_array_equal(Y, expected.embedding_)
    assert who.tolist() == ids.tolist()
    assert labels["kind"].tolist() == ["a", "b", "c"] * 20
    model = heatsketch.load("new.heatsketch")
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    assert (printed["seed"], printed["first_power"]) == (5, 3)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("embed points.npy", {}),
        ("embed points.npy --weights gaussian --neighbors all", {"weights": "gaussian"}),
        ("embed points.npy --weights 0.5 --metric cosine", {"weights": 0.5, "metric": "cosine"}),
        ("embed points.npy --normalization degree", {"normalization": "degree"}),
        ("embed distances.npy --metric precomputed", {"metric": "precomputed"}),
    ],
)
def test_graph_options_are_those_of_the_estimator(workspace, arguments, options):
    assert run(f"{arguments} -o out.npy").exit_code == 0
    if "all" in arguments:
        options = {**options, "n_neighbors": None}
    expected = HeatSketch(**options).fit(np.load(arguments.split()[1])).embedding_
    np.testing.assert_array_equal(np.load("out.npy"), expected)


def test_nodes_of_a_graph_keep_their_names(workspace):
    assert run("embed ring.edges -o out.csv --model new.heatsketch -k 8 --power 3").exit_code == 0
    assert set(open_table("out.csv", ids="id").read().ids) == {f"r{i}" for i in range(60)}
    assert run("distances new.heatsketch r1 r2").exit_code == 0


def test_distances_equal_those_of_the_sketch(workspace):
    made = heatsketch.load("m.heatsketch").sketch_
    expected = made.distances([[0, 1], [2, 3], [4, 5]])
    printed = reply("distances m.heatsketch --pairs pairs.txt")
    for name in ("distance", "low", "high"):
        np.testing.assert_array_equal(printed[name], getattr(expected, name))
    assert run("distances m.heatsketch --pairs pairs.txt -o out.parquet").exit_code == 0
    X, _, labels = open_table("out.parquet", labels=["row", "other"]).read()
    np.testing.assert_array_equal(X, np.column_stack(expected))
    assert labels["other"].tolist() == ["1", "3", "5"]
    piped = run("distances m.heatsketch --pairs -", stdin="7 8\n").stdout.splitlines()
    assert piped[0].split("\t") == ["row", "other", "distance", "low", "high"]
    assert piped[1].split("\t")[:2] == ["7", "8"]


def test_transform_finds_columns_by_name(workspace):
    assert run(f"{EMBED} -o a.npy --model new.heatsketch").exit_code == 0
    assert run("transform new.heatsketch turned.parquet -o b.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("b.npy"), np.load("a.npy"))
    assert run("transform new.heatsketch points.npy -o c.npy").exit_code == 3


def test_transform_in_blocks_equals_transform(workspace, monkeypatch):
    monkeypatch.setattr("heatsketch.cli._transform.BLOCK_BYTES", 64)
    arguments = "transform m.heatsketch points.parquet --columns x,y --ids who -o out.parquet"
    assert run(arguments).exit_code == 0
    Y, who, _ = open_table("out.parquet", ids="who").read()
    expected = heatsketch.load("m.heatsketch").transform(np.load("points.npy"))
    np.testing.assert_allclose(Y, expected, atol=1e-6)
    assert who[[0, -1]].tolist() == ["r0", "r59"]
    bad = np.load("points.npy")
    bad[33, 1] = np.nan
    np.save("later.npy", bad)
    result = run("transform m.heatsketch later.npy -o bad.npy")
    assert "later.npy" in result.stderr and "row 33" in result.stderr
    bad[33, 1] = 1e6
    np.save("later.npy", bad)
    assert "later.npy, rows from 32 on" in run("transform m.heatsketch later.npy -o c.npy").stderr


def test_clusters_equal_those_of_the_estimator(workspace):
    printed = reply("cluster m.heatsketch points.npy -n 4 --seed 2 -o out.npy")
    expected = HeatClustering(4, random_state=2).fit(np.load("points.npy"))
    np.testing.assert_array_equal(np.load("out.npy")[:, 0], expected.labels_)
    assert printed["sizes"] == np.bincount(expected.labels_).tolist()


@pytest.mark.parametrize("depths", [False, True])
def test_smooth_equals_the_function(workspace, monkeypatch, depths):
    monkeypatch.setattr("heatsketch.cli._smooth.BLOCK_ENTRIES", 20)
    X = cloud(90).astype(np.float32)
    counts = np.random.default_rng(0).poisson(3 * np.exp(np.column_stack([X, -X])[:, :5]))
    np.save("X.npy", X)
    np.save("counts.npy", counts)
    assert run("embed X.npy -o a.npy --model cells").exit_code == 0
    printed = reply(f"smooth cells counts.npy -o out.zarr {'--depths' * depths}")
    expected = smooth(HeatGraph.from_points(X), counts, sizes="sum" if depths else None)
    np.testing.assert_array_equal(open_table("out.zarr").read().X, expected.values)
    assert (printed["time"], printed["scores"]) == (expected.time, expected.scores.tolist())


def test_smooth_finds_rows_by_id_in_any_order(workspace):
    frame = pd.read_parquet("points.parquet")
    frame[::-1].to_parquet("reversed.parquet")
    for name in ("points", "reversed"):
        options = f"--columns x,y --ids who --time 3 -o {name}.csv"
        assert run(f"smooth who.heatsketch {name}.parquet --overwrite {options}").exit_code == 0
    one, two = pd.read_csv("points.csv"), pd.read_csv("reversed.csv")
    assert two.who.tolist() == one.who.tolist()[::-1]
    np.testing.assert_array_equal(one[["x", "y"]], two[["x", "y"]][::-1])


def test_compare_equals_the_function(workspace):
    """The second half of the circle, moved, against the whole; columns in another order."""
    X, who, _ = open_table("points.parquet", columns=["x", "y"], ids="who").read()
    moved, user = X[30:] + np.float32(0.5), np.repeat(np.arange(6), 5)
    columns = {"y": moved[:, 1], "x": moved[:, 0], "who": who[30:], "kind": user.astype(str)}
    pq.write_table(pa.table(columns), "moved.parquet")
    command = "compare points.parquet moved.parquet --columns x,y"
    printed = reply(f"{command} --ids who --labels kind -o out.parquet --page out.html --seed 3")
    both, sample = np.concatenate([X, moved]), np.repeat(["a", "b"], [60, 30])
    graph = HeatGraph.from_points(both)
    expected = compare(graph, sample, seed=3)
    Y, names, labels = open_table("out.parquet", ids="who", labels=["sample", "kind"]).read()
    values = [expected.effect, expected.z, expected.p_values, expected.flagged]
    np.testing.assert_array_equal(Y, np.column_stack(values))
    assert names.tolist() == [*who, *who[30:]]
    assert labels["sample"].tolist() == ["reference"] * 60 + ["current"] * 30
    assert (printed["p_value"], printed["differ"]) == (expected.p_value, True)
    assert sum(printed["flagged"].values()) == expected.flagged.sum() > 0
    assert "more current" in Path("out.html").read_text(encoding="utf-8")
    reply(f"{command} --units kind -o units.csv")
    unit = np.concatenate([6 + np.arange(60) % 3, user])  # in the order of their names
    expected = compare(graph, sample, units=unit)
    Y = open_table("units.csv", labels=["sample"]).read().X
    np.testing.assert_array_equal(Y[:, 2], expected.p_values)


def test_label_equals_the_estimator(workspace):
    options = "--columns x,y --column kind --ids who --coverage 0.8 --suspects ranked.parquet"
    printed = reply(f"label points.parquet {options} -o out.parquet")
    X, ids, labels = open_table(
        "points.parquet", columns=["x", "y"], ids="who", labels=["kind"]
    ).read()
    model = HeatLabels(unknown="").fit(X, labels["kind"].astype(str))
    sets, ranking = model.predict_set(X, coverage=0.8), model.suspects()
    written = open_table("out.parquet", ids="who", labels=["kind", "predicted", "set"]).read()
    np.testing.assert_array_equal(written.X[:, 0], model.label_distributions_.max(axis=1))
    assert written.labels["predicted"].tolist() == model.transduction_.tolist()
    assert written.labels["set"].tolist() == ["|".join(model.classes_[row]) for row in sets]
    ranked = open_table("ranked.parquet", ids="who", labels=["kind", "suggested"]).read()
    np.testing.assert_array_equal(ranked.X[:, 0], ranking.margin)
    assert ranked.ids.tolist() == ids[ranking.rows].tolist()
    assert ranked.labels["suggested"].tolist() == ranking.suggested.tolist()
    assert printed["suspect"] == (ranking.margin < 0).sum()
    assert printed["labels_in_a_set"] == sets.sum(axis=1).mean()


def test_label_takes_numbers_with_minus_one_for_unknown(workspace):
    table = pd.DataFrame(np.concatenate([cloud(40, 2), cloud(40, 2) + 4]), columns=["x", "y"])
    table["number"] = np.where(np.arange(80) % 8, -1, np.arange(80) // 40)
    table.to_parquet("numbers.parquet", index=False)
    reply("label numbers.parquet --columns x,y --column number -o out.parquet")
    model = HeatLabels().fit(table[["x", "y"]].to_numpy(), table["number"])
    written = open_table("out.parquet", labels=["number", "predicted"]).read()
    assert written.labels["predicted"].tolist() == model.transduction_.tolist()
    np.testing.assert_array_equal(written.X[:, 0], model.label_distributions_.max(axis=1))


def test_drift_finds_rows_by_id_in_any_order_and_format(workspace):
    X = circle(400)
    frame = pd.DataFrame({"who": [f"r{i}" for i in range(400)], "x": X[:, 0], "y": X[:, 1]})
    frame.to_csv("before.csv", index=False)
    frame[::-1].to_parquet("same.parquet")
    moved = frame[:-1].copy()
    moved.loc[5, ["x", "y"]] = X[205]
    moved.to_csv("after.csv", index=False)
    for name in ("before.csv", "same.parquet", "after.csv"):
        options = "--ids who --columns x,y --power 2 --neighbors 6 -k 32"
        assert run(f"embed {name} -o {name}.out.csv --model {name}.model {options}").exit_code == 0
    printed = reply("drift before.csv.model same.parquet.model")
    assert printed["common_rows"] == 400
    assert printed["relative"] < 1e-6
    printed = reply("drift before.csv.model after.csv.model")
    assert (printed["came"], printed["went"]) == ([], ["r399"])
    assert "r5" in printed["moved"]


def test_dry_runs_read_no_rows_and_write_nothing(workspace, monkeypatch):
    def read(self):
        raise AssertionError("the rows were read")

    monkeypatch.setattr("heatsketch.io.Table.read", read)
    before = contents(workspace)
    printed = reply(f"{EMBED} -o out.npy --dry-run")
    assert (printed["rows"], printed["columns"]) == (60, ["x", "y"])
    assert printed["estimated_bytes"] > 2**20
    assert reply("embed ring.edges -o out.csv --dry-run")["estimated_bytes"] is None
    assert contents(workspace) == before


def test_a_row_index_in_text_is_rejected(workspace):
    pd.read_parquet("turned.parquet").to_csv("indexed.csv")
    assert run("embed indexed.csv -o out.csv").exit_code == 3
    assert reply("embed indexed.csv -o out.csv --columns x,y")["columns"] == ["x", "y"]
