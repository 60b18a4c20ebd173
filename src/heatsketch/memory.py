"""How much memory there is, and how much is needed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

__all__ = ["all_pairs_bytes", "physical_memory"]

# A fit with all pairs holds at its peak, measured: distances, exponents, affinities and links.
DENSE_COPIES = 4


def physical_memory() -> float:
    """Return the bytes of memory of this machine; infinity where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def all_pairs_bytes(n_points: int, dtype: Any) -> int:
    """Return the bytes that a fit with all pairs of points takes.

    Examples
    --------
    >>> from heatsketch.memory import all_pairs_bytes
    >>> all_pairs_bytes(1000, "float64")
    32000000
    """
    return DENSE_COPIES * n_points**2 * np.dtype(dtype).itemsize
