"""Progress of long work.

Work reports its steps with :func:`steps` to the callback of the same context, if there is one: work
in one thread or task is not reported in another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from time import perf_counter
from typing import Any, TextIO

# Called with the name and the number of steps of some work; its result is called after each step.
Callback = Callable[[str, int], Callable[[], None]]

PATIENCE = 3.0  # seconds before the first output
EVERY = 0.2  # seconds between updates of a line
EVERY_LINE = 5.0  # seconds between lines that are not overwritten

_callback: ContextVar[Callback | None] = ContextVar("callback", default=None)


def steps(name: str, n_steps: int) -> Callable[[], None]:
    """Start work of ``n_steps`` steps; call the returned function after each.

    Examples
    --------
    >>> from heatsketch._core.progress import steps
    >>> done = steps("diffusion", 2)
    >>> done()
    """
    callback = _callback.get()
    return callback(name, n_steps) if callback and n_steps else lambda: None


def has_callback() -> bool:
    """Return True if a callback is set."""
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
    """Return a callback that writes the progress of work.

    Parameters
    ----------
    stream : text stream, optional
        The standard error stream if omitted.
    verbose : bool, int or None, default=None
        Whether to write. None writes to a terminal or a notebook only, and not in the first
        seconds. A notebook with tqdm and ipywidgets shows a bar for each stage. A terminal shows
        one line, which is removed at the end; other streams get separate lines.
    """
    stream = stream or sys.stderr
    on_screen = _is_screen(stream)
    if not (on_screen if verbose is None else verbose and stream):
        return lambda name, n_steps: lambda: None
    patience = 0.0 if verbose else PATIENCE
    if _is_notebook(stream) and find_spec("tqdm") and find_spec("ipywidgets"):
        return bars(patience)
    return _lines(stream, patience, on_screen=on_screen)


def bars(patience: float = 0.0, **options: Any) -> Callback:
    """Return a callback that shows a tqdm bar for each stage, after some seconds.

    Examples
    --------
    >>> import io
    >>> from heatsketch._core.progress import bars
    >>> stream = io.StringIO()
    >>> bars(file=stream)("diffusion", 1)()
    >>> "diffusion:   0%" in stream.getvalue()
    True
    """
    from tqdm.auto import tqdm

    start = perf_counter()

    def callback(name: str, n_steps: int) -> Callable[[], None]:
        n_done, bar = 0, None

        def done() -> None:
            nonlocal n_done, bar
            n_done += 1
            if bar is None and perf_counter() - start >= patience:
                bar = tqdm(total=n_steps, desc=name, leave=False, initial=n_done - 1, **options)
            if bar is not None:
                bar.update()
                if n_done >= n_steps:
                    bar.close()

        return done

    return callback


def _lines(stream: TextIO, patience: float, *, on_screen: bool) -> Callback:
    start, every = perf_counter(), EVERY if on_screen else EVERY_LINE

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
    return stream.isatty() or _is_notebook(stream)


def _is_notebook(stream: TextIO) -> bool:
    return type(stream).__module__.startswith("ipykernel.")
