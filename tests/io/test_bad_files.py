"""Damaged files end in a typed error with the path, or in the true numbers."""

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
SOME = ["a.npy: cut short", "a.csv: ragged", "a.zarr: a missing chunk", "a.mtx: no number"]


@pytest.mark.parametrize("case", [*BAD_FILES, *BAD_GRAPHS])
def test_bad_file_is_a_typed_error_with_its_path(tmp_path, case):
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
    assert "not there" not in case or all(f"{option}=" in str(caught.value) for option in options)
    assert not RUN.exists()


@pytest.mark.parametrize("case", SOME)
def test_command_line_rejects_bad_files_in_one_line(tmp_path, case):
    name, write, _ = (BAD_FILES | BAD_GRAPHS)[case]
    write(tmp_path / name)
    words = ["embed", str(tmp_path / name), "-o", str(tmp_path / "out.csv")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == ExitCode.INPUT
    (line,) = result.stderr.splitlines()
    assert name in line
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_zarr_parts_must_not_be_missing_or_changed(tmp_path):
    path, X = tmp_path / "a.zarr", np.random.default_rng(0).standard_normal((300, 4000))
    X[:131] = 0  # chunks of zeros are written, too
    with table_writer(path, list(map(str, range(4000))), ids="who", labels=["kind"]) as writer:
        writer.append(Block(X, [f"r{i}" for i in range(300)], {"kind": np.arange(300)}))

    def read():
        return open_table(path, ids="who", labels=["kind"]).read().X

    np.testing.assert_array_equal(read(), X)
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    assert sum(file.parent.parent.name == "c" for file in files) == 3  # chunks of X
    for file in files:
        whole = file.read_bytes()
        file.unlink()
        with pytest.raises(FileFormatError):
            read()
        for place in (0, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(FileFormatError):
                read()
        file.write_bytes(whole)


@pytest.mark.parametrize("extension", [".parquet", ".csv.gz"])
def test_changed_bit_is_an_error_or_does_not_matter(tmp_path, extension):
    path = tmp_path / f"a{extension}"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)).astype(np.float32)
    with table_writer(path, list("abcde"), dtype="f4") as writer:
        writer.append(Block(X))
    whole = path.read_bytes()
    n_rejected = 0
    for bit in rng.integers(0, 8 * len(whole), 150):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        try:
            values = open_table(path).read().X
        except (FileFormatError, MemoryError):
            n_rejected += 1
        else:
            np.testing.assert_array_equal(values, X)
    assert n_rejected > 0
