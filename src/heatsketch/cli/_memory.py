"""Memory of ``embed``: estimate and limit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from heatsketch._core.memory import physical_memory
from heatsketch.cli._options import readable_bytes
from heatsketch.cli._rows import Rows
from heatsketch.exceptions import MemoryBudgetError

# Loaded after the estimate, besides the libraries of a fit: the writer of an output.
LATER = 32 * 2**20
READER = 12 * 2**20  # of a CSV file, which plan does not open
USUAL = 240 * 2**20  # of the program, if unknown
CARRIED = 64  # bytes of an id or a label


def engine_within_limit(
    rows: Rows, sketch: Any, output: Path, memory_limit: int | None
) -> tuple[float | None, Any]:
    """Return the memory estimate of the command, and an engine with that limit.

    The memory is None if it is not known before the rows are read.

    Raises
    ------
    MemoryBudgetError
        If it exceeds the available memory, or the limit.
    """
    if rows.shape is None or not rows.is_dense:
        if memory_limit is not None:
            raise MemoryBudgetError(
                f"--memory-limit {readable_bytes(memory_limit)}: how much memory {rows.path} takes "
                "is not known before it is read; leave --memory-limit out."
            )
        return None, None
    from heatsketch import LocalEngine

    allowed = physical_memory() if memory_limit is None else memory_limit
    ours = program_bytes() + _bytes_of_rows(rows) + _bytes_of_output(rows, sketch, output)
    needed = ours + _fit_bytes(rows, sketch, allowed - ours)
    if needed > allowed:
        last = "use a machine with more" if memory_limit is None else "raise --memory-limit"
        raise MemoryBudgetError(
            f"{rows.path}: {rows.shape[0]} rows of {rows.shape[1]} columns, with --components "
            f"{sketch.n_components}, would take about {readable_bytes(needed)} of memory, of "
            f"{readable_bytes(allowed)} allowed; use fewer --components or --neighbors, choose "
            f"--columns, or {last}."
        )
    limited = None if memory_limit is None else LocalEngine(memory_limit=int(allowed - ours))
    return needed, limited


def program_bytes() -> float:
    """Return the memory of the program itself: current, plus what it loads later."""
    try:
        with open("/proc/self/statm") as file:
            held = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # as on macOS and Windows
        held = USUAL
    return held + LATER


def _fit_bytes(rows: Rows, sketch: Any, allowed: float) -> float:
    """Return the estimate of a fit: the smaller one with and without the limit."""
    from heatsketch.estimators._resources import estimate_memory

    options = {"n_components": sketch.n_components, "n_neighbors": sketch.n_neighbors}
    limits = allowed, float("inf")
    # For few points, all pairs take less memory than the alternative.
    return min(
        estimate_memory(*rows.shape or (), dtype=rows.dtype, memory_limit=limit, **options)
        for limit in limits
    )


def _bytes_of_rows(rows: Rows) -> float:
    n_rows, n_columns = rows.shape or (0, 0)
    points = n_rows * n_columns * rows.dtype.itemsize
    carried = n_rows * CARRIED * (len(rows.labels) + (rows.ids is not None))
    # Rows are sorted by their ids, if they have any; an array in .npz is loaded as a whole.
    twice = rows.ids is not None or rows.path.suffix.lower() == ".npz"
    return points * (2 if twice else 1) + carried


def _bytes_of_output(rows: Rows, sketch: Any, output: Path) -> float:
    """Return the memory of a writer that copies all rows, 0 for other formats."""
    n_rows, _ = rows.shape or (0, 0)
    at_once = output.suffix.lower() in (".npz", ".h5ad")
    return 3 * n_rows * sketch.n_components * rows.dtype.itemsize if at_once else 0
