"""Columns that the commands use: no row index, and always printed."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from heatsketch.cli import app
from heatsketch.cli._rows import columns_text
from heatsketch.io import open_table

SAMPLE = pd.DataFrame(
    np.random.default_rng(0).standard_normal((1200, 4)), columns=["a", "b", "c", "d"]
)


def run(arguments):
    return CliRunner().invoke(app, arguments.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def halves(write):
    """Write two halves of one sample, whose indexes go on from one to the other."""
    write(SAMPLE[:600], "one")
    write(SAMPLE[600:], "other")


WRITERS = {
    "filtered": lambda frame, name: frame[frame.a < 3].to_parquet(f"{name}.parquet"),
    "named": lambda frame, name: frame.rename_axis("id").to_parquet(f"{name}.parquet"),
    "polars": lambda frame, name: pl.from_pandas(frame).write_parquet(f"{name}.parquet"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_two_halves_of_one_sample_do_not_differ(folder, writer):
    halves(WRITERS[writer])
    result = run("compare one.parquet other.parquet -o out.csv --json")
    reply = json.loads(result.stdout)
    assert reply["p_value"] > 0.05
    assert reply["column_names"] == ["a", "b", "c", "d"]
    assert reply["warnings"] == []


@pytest.mark.parametrize("extension", ["csv", "tsv"])
def test_text_with_an_index_is_rejected(folder, extension):
    mark = "\t" if extension == "tsv" else ","
    halves(lambda frame, name: frame.to_csv(f"{name}.{extension}", sep=mark))
    words = f"compare one.{extension} other.{extension} -o out.csv"
    result = run(words)
    assert result.exit_code == 3
    assert "--columns a,b,c,d" in result.stderr
    assert "index=False" in result.stderr
    result = run(f"{words} --columns a,b,c,d --json")
    assert json.loads(result.stdout)["p_value"] > 0.05


def test_row_numbers_are_a_warning(folder):
    SAMPLE[:100].reset_index().to_parquet("a.parquet")
    result = run("embed a.parquet -o out.npy -k 4 --power 2 --model m")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert "'index'" in line and "--columns a,b,c,d" in line
    # The model was fitted to this column on purpose, or was warned about it.
    assert run("transform m a.parquet -o new.npy").stderr == ""
    assert run("embed a.parquet --ids index -o out.csv -k 4 --power 2").stderr == ""


COMMANDS = {
    "embed": "embed points.parquet --ids who --model m2 -o out.npz",
    "embed --dry-run": "embed points.parquet --ids who -o out.npz --dry-run",
    "transform": "transform m points.parquet -o out.npz",
    "compare": "compare points.parquet points.parquet --labels who -o out.csv",
    "label": "label points.parquet --column kind --labels who -o out.csv",
    "smooth": "smooth m points.parquet --ids who --time 2 -o out.npz",
    "cluster": "cluster m points.parquet -n 2 -o out.npz",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_columns_are_printed(folder, command):
    frame = SAMPLE[:60].assign(who=[f"r{row}" for row in range(60)])
    frame.to_parquet("model.parquet", index=False)
    labelled = {"kind": (["x", "y", "", ""] * 15)} if command == "label" else {}
    frame.assign(**labelled)[::-1].to_parquet("points.parquet")
    assert run("embed model.parquet --ids who -k 4 --model m -o a.npz").exit_code == 0
    text = run(f"{COMMANDS[command]} --overwrite")
    assert text.exit_code == 0, text.output
    assert "Columns: a, b, c, d\n" in text.stdout + "\n"
    reply = json.loads(run(f"{COMMANDS[command]} --overwrite --json").stdout)
    assert reply["column_names"] == ["a", "b", "c", "d"]


def test_unnamed_columns_are_printed_by_their_numbers(folder):
    np.save("a.npy", SAMPLE[:50])
    assert "Columns: x0, x1, x2, x3\n" in run("embed a.npy -o out.npy -k 4").stdout


def test_graphs_have_no_columns(folder):
    (folder / "a.edges").write_text("a b\nb c\nc a\n")
    assert "Columns:" not in run("embed a.edges -o out.csv -k 2").stdout


@pytest.mark.parametrize("n_columns", [1, 8, 9, 20_000])
def test_text_of_many_columns_is_short(n_columns):
    names = [f"gene{i}" for i in range(n_columns)]
    text = columns_text(names)
    assert len(text) < 120
    assert text.startswith("Columns: gene0")
    assert (f"{n_columns - 8} more" in text) == (n_columns > 8)


def test_graph_option_is_unaffected_by_an_index(folder):
    edges = pd.DataFrame({"source": np.arange(30), "target": (np.arange(30) + 1) % 30})
    edges[edges.source >= 0].sample(frac=1, random_state=0).to_parquet("edges.parquet")
    assert run("embed edges.parquet --graph -o out.parquet -k 4").exit_code == 0
    assert open_table("out.parquet", ids="id").n_rows == 30
