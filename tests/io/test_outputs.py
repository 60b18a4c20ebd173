"""Files: nothing is overwritten, left behind, guessed or held that should not be."""

import subprocess
import sys

import numpy as np
import pytest

from heatsketch.engines._dask._points import _from_file
from heatsketch.exceptions import FileError, FileFormatError, HeatSketchError, OutputExistsError
from heatsketch.io import (
    GRAPH_EXTENSIONS,
    TABLE_EXTENSIONS,
    Block,
    check_different_files,
    open_table,
    read_graph,
    table_writer,
)

EMBEDDING = {".h5ad": {"key": "X_heatsketch"}}


@pytest.mark.parametrize("extension", TABLE_EXTENSIONS)
def test_nothing_is_overwritten_or_left_behind(tmp_path, extension):
    path = tmp_path / f"a{extension}"
    with table_writer(path, ["x"]) as writer:
        writer.append(Block(np.ones((2, 1))))
    with pytest.raises(OutputExistsError), table_writer(path, ["x"]):
        pass
    with pytest.raises(KeyboardInterrupt), table_writer(path, ["x"], overwrite=True) as writer:
        writer.append(Block(np.zeros((2, 1))))
        raise KeyboardInterrupt
    options = EMBEDDING.get(extension, {})
    assert open_table(path, **options).read().X.tolist() == [[1], [1]]
    with table_writer(path, ["x"], overwrite=True) as writer:
        writer.append(Block(np.zeros((3, 1))))
    assert open_table(path, **options).read().X.tolist() == [[0]] * 3
    assert [entry.name for entry in tmp_path.iterdir()] == [f"a{extension}"]


def test_input_is_not_output(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"x")
    (tmp_path / "b.npy").hardlink_to(tmp_path / "a.npy")
    (tmp_path / "c.npy").symlink_to(tmp_path / "a.npy")
    (tmp_path / "d.zarr").mkdir()
    check_different_files([tmp_path / "a.npy", tmp_path / "missing.npy"], tmp_path / "new.npy")
    for source, output in [
        ("a.npy", "a.npy"),
        ("a.npy", "b.npy"),
        ("a.npy", "c.npy"),
        ("d.zarr", "d.zarr/x.npy"),
        ("d.zarr/x.npy", "d.zarr"),
        ("new.npy", "./new.npy"),
    ]:
        with pytest.raises(HeatSketchError, match="is also the input"):
            check_different_files([tmp_path / source], tmp_path / output)


@pytest.mark.parametrize(
    ("declared", "block", "message"),
    [
        ({}, Block(np.ones((2, 3))), r"shape \(2, 3\), and .* has 2 columns"),
        ({}, Block(np.ones((2, 2)), ids=[1, 2]), "block has ids"),
        ({"ids": "who"}, Block(np.ones((2, 2))), "block has no ids"),
        ({"labels": ["a"]}, Block(np.ones((2, 2))), r"block.labels has \[\]"),
        ({"ids": "who"}, Block(np.ones((2, 2)), ids=[1]), "the block has 2 rows"),
        ({"ids": "who"}, Block(np.ones((1, 2)), ids=["a\0"]), "NUL"),
    ],
)
def test_blocks_are_checked(tmp_path, declared, block, message):
    path = tmp_path / "a.parquet"
    with (
        pytest.raises(HeatSketchError, match=message),
        table_writer(path, ["x", "y"], **declared) as writer,
    ):
        writer.append(block)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.npy", {"ids": "who"}, "holds numbers only"),
        ("a.csv", {"dtype": "int32"}, "must be float32, float64 or int64"),
        ("a.csv", {"ids": "x"}, "must all differ"),
        ("a.npz", {"ids": "names"}, "which the file uses itself"),
        ("a.h5ad", {"labels": ["a/b"]}, "no name for a column of obs"),
        ("a.xlsx", {}, r"extension '.xlsx' is not that of a table; use one of .npy, .npz"),
        ("a.csv", {"labels": "kind"}, "give a list of str"),
        ("no/a.csv", {}, "cannot write"),
    ],
)
def test_outputs_that_cannot_be(tmp_path, name, options, message):
    with (
        pytest.raises(HeatSketchError, match=message),
        table_writer(tmp_path / name, ["x"], **options),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_labels_keep_their_kind(tmp_path):
    with table_writer(tmp_path / "a.csv", ["x"], labels=["y"]) as writer:
        writer.append(Block(np.ones((1, 1)), labels={"y": [1]}))
        with pytest.raises(HeatSketchError, match="of another kind"):
            writer.append(Block(np.ones((1, 1)), labels={"y": ["one"]}))


def test_options_that_mean_nothing_are_rejected(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2))
    with pytest.raises(FileFormatError, match=r"ids='who' means nothing here; it is for .npz"):
        open_table(tmp_path / "a.npy", ids="who")
    with pytest.raises(HeatSketchError, match="rows=0"):
        list(open_table(tmp_path / "a.npy").blocks(0))
    with pytest.raises(FileError, match="No such file"):
        open_table(tmp_path / "b.npy")
    with pytest.raises(FileFormatError, match=r"is not that of a graph; use one of .mtx.*tables"):
        read_graph(tmp_path / "a.npy")
    assert set(GRAPH_EXTENSIONS).isdisjoint(TABLE_EXTENSIONS)


def test_a_missing_column_is_met_by_those_near_it(tmp_path):
    (tmp_path / "a.csv").write_text("Age,height,weight\n1,2,3\n")
    for options, meant in [
        ({"columns": ["age"]}, "'Age'"),
        ({"labels": ["hieght"]}, "'height'"),
        ({"ids": "qqq"}, "it has 'Age', 'height', 'weight'"),
    ]:
        with pytest.raises(FileFormatError, match=meant):
            open_table(tmp_path / "a.csv", **options)
    with pytest.raises(FileFormatError, match="'Age' twice"):
        open_table(tmp_path / "a.csv", columns=["Age", "Age"])


@pytest.mark.parametrize("extension", [".parquet", ".zarr", ".h5ad"])
def test_a_missing_library_says_how_to_install_it(tmp_path, extension, monkeypatch):
    with table_writer(tmp_path / f"a{extension}", ["x"]) as writer:
        writer.append(Block(np.ones((2, 1))))

    def absent(name, *arguments):
        raise ImportError(name)

    monkeypatch.setattr("heatsketch.io._failures.importlib.import_module", absent)
    with pytest.raises(ImportError, match=r'pip install "heatsketch\[files\]"'):
        open_table(tmp_path / f"a{extension}")
    with (
        pytest.raises(ImportError, match=r"files of this kind need"),
        table_writer(tmp_path / f"b{extension}", ["x"]),
    ):
        pass


def test_reading_text_without_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("x\n1\n")

    def absent(name, *arguments):
        raise ImportError(name)

    monkeypatch.setattr("heatsketch.io._failures.importlib.import_module", absent)
    with pytest.raises(ImportError, match=r'need pyarrow.*pip install "heatsketch\[files\]"'):
        open_table(tmp_path / "a.csv")


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    table = open_table(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(FileFormatError, match="had 2 rows when it was opened, and has 1 now"):
        table.read()
    np.save(tmp_path / "a.npy", np.eye(3))
    table = open_table(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.eye(2))
    with pytest.raises(FileFormatError, match="cut short"):
        table.read()


def test_what_does_not_fit_is_rejected_before_it_is_read(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.eye(3))
    monkeypatch.setattr("heatsketch.io._failures.physical_memory", lambda: 70.0)
    with pytest.raises(MemoryError, match="read it in blocks, or choose some of its columns"):
        open_table(tmp_path / "a.npy").read()
    assert len(list(open_table(tmp_path / "a.npy").blocks(1))) == 3


# A process of its own, since its files may not be larger than what it says.
FULL_DISK = """
import resource, shutil, signal, sys
from pathlib import Path
import numpy as np
from heatsketch.exceptions import FileError
from heatsketch.io import TABLE_EXTENSIONS, Block, open_table, table_writer

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

# HDF5 first: in a process that has done little else, it found what memory held, and crashed.
extensions = set(TABLE_EXTENSIONS) - {".tsv", ".tsv.gz"}
for extension in sorted(extensions, key=lambda name: (name != ".h5ad", name)):
    path = folder / f"a{extension}"
    options = {"key": "X_heatsketch"} if extension == ".h5ad" else {}
    write(path, 0)
    old, whole = open_table(path, **options).read().X, size(path)
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
        assert np.array_equal(open_table(path, **options).read().X, old)
    assert sorted(entry.name for entry in folder.iterdir()) == [path.name]
    write(path, 1)
    assert np.array_equal(open_table(path, **options).read().X, old + 1)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits and signals of Linux")
def test_a_full_disk_leaves_the_old_output_and_a_process_that_lives(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# --- a folder of files, on a cluster ----------------------------------------------------------


def write_parquet_files(folder):
    """Write some that count, in an order that capitals decide, and some that do not."""
    for number, name in enumerate(["a.parquet", "B.PARQUET", "_tmp.parquet", ".hidden.parquet"]):
        with table_writer(folder / "one.parquet", ["x", "y"]) as writer:
            writer.append(Block(np.full((2 + number, 2), float(number))))
        (folder / "one.parquet").rename(folder / name)


def test_a_cluster_reads_the_files_of_a_folder_that_one_machine_reads(tmp_path):
    write_parquet_files(tmp_path)
    wanted = open_table(tmp_path).read().X
    assert wanted[:, 0].tolist() == [1, 1, 1, 0, 0]
    points = _from_file(tmp_path)
    assert points.chunks[0] == (3, 2)
    np.testing.assert_array_equal(points.compute(scheduler="synchronous"), wanted)


def test_a_folder_that_changes_while_it_is_opened_is_rejected(tmp_path, monkeypatch):
    write_parquet_files(tmp_path)

    def then_write(path):
        table = open_table(path)
        if path == tmp_path:
            (tmp_path / "_tmp.parquet").rename(tmp_path / "a.parquet")
        return table

    monkeypatch.setattr("heatsketch.engines._dask._points.open_table", then_write)
    with pytest.raises(FileFormatError, match="it had 5 rows when it was opened, and has 7 now"):
        _from_file(tmp_path)
