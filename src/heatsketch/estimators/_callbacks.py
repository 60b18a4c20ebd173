"""scikit-learn's callbacks, where scikit-learn has them (from 1.9 on).

``HeatSketch().set_callbacks(ProgressBar())`` shows the stages of a fit. Without callbacks a long
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

TICKS = 100  # that a stage tells of, at most


@contextmanager
def fit_progress(estimator: Any) -> Iterator[None]:
    """Report how far the fit in this block is.

    scikit-learn's callbacks, or else a callback that is set already, or else the terminal, if
    ``estimator.verbose`` does not say otherwise.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        verbose = getattr(estimator, "verbose", None)  # which an old pickle lacks
        with nullcontext() if has_callback() else reporting_to(on_terminal(verbose=verbose)):
            yield
        return
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator)
    with reporting_to(partial(_stage, estimator, root)):
        yield
    root.call_on_fit_task_end(estimator=estimator)


def _stage(estimator: Any, root: Any, name: str, n_steps: int) -> Callable[[], None]:
    """Begin a stage of a fit, and return what is called after each of its steps."""
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
