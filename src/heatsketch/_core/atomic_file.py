"""Atomic outputs: complete, or absent.

An output is written to a hidden file or folder beside it, such as ``.rows.csv.1f2e3d4c.part``. When
it is complete, it is synced to disk and renamed. If the process is killed or the power fails, the
old file is still there, or the new file is complete. A folder is replaced by two renames: if the
process is killed between them, the old folder remains as ``.name.*.old``. Hidden files and folders
of killed processes can be deleted.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from heatsketch.exceptions import FileError, OutputError, OutputExistsError

# Errors that are reported as errors of the output if they are raised while it is written.
WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
# Errors of file systems that cannot sync a folder.
UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.EBADF}


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
        Before the block starts, or at its end if another process created the file meanwhile.
    OutputError
        If there is no space, no permission or no folder.
    """
    with _part_of(path, overwrite, "file") as (part, target):
        with file_errors(path):
            part.touch()
        with open(part, "r+b") as file:
            yield file
            with file_errors(path):
                file.flush()
                os.fsync(file.fileno())
        with file_errors(path):
            _take_place(part, target, overwrite, "file")


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
    """
    with _part_of(path, overwrite, "file") as (part, _), file_errors(path):
        part.touch()  # creating a file is the only reliable test of permissions


@contextmanager
def atomic_folder(path: Any, *, overwrite: bool = False) -> Iterator[Path]:
    """Create a folder that appears under its name only when it is complete.

    With ``overwrite`` the old folder is renamed, then the new one, and then the old one is deleted
    with all its contents. The permissions of the old folder are kept.

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
    """
    with _part_of(path, overwrite, "folder") as (part, target):
        with file_errors(path):
            part.mkdir()
        yield part
        with file_errors(path):
            for entry in (part, *part.rglob("*")):
                _sync(entry)
            _take_place(part, target, overwrite, "folder")


@contextmanager
def file_errors(path: Any, *, doing: str = "write") -> Iterator[None]:
    """Convert operating system errors to errors that name the path and what to do.

    Parameters
    ----------
    path : str or path-like
    doing : str, default="write"
        Name of the operation.
    """
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        kind = OutputError if doing == "write" else FileError
        message = f"Cannot {doing} {path}: {error.strerror or error}; use another path."
        raise kind(error.errno, message, str(path)) from error


@contextmanager
def _part_of(path: Any, overwrite: bool, kind: str) -> Iterator[tuple[Path, Path]]:
    """Yield a hidden path beside an output, and its real path; then clean up."""
    target = Path(os.path.realpath(os.fsdecode(path)))
    with file_errors(path):
        os.stat(target.parent)  # so that the error names a missing folder
        _check_replaceable(path, target, overwrite, kind)
    part = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}.part")
    try:
        yield part, target
        _sync(target.parent)
    except OSError as error:
        if error.errno in WRITE_ERRORS:
            with file_errors(path):
                raise
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):
            part.unlink()


def _check_replaceable(path: Any, target: Path, overwrite: bool, kind: str) -> None:
    """Raise if an output exists that must not be replaced, such as a device or a pipe."""
    is_kind = target.is_file() if kind == "file" else target.is_dir()
    if os.path.lexists(target) and not (overwrite and is_kind):
        message = f"{path} already exists; use another path, or overwrite=True to replace a {kind}."
        raise OutputExistsError(errno.EEXIST, message, str(path))


def _take_place(part: Path, target: Path, overwrite: bool, kind: str) -> None:
    """Rename an output that is complete, unless another process has created it meanwhile."""
    _check_replaceable(target, target, overwrite, kind)
    with suppress(FileNotFoundError):
        # Its owner must be able to remove a folder.
        least = 0o700 if kind == "folder" else 0
        os.chmod(part, os.stat(target).st_mode & 0o777 | least)
    if kind == "file" or not target.exists():
        os.replace(part, target)
        return
    old = part.with_suffix(".old")
    os.rename(target, old)
    try:
        os.rename(part, target)
    except OSError:
        os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    """Sync a file or a folder to disk where that is supported."""
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
