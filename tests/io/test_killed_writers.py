"""Every format, killed at every point or failing at every call: the old output or the new one."""

import asyncio
import errno
import os
import shutil
import stat

import pytest
from kill_points import (
    NUMBERS,
    RIGHTS,
    TABLES,
    by_strace,
    fail_call,
    killed_at_every_point,
    name_of,
    visible,
    write_table,
)
from zarr.core.buffer import default_buffer_prototype

from heatsketch.exceptions import FileError
from heatsketch.io import open_table
from heatsketch.io._zarr import _local_store

# The hooks see what goes through Python, which is every byte; strace sees the system, and takes
# some minutes for each format.
STRACE = "HEATSKETCH_NIGHTLY" in os.environ
each_format = pytest.mark.parametrize("extension", TABLES)
pytestmark = [pytest.mark.timeout(3600 if STRACE else 300), pytest.mark.untraced]


def number_in(path):
    options = {"key": "X_heatsketch"} if path.suffix == ".h5ad" else {}
    X = open_table(path, **options).read().X
    assert X.shape == (15, 2) and X.min() == X.max()
    return X.min()


@each_format
def test_killed_at_any_point_a_table_is_the_old_or_the_new(extension, tmp_path):
    n_points, found = 0, set()
    for folder in killed_at_every_point(extension, True, tmp_path, strace=STRACE):
        path = folder / name_of(extension)
        n_points += 1
        found.add(number_in(path))
        assert stat.S_IMODE(path.stat().st_mode) == RIGHTS
        assert found <= {NUMBERS[b"one"], NUMBERS[b"two"]}
        write_table(None, path, b"three", True)
        assert number_in(path) == NUMBERS[b"three"]
        assert visible(folder) == [path.name]
    assert n_points >= 10
    assert len(found) == 2  # some were killed before the step, and some after


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@each_format
def test_failing_at_any_call_a_table_is_the_old_one(extension, number, tmp_path, monkeypatch):
    path = tmp_path / name_of(extension)
    write_table(None, path, b"one", False)
    path.chmod(RIGHTS)
    for when in range(200):
        rejected = fail_call(monkeypatch, when, number)
        error = None
        try:
            write_table(None, path, b"two", True)
        except FileError as caught:
            error = caught
        monkeypatch.undo()
        if not rejected:
            break
        if error is None:  # a folder that was there already, as pathlib found out
            assert rejected == ["mkdir"] and number_in(path) == NUMBERS[b"two"]
        else:
            assert error.errno == number and str(path) in str(error)
            # The last sync comes after the step.
            assert number_in(path) == NUMBERS[b"one"] or rejected == ["fsync"]
        assert os.listdir(tmp_path) == [path.name]
        write_table(None, path, b"one", True)
    assert when >= 5
    assert number_in(path) == NUMBERS[b"two"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["ENOSPC", "EIO"])
@each_format
def test_failed_by_the_system_a_table_is_the_old_one(extension, name, tmp_path):
    """At calls of whatever library, too, that Python does not see."""
    calls = ("write", "pwrite64", "ftruncate", "fsync")
    codes = by_strace(extension, True, tmp_path, deed=f"error={name}", calls=calls)
    assert sum(code == 7 for code in codes.values()) >= 3
    for place, code in codes.items():
        path = tmp_path / place / name_of(extension)
        assert code in (0, 7), place
        found = number_in(path)
        assert (
            found == NUMBERS[b"two"] if code == 0 else found == NUMBERS[b"one"] or "fsync" in place
        )
        assert os.listdir(tmp_path / place) == [path.name]


def test_a_thread_of_zarr_that_comes_too_late_writes_nothing(tmp_path):
    path = tmp_path / "out.zarr"
    value = default_buffer_prototype().buffer.from_bytes(b"late")
    with _local_store(path, path) as store:
        asyncio.run(store.set("in/time", value))
    shutil.rmtree(path)
    with pytest.raises(RuntimeError, match="late"):
        asyncio.run(store.set("late", value))
    assert not path.exists()
