"""Outputs are there whole, or not at all."""

import errno
import os
import pickle
import stat
import threading

import pytest
from kill_points import RIGHTS, fail_call, killed_at_every_point, visible

from heatsketch._core import atomic_file as module
from heatsketch._core.atomic_file import atomic_file, atomic_folder, file_errors
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
    first, second = (path / "sub" / "0").read_bytes(), (path / "meta").read_bytes()
    assert first == second
    return first


KINDS = {"file": (write, read), "folder": (write_folder, read_folder)}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_what_is_written_is_there_and_nothing_else(kind, tmp_path):
    put, get = KINDS[kind]
    put(tmp_path / "out", b"one")
    assert get(tmp_path / "out") == b"one"
    put(tmp_path / "out", b"two", overwrite=True)
    assert get(tmp_path / "out") == b"two"
    assert os.listdir(tmp_path) == ["out"]


@each_kind
def test_an_output_is_not_replaced_unasked(kind, tmp_path):
    put, get = KINDS[kind]
    put(tmp_path / "out", b"one")
    with pytest.raises(OutputExistsError, match=r"out exists already; pass overwrite=True") as got:
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


def test_only_rights_are_kept_not_the_powers_of_a_program(tmp_path):
    write(tmp_path / "out", b"one")
    (tmp_path / "out").chmod(0o6755)
    write(tmp_path / "out", b"two", overwrite=True)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755


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


def test_the_file_can_be_read_and_sought_while_it_grows(tmp_path):
    with atomic_file(tmp_path / "out") as file:
        file.write(b"a" * 100)
        file.seek(10)
        assert file.read(2) == b"aa"
        file.seek(0)
        file.write(b"b")
    assert (tmp_path / "out").read_bytes() == b"b" + b"a" * 99


@pytest.mark.parametrize("name", ["ü ñ 漢字 🔥.bin", "x" * 255, "[*]?.bin", "new\nline"])
def test_names_may_be_anything(name, tmp_path):
    for data in (b"one", b"two"):
        write(tmp_path / name, data, overwrite=True)
    assert os.listdir(tmp_path) == [name]


def test_only_what_is_of_its_kind_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for put, name in [(write, "folder"), (write, "pipe"), (write_folder, "file")]:
        with pytest.raises(OutputExistsError, match="is not replaced"):
            put(tmp_path / name, b"", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "pipe"]


# --- what the system rejects ------------------------------------------------------------------


@each_kind
def test_a_folder_that_is_not_there_is_named(kind, tmp_path):
    with pytest.raises(FileError, match=r"cannot write .*no/out: No such file.*make the folder"):
        KINDS[kind][0](tmp_path / "no" / "out", b"")


@each_kind
def test_a_file_in_the_path_and_a_link_to_itself_are_rejected(kind, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in ("file/out", "loop", "loop/out"):
        with pytest.raises(FileError, match="cannot write"):
            KINDS[kind][0](tmp_path / path, b"", overwrite=True)


def test_a_name_that_is_too_long_is_rejected(tmp_path):
    with pytest.raises(FileError, match="use a shorter name"):
        write(tmp_path / ("x" * 256), b"")


def test_errors_can_be_pickled_and_have_their_number():
    error = FileError(errno.ENOSPC, "cannot write a: no space; free some.", "a")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "cannot write a: no space; free some."
    assert (again.errno, again.filename) == (errno.ENOSPC, "a")
    assert isinstance(again, OSError) and isinstance(again, HeatSketchError)
    taken = pickle.loads(pickle.dumps(OutputExistsError(errno.EEXIST, "a exists.", "a")))
    assert isinstance(taken, FileExistsError) and str(taken) == "a exists."


def test_an_error_of_the_work_is_not_blamed_on_the_output(tmp_path):
    with pytest.raises(FileNotFoundError) as got, atomic_file(tmp_path / "out"):
        (tmp_path / "input").read_bytes()
    assert not isinstance(got.value, FileError)
    with pytest.raises(FileError, match="free some space"), atomic_file(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "said a library")


def test_an_unknown_error_has_a_remedy_too():
    with pytest.raises(FileError, match="cannot write a: invalid; use another"), file_errors("a"):
        raise OSError("invalid")


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


# --- file systems that can do less ------------------------------------------------------------


def reject(number):
    def call(*args, **options):
        raise OSError(number, os.strerror(number))

    return call


def test_without_hard_links_files_are_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", reject(errno.EPERM))
    with pytest.raises(OutputExistsError), atomic_file(tmp_path / "out") as file:
        file.write(b"two")
        (tmp_path / "out").write_bytes(b"one")
    assert read(tmp_path / "out") == b"one"
    (tmp_path / "out").unlink()
    write(tmp_path / "out", b"two")
    assert read(tmp_path / "out") == b"two"
    assert os.listdir(tmp_path) == ["out"]


def test_without_an_exchange_folders_are_moved_one_by_one(tmp_path, monkeypatch):
    name = "out"
    monkeypatch.setattr(module, "_renameat2", lambda *_: False)
    for data in (b"one", b"two"):
        write_folder(tmp_path / name, data, overwrite=True)
    assert read_folder(tmp_path / name) == b"two"
    renames = iter([os.rename, reject(errno.EIO), os.rename])
    monkeypatch.setattr(os, "rename", lambda *args: next(renames)(*args))
    with pytest.raises(FileError):
        write_folder(tmp_path / name, b"three", overwrite=True)
    assert read_folder(tmp_path / name) == b"two"
    assert os.listdir(tmp_path) == [name]


def test_a_file_system_that_cannot_sync_folders_is_not_an_error(tmp_path, monkeypatch):
    fsync = os.fsync

    def only_files(number):
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "no")
        fsync(number)

    monkeypatch.setattr(os, "fsync", only_files)
    write(tmp_path / "out", b"one")


# --- rivals ---------------------------------------------------------------------------------


def test_of_many_rivals_one_wins_and_none_leaves_a_mixture(tmp_path):
    won, lost = [], []

    def rival(number):
        try:
            write(tmp_path / "out", bytes([number]) * 100_000)
            won.append(number)
        except OutputExistsError:
            lost.append(number)

    threads = [threading.Thread(target=rival, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and len(lost) == 15
    assert read(tmp_path / "out") == bytes(won) * 100_000
    assert os.listdir(tmp_path) == ["out"]


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
            assert stat.S_IMODE((folder / "out").stat().st_mode) == RIGHTS
        if overwrite or (folder / "out").exists():
            assert get(folder / "out") in ((b"one" * 9, b"two" * 9) if overwrite else (b"two" * 9,))
        put(folder / "out", b"three", overwrite=True)
        assert get(folder / "out") == b"three"
        assert visible(folder) == ["out"]
    assert n_points >= 8
