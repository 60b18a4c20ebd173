"""Every format, killed at every point or failing at every call: the old output or the new one."""

import errno
import os
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
    replaced_folder,
    visible,
    write_table,
)

from heatsketch.exceptions import FileError
from heatsketch.io import open_table

# The hooks are called for what Python writes, which is every byte; strace sees the system, and
# takes some minutes for each format.
STRACE = "HEATSKETCH_NIGHTLY" in os.environ
each_format = pytest.mark.parametrize("extension", TABLES)
pytestmark = [pytest.mark.timeout(3600 if STRACE else 300), pytest.mark.untraced]


def number_in(path):
    place = replaced_folder(path)
    if place != path:  # readers go by the extension
        place = place.rename(path)
    X = open_table(place).read().X
    assert X.shape == (15, 2) and X.min() == X.max()
    return X.min()


@each_format
def test_killed_writer_leaves_the_old_or_the_new_table(extension, tmp_path):
    n_points, numbers = 0, set()
    for folder in killed_at_every_point(extension, True, tmp_path, strace=STRACE):
        path = folder / name_of(extension)
        n_points += 1
        numbers.add(number_in(path))
        assert stat.S_IMODE(path.stat().st_mode) == RIGHTS
        assert numbers <= {NUMBERS[b"one"], NUMBERS[b"two"]}
        write_table(None, path, b"three", True)
        assert number_in(path) == NUMBERS[b"three"]
        assert visible(folder) == [path.name]
    assert n_points >= 10
    assert len(numbers) == 2  # some were killed before the rename, and some after


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@each_format
def test_failing_writer_leaves_the_old_table(extension, number, tmp_path, monkeypatch):
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
        if error is None:  # pathlib ignores the error for a folder that exists
            assert rejected == ["mkdir"] and number_in(path) == NUMBERS[b"two"]
        else:
            assert error.errno == number and str(path) in str(error)
            # The last sync comes after the rename.
            assert number_in(path) == NUMBERS[b"one"] or rejected == ["fsync"]
        assert os.listdir(tmp_path) == [path.name]
        write_table(None, path, b"one", True)
    assert when >= 5
    assert number_in(path) == NUMBERS[b"two"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["ENOSPC", "EIO"])
@each_format
def test_calls_that_fail_in_libraries_leave_the_old_table(extension, name, tmp_path):
    calls = ("write", "pwrite64", "ftruncate", "fsync")
    codes = by_strace(extension, True, tmp_path, deed=f"error={name}", calls=calls)
    assert sum(code == 7 for code in codes.values()) >= 3
    for place, code in codes.items():
        path = tmp_path / place / name_of(extension)
        assert code in (0, 7), place
        number = number_in(path)
        assert number == NUMBERS[b"two" if code == 0 else b"one"] or "fsync" in place
        assert os.listdir(tmp_path / place) == [path.name]
