"""Helpers of all plots: import of matplotlib, Axes, colours and markers."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#767676"
OKABE_ITO = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", ORANGE, "#000000", "#F0E442")
MARKS = "o^sDvPX<>"  # one more than colours, so that combinations repeat only after 72
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
