"""From what went wrong to an exit code, and to words that a command line understands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from shlex import quote

import typer
from sklearn.utils._param_validation import InvalidParameterError

from heatsketch.exceptions import FileError, FileFormatError, HeatSketchError, OutputError

__all__ = ["EXIT_CODES", "CommandError", "ExitCode", "as_exit_code", "exit_code", "in_options"]

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
    ExitCode.BROKEN_PIPE: "whoever read the results stopped reading",
    ExitCode.TERMINATED: "terminated",
}


class CommandError(Exception):
    """A refusal of the command line itself.

    Attributes
    ----------
    exit_code : ExitCode
    kind : str
        The type that a machine is told.
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
    (InvalidParameterError, ExitCode.ARGUMENTS),
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
    return next((code for kind, code in CODES if isinstance(error, kind)), ExitCode.BUG)


@contextmanager
def as_exit_code(code: ExitCode, *kinds: type[Exception]) -> Iterator[None]:
    """Give errors of these kinds another exit code than their type has."""
    try:
        yield
    except kinds as error:
        kind = error.kind if isinstance(error, CommandError) else type(error).__name__
        raise CommandError(str(error), code, kind) from error


# What our messages say to those who write Python, and what it is called here.
OPTIONS = {
    "pass overwrite=True": "use --overwrite",
    "header=True": "--header",
    "header=False": "--no-header",
    "n_neighbors=None": "--neighbors all",
    "raise memory_limit": "raise --memory-limit",
    "training_data=True": "the training data",
    "random_state": "--seed",
    "a whole power, sketch_heat, or": "a whole --power, or",
    "a whole power, a larger one, or sketch_heat": "a whole --power, or a larger one",
    "n_connected_components_=": "",
    "affinity='precomputed': the diagonal of X": "the diagonal of the graph",
    "affinity='precomputed'": "the graph",
    "larger n_neighbors": "larger --neighbors",
    "larger number for epsilon": "larger number for --epsilon",
}
ARGUMENTS = {
    "n_neighbors": "--neighbors",
    "n_components": "--components",
    **{
        name: f"--{name}"
        for name in ("color", "columns", "epsilon", "ids", "key", "labels", "metric", "power")
    },
    "output": "--output",
}
ARGUMENT = re.compile(rf"(?<![\w.-])({'|'.join(ARGUMENTS)})=(?=\S)")
NAMES = re.compile(r"(--labels|--columns) \[('[^'\\]*'(?:, '[^'\\]*')*)\]")  # plain ones


def in_options(message: str) -> str:
    """Say in options what a message says in arguments of Python.

    Examples
    --------
    >>> from heatsketch.cli._exit_codes import in_options
    >>> in_options("a.npy exists already; pass overwrite=True to replace it.")
    'a.npy exists already; use --overwrite to replace it.'
    """
    for argument, option in OPTIONS.items():
        message = message.replace(argument, option)
    message = ARGUMENT.sub(lambda found: f"{ARGUMENTS[found[1]]} ", message)
    return NAMES.sub(lambda found: f"{found[1]} {_with_commas(found[2])}", message)


def _with_commas(names: str) -> str:
    return quote(",".join(name.strip("'") for name in names.split(", ")))
