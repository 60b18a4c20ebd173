"""How far long work has come.

Work reports its steps with :func:`steps` to a callback of the same context, if there is one:
work in one thread or task is not reported in another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TextIO

# Called with the name and the number of steps of some work; its result is called after each.
Callback = Callable[[str, int], Callable[[], None]]

PATIENCE = 3.0  # seconds of silence
EVERY = 0.2  # seconds between two lines
EVERY_LINE = 5.0  # where lines stay

_callback: ContextVar[Callback | None] = ContextVar("callback", default=None)


def steps(name: str, n_steps: int) -> Callable[[], None]:
    """Announce work of so many steps; call what is returned after each of them.

    Examples
    --------
    >>> from heatsketch._core.progress import steps
    >>> done = steps("diffusion", 2)
    >>> done()
    """
    callback = _callback.get()
    return callback(name, n_steps) if callback and n_steps else lambda: None


def has_callback() -> bool:
    """Return True if there is a callback already."""
    return _callback.get() is not None


@contextmanager
def reporting_to(callback: Callback) -> Iterator[None]:
    """Report all work in this block to a callback."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def on_terminal(stream: TextIO | None = None, *, verbose: bool | int | None = None) -> Callback:
    """Return a callback that writes how far work has come.

    Parameters
    ----------
    stream : text stream, optional
        The standard error stream if left out.
    verbose : bool, int or None, default=None
        Whether to write. None writes to a terminal or a notebook only, and is silent for the first
        seconds. There a line is written over and over, and nothing left behind; elsewhere lines
        stay.
    """
    stream = stream or sys.stderr
    on_screen = _is_screen(stream)
    if not (on_screen if verbose is None else verbose and stream):
        return lambda name, n_steps: lambda: None
    start, patience = perf_counter(), 0.0 if verbose else PATIENCE
    every = EVERY if on_screen else EVERY_LINE

    def callback(name: str, n_steps: int) -> Callable[[], None]:
        begun, state = perf_counter(), {"done": 0, "shown": 0.0}

        def done() -> None:
            state["done"] += 1
            now, last = perf_counter(), state["done"] >= n_steps
            if now - start < patience or not (last or now - state["shown"] > every):
                return
            state["shown"] = now
            left = (now - begun) / state["done"] * (n_steps - state["done"])
            line = f"heatsketch: {name} {state['done'] / n_steps:4.0%}, {left:.0f} s left"
            if on_screen:
                stream.write("\r" + ("" if last else line).ljust(60) + ("\r" if last else ""))
            else:
                stream.write(line + "\n")
            stream.flush()

        return done

    return callback


def _is_screen(stream: TextIO | None) -> bool:
    if stream is None:  # as in a program without a console
        return False
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")
