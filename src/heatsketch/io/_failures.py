"""Conversion of errors while reading files."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heatsketch._core.atomic_file import file_errors
from heatsketch._core.memory import physical_memory
from heatsketch.exceptions import FileFormatError, HeatSketchError, MemoryBudgetError

# Errors of the system, not of the file contents: libraries also raise OSError for damaged files.
OF_THE_SYSTEM = {
    errno.ENOENT,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ESTALE,
    errno.EISDIR,
    errno.ENOTDIR,
}
LONGEST_CAUSE = 300  # characters: some libraries include the file in their messages


class _LibraryNeededError(ImportError):
    """Raised if a library is not installed, which is not an error of the file."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert errors of readers to FileFormatError with the path and the cause.

    Parsers raise almost any error for damaged or malicious files: ``np.load`` alone raises
    SyntaxError, TypeError, EOFError and TokenError.
    """
    try:
        yield
    except (HeatSketchError, _LibraryNeededError):
        raise
    except OSError as error:
        if error.errno in OF_THE_SYSTEM:
            with file_errors(path, doing="read"):
                raise
        raise _format_error(path, error) from error
    except Exception as error:
        raise _format_error(path, error) from error


def _format_error(path: Path, error: Exception) -> FileFormatError:
    cause = shortened(error)
    remedy = "check that the file is whole, and what its extension says"
    if isinstance(error, UnicodeError):
        remedy = "save it as UTF-8"
    return FileFormatError(path, f"cannot be read ({type(error).__name__}: {cause})", remedy)


def shortened(error: Exception) -> str:
    """Return the message of an error on one line of limited length."""
    cause = " ".join(str(error).split()) or "no message"
    return cause if len(cause) <= LONGEST_CAUSE else f"{cause[:LONGEST_CAUSE]}..."


def needed(library: str, path: Path) -> Any:
    """Import an optional library, or raise an error with the install command."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        name = library.partition(".")[0]
        raise _LibraryNeededError(
            f"{path}: files of this kind need {name}; install it with: "
            'pip install "heatsketch[files]".'
        ) from error


def check_memory(
    path: Path,
    n_bytes: int,
    what: str,
    remedy: str = "read it in blocks, or choose some of its columns",
) -> None:
    """Raise if an object would exceed the memory, before it is allocated."""
    there = physical_memory()
    if n_bytes > there:
        raise MemoryBudgetError(
            f"{path}: {what} takes {n_bytes / 2**30:.3g} GiB of memory, and this machine has "
            f"{there / 2**30:.3g}; {remedy}."
        )
