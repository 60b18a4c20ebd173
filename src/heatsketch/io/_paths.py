"""Paths of tables: extensions, folders, patterns and URLs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heatsketch._core.atomic_file import file_errors
from heatsketch.exceptions import FileFormatError, OutputError

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
ARROW = (*TEXT, ".parquet", ".feather", ".arrow")  # these may be folders, patterns and URLs


def is_url(path: Any) -> bool:
    """Return True for an address that ``fsspec`` opens."""
    return "://" in str(path)


def is_pattern(path: Any) -> bool:
    """Return True for a path with wildcards, unless a file has that name."""
    return bool(set(str(path)) & set("*?[")) and (is_url(path) or not Path(path).exists())


def extension_of(path: Any, extensions: Iterable[str] = ARROW) -> str | None:
    """Return the extension of a path, in lower case; None if it is not one of those given."""
    name = Path(str(path)).name.lower()
    return next((e for e in extensions if name.endswith(e) and name != e), None)


def located(path: Any, extensions: Iterable[str]) -> tuple[Any, str]:
    """Return a path, or a URL as it is, and the extension that sets its format."""
    path = str(path) if is_url(path) else Path(path)
    extension = extension_of(path, extensions)
    if extension is None and not is_url(path) and path.is_dir():  # a folder of files
        extension = next(filter(None, map(extension_of, path.iterdir())), None)
    if extension is None:
        cause = f"extension {Path(path).suffix!r} is not supported here"
        raise FileFormatError(path, cause, f"use one of {', '.join(extensions)}")
    if is_url(path) and extension not in ARROW:
        raise FileFormatError(path, f"URLs are not supported for {extension}", "download it first")
    return path, extension


def check_readable(path: Any) -> None:
    """Raise if a local path is missing, or a pipe, whose opening would wait for a writer."""
    if not is_url(path) and not is_pattern(path):
        with file_errors(path, doing="read"):
            mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise FileFormatError(path, "it is not a regular file", "copy it to one first")


def check_different_files(
    inputs: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> None:
    """Raise if an output is also an input, under any name or link.

    Parameters
    ----------
    inputs : iterable of str or path-like
        Files and folders that are read.
    output : str or path-like
        Must not be one of the inputs, lie in one of them, or contain one of them.

    Examples
    --------
    >>> from heatsketch.io import check_different_files
    >>> check_different_files(["/tmp"], "/tmp/../tmp")
    Traceback (most recent call last):
    heatsketch.exceptions.OutputError: /tmp/../tmp is also the input /tmp; use another path...
    """
    output = Path(output)
    for given in (Path(path) for path in inputs if not is_url(path)):
        with file_errors(output):
            one, other = Path(os.path.realpath(given)), Path(os.path.realpath(output))
            same = given.exists() and output.exists() and os.path.samefile(given, output)
        if same or one == other or one in other.parents or other in one.parents:
            message = f"{output} is also the input {given}; use another path for one of them."
            raise OutputError(errno.EEXIST, message, str(output))
