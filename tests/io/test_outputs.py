"""Outputs and options: nothing is overwritten, left behind or ignored."""

import subprocess
import sys

import numpy as np
import pytest

from heatsketch.engines._dask._points import _from_file
from heatsketch.exceptions import FileError, FileFormatError, HeatSketchError, OutputExistsError
from heatsketch.io import (
    GRAPH_EXTENSIONS,
    OUTPUT_EXTENSIONS,
    TABLE_EXTENSIONS,
    Block,
    check_different_files,
    open_table,
    read_graph,
    table_writer,
)


@pytest.mark.parametrize("extension", OUTPUT_EXTENSIONS)
def test_output_is_not_overwritten_or_left_behind(tmp_path, extension):
    path = tmp_path / f"a{extension}"
    with table_writer(path, ["x"]) as writer:
        writer.append(Block(np.ones((2, 1))))
    with pytest.raises(OutputExistsError), table_writer(path, ["x"]):
        pass
    with pytest.raises(KeyboardInterrupt), table_writer(path, ["x"], overwrite=True) as writer:
        writer.append(Block(np.zeros((2, 1))))
        raise KeyboardInterrupt
    assert open_table(path).read().X.tolist() == [[1], [1]]
    with table_writer(path, ["x"], overwrite=True) as writer:
        writer.append(Block(np.zeros((3, 1))))
    assert open_table(path).read().X.tolist() == [[0]] * 3
    assert [entry.name for entry in tmp_path.iterdir()] == [f"a{extension}"]


def test_input_is_not_output(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"x")
    (tmp_path / "b.npy").hardlink_to(tmp_path / "a.npy")
    (tmp_path / "c.npy").symlink_to(tmp_path / "a.npy")
    (tmp_path / "d.zarr").mkdir()
    check_different_files(["https://a.org/b.csv", tmp_path / "missing.npy"], tmp_path / "new.npy")
    for source, output in [
        ("a.npy", "a.npy"),
        ("a.npy", "b.npy"),
        ("a.npy", "c.npy"),
        ("d.zarr", "d.zarr/x.npy"),
        ("d.zarr/x.npy", "d.zarr"),
        ("new.npy", "./new.npy"),
    ]:
        with pytest.raises(HeatSketchError, match=output):
            check_different_files([tmp_path / source], tmp_path / output)


@pytest.mark.parametrize(
    ("declared", "block"),
    [
        ({}, Block(np.ones((2, 3)))),
        ({"ids": "who"}, Block(np.ones((2, 2)))),
        ({"labels": ["a"]}, Block(np.ones((2, 2)))),
        ({"ids": "who"}, Block(np.ones((2, 2)), ids=[1])),
        ({"ids": "who"}, Block(np.ones((1, 2)), ids=np.array(["a\0"], object))),
    ],
)
def test_blocks_are_checked(tmp_path, declared, block):
    path = tmp_path / "a.parquet"
    with (
        pytest.raises(HeatSketchError, match=r"a.parquet"),
        table_writer(path, ["x", "y"], **declared) as writer,
    ):
        writer.append(block)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "argument"),
    [
        ("a.npy", {"ids": "who"}, "ids"),
        ("a.csv", {"ids": "x"}, "ids"),
        ("a.xlsx", {}, "xlsx"),
        ("a.h5ad", {}, "h5ad"),
        ("a.csv", {"labels": "kind"}, "labels"),
        ("no/a.csv", {}, "no/a.csv"),
    ],
)
def test_invalid_outputs_are_rejected(tmp_path, name, options, argument):
    with (
        pytest.raises(HeatSketchError, match=argument),
        table_writer(tmp_path / name, ["x"], **options),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_options_that_a_format_lacks_are_rejected(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2))
    with pytest.raises(FileFormatError, match="ids='who'"):
        open_table(tmp_path / "a.npy", ids="who")
    with pytest.raises(HeatSketchError, match="rows=0"):
        list(open_table(tmp_path / "a.npy").blocks(0))
    with pytest.raises(FileError, match=r"b.npy"):
        open_table(tmp_path / "b.npy")
    with pytest.raises(FileFormatError, match=r"\.mtx"):
        read_graph(tmp_path / "a.npy")
    assert set(GRAPH_EXTENSIONS).isdisjoint(TABLE_EXTENSIONS)


def test_file_that_changes_while_it_is_read_is_rejected(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    table = open_table(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(FileFormatError, match=r"a.csv"):
        table.read()
    np.save(tmp_path / "a.npy", np.eye(3))
    table = open_table(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.eye(2))
    with pytest.raises(FileFormatError, match=r"a.npy"):
        table.read()


def test_table_beyond_the_memory_is_rejected_before_it_is_read(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.eye(3))
    monkeypatch.setattr("heatsketch.io._checks.physical_memory", lambda: 70.0)
    with pytest.raises(MemoryError, match=r"a.npy"):
        open_table(tmp_path / "a.npy").read()
    assert len(list(open_table(tmp_path / "a.npy").blocks(1))) == 3


# A process of its own, since the size of its files is limited.
FULL_DISK = """
import resource, shutil, signal, sys
from pathlib import Path
import numpy as np
from heatsketch.exceptions import FileError
from heatsketch.io import OUTPUT_EXTENSIONS, Block, open_table, table_writer

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])

def write(path, value):
    with table_writer(path, list("abcd"), overwrite=True) as writer:
        for _ in range(3):
            writer.append(Block(np.random.default_rng(0).random((700, 4)) + value))

def limit(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))

def size(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return max(file.stat().st_size for file in files)

for extension in sorted(set(OUTPUT_EXTENSIONS) - {".tsv", ".tsv.gz", ".arrow"}):
    path = folder / f"a{extension}"
    write(path, 0)
    old, whole = open_table(path).read().X, size(path)
    for part in range(7):
        limit(whole * part // 7)
        try:
            write(path, 1)
        except FileError as error:
            assert str(path) in str(error) and "File too large" in str(error), error
        else:
            raise AssertionError(f"{path} was written")
        finally:
            limit(resource.RLIM_INFINITY)
        assert np.array_equal(open_table(path).read().X, old)
    assert sorted(entry.name for entry in folder.iterdir()) == [path.name]
    write(path, 1)
    assert np.array_equal(open_table(path).read().X, old + 1)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits and signals of Linux")
def test_full_disk_leaves_the_old_output_and_a_process_that_lives(tmp_path):
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- a folder of files, on a cluster ----------------------------------------------------------


def write_parquet_files(folder):
    """Write files in an order that capitals decide, and hidden ones, which are left out."""
    for number, name in enumerate(["a.parquet", "B.PARQUET", "_tmp.parquet", ".hidden.parquet"]):
        with table_writer(folder / "one.parquet", ["x", "y"]) as writer:
            writer.append(Block(np.full((2 + number, 2), float(number))))
        (folder / "one.parquet").rename(folder / name)


def test_cluster_reads_the_same_files_of_a_folder(tmp_path):
    write_parquet_files(tmp_path)
    X = open_table(tmp_path).read().X
    assert X[:, 0].tolist() == [1, 1, 1, 0, 0]
    points = _from_file(tmp_path)
    assert points.chunks[0] == (3, 2)
    np.testing.assert_array_equal(points.compute(scheduler="synchronous"), X)
