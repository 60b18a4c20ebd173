"""What all pictures share: matplotlib, where there is one, Axes, colours and marks."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#767676"
OKABE_ITO = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", ORANGE, "#000000", "#F0E442")
MARKS = "o^sDvPX<>"  # one more than colours, so that both repeat together after 72 only
DASHES = ("-", "--", ":", "-.")


def pyplot() -> Any:
    """Return matplotlib's pyplot, whose import takes a while."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'heatsketch.plot needs matplotlib; install it with: pip install "heatsketch[plot]".'
        ) from error
    return plt


def new_axes(ax: Any) -> Any:
    """Return new Axes, unless some were given."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(5.5, 4.2), layout="constrained")[1]
