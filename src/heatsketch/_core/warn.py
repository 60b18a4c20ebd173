"""Warnings that point at the line of the program that called heatsketch."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from heatsketch.exceptions import HeatSketchWarning

_INSIDE = {"heatsketch", "joblib", "sklearn"}
# Warnings already shown in the fits of a search: function, file and line of the caller.
_said: set[tuple[str, str, int]] = set()


def warn(category: type[HeatSketchWarning], message: str, **parameters: Any) -> None:
    """Warn at the line that called the package, once per line in a scikit-learn search."""
    # Point at the line that called the estimator, not at scikit-learn's wrappers around it.
    frame, stacklevel, in_search = sys._getframe(), 1, False
    cause = sys._getframe(1).f_code.co_name
    while frame.f_back and (module := _module(frame)).partition(".")[0] in _INSIDE:
        in_search |= module.startswith("sklearn.model_selection")
        frame, stacklevel = frame.f_back, stacklevel + 1
    if in_search and _would_be_shown_once(category, message):
        key = cause, frame.f_code.co_filename, frame.f_lineno
        if key in _said:
            return
        _said.add(key)
    warnings.warn(category(message, **parameters), stacklevel=stacklevel)


def _module(frame: Any) -> str:
    return frame.f_globals.get("__name__", "")  # code executed from text may have no name


def _would_be_shown_once(category: type[Warning], message: str) -> bool:
    """Return True if the filters show this warning once per line.

    A search fits a model many times, and in each fit scikit-learn enters
    ``warnings.catch_warnings``, which resets Python's record of the warnings shown.
    """
    actions = (
        action
        for action, text, kind, *_ in warnings.filters
        if issubclass(category, kind) and (text is None or text.match(message))
    )
    return next(actions, "default") in ("default", "module", "once")
