"""Warnings that point at the line of the program that called heatsketch."""

from __future__ import annotations

import sys
import warnings

from heatsketch.exceptions import HeatSketchWarning

_INSIDE = {"heatsketch", "joblib", "sklearn"}  # also scikit-learn's wrappers around an estimator


def warn(category: type[HeatSketchWarning], message: str) -> None:
    """Warn at the line that called the package."""
    frame, stacklevel = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(category(message), stacklevel=stacklevel)
