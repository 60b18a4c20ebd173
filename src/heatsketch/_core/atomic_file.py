"""Atomic outputs: complete, or absent.

An output is written to a hidden file or folder beside it, such as ``.rows.csv.1f2e3d4c.part``. When
it is complete it is synced to disk and renamed in one step; then the rename is synced, too. If the
process is killed or the machine loses power at any time, either the old or the new output is there.
A process that is killed leaves its hidden file, which can be deleted.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from heatsketch.exceptions import FileError, OutputError, OutputExistsError

REMEDIES = {
    errno.ENOSPC: "free some space, or use another disk",
    errno.EDQUOT: "free some of your quota, or use another disk",
    errno.EFBIG: "use a file system, or a limit, that allows larger files",
    errno.EROFS: "use a disk that can be written to",
    errno.EACCES: "use a folder that you have the rights for, or change its rights",
    errno.EPERM: "use a folder that you have the rights for, or change its rights",
    errno.ENOENT: "make the folder first, or check the spelling",
    errno.ENOTDIR: "one part of the path is a file; use another",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "a link in the path leads back to itself; use another path",
    errno.EIO: "the disk may be failing; use another",
}
# Errors that only writing raises, so that inside the block they refer to its output.
OF_WRITERS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
# How file systems report that they do not support a call.
UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.EBADF}
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux


@contextmanager
def atomic_file(path: Any, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under its name only when it is complete.

    Links are followed. The permissions are those of the replaced file, or those of the umask, as
    with :func:`open`.

    Parameters
    ----------
    path : str or path-like
        Path of the file. Its folder must exist.
    overwrite : bool, default=False
        Whether an existing file may be replaced, in one step.

    Yields
    ------
    file
        For reading and writing.

    Raises
    ------
    OutputExistsError
        Before the block starts, or after it if another process created the file meanwhile.
    OutputError
        If there is no space, no permission or no folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch._core.atomic_file import atomic_file
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "a.txt")) as file:
    ...         length = file.write(b"whole")
    ...         before = Path(folder, "a.txt").exists()
    ...     before, Path(folder, "a.txt").read_bytes()
    (False, b'whole')
    """
    with _part_of(path, overwrite, stat.S_ISREG, "file") as (part, target):
        with _Output(part, path) as raw, io.BufferedRandom(raw) as file:
            yield file
            file.flush()
            with file_errors(path):
                os.fsync(raw.fileno())
        with file_errors(path):
            if overwrite:
                _keep_rights(part, target)
                os.replace(part, target)
            else:
                _move_to_free_name(part, target)


def check_output_file(path: Any, *, overwrite: bool = False) -> None:
    """Raise the errors of :func:`atomic_file` early, before a long computation.

    Parameters
    ----------
    path, overwrite :
        As for :func:`atomic_file`.

    Raises
    ------
    OutputExistsError, OutputError
        As for :func:`atomic_file`.

    Examples
    --------
    >>> from heatsketch._core.atomic_file import check_output_file
    >>> check_output_file("/")
    Traceback (most recent call last):
    heatsketch.exceptions.OutputExistsError: / exists already; pass overwrite=True to replace it...
    """
    with _part_of(path, overwrite, stat.S_ISREG, "file") as (part, _), _Output(part, path):
        pass  # permissions are only known after creating a file


@contextmanager
def atomic_folder(path: Any, *, overwrite: bool = False) -> Iterator[Path]:
    """Create a folder that appears under its name only when it is complete.

    With ``overwrite`` the two folders are exchanged in one step, and then the old one is deleted
    with all its contents. The permissions of the old folder are kept. Only Linux supports the
    exchange; elsewhere the old folder is renamed first, and remains as ``.*.old`` beside the output
    if the process is killed between the two steps.

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
    >>> from heatsketch._core.atomic_file import atomic_folder
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder, "a.zarr")) as part:
    ...         length = (part / "0").write_bytes(b"chunk")
    ...     Path(folder, "a.zarr", "0").read_bytes()
    b'chunk'
    """
    with _part_of(path, overwrite, stat.S_ISDIR, "folder") as (part, target):
        with file_errors(path):
            part.mkdir()
        yield part
        with file_errors(path):
            for entry in (part, *part.rglob("*")):
                _sync(entry)
            if overwrite and target.exists():
                # A folder that its owner may not write to could not be removed.
                _keep_rights(part, target, at_least=stat.S_IRWXU)
                _exchange(part, target)
            else:
                # If the target is a folder this succeeds only if that is empty.
                os.rename(part, target)


@contextmanager
def file_errors(path: Any, *, doing: str = "write") -> Iterator[None]:
    """Convert operating system errors to errors with the path and a remedy.

    Parameters
    ----------
    path : str or path-like
    doing : str, default="write"
        Name of the operation.

    Examples
    --------
    >>> import errno
    >>> from heatsketch._core.atomic_file import file_errors
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
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and doing == "write":
        return _exists(path)
    cause = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0, "use another path")
    if error.errno == errno.ENOENT and doing == "read":
        remedy = "check the spelling, and the folder that you are in"
    kind = OutputError if doing == "write" else FileError
    return kind(error.errno, f"cannot {doing} {path}: {cause}; {remedy}.", str(path))


def _exists(path: Any) -> OutputExistsError:
    message = f"{path} exists already; pass overwrite=True to replace it, or use another path."
    return OutputExistsError(errno.EEXIST, message, str(path))


class _Output(io.FileIO):
    """A file whose errors name the path of the output."""

    def __init__(self, part: Path, path: Any) -> None:
        self._path = path
        with file_errors(path):
            super().__init__(part, "x+")

    def write(self, data: Any, /) -> int:
        with file_errors(self._path):
            return super().write(data)

    def truncate(self, size: int | None = None, /) -> int:
        with file_errors(self._path):
            return super().truncate(size)


@contextmanager
def _part_of(path: Any, overwrite: bool, is_type: Any, type_name: str) -> Iterator[Any]:
    """Yield a hidden path beside an output, and its real path; then clean up."""
    with file_errors(path):
        target = Path(os.path.realpath(os.fsdecode(path)))
        _check_target(path, target, overwrite, is_type, type_name)
    part = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}.part")
    try:
        yield part, target
        with file_errors(path):
            _sync(target.parent)
    except OSError as error:
        if error.errno in OF_WRITERS and not isinstance(error, FileError):
            raise _file_error(error, path) from error
        raise
    finally:
        with suppress(OSError):
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def _check_target(path: Any, target: Path, overwrite: bool, is_type: Any, type_name: str) -> None:
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        os.stat(target.parent)  # so that the error names a missing folder
        return
    if not overwrite:
        raise _exists(path)
    if not is_type(mode):
        # Otherwise a device or a pipe would be replaced, too.
        message = f"{path} exists and is no {type_name}, and is not replaced; use another path."
        raise OutputExistsError(errno.EEXIST, message, str(path))


def _move_to_free_name(part: Path, target: Path) -> None:
    try:
        os.link(part, target)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        if target.exists():  # without links, a file created at this moment is replaced
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        os.rename(part, target)


def _keep_rights(part: Path, target: Path, at_least: int = 0) -> None:
    with suppress(FileNotFoundError):
        os.chmod(part, os.stat(target).st_mode & 0o777 | at_least)


def _exchange(part: Path, target: Path) -> None:
    if _renameat2(part, target):
        return
    old = part.with_suffix(".old")
    os.rename(target, old)
    try:
        os.rename(part, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _renameat2(part: Path, target: Path) -> bool:
    """Exchange two folders in one step; return False if that is not supported."""
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = os.fsencode(part), os.fsencode(target)
    return call is not None and not call(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE)


def _sync(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk where that is supported."""
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
