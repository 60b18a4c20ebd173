"""Columns for the colours of points: labels or values."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.checks import is_missing
from heatsketch.exceptions import HeatSketchError

MOST_KINDS = 24  # labels that twelve colours and two shapes can distinguish
MISSING = 255  # index of missing labels


class Column(NamedTuple):
    """A column of labels or values of the points.

    Attributes
    ----------
    name : str
    kinds : tuple of str or None
        The labels; None for a column of values.
    data : array of uint8 or float32 of shape (n,)
        Indices of the labels, 255 if missing; or values, NaN if missing.
    """

    name: str
    kinds: tuple[str, ...] | None
    data: np.ndarray


def color_columns(colors: Any, n_points: int) -> list[Column]:
    """Return the columns of a mapping or a data frame, each validated."""
    if colors is None:
        return []
    if hasattr(colors, "to_dict") and not hasattr(colors, "items"):  # a data frame of polars
        colors = colors.to_dict()
    if not hasattr(colors, "items"):
        raise HeatSketchError(
            "colors must be a mapping of names to columns, such as {'label': labels}, or a data "
            f"frame, got {type(colors).__name__}."
        )
    return [_column(str(name), values, n_points) for name, values in colors.items()]


def _column(name: str, values: Any, n_points: int) -> Column:
    array = np.asarray(values)
    if array.shape != (n_points,):
        raise HeatSketchError(
            f"colors[{name!r}] must have one label or value for each of the {n_points} points, got "
            f"shape {array.shape}."
        )
    numbers = _numbers(array)
    if numbers is None:
        return _labels(name, [_text(value) for value in array.tolist()], order=None)
    present = numbers[np.isfinite(numbers)]
    is_whole = array.dtype.kind not in "f" and (present == np.rint(present)).all()
    if is_whole and len(np.unique(present)) <= MOST_KINDS:
        texts = [f"{value:.0f}" if np.isfinite(value) else None for value in numbers]
        return _labels(name, texts, order=float)
    return Column(name, None, np.where(np.isfinite(numbers), numbers, np.nan).astype(np.float32))


def _numbers(array: np.ndarray) -> np.ndarray | None:
    """Return numbers, parsed if they are text; None if some are not numbers."""
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.dtype.kind not in "OUST":
        return None
    try:
        numbers = [np.nan if _text(value) is None else float(value) for value in array.tolist()]
    except (TypeError, ValueError):
        return None
    return np.array(numbers)


def _text(value: Any) -> str | None:
    """Return a label as text, or None if it is missing."""
    return None if is_missing(value) or value == "" else str(value)


def _labels(name: str, texts: list[str | None], order: Any) -> Column:
    counts = Counter(word for word in texts if word is not None)
    kinds = sorted(counts, key=order)
    if len(kinds) > MOST_KINDS:
        # The most frequent labels get colours; the rest are merged into one label.
        frequent = [word for word, _ in counts.most_common(MOST_KINDS - 1)]
        rest = f"{len(kinds) - len(frequent)} others"
        kinds = [*sorted(frequent), rest]
    places = {word: place for place, word in enumerate(kinds)}
    other = len(kinds) - 1
    data = [MISSING if word is None else places.get(word, other) for word in texts]
    return Column(name, tuple(kinds), np.array(data, np.uint8))
