"""From what went wrong to an exit code, and to words that a command line understands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from shlex import quote
from typing import Any

import typer

from heatsketch.exceptions import FileError, FileFormatError, HeatSketchError, OutputError

# typer brings its own click, or takes the one that is installed; either has these classes.
UsageError, ClickException = typer.BadParameter.__mro__[1:3]


class ExitCode(IntEnum):
    """What a command tells the shell."""

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
        The type that is reported in JSON.
    """

    def __init__(self, message: str, code: ExitCode, kind: str = "CommandError") -> None:
        super().__init__(message)
        self.exit_code = code
        self.kind = kind


# The first that fits counts.
CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (ClickException, ExitCode.ARGUMENTS),
    (MemoryError, ExitCode.MEMORY),
    (OutputError, ExitCode.OUTPUT),
    (FileError, ExitCode.INPUT),
    (FileFormatError, ExitCode.INPUT),
    (HeatSketchError, ExitCode.DATA),
)


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of an error; a bug's if we did not expect it.

    Examples
    --------
    >>> from heatsketch.cli._exit_codes import exit_code
    >>> int(exit_code(MemoryError())), int(exit_code(ZeroDivisionError()))
    (6, 1)
    """
    if isinstance(error, CommandError):
        return error.exit_code
    # scikit-learn's InvalidParameterError, whose import would take a second, is both.
    is_both = isinstance(error, ValueError) and isinstance(error, TypeError)
    other = ExitCode.ARGUMENTS if is_both else ExitCode.BUG
    return next((code for kind, code in CODES if isinstance(error, kind)), other)


@contextmanager
def as_exit_code(code: ExitCode, *kinds: type[Exception]) -> Iterator[None]:
    """Give errors of these kinds another exit code than their type has."""
    try:
        yield
    except kinds as error:
        kind = error.kind if isinstance(error, CommandError) else type(error).__name__
        raise CommandError(in_options(error), code, kind) from error


# What parameters of Python are called here, and values of theirs.
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
    """Return the message of an error or a warning, with options for the parameters it names.

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
