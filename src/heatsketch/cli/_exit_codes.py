"""Exit codes of the program."""

from __future__ import annotations

from enum import IntEnum

from heatsketch.exceptions import FileError, FileFormatError, HeatSketchError, OutputError


class ExitCode(IntEnum):
    """Exit codes of commands, which docs/how_to/command_line.md explains."""

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


# The first match counts.
CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    (MemoryError, ExitCode.MEMORY),
    (OutputError, ExitCode.OUTPUT),
    (FileError, ExitCode.INPUT),
    (FileFormatError, ExitCode.INPUT),
    (HeatSketchError, ExitCode.DATA),
    (ImportError, ExitCode.INPUT),  # a library for a file format is not installed
)
EXPECTED = tuple(kind for kind, _ in CODES)


def exit_code(error: Exception) -> ExitCode:
    """Return the exit code of an error."""
    return next((code for kind, code in CODES if isinstance(error, kind)), ExitCode.BUG)
