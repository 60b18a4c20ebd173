"""Progress of long work.

Long computations report their steps with :func:`steps` to the callback of the current context, if
one is set. So a thread or task only reports to its own callback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

# Called with the name and number of steps of a computation. Returns a function that is called after
# each step.
Callback = Callable[[str, int], Callable[[], None]]

PATIENCE = 3.0  # seconds before the first output
FILE_INTERVAL = 5.0  # seconds between updates in a file

_callback: ContextVar[Callback | None] = ContextVar("callback", default=None)


def steps(name: str, n_steps: int) -> Callable[[], None]:
    """Report the start of ``n_steps`` steps; call the returned function after each."""
    callback = _callback.get()
    return callback(name, n_steps) if callback and n_steps else lambda: None


def has_callback() -> bool:
    """Return True if a callback is set."""
    return _callback.get() is not None


@contextmanager
def reporting_to(callback: Callback) -> Iterator[None]:
    """Report all steps in this block to a callback."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


@contextmanager
def show_progress(verbose: Any = None) -> Iterator[None]:
    """Show a tqdm bar on standard error for each stage of the work in this block.

    With ``verbose=None``, bars appear only on a terminal or in a notebook, and only after a few
    seconds. If a callback is already set, no bars are shown.
    """
    stream = sys.stderr  # None in a program without a console
    in_notebook = type(stream).__module__.startswith("ipykernel.")
    on_screen = stream is not None and (stream.isatty() or in_notebook)
    if has_callback() or stream is None or not (on_screen if verbose is None else verbose):
        yield
        return
    # Without ipywidgets, tqdm.auto shows a warning instead of a bar.
    kind = "auto" if in_notebook and find_spec("ipywidgets") else "std"
    tqdm = import_module(f"tqdm.{kind}").tqdm
    start, bar = perf_counter(), None

    def begin(name: str, n_steps: int) -> Callable[[], None]:
        nonlocal bar
        if bar is not None:
            bar.close()
        bar = tqdm(
            total=n_steps,
            desc=f"heatsketch: {name}",
            file=stream,
            delay=0.0 if verbose else max(0.0, PATIENCE - (perf_counter() - start)),
            leave=not on_screen,
            mininterval=0.1 if on_screen else FILE_INTERVAL,
        )
        return bar.update

    try:
        with reporting_to(begin):
            yield
    finally:
        if bar is not None:
            bar.close()
