"""What is printed, where: results to the standard output, all else to the standard error."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, NamedTuple

import typer

from heatsketch.cli._exit_codes import in_options
from heatsketch.exceptions import HeatSketchWarning

# That control a terminal; tabs and ends of lines are none of them.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COLORS = {"error": "red", "warning": "yellow"}


class Reply(NamedTuple):
    """What a command has found.

    Attributes
    ----------
    result : mapping
        For machines.
    text : str
        For people.
    """

    result: Mapping[str, Any]
    text: str


def as_json(value: Any) -> str:
    """Return one line of strict JSON: what is not finite is null.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.cli._console import as_json
    >>> as_json({"distance": np.float32(0.5), "high": np.inf})
    '{"distance": 0.5, "high": null}'
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of numpy, whose import takes longer than most commands
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, PurePath) else value


def visible(text: str) -> str:
    r"""Return a text without the characters that control a terminal.

    Examples
    --------
    >>> from heatsketch.cli._console import visible
    >>> print(visible("clear \x1b[2J"))
    clear \u001b[2J
    """
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(line: str) -> None:
    """Print a line that is no result; on a terminal, errors and warnings begin in colour."""
    line = visible(line)
    head, _, rest = line.partition(":")
    if head in COLORS and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        line = typer.style(f"{head}:", fg=COLORS[head], bold=True) + rest
    typer.echo(line, err=True)


@contextmanager
def plain_warnings() -> Iterator[list[str]]:
    """Print warnings as one line each, and keep them."""
    kept: list[str] = []

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        line = " ".join(in_options(message).split())
        kept.append(line)
        say(f"warning: {line}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", HeatSketchWarning)
        warnings.showwarning = show
        yield kept
