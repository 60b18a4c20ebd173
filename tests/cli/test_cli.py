"""The command line: a table of questions and answers, and laws that hold for all of them."""

import hashlib
import json
import os
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import CASES, shelf
from registry import circle
from typer.testing import CliRunner

import heatsketch
from heatsketch import HeatLabels, HeatSketch
from heatsketch._core.row_names import row_number, row_numbers
from heatsketch.cli import app
from heatsketch.cli._command import COMMANDS, load_command
from heatsketch.cli._exit_codes import EXIT_CODES, in_options
from heatsketch.cli._progress import Overall
from heatsketch.exceptions import (
    FileFormatError,
    HeatSketchError,
    HeatSketchWarning,
    OutputExistsError,
)
from heatsketch.io import open_table
from heatsketch.persistence._container import read_model_file, write_model_file


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    shelf(folder)
    about, arrays = read_model_file(folder / "m.heatsketch")
    with pytest.MonkeyPatch.context() as later:
        later.setattr("heatsketch.persistence._container.FORMAT_VERSION", 99)
        later.setattr("heatsketch.persistence._container.OLDEST_READER", 99)
        write_model_file(folder / "newer.heatsketch", about, arrays, overwrite=False)
    about["class"] = "\x1b[2J\r\x9bHeatSketch"  # clears a terminal
    write_model_file(folder / "loud.heatsketch", about, arrays, overwrite=False)
    about["versions"] = 3
    write_model_file(folder / "mute.heatsketch", about, arrays, overwrite=False)
    model = HeatSketch(8).fit(np.load(folder / "points.npy"))
    model.feature_names_in_ = np.array(["x", "y"], dtype=object)
    model.save(folder / "named.heatsketch")
    return folder


@pytest.fixture
def workspace(made_once, tmp_path, monkeypatch):
    folder = tmp_path / "workspace"
    shutil.copytree(made_once, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def run(arguments, stdin=None):
    words = arguments.split() if isinstance(arguments, str) else arguments
    return CliRunner().invoke(app, words, input=stdin)


def contents(folder):
    """Return what there is, hidden things included, with its digest."""
    return {
        str(path.relative_to(folder)): path.is_file() and hashlib.md5(path.read_bytes()).digest()
        for path in sorted(folder.rglob("*"))
    }


def test_the_table_has_every_exit_code():
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.code for case in CASES} == {0, 2, 3, 4, 5, 6}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers(workspace, case):
    before = contents(workspace)
    result = run(case.arguments, case.stdin)
    assert result.exit_code == case.code, result.output
    assert case.says in (result.stderr if case.code else result.stdout)
    assert "Traceback" not in result.output
    if case.code:
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
    if case.code or "dry" in case.name:
        assert contents(workspace) == before
    assert not [path for path in workspace.rglob("*.part")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_machines_get_one_object(workspace, case):
    result = run(f"{case.arguments} --json", case.stdin)
    reply = json.loads(result.stdout)
    assert len(result.stdout.splitlines()) == 1
    assert result.exit_code == case.code
    if case.code:
        assert set(reply) == {"error", "type", "exit_code"}
        assert reply["exit_code"] == case.code
        assert case.says in reply["error"]
        assert re.fullmatch(r"[A-Z]\w+", reply["type"])
    else:
        assert "error" not in reply
        assert reply["warnings"] == []


# --- what is written ------------------------------------------------------------------------


def test_the_embedding_is_that_of_the_api_bit_for_bit(workspace):
    given = "--ids who --labels kind --components 16 --power 3 --seed 5 --epsilon local"
    result = run(f"embed points.parquet -o out.parquet --model new.heatsketch {given}")
    assert result.exit_code == 0, result.output
    X, ids, _ = open_table("points.parquet", ids="who", labels=["kind"]).read()
    wanted = HeatSketch(16, power=3, random_state=5).fit(X, row_ids=row_numbers(ids))
    found, who, labels = open_table("out.parquet", ids="who", labels=["kind"]).read()
    assert found.dtype == wanted.embedding_.dtype == np.float32
    assert (found == wanted.embedding_).all()
    assert who.tolist() == ids.tolist()
    assert labels["kind"].tolist() == ["a", "b", "c"] * 20
    model = heatsketch.load("new.heatsketch")
    assert (model.embedding_ == wanted.embedding_).all()
    assert model.feature_names_in_.tolist() == ["x", "y"]


def test_tables_are_compared_as_groups_of_rows_are(workspace):
    """The second half of the circle, moved, against the whole; columns in another order."""
    X, who, _ = open_table("points.parquet", columns=["x", "y"], ids="who").read()
    moved, user = X[30:] + np.float32(0.5), np.repeat(np.arange(6), 5)
    columns = {"y": moved[:, 1], "x": moved[:, 0], "who": who[30:], "kind": user.astype(str)}
    pq.write_table(pa.table(columns), "moved.parquet")
    given = "--columns x,y --ids who --labels kind -o out.parquet --page out.html --seed 3"
    reply = json.loads(run(f"compare points.parquet moved.parquet {given} --json").stdout)
    both, sample = np.concatenate([X, moved]), np.repeat(["a", "b"], [60, 30])
    wanted = HeatSketch(random_state=3).fit(both).compare(sample)
    found, names, labels = open_table("out.parquet", ids="who", labels=["sample", "kind"]).read()
    values = [wanted.effect, wanted.z, wanted.p_values, wanted.flagged]
    np.testing.assert_array_equal(found, np.column_stack(values))
    assert names.tolist() == [*who, *who[30:]]
    assert labels["sample"].tolist() == ["reference"] * 60 + ["current"] * 30
    assert (reply["p_value"], reply["rows"]) == (0.005, {"reference": 60, "current": 30})
    assert sum(reply["flagged"].values()) == wanted.flagged.sum() > 0
    assert "more current" in Path("out.html").read_text(encoding="utf-8")
    units = "--columns x,y --units kind -o units.parquet --labels who"
    assert run(f"compare points.parquet moved.parquet {units}").exit_code == 0
    unit = np.concatenate([6 + np.arange(60) % 3, user])  # in the order of their names
    wanted = HeatSketch(2, power=1).fit(both).compare(sample, units=unit)
    found = open_table("units.parquet", labels=["sample", "who"]).read().X
    np.testing.assert_array_equal(found[:, 2], wanted.p_values)


@pytest.mark.parametrize(
    ("current", "says"), [("points.npy", "share records"), ("twice.npy", "60 of 180 rows repeat")]
)
def test_tables_with_repeated_rows_are_compared_with_a_warning(workspace, current, says):
    np.save("twice.npy", np.repeat(1 + np.load("points.npy"), 2, axis=0))
    result = run(f"compare points.npy {current} -o out.csv")
    assert result.exit_code == 0
    assert says in result.stderr


def test_without_ids_rows_are_their_positions(workspace):
    assert run("embed points.npy -o out.npy --model new.heatsketch").exit_code == 0
    wanted = HeatSketch().fit(np.load("points.npy")).embedding_
    assert (np.load("out.npy") == wanted).all()
    reply = json.loads(run("distances new.heatsketch 3 4 5 5 --json").stdout)
    distance = heatsketch.diffusion.diffusion_distances(wanted, [[3, 4], [5, 5]]).distance
    assert reply["distance"] == distance.tolist()


def test_new_rows_are_found_by_the_names_of_their_columns(workspace):
    assert run("embed points.parquet --columns x,y -o a.npy --model new.heatsketch").exit_code == 0
    assert run("transform new.heatsketch turned.parquet -o b.npy").exit_code == 0
    np.testing.assert_allclose(np.load("b.npy"), np.load("a.npy"), atol=1e-5)
    assert run("transform new.heatsketch points.npy -o c.npy").exit_code == 3


def test_a_plan_for_a_cluster_needs_dask(monkeypatch):
    monkeypatch.setattr("heatsketch.engines._dask_engine.find_spec", lambda name: None)
    result = run("plan --n 1e6 --d 4 --workers 2")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith('install it with: pip install "heatsketch[cluster]".\n')


def test_transform_in_blocks_is_transform(workspace, monkeypatch):
    monkeypatch.setattr("heatsketch.cli._transform.BLOCK_BYTES", 64)
    arguments = "transform m.heatsketch points.parquet --columns x,y --ids who -o out.parquet"
    assert run(arguments).exit_code == 0
    X, ids, _ = open_table("points.parquet", columns=["x", "y"], ids="who").read()
    found, who, _ = open_table("out.parquet", ids="who").read()
    assert who.tolist() == ids.tolist()
    np.testing.assert_allclose(found, heatsketch.load("m.heatsketch").transform(X), atol=1e-6)
    bad = np.load("points.npy")
    bad[33, 1] = np.nan
    np.save("later.npy", bad)
    result = run("transform m.heatsketch later.npy -o bad.npy")
    assert "later.npy contains NaN in row 33, column 1" in result.stderr


def test_rows_with_the_same_id_are_the_same_rows(workspace):
    """Half the rows, in another order, and other files: drift knows them by their ids."""
    for name in ("points.parquet", "points.csv"):
        arguments = f"embed {name} --columns x,y --ids who --power 3 -o {name}.npz"
        assert run(f"{arguments} --model {name}.heatsketch").exit_code == 0
    reply = json.loads(run("drift points.parquet.heatsketch points.csv.heatsketch --json").stdout)
    assert reply["n_common"] == 60
    assert reply["relative"] < 1e-6
    result = run("distances points.csv.heatsketch r3 r4")
    assert result.stdout.splitlines()[1].startswith("r3\tr4\t")
    assert run("distances points.csv.heatsketch 3 4").exit_code == 2


def test_rows_that_moved_are_reported_by_name(workspace):
    named = "--ids who --columns x,y --power 2 --neighbors 6 --k 32"
    lines = ["who,x,y", *(f"r{i},{x},{y}" for i, (x, y) in enumerate(circle(400)))]
    (workspace / "points.csv").write_text("\n".join(lines))
    lines[6] = "r5," + lines[206].split(",", 1)[1]
    (workspace / "later.csv").write_text("\n".join(lines[:-1]))
    for name in ("points", "later"):
        arguments = f"embed {name}.csv -o {name}.parquet --overwrite --model {name}.model {named}"
        assert run(arguments).exit_code == 0
    result = run("drift points.model later.model")
    assert "0 came, 1 went" in result.stdout
    assert "give its table with --names" in result.stdout
    named = "--names points.parquet --ids who --json"
    reply = json.loads(run(f"drift points.model later.model {named}").stdout)
    assert reply["went"] == ["r399"]
    assert "r5" in reply["moved"]


def test_all_rows_get_labels_as_heat_labels_has_them(workspace):
    result = run("label known.parquet --columns x,y --column number -o out.parquet --ids who")
    assert result.exit_code == 0, result.output
    X, ids, labels = open_table(
        "known.parquet", columns=["x", "y"], ids="who", labels=["number"]
    ).read()
    wanted = HeatLabels().fit(X, labels["number"])
    found, who, written = open_table(
        "out.parquet", ids="who", labels=["number", "predicted"]
    ).read()
    assert who.tolist() == ids.tolist()
    assert written["number"].tolist() == labels["number"].tolist()
    assert written["predicted"].tolist() == wanted.transduction_.tolist()
    np.testing.assert_array_equal(found[:, 0], wanted.label_distributions_.max(axis=1))


def test_sets_and_suspects_are_those_of_heat_labels(workspace):
    given = "--columns x,y --column kind --ids who --coverage 0.8 --suspects ranked.parquet"
    result = run(f"label points.parquet {given} -o out.parquet --json")
    assert result.exit_code == 0, result.output
    X, ids, labels = open_table(
        "points.parquet", columns=["x", "y"], ids="who", labels=["kind"]
    ).read()
    model = HeatLabels(unknown="").fit(X, labels["kind"].astype(str))
    sets, ranking = model.predict_set(X, coverage=0.8), model.suspects()
    written = open_table("out.parquet", ids="who", labels=["kind", "predicted", "set"]).read()
    wanted = ["|".join(model.classes_[members]) for members in sets]
    assert written.labels["set"].tolist() == wanted
    assert any("|" in text for text in wanted)
    table = open_table("ranked.parquet", ids="who", labels=["kind", "suggested"])
    assert table.names == ("margin",)
    ranked = table.read()
    np.testing.assert_array_equal(ranked.X[:, 0], ranking.margin)
    assert ranked.ids.tolist() == ids[ranking.rows].tolist()
    assert ranked.labels["kind"].tolist() == labels["kind"][ranking.rows].tolist()
    assert ranked.labels["suggested"].tolist() == ranking.suggested.tolist()
    reply = json.loads(result.stdout)
    assert reply["suspect"] == (ranking.margin < 0).sum()
    assert reply["labels_in_a_set"] == sets.sum(axis=1).mean()


def test_suspects_are_the_rows_that_have_a_label(workspace):
    given = "--columns x,y --column number --suspects ranked.csv"
    assert run(f"label known.parquet {given} -o out.csv").exit_code == 0
    lines = Path("ranked.csv").read_text().splitlines()
    assert lines[0] == "row,margin,number,suggested"
    assert sorted(line.split(",")[0] for line in lines[1:]) == ["0", "1"]


def test_nodes_of_a_graph_keep_their_names(workspace):
    arguments = "embed ring.edges -o out.csv --model new.heatsketch --k 8 --power 3"
    assert run(arguments).exit_code == 0
    _, ids, _ = open_table("out.csv", ids="id").read()
    assert set(ids) == {f"r{i}" for i in range(60)}
    assert run("distances new.heatsketch r1 r2").exit_code == 0


def test_distances_go_to_a_table(workspace):
    assert run("distances m.heatsketch --pairs pairs.txt -o out.parquet").exit_code == 0
    table = open_table("out.parquet", labels=["row", "other"])
    assert table.names == ("distance", "low", "high")
    X, _, labels = table.read()
    wanted = heatsketch.load("m.heatsketch").diffusion_distances([[0, 1], [2, 3], [4, 5]])
    assert (np.column_stack(wanted) == X).all()
    assert labels["other"].tolist() == ["1", "3", "5"]


def test_warnings_are_one_line(workspace):
    np.save("clusters.npy", np.concatenate([np.load("points.npy"), np.load("points.npy") + 1e3]))
    result = run("embed clusters.npy -o out.npy --neighbors 5 --json")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: ")
    assert json.loads(result.stdout)["warnings"] == [line.removeprefix("warning: ")]
    assert "2 connected components" in line
    assert "more neighbours than --neighbors 5" in line


def test_errors_and_warnings_name_the_file_and_its_rows(workspace, monkeypatch):
    monkeypatch.setattr("heatsketch.cli._transform.BLOCK_BYTES", 64)  # rows 0 to 3, and so on
    arguments = "transform who.heatsketch far.csv --ids who --columns x,y -o out.csv"
    (line,) = run(arguments).stderr.splitlines()
    assert line.startswith("warning: 1 of 4 rows of far.csv, the first of them row 7 ('r7'), ")
    points = np.load("points.npy")
    points[5, 1] = 1e30
    np.save("huge.npy", points)
    assert "error: huge.npy holds numbers" in run("transform m.heatsketch huge.npy -o o.npy").stderr
    result = run("embed affinities.npy --affinity precomputed --neighbors 9 -o out.npy")
    assert result.stderr.startswith("error: --neighbors 9 has no use with --affinity precomputed, ")
    assert "the graph: negative.edges holds -1" in run("embed negative.edges -o g.csv").stderr


def test_options_of_the_sketch_are_those_of_the_api(workspace):
    options = "--weighting random_walk --random-matrix rademacher -k 8"
    assert run(f"embed points.npy -o out.npy {options}").exit_code == 0
    model = HeatSketch(8, weighting="random_walk", random_matrix="rademacher")
    assert (np.load("out.npy") == model.fit_transform(np.load("points.npy"))).all()
    assert run("embed affinities.npy -o k.npy --affinity precomputed").exit_code == 0
    model = HeatSketch(affinity="precomputed")
    assert (np.load("k.npy") == model.fit_transform(np.load("affinities.npy"))).all()


def test_an_infinite_bound_is_null(workspace):
    HeatSketch(4, random_matrix="rademacher").fit(np.load("points.npy")).save("signs.heatsketch")
    assert json.loads(run("distances signs.heatsketch 0 1 --json").stdout)["high"] == [None]


def test_a_dry_run_reads_no_rows(workspace, monkeypatch):
    def read(self):
        raise AssertionError("the rows were read")

    monkeypatch.setattr("heatsketch.io.Table.read", read)
    reply = json.loads(run("embed points.parquet --columns x,y -o o.npy --dry-run --json").stdout)
    assert (reply["rows"], reply["columns"], reply["dtype"]) == (60, 2, "float32")
    assert reply["bytes"] > 2**20


# --- words ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("report", "reproduce")])
def test_help_has_an_example_that_begins_like_it(name):
    result = run([name, "--help"])
    assert result.exit_code == 0
    assert re.search(rf"Example:\s+heatsketch\s+{name}", result.stdout)
    assert "--json" in result.stdout


@pytest.mark.parametrize("options", ["", " --json"])
@pytest.mark.parametrize("command", ["info loud.heatsketch", "report loud.heatsketch -o o.html"])
def test_a_file_does_not_control_the_terminal(workspace, command, options):
    result = run(command + options)
    assert "HeatSketch" in result.output
    assert not set(result.output) & {"\x1b", "\r", "\x9b"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_panels_and_no_types_of_flags(name):
    text = run([name, "--help"]).stdout
    assert "<bool>" not in text + run(["--help"]).stdout
    assert "Say" not in text
    if name == "embed":
        assert re.findall(r"─ ([A-Z][a-z ]+) ─", text) == [
            *("Arguments", "Options", "Input", "Sketch", "Neighbour graph")
        ]


def test_progress_never_decreases_and_takes_the_stages_of_a_table():
    seen = []
    overall = Overall("embed", lambda stage, part: seen.append(part))
    for stage, n_steps, n_done in (
        *(("reading", 1, 1), ("neighbours", 50, 50), ("diffusion", 128, 9)),
        *(("all times", 30, 30), ("diffusion", 128, 2), ("unheard of", 3, 4)),
    ):
        done = overall.begin(stage, n_steps)
        for _ in range(n_done):
            done()
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)
    assert overall.ends["all times"] == pytest.approx(1)


def test_stages_of_a_command_without_a_table_take_half_of_what_is_left():
    overall = Overall("no such command", lambda stage, part: None)
    for part in (0.5, 0.75, 0.875):
        overall.begin("work", 1)()
        assert overall.part == part


def test_who_asks_nothing_gets_help():
    result = run([])
    assert result.exit_code == 2
    assert "Usage" in result.output
    assert "error" not in result.output


def test_help_has_the_exit_codes():
    text = " ".join(run(["--help"]).stdout.split())
    assert all(f"{code:d} {words.split()[0]}" in text for code, words in EXIT_CODES.items())


def test_a_bug_asks_to_be_reported(workspace, monkeypatch):
    def broken(path):
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("heatsketch.model_info", broken)
    result = run("info m.heatsketch")
    assert result.exit_code == 1
    assert "ZeroDivisionError: a slip. This is a bug" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in run("info m.heatsketch --debug").stderr
    monkeypatch.setenv("HEATSKETCH_DEBUG", "1")
    assert "Traceback" in run("info m.heatsketch").stderr
    assert json.loads(run("info m.heatsketch --json").stdout)["exit_code"] == 1


def test_memory_that_is_used_up_has_its_code(workspace, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("heatsketch.HeatSketch.fit", greedy)
    result = run("embed points.npy -o out.npy")
    assert (result.exit_code, "--memory-limit" in result.stderr) == (6, True)
    assert not os.path.exists("out.npy")


def test_a_missing_library_is_reported_before_the_work(workspace, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    result = run("embed points.npy -o out.zarr")
    assert result.exit_code == 5
    assert 'pip install "heatsketch[files]"' in result.stderr


def test_options_stand_for_the_parameters_that_an_error_names():
    message = "n_neighbors=5 is odd, labels=['a b', 'c'] too; pass overwrite=True, not key='x'."
    named = {"n_neighbors": 5, "labels": ["a b", "c"], "overwrite": True}
    for kind in (HeatSketchError, HeatSketchWarning):
        assert in_options(kind(message, **named)) == (
            "--neighbors 5 is odd, --labels 'a b,c' too; pass --overwrite, not key='x'."
        )
    assert in_options(HeatSketchError("all of n_neighbors=None", n_neighbors=None)) == (
        "all of --neighbors all"
    )


def test_errors_keep_the_parameters_that_they_name_when_pickled():
    for error in (
        HeatSketchError("a=1", a=1),
        FileFormatError("x", "header=True", "leave it out", header=True),
        OutputExistsError(17, "x exists; pass overwrite=True", "x"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert again.parameters == error.parameters != {}
        assert str(again) == str(error)


def test_numbers_of_rows_are_frozen():
    """Models on disk depend on them."""
    assert row_number("0") == 0
    assert row_number(str(2**62 - 1)) == 2**62 - 1
    assert row_number("r0") == 6708417957227015906
    assert row_number("Größe") == 7988329660597036358
    assert row_numbers(np.array([-1]))[0] == row_number("-1")
    assert min(row_number(text) for text in ("", "01", "1.0", "-1", str(2**62))) >= 2**62


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_first_line_of_their_help(name):
    assert load_command(name).help.splitlines()[0] == COMMANDS[name][0]
