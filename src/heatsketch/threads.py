"""Many small pieces of work, on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import Any

from joblib import cpu_count  # knows of containers and of affinities

from heatsketch.progress import steps

__all__ = ["at_most", "in_threads"]

_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def at_most(n_threads: int) -> Iterator[None]:
    """Let work in this block use so many threads, where others work on the same machine.

    Examples
    --------
    >>> from heatsketch.threads import at_most, in_threads
    >>> with at_most(1):
    ...     in_threads(abs, [-2, 3])
    [2, 3]
    """
    token = _most.set(n_threads)
    try:
        yield
    finally:
        _most.reset(token)


def in_threads(
    function: Callable[[Any], Any], pieces: Iterable[Any], *, name: str = ""
) -> list[Any]:
    """Apply a function to each piece, and return the results in order.

    Work that has a name tells how far it is. An error, or Ctrl-C, drops the pieces that have not
    begun. What is computed must not depend on which thread computes it, nor on how many there
    are.

    Examples
    --------
    >>> from heatsketch.threads import in_threads
    >>> in_threads(abs, [-2, 3])
    [2, 3]
    """
    pieces = list(pieces)
    results: dict[int, Any] = {}
    places, failed = itertools.count(), Event()
    done, n_told = steps(name, len(pieces) if name else 0), 0

    def tell() -> None:
        nonlocal n_told
        while n_told < len(results):
            n_told += 1
            done()

    def work(after: Callable[[], None] = lambda: None) -> None:
        try:
            while not failed.is_set() and (place := next(places)) < len(pieces):
                results[place] = function(pieces[place])
                after()
        except BaseException:
            failed.set()
            raise

    n_helpers = max(0, min(_most.get() or cpu_count(), len(pieces)) - 1)
    with ThreadPoolExecutor(max(1, n_helpers)) as threads:
        helpers = [threads.submit(work) for _ in range(n_helpers)]
        work(after=tell)  # this thread works as well: it would only wait, and wake up late
        for helper in helpers:
            helper.result()
    tell()
    return [results[place] for place in range(len(pieces))]
