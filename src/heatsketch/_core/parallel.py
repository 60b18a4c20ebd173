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
    """Limit the threads of work in this block, for instance on a shared machine."""
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
        -1 for all cores, -2 for all but one, and so on. The number of cores is that of this
        process, at most the threads of OpenMP (``OMP_NUM_THREADS``, threadpoolctl, or the share of
        a joblib process), and one in a joblib thread. None means the value of an enclosing
        :func:`at_most` or ``joblib.parallel_config``, or else -1.
    """
    if n_jobs is None and (most := _most.get()):
        return most
    backend, configured = get_active_backend()
    n_jobs = int((configured if n_jobs is None else n_jobs) or -1)
    return n_jobs if n_jobs > 0 else max(1, _available(backend) + 1 + n_jobs)


def _available(backend: Any) -> int:
    in_thread = threading.current_thread() is not threading.main_thread()
    # Of joblib's workers, only loky processes have a limit of threads; all others use one.
    if backend.nesting_level and (in_thread or current_process().daemon):
        return 1
    if not _openmp_parallelism_enabled():
        return cpu_count()
    return min(cpu_count(), _openmp_effective_n_threads(only_physical_cores=False))


def with_n_jobs(method: Method) -> Method:
    """Limit the threads of a method of an estimator to its ``n_jobs``."""

    @wraps(method)
    def limited(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Old pickles do not have the parameter.
        with at_most(n_threads(getattr(self, "n_jobs", None))):
            return method(self, *args, **kwargs)

    return cast("Method", limited)


def in_threads(
    function: Callable[[Any], Any], items: Iterable[Any], *, name: str = ""
) -> list[Any]:
    """Apply a function to each item, and return the results in order.

    If a name is given, progress is reported under it. An error, or Ctrl-C, cancels the items that
    have not started. Results must not depend on the thread, nor on the number of threads.
    """
    items = list(items)
    results: dict[int, Any] = {}
    places, failed = itertools.count(), threading.Event()
    done, n_reported = steps(name, len(items) if name else 0), 0

    def report() -> None:
        nonlocal n_reported
        while n_reported < len(results):
            n_reported += 1
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
        work(after=report)  # in this thread, the only one that reports progress
        for helper in helpers:
            helper.result()
    report()
    return [results[place] for place in range(len(items))]
