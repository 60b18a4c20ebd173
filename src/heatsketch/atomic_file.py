"""Outputs that are there whole, or not at all.

Whatever is written grows in a hidden folder beside its place, ``.model.heatsketch.1f2e3d4c.part``,
and under its own name there, since many libraries go by the extension. When it is complete it is
forced to the disk, and put in its place in one step; then the step is forced to the disk, too.
Whoever looks, and whenever the process is killed or the machine loses power, finds the old output
or the new one.

A writer holds a lock on its hidden folder for as long as it lives. The next writer to the same
path removes the folders that nobody holds. (Where the file system or, as Windows, the system has
no such locks, a folder left by a killed process stays until somebody removes it.)
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from heatsketch.exceptions import FileError, OutputError, OutputExistsError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["atomic_file", "atomic_folder", "check_output_file", "file_errors"]

REMEDIES = {
    errno.ENOSPC: "free some space, or use another disk",
    errno.EDQUOT: "free some of your quota, or use another disk",
    errno.EFBIG: "use a file system, or a limit, that allows larger files",
    errno.EROFS: "use a disk that can be written to",
    errno.EACCES: "use a folder that you have the rights for, or change its rights",
    errno.EPERM: "use a folder that you have the rights for, or change its rights",
    errno.ENOENT: "check the spelling, or make the folder first",
    errno.ENOTDIR: "one part of the path is a file; use another",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "a link in the path leads back to itself; use another path",
    errno.EIO: "the disk may be failing; use another",
}
# Nobody who reads gets these, so that in the middle of some work they speak of its output.
OF_WRITERS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
# How file systems say that they cannot do something.
CANNOT = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM, errno.ENOTTY}
TRIES = 100  # to make a folder that nobody takes for an orphan meanwhile
LONGEST_NAME = 200  # bytes, of the 255 that a name may have
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_FDCWD = -100


@contextmanager
def atomic_file(path: Any, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under its name when it is complete, or never.

    Links are followed; the rights are those of the file that is replaced, or else those that the
    umask says, as with :func:`open`.

    Parameters
    ----------
    path : str or path-like
        Where the file will be. Its folder must exist.
    overwrite : bool, default=False
        Whether a file of that name may be replaced, in one step.

    Yields
    ------
    file
        For reading and writing. Its ``name`` may be given to whoever wants a path.

    Raises
    ------
    OutputExistsError
        Before the block starts, or after it if somebody made a file of that name meanwhile.
    OutputError
        Where the system refuses: no space, no rights, no folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.atomic_file import atomic_file
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "a.txt")) as file:
    ...         length = file.write(b"whole")
    ...         before = Path(folder, "a.txt").exists()
    ...     before, Path(folder, "a.txt").read_bytes()
    (False, b'whole')
    """
    with _part_of(path, overwrite, is_kind=stat.S_ISREG, kind="file") as (part, target):
        with _Output(part, "x+", path) as raw, io.BufferedRandom(raw) as file:
            yield file
        with file_errors(path):
            _sync(part)
            if overwrite:
                _keep_rights(part, target)
                os.replace(part, target)
            else:
                _move_to_free_name(part, target)


def check_output_file(path: Any, *, overwrite: bool = False) -> None:
    """Find out whether :func:`atomic_file` would be refused, before a long computation.

    Parameters
    ----------
    path, overwrite :
        As for :func:`atomic_file`.

    Raises
    ------
    OutputExistsError, OutputError
        As it would.

    Examples
    --------
    >>> from heatsketch.atomic_file import check_output_file
    >>> check_output_file("/")
    Traceback (most recent call last):
    heatsketch.exceptions.OutputExistsError: / exists already; pass overwrite=True to replace it...
    """
    # A hidden folder is made and removed: nothing else tells for sure who may write.
    with _part_of(path, overwrite, is_kind=stat.S_ISREG, kind="file"):
        pass


@contextmanager
def atomic_folder(path: Any, *, overwrite: bool = False) -> Iterator[Path]:
    """Make a folder that appears under its name when all in it is complete, or never.

    With ``overwrite`` the two folders change places in one step, and then the old one is deleted
    with all that is in it: make sure that it is one of yours. Its rights stay. Only Linux has that
    step; elsewhere the old one is moved away and the new one moved in, and if the process is killed
    between the two, the next writer to the same path brings the old one back.

    Parameters
    ----------
    path, overwrite :
        As for :func:`atomic_file`.

    Yields
    ------
    pathlib.Path
        An empty folder to write into.

    Raises
    ------
    OutputExistsError, OutputError
        As for :func:`atomic_file`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.atomic_file import atomic_folder
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder, "a.zarr")) as part:
    ...         length = (part / "0").write_bytes(b"chunk")
    ...     Path(folder, "a.zarr", "0").read_bytes()
    b'chunk'
    """
    with _part_of(path, overwrite, is_kind=stat.S_ISDIR, kind="folder") as (part, target):
        with file_errors(path):
            part.mkdir()
        yield part
        with file_errors(path):
            for folder, _, files in os.walk(part):
                for name in [*files, "."]:
                    _sync(Path(folder, name))
            if overwrite and target.exists():
                # What its owner may not write to, nobody could remove again.
                _keep_rights(part, target, at_least=stat.S_IRWXU)
                _exchange(part, target)
            else:
                # Onto a folder this succeeds only if that one is empty.
                os.rename(part, target)


@contextmanager
def file_errors(path: Any, *, doing: str = "write") -> Iterator[None]:
    """Turn what the system refuses into a typed error with the path and a remedy.

    Parameters
    ----------
    path : str or path-like
    doing : str, default="write"
        What was tried.

    Examples
    --------
    >>> import errno
    >>> from heatsketch.atomic_file import file_errors
    >>> with file_errors("a.npy"):
    ...     raise OSError(errno.ENAMETOOLONG, "File name too long")
    Traceback (most recent call last):
    heatsketch.exceptions.OutputError: cannot write a.npy: File name too long; use a shorter name.
    """
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise _file_error(error, path, doing) from error


def _file_error(error: OSError, path: Any, doing: str = "write") -> FileError:
    taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY)
    if taken and doing == "write":
        return OutputExistsError(errno.EEXIST, _taken(path), str(path))
    cause = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0, "use another path")
    kind = OutputError if doing == "write" else FileError
    return kind(error.errno, f"cannot {doing} {path}: {cause}; {remedy}.", str(path))


def _taken(path: Any) -> str:
    return f"{path} exists already; pass overwrite=True to replace it, or use another path."


class _Output(io.FileIO):
    """A file whose failures name the output that it will be."""

    def __init__(self, part: Path, mode: str, path: Any) -> None:
        self._path = path
        with file_errors(path):
            super().__init__(part, mode)
        self.name = str(part)

    def write(self, data: Any, /) -> int:
        with file_errors(self._path):
            return super().write(data)

    def truncate(self, size: int | None = None, /) -> int:
        with file_errors(self._path):
            return super().truncate(size)


# --- the hidden folder ------------------------------------------------------------------------


@contextmanager
def _part_of(path: Any, overwrite: bool, *, is_kind: Any, kind: str) -> Iterator[tuple[Path, Path]]:
    """Give the place where an output grows, and that where it will be; then clean up."""
    with file_errors(path):
        target = Path(os.path.realpath(os.fsdecode(path)))
        _remove_orphans(target)
        _check_target(path, target, overwrite, is_kind=is_kind, kind=kind)
        hidden, lock = _hidden_folder(target)
    try:
        yield hidden / target.name, target
        with file_errors(path):
            _sync_folder(target.parent)
    except OSError as error:
        if error.errno in OF_WRITERS and not isinstance(error, FileError):
            raise _file_error(error, path) from error
        raise
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _check_target(path: Any, target: Path, overwrite: bool, *, is_kind: Any, kind: str) -> None:
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        os.stat(target.parent)  # so that a missing folder is what the error speaks of
        return
    if not overwrite:
        raise OutputExistsError(errno.EEXIST, _taken(path), str(path))
    if not is_kind(mode):
        # A device or a pipe would be replaced, too.
        message = f"{path} exists and is no {kind}, so it will not be replaced; use another path."
        raise OutputExistsError(errno.EEXIST, message, str(path))


def _prefix(target: Path) -> str:
    name = os.fsencode(target.name)
    return f".{target.name if len(name) <= LONGEST_NAME else sha256(name).hexdigest()}."


def _hidden_folder(target: Path) -> tuple[Path, int | None]:
    """Make a folder for an output to grow in, and lock it."""
    for _ in range(TRIES):
        hidden = target.parent / f"{_prefix(target)}{secrets.token_hex(4)}.part"
        with suppress(FileExistsError, FileNotFoundError):
            hidden.mkdir(0o700)
            lock = _lock(hidden)
            # Somebody may have taken it for an orphan before it was locked.
            if lock is None or _is_still(hidden, lock):
                return hidden, lock
            os.close(lock)
        os.stat(target.parent)
    # A folder that is there and takes nothing in, as /proc does.
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def _lock(folder: Path) -> int | None:
    """Lock a folder for as long as the number returned is open; None where there are no locks.

    Raises FileNotFoundError if it is locked: whoever has done that is removing it.
    """
    if fcntl is None:
        return None
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise FileNotFoundError(folder) from None
    except OSError:
        os.close(number)
        return None
    return number


def _is_still(folder: Path, number: int) -> bool:
    try:
        return os.path.samestat(os.stat(folder), os.fstat(number))
    except FileNotFoundError:
        return False


def _remove_orphans(target: Path) -> None:
    """Remove what killed writers to the same target left."""
    name = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{8}\.part")
    with suppress(OSError):  # of folders that may not be listed
        for orphan in [e for e in os.scandir(target.parent) if name.fullmatch(e.name)]:
            with suppress(OSError):  # alive, or of another user
                _remove_orphan(Path(orphan.path), target)


def _remove_orphan(orphan: Path, target: Path) -> None:
    lock = _lock(orphan)
    if lock is None:
        return
    try:
        _bring_back(_replaced(orphan / target.name), target)
        shutil.rmtree(orphan)
    finally:
        os.close(lock)


# --- one step ---------------------------------------------------------------------------------


def _move_to_free_name(part: Path, target: Path) -> None:
    """Move a file to a name that nobody has taken, as ``os.rename`` does on Windows only."""
    if os.name == "nt":
        os.rename(part, target)
        return
    try:
        os.link(part, target)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
        if not _renameat2(part, target, RENAME_NOREPLACE):
            message = (
                f"cannot write {target}: its file system cannot tell whether somebody else writes "
                "it, too; pass overwrite=True, or use another disk."
            )
            raise OutputError(error.errno, message, str(target)) from error


def _keep_rights(part: Path, target: Path, at_least: int = 0) -> None:
    """Let nobody in whom the output that is replaced kept out."""
    if os.name == "nt":  # which knows but one right, and refuses to replace what may not be written
        return
    with suppress(FileNotFoundError):
        old, new = (stat.S_IMODE(os.stat(place).st_mode) for place in (target, part))
        rights = new & ~0o777 | old & 0o777 | at_least
        if rights != new:
            os.chmod(part, rights)


def _exchange(part: Path, target: Path) -> None:
    if _renameat2(part, target, RENAME_EXCHANGE):
        return
    old = _replaced(part)
    os.rename(target, old)
    try:
        os.rename(part, target)
    except BaseException:
        _bring_back(old, target)
        raise


def _replaced(part: Path) -> Path:
    return part.with_name("old" if part.name != "old" else "older")


def _bring_back(old: Path, target: Path) -> None:
    if old.exists() and not target.exists():
        os.rename(old, target)


def _renameat2(part: Path, target: Path, flags: int) -> bool:
    """Rename as Linux can; False where the system, or the file system, cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, TypeError):
        return False
    if not renameat2(AT_FDCWD, os.fsencode(part), AT_FDCWD, os.fsencode(target), flags):
        return True
    number = ctypes.get_errno()
    if number in CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(target))


# --- to the disk ------------------------------------------------------------------------------


def _sync(path: Path) -> None:
    """Force what was written to a path to the disk, whoever wrote it."""
    if path.is_dir():
        _sync_folder(path)
        return
    number = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _sync_folder(path: Path) -> None:
    """Force names to the disk, where folders can be opened and file systems know how."""
    if os.name == "nt":
        return
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder to write into that may not be listed
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    finally:
        os.close(number)
