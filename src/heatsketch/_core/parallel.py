"""Small tasks in threads, on all cores that this process may use."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from multiprocessing import current_process
from typing import Any, TypeVar, cast

from joblib import cpu_count  # respects containers, CPU affinity and LOKY_MAX_CPU_COUNT
from joblib.parallel import get_active_backend
from sklearn.utils._openmp_helpers import (
    _openmp_effective_n_threads,
    _openmp_parallelism_enabled,
)

from heatsketch._core.progress import steps

Method = TypeVar("Method", bound=Callable[..., Any])

_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def at_most(n_threads: int) -> Iterator[None]:
    """Limit the threads of work in this block, for instance on a shared machine.

    Examples
    --------
    >>> from heatsketch._core.parallel import at_most, in_threads
    >>> with at_most(1):
    ...     in_threads(abs, [-2, 3])
    [2, 3]
    """
    token = _most.set(n_threads)
    try:
        yield
    finally:
        _most.reset(token)


def n_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads that work may use.

    Parameters
    ----------
    n_jobs : int or None, default=None
        -1 for all cores, -2 for all but one, and so on. Counted are the cores that this process may
        use, at most the threads of OpenMP (``OMP_NUM_THREADS``, threadpoolctl, or the share that
        joblib leaves to each of its processes), and one in a joblib thread. None takes the value of
        an enclosing :func:`at_most` or ``joblib.parallel_config``, or else -1.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> from heatsketch._core.parallel import n_threads
    >>> with parallel_config(n_jobs=2):
    ...     n_threads(), n_threads(3)
    (2, 3)
    """
    if n_jobs is None and (most := _most.get()):
        return most
    backend, chosen = get_active_backend()
    wanted = (chosen if n_jobs is None else n_jobs) or -1
    return int(wanted) if wanted > 0 else max(1, _available(backend) + 1 + int(wanted))


def _available(backend: Any) -> int:
    in_thread = threading.current_thread() is not threading.main_thread()
    # Among joblib's workers, only loky processes know how many threads they may start.
    if backend.nesting_level and (in_thread or current_process().daemon):
        return 1
    if not _openmp_parallelism_enabled():
        return cpu_count()
    return min(cpu_count(), _openmp_effective_n_threads(only_physical_cores=False))


def with_n_jobs(method: Method) -> Method:
    """Limit the threads of a method of an estimator to its ``n_jobs``."""

    @wraps(method)
    def limited(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Pickles from before the parameter was added do not have it.
        with at_most(n_threads(getattr(self, "n_jobs", None))):
            return method(self, *args, **kwargs)

    return cast("Method", limited)


def in_threads(
    function: Callable[[Any], Any], items: Iterable[Any], *, name: str = ""
) -> list[Any]:
    """Apply a function to each item, and return the results in order.

    Work with a name reports its progress. An error, or Ctrl-C, cancels the items that have not
    started. Results must not depend on the thread that computes them, nor on the number of threads.

    Examples
    --------
    >>> from heatsketch._core.parallel import in_threads
    >>> in_threads(abs, [-2, 3])
    [2, 3]
    """
    items = list(items)
    results: dict[int, Any] = {}
    places, failed = itertools.count(), threading.Event()
    done, n_told = steps(name, len(items) if name else 0), 0

    def tell() -> None:
        nonlocal n_told
        while n_told < len(results):
            n_told += 1
            done()

    def work(after: Callable[[], None] = lambda: None) -> None:
        try:
            with at_most(share):
                while not failed.is_set() and (place := next(places)) < len(items):
                    results[place] = function(items[place])
                    after()
        except BaseException:
            failed.set()
            raise

    most = n_threads()
    n_helpers = max(0, min(most, len(items)) - 1)
    share = most // (n_helpers + 1)  # of threads, for nested work
    with ThreadPoolExecutor(max(1, n_helpers)) as threads:
        helpers = [threads.submit(work) for _ in range(n_helpers)]
        work(after=tell)  # this thread works as well, instead of waiting
        for helper in helpers:
            helper.result()
    tell()
    return [results[place] for place in range(len(items))]
