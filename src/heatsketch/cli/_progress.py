"""Progress of a command: one bar, or lines, over all of its stages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from time import perf_counter
from typing import Any

from heatsketch._core.progress import reporting_to
from heatsketch.cli._console import say

EVERY = 1.0  # seconds between two lines, without a terminal

# Usual shares of the time of a command, in the order of its stages.
SHARES = {
    "embed": {"reading": 0.1, "lists": 0.1, "neighbours": 0.4, "diffusion": 0.2, "all times": 0.2},
    "transform": {"embedding": 1.0},
    "report": {"diffusion": 0.3, "all times": 0.1, "eigenvectors": 0.1, "page": 0.5},
    "reproduce": {"trials": 1.0},
}


class Overall:
    """Completed part of a command, from 0 to 1; it never decreases.

    Parameters
    ----------
    command : str
    show : callable
        Called with the name of the stage, and the part, after each step.

    Examples
    --------
    >>> from heatsketch.cli._progress import Overall
    >>> overall = Overall("embed", lambda stage, part: print(stage, round(part, 2)))
    >>> done = overall.begin("reading", 1)
    reading 0.0
    >>> done()
    reading 0.1
    """

    def __init__(self, command: str, show: Callable[[str, float], None]) -> None:
        shares = SHARES.get(command, {})
        self.ends = dict(zip(shares, accumulate(shares.values()), strict=True))
        self.show = show
        self.part = 0.0

    def begin(self, stage: str, n_steps: int) -> Callable[[], None]:
        """Begin a stage, and return a function to call after each of its steps."""
        start, n_done = self.part, 0
        # A stage that is not in the table takes half of what is left.
        end = max(start, self.ends.get(stage, (1 + start) / 2))
        self.show(stage, start)

        def done() -> None:
            nonlocal n_done
            n_done += 1
            self.part = max(self.part, start + (end - start) * min(n_done / n_steps, 1))
            self.show(stage, self.part)

        return done


@contextmanager
def showing_progress(command: str, wanted: bool | None) -> Iterator[None]:
    """Show the progress of the command in this block, with the remaining time.

    Parameters
    ----------
    command : str
    wanted : bool or None
        None for a terminal only.
    """
    if sys.stderr.isatty() and wanted is not False and os.environ.get("TERM") != "dumb":
        with _bar(command):
            yield
    elif wanted:
        with _lines(command):
            yield
    else:
        with reporting_to(lambda stage, n_steps: lambda: None):
            yield


@contextmanager
def _lines(command: str) -> Iterator[None]:
    begun = shown = perf_counter()

    def show(stage: str, part: float) -> None:
        nonlocal shown
        now = perf_counter()
        if part and now - shown >= EVERY:
            shown = now
            say(f"{command}: {part:.0%}, {stage}, {(now - begun) * (1 / part - 1):.0f} s left")

    with reporting_to(Overall(command, show).begin):
        yield
    if shown > begun:
        say(f"{command}: 100%, {perf_counter() - begun:.0f} s")


@contextmanager
def _bar(command: str) -> Iterator[None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    words = TextColumn(f"{command}: {{task.description:12}}")
    columns: Any = (words, BarColumn(), TaskProgressColumn(), TimeLeft(elapsed_when_finished=True))
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task("", total=1.0)

    def show(stage: str, part: float) -> None:
        bar.start()  # not earlier, so that a failure before the first stage shows no bar
        bar.update(task, description=stage, completed=part)

    try:
        with reporting_to(Overall(command, show).begin):
            yield
        bar.update(task, description="done", completed=1.0)
    finally:
        if bar.live.is_started:
            bar.stop()
