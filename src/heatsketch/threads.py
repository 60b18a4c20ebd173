"""Many small pieces of work, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from joblib import cpu_count  # knows of containers and of affinities

from heatsketch.progress import steps

__all__ = ["in_threads"]


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
    pieces, results = list(pieces), []
    if len(pieces) < 2:
        return [function(piece) for piece in pieces]
    done = steps(name, len(pieces) if name else 0)
    threads = ThreadPoolExecutor(cpu_count())
    try:
        for result in threads.map(function, pieces):
            results.append(result)
            done()
        return results
    finally:
        threads.shutdown(cancel_futures=True)
