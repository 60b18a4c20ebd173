"""What is said, where: results to the standard output, all else to the standard error."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.progress import reporting_to
from heatsketch.cli._exit_codes import in_options
from heatsketch.exceptions import HeatSketchWarning

# That control a terminal; tabs and ends of lines are none of them.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
EVERY = 1.0  # seconds between two lines of progress, where there is no terminal


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
    if isinstance(value, np.ndarray | np.generic):
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
    """Print a line that is no result."""
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


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


# --- progress ---------------------------------------------------------------------------------


@contextmanager
def showing_progress(wanted: bool | None) -> Iterator[None]:
    """Show how far the work in this block is, with the time left.

    Parameters
    ----------
    wanted : bool or None
        None for a terminal only.
    """
    if sys.stderr.isatty() and wanted is not False and os.environ.get("TERM") != "dumb":
        with _bars() as callback, reporting_to(callback):
            yield
    else:
        with reporting_to(_lines if wanted else _silence):
            yield


def _silence(name: str, n_steps: int) -> Callable[[], None]:
    return lambda: None


def _lines(name: str, n_steps: int) -> Callable[[], None]:
    begun = shown = perf_counter()
    n_done = 0

    def done() -> None:
        nonlocal n_done, shown
        n_done += 1
        now = perf_counter()
        if now - shown >= EVERY or (n_done == n_steps and now - begun >= EVERY):
            shown = now
            left = (now - begun) / n_done * (n_steps - n_done)
            say(f"{name}: {n_done / n_steps:.0%}, {left:.0f} s left")

    return done


@contextmanager
def _bars() -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (TextColumn("{task.description:20}"), BarColumn(), TaskProgressColumn(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def callback(name: str, n_steps: int) -> Callable[[], None]:
            # A stage may end before all its steps are done; the next one takes its place.
            for task in progress.task_ids:
                progress.update(task, visible=False)
            bar = progress.add_task(name, total=n_steps)
            return lambda: progress.advance(bar)

        yield callback
