"""Exit codes of errors, and error messages with the names of options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from shlex import quote
from typing import Any

import typer

from heatsketch.exceptions import FileError, FileFormatError, HeatSketchError, OutputError

# typer vendors click, or uses the installed one; both have these classes.
UsageError, ClickException = typer.BadParameter.__mro__[1:3]


class ExitCode(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    BUG = 1
    ARGUMENTS = 2
    INPUT = 3
    DATA = 4
    OUTPUT = 5
    MEMORY = 6
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


EXIT_CODES = {
    ExitCode.DONE: "done",
    ExitCode.BUG: "a bug of heatsketch; please report it",
    ExitCode.ARGUMENTS: "wrong arguments",
    ExitCode.INPUT: "a file cannot be read, or lacks what was asked for",
    ExitCode.DATA: "data that cannot be embedded, or compared",
    ExitCode.OUTPUT: "an output cannot be written: it exists, is an input, no rights, no space",
    ExitCode.MEMORY: "would not fit in memory",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
    ExitCode.BROKEN_PIPE: "output pipe closed",
    ExitCode.TERMINATED: "terminated",
}


class CommandError(Exception):
    """An error of the command line itself.

    Attributes
    ----------
    exit_code : ExitCode
    kind : str
        The error type in JSON output.
    """

    def __init__(self, message: str, code: ExitCode, kind: str = "CommandError") -> None:
        super().__init__(message)
        self.exit_code = code
        self.kind = kind


# The first match counts.
CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (ClickException, ExitCode.ARGUMENTS),
    (MemoryError, ExitCode.MEMORY),
    (OutputError, ExitCode.OUTPUT),
    (FileError, ExitCode.INPUT),
    (FileFormatError, ExitCode.INPUT),
    (HeatSketchError, ExitCode.DATA),
)


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of an error; that of a bug if it is unexpected.

    Examples
    --------
    >>> from heatsketch.cli._exit_codes import exit_code
    >>> int(exit_code(MemoryError())), int(exit_code(ZeroDivisionError()))
    (6, 1)
    """
    if isinstance(error, CommandError):
        return error.exit_code
    # scikit-learn's InvalidParameterError is both; its import would take a second.
    is_both = isinstance(error, ValueError) and isinstance(error, TypeError)
    other = ExitCode.ARGUMENTS if is_both else ExitCode.BUG
    return next((code for kind, code in CODES if isinstance(error, kind)), other)


@contextmanager
def as_exit_code(code: ExitCode, *kinds: type[Exception]) -> Iterator[None]:
    """Replace the exit code of errors of these types."""
    try:
        yield
    except kinds as error:
        kind = error.kind if isinstance(error, CommandError) else type(error).__name__
        raise CommandError(in_options(error), code, kind) from error


# Options for Python parameters, and for some of their values.
OPTIONS = {
    "n_neighbors": "--neighbors",
    "n_components": "--components",
    "n_permutations": "--permutations",
    "random_state": "--seed",
}
VALUES = {
    "n_neighbors=None": "--neighbors all",
    "affinity='precomputed'": "--affinity precomputed",
    "training_data=True": "the training data",
    "overwrite=True": "--overwrite",
    "header=True": "--header",
    "header=False": "--no-header",
}


def in_options(error: BaseException) -> str:
    """Return an error or warning message, with options in place of parameters.

    Examples
    --------
    >>> from heatsketch.cli._exit_codes import in_options
    >>> from heatsketch.exceptions import HeatSketchError
    >>> in_options(HeatSketchError("n_neighbors=99 is too large; use 15.", n_neighbors=99))
    '--neighbors 99 is too large; use 15.'
    """
    message = str(error)
    for name, value in getattr(error, "parameters", {}).items():
        texts = dict.fromkeys((f"{name}={value!r}", f"{name}={value}"), _option(name, value))
        known = {text: option for text, option in VALUES.items() if text.startswith(f"{name}=")}
        for text, option in (texts | known).items():
            message = message.replace(text, option)
    return message


def _option(name: str, value: Any) -> str:
    shown = quote(",".join(value)) if isinstance(value, list) else repr(value)
    return f"{OPTIONS.get(name, '--' + name.replace('_', '-'))} {shown}"
