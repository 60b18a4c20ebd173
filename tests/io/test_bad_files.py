"""Whatever a file holds: a typed error with the path, or the truth; never zeros, never code."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from bad_files import BAD_FILES, BAD_GRAPHS
from typer.testing import CliRunner

from heatsketch.cli import app
from heatsketch.cli._exit_codes import ExitCode
from heatsketch.exceptions import FileFormatError, HeatSketchError
from heatsketch.io import Block, open_table, read_graph, table_writer

RUN = Path("/tmp/heatsketch-was-run")


@pytest.mark.parametrize("case", [*BAD_FILES, *BAD_GRAPHS])
def test_a_bad_file_is_a_typed_error_with_its_path(tmp_path, case):
    name, write, options = (BAD_FILES | BAD_GRAPHS)[case]
    path = tmp_path / name
    write(path)
    start = time.perf_counter()
    with pytest.raises(HeatSketchError, match=re.escape(str(path))) as caught:
        if case in BAD_GRAPHS:
            read_graph(path)
        else:
            open_table(path, **options).read()
    assert time.perf_counter() - start < 10
    assert str(caught.value).endswith(".")
    assert ";" in str(caught.value)  # and a remedy follows
    assert not RUN.exists()


OPTIONS = {
    "columns": lambda names: ["--columns", ",".join(names)],
    "labels": lambda names: ["--labels", ",".join(names)],
    "ids": lambda name: ["--ids", name],
    "key": lambda name: ["--key", name],
}


@pytest.mark.parametrize("case", [*BAD_FILES, *BAD_GRAPHS])
def test_the_command_line_rejects_a_bad_file_too(tmp_path, case):
    name, write, options = (BAD_FILES | BAD_GRAPHS)[case]
    write(tmp_path / name)
    given = [word for option, value in options.items() for word in OPTIONS[option](value)]
    given += ["--graph"] if case in BAD_GRAPHS else ["--no-graph"]
    words = ["embed", str(tmp_path / name), "-o", str(tmp_path / "out.csv"), *given]
    result = CliRunner().invoke(app, words)
    assert result.exit_code in (ExitCode.INPUT, ExitCode.DATA, ExitCode.MEMORY), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and name in line
    assert os.listdir(tmp_path) == [name]
    assert not RUN.exists()


# --- every byte that we wrote -----------------------------------------------------------------


def ours(path):
    """Several chunks, pages or row groups, with ids and labels."""
    X = np.random.default_rng(0).standard_normal((300, 4000)).astype(np.float32)
    X[:262] = 0  # chunks of zeros are written, too
    with table_writer(
        path, [f"x{i}" for i in range(4000)], dtype="f4", ids="who", labels=["kind"]
    ) as writer:
        names = [f"r{i}" for i in range(300)]
        writer.append(Block(X, names, {"kind": np.arange(300)}))
    return X


def opened(path):
    return open_table(path, ids="who", labels=["kind"])


def test_no_part_of_a_zarr_folder_may_be_missing_or_changed(tmp_path):
    X = ours(tmp_path / "a.zarr")
    np.testing.assert_array_equal(opened(tmp_path / "a.zarr").read().X, X)
    files = [file for file in sorted((tmp_path / "a.zarr").rglob("*")) if file.is_file()]
    assert sum(file.parent.parent.name == "c" for file in files) == 2  # chunks of X
    for file in files:
        whole = file.read_bytes()
        file.unlink()
        with pytest.raises(FileFormatError):
            opened(tmp_path / "a.zarr").read()
        for place in (0, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(FileFormatError):
                opened(tmp_path / "a.zarr").read()
        file.write_bytes(whole)
    np.testing.assert_array_equal(opened(tmp_path / "a.zarr").read().X, X)


@pytest.mark.parametrize("extension", [".parquet", ".npz", ".csv.gz", ".h5ad"])
def test_a_changed_bit_is_an_error_or_does_not_matter(tmp_path, extension):
    """Formats with checksums: whatever reads without an error reads the same numbers."""
    path = tmp_path / f"a{extension}"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)).astype(np.float32)
    with table_writer(path, list("abcde"), dtype="f4") as writer:
        writer.append(Block(X))
    options = {"key": "X_heatsketch"} if extension == ".h5ad" else {}
    whole = path.read_bytes()
    n_noticed = 0
    for bit in rng.integers(0, 8 * len(whole), 150):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        try:
            found = open_table(path, **options).read().X
        except (FileFormatError, MemoryError):
            n_noticed += 1
        else:
            np.testing.assert_array_equal(found, X)
    assert n_noticed > 0


@pytest.mark.parametrize("extension", [".npy", ".csv", ".parquet", ".zarr", ".h5ad", ".npz"])
def test_damage_of_any_kind_is_a_typed_error(tmp_path, extension):
    path = tmp_path / f"a{extension}"
    with table_writer(path, ["x", "y"]) as writer:
        writer.append(Block(np.arange(40.0)[::-1].reshape(20, 2)))
    options = {"key": "X_heatsketch"} if extension == ".h5ad" else {}
    rng = np.random.default_rng(1)
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    wholes = [file.read_bytes() for file in files]
    for _ in range(100):
        which = rng.integers(len(files))
        data = bytearray(wholes[which])
        start, n_bytes = rng.integers(len(data)), rng.integers(1, 9)
        damage = [b"", rng.bytes(n_bytes), b"\xff" * n_bytes, bytes(n_bytes)][rng.integers(4)]
        data[start : start + rng.integers(0, 9)] = damage
        files[which].write_bytes(data)
        try:
            open_table(path, **options).read()
        except HeatSketchError as error:
            assert str(path) in str(error)
        files[which].write_bytes(wholes[which])
