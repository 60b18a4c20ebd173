"""Import of matplotlib, Axes, colours and markers."""

from __future__ import annotations

from typing import Any

from heatsketch.exceptions import DtypeError

BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#767676"
OKABE_ITO = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", ORANGE, "#000000", "#F0E442")
MARKS = "o^sDvPX<>"  # nine for eight colours, so that combinations repeat after 72
DASHES = ("-", "--", ":", "-.")


def pyplot() -> Any:
    """Import and return matplotlib's pyplot, which is slow to import."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'heatsketch.plot needs matplotlib; install it with: pip install "heatsketch[plot]".'
        ) from error
    return plt


def new_axes(ax: Any) -> Any:
    """Return the given Axes, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(5.5, 4.2), layout="constrained")[1]


def check_kind(name: str, value: Any, kind: type) -> None:
    """Raise unless a value is an instance of a class."""
    if not isinstance(value, kind):
        raise DtypeError(f"{name} must be a {kind.__name__}, got {type(value).__name__}.")
