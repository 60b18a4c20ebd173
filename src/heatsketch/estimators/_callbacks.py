"""Support for the callbacks of scikit-learn 1.9 and later.

``HeatSketch().set_callbacks(ProgressBar())`` shows the stages of a fit. Without callbacks, a long
fit writes a line to the terminal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from heatsketch._core.progress import has_callback, on_terminal, reporting_to

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # an older scikit-learn
    CallbackSupportMixin = type("CallbackSupportMixin", (), {})

TICKS = 100  # most progress reports per stage


@contextmanager
def fit_progress(estimator: Any) -> Iterator[None]:
    """Report the progress of the fit in this block.

    Reports go to scikit-learn's callbacks, or else to a callback that is already set, or else to
    the terminal, subject to ``estimator.verbose``.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        verbose = getattr(estimator, "verbose", None)  # old pickles lack it
        with nullcontext() if has_callback() else reporting_to(on_terminal(verbose=verbose)):
            yield
        return
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator)
    with reporting_to(partial(_stage, estimator, root)):
        yield
    root.call_on_fit_task_end(estimator=estimator)


def _stage(estimator: Any, root: Any, name: str, n_steps: int) -> Callable[[], None]:
    """Begin a stage of a fit, and return the function to call after each step."""
    every = -(-n_steps // TICKS)
    stage = root.subcontext(task_name=name, max_subtasks=-(-n_steps // every))
    stage.call_on_fit_task_begin(estimator=estimator)
    count = itertools.count(1)

    def done() -> None:
        n_done = next(count)
        if n_done % every and n_done < n_steps:
            return
        tick = stage.subcontext(task_name=name)
        tick.call_on_fit_task_begin(estimator=estimator)
        tick.call_on_fit_task_end(estimator=estimator)
        if n_done == n_steps:
            stage.call_on_fit_task_end(estimator=estimator)

    return done
