"""Output: results go to standard output, everything else to standard error."""

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

# Control characters of terminals, except tabs and line ends.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COLORS = {"error": "red", "warning": "yellow"}


class Reply(NamedTuple):
    """Result of a command.

    Attributes
    ----------
    result : mapping
        For JSON output.
    text : str
        For printing.
    """

    result: Mapping[str, Any]
    text: str


def as_json(value: Any) -> str:
    """Return one line of strict JSON, with null for NaN and infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.cli._console import as_json
    >>> as_json({"distance": np.float32(0.5), "high": np.inf})
    '{"distance": 0.5, "high": null}'
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of numpy, which is slow to import
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, PurePath) else value


def visible(text: str) -> str:
    r"""Return text with terminal control characters escaped.

    Examples
    --------
    >>> from heatsketch.cli._console import visible
    >>> print(visible("clear \x1b[2J"))
    clear \u001b[2J
    """
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(line: str) -> None:
    """Print a line to standard error, with coloured prefixes on a terminal."""
    line = visible(line)
    head, _, rest = line.partition(":")
    if head in COLORS and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        line = typer.style(f"{head}:", fg=COLORS[head], bold=True) + rest
    typer.echo(line, err=True)


@contextmanager
def plain_warnings() -> Iterator[list[str]]:
    """Print warnings as one line each, and yield the list of them."""
    kept: list[str] = []

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        line = " ".join(in_options(message).split())
        kept.append(line)
        say(f"warning: {line}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", HeatSketchWarning)
        warnings.showwarning = show
        yield kept
