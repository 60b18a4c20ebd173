"""Outputs are there whole, or not at all."""

import errno
import os
import stat

import pytest
from kill_points import RIGHTS, fail_call, killed_at_every_point, replaced_folder, visible

from heatsketch._core.atomic_file import atomic_file, atomic_folder
from heatsketch.exceptions import FileError, HeatSketchError, OutputExistsError


def write(path, data, **options):
    with atomic_file(path, **options) as file:
        file.write(data)


def write_folder(path, data, **options):
    with atomic_folder(path, **options) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "0").write_bytes(data)
        (folder / "meta").write_bytes(data)


def read(path):
    return path.read_bytes()


def read_folder(path):
    path = replaced_folder(path)
    first, second = (path / "sub" / "0").read_bytes(), (path / "meta").read_bytes()
    assert first == second
    return first


KINDS = {"file": (write, read), "folder": (write_folder, read_folder)}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_an_output_is_not_replaced_unasked(kind, tmp_path):
    put, get = KINDS[kind]
    put(tmp_path / "out", b"one")
    with pytest.raises(OutputExistsError, match="overwrite=True") as got:
        put(tmp_path / "out", b"two")
    assert isinstance(got.value, FileExistsError) and isinstance(got.value, HeatSketchError)
    assert get(tmp_path / "out") == b"one"
    assert os.listdir(tmp_path) == ["out"]


@each_kind
def test_an_output_made_meanwhile_is_not_replaced_either(kind, tmp_path):
    put, get = KINDS[kind]
    with pytest.raises(OutputExistsError):
        if kind == "file":
            with atomic_file(tmp_path / "out") as file:
                file.write(b"two")
                put(tmp_path / "out", b"one")
        else:
            with atomic_folder(tmp_path / "out"):
                put(tmp_path / "out", b"one")
    assert get(tmp_path / "out") == b"one"
    assert os.listdir(tmp_path) == ["out"]


@each_kind
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [True, False])
def test_work_that_fails_leaves_what_there_was(kind, error, before, tmp_path):
    put, get = KINDS[kind]
    if before:
        put(tmp_path / "out", b"one")
    opened = atomic_file if kind == "file" else atomic_folder
    with pytest.raises(error), opened(tmp_path / "out", overwrite=True) as part:
        (part.write if kind == "file" else (part / "0").write_bytes)(b"half")
        raise error
    assert os.listdir(tmp_path) == (["out"] if before else [])
    assert not before or get(tmp_path / "out") == b"one"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_rights_are_those_of_the_umask(mask, tmp_path):
    old = os.umask(mask)
    try:
        write(tmp_path / "file", b"")
        write_folder(tmp_path / "folder", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~mask


@each_kind
@pytest.mark.parametrize("by_link", [False, True])
@pytest.mark.parametrize("rights", [0o600, 0o700, 0o777, 0o664, 0o400, 0o200])
def test_rights_are_those_of_what_is_replaced(kind, rights, by_link, tmp_path):
    rights |= 0o700 if kind == "folder" else 0
    put, get = KINDS[kind]
    put(tmp_path / "out", b"one")
    (tmp_path / "out").chmod(rights)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    put(tmp_path / ("link" if by_link else "out"), b"two", overwrite=True)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == rights
    (tmp_path / "out").chmod(0o700)  # so that we may read it
    assert get(tmp_path / "link") == b"two"


@each_kind
def test_links_are_followed(kind, tmp_path):
    put, get = KINDS[kind]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "out")
    put(tmp_path / "link", b"one")  # which leads to nothing yet
    put(tmp_path / "link", b"two", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert get(tmp_path / "elsewhere" / "out") == b"two"
    assert os.listdir(tmp_path / "elsewhere") == ["out"]


def test_only_what_is_of_its_kind_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for put, name in [(write, "folder"), (write, "pipe"), (write_folder, "file")]:
        with pytest.raises(OutputExistsError, match=name):
            put(tmp_path / name, b"", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "pipe"]


# --- what the system rejects ------------------------------------------------------------------


def test_an_error_of_the_work_is_not_blamed_on_the_output(tmp_path):
    with pytest.raises(FileNotFoundError) as got, atomic_file(tmp_path / "out"):
        (tmp_path / "input").read_bytes()
    assert not isinstance(got.value, FileError)
    with pytest.raises(FileError, match="out"), atomic_file(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "said a library")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@each_kind
def test_every_call_may_be_rejected(kind, number, tmp_path, monkeypatch):
    """The first, second, ... call to the system fails: typed, and the output old or new."""
    put, get = KINDS[kind]
    put(tmp_path / "out", b"one")
    (tmp_path / "out").chmod(RIGHTS)
    for when in range(100):
        rejected = fail_call(monkeypatch, when, number)
        error = None
        try:
            put(tmp_path / "out", b"two", overwrite=True)
        except OSError as caught:
            error = caught
        monkeypatch.undo()
        if not rejected:
            break
        # What the block itself does, by means of its own, is not ours to name.
        own = number == errno.EIO and kind == "folder" and rejected[0] in ("mkdir", "open")
        assert isinstance(error, FileError) or (own and isinstance(error, OSError))
        # The last sync comes after the step.
        assert get(tmp_path / "out") == b"one" or rejected == ["fsync"]
        assert os.listdir(tmp_path) == ["out"]
        put(tmp_path / "out", b"one", overwrite=True)
    assert when > 3


# --- killed -----------------------------------------------------------------------------------


@pytest.mark.untraced
@pytest.mark.parametrize("overwrite", [True, False])
@each_kind
def test_killed_at_any_point_it_leaves_the_old_or_the_new(kind, overwrite, tmp_path):
    put, get = KINDS[kind]
    n_points = 0
    for folder in killed_at_every_point(kind, overwrite, tmp_path):
        n_points += 1
        if overwrite:
            assert stat.S_IMODE(replaced_folder(folder / "out").stat().st_mode) == RIGHTS
        if overwrite or (folder / "out").exists():
            assert get(folder / "out") in ((b"one" * 9, b"two" * 9) if overwrite else (b"two" * 9,))
        put(folder / "out", b"three", overwrite=True)
        assert get(folder / "out") == b"three"
        assert visible(folder) == ["out"]
    assert n_points >= 8
