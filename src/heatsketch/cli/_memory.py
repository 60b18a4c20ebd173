"""How much memory ``embed`` will take, announced before it starts, and kept to."""

from __future__ import annotations

from typing import Any

from heatsketch.cli._options import readable_bytes
from heatsketch.cli._rows import Rows
from heatsketch.exceptions import MemoryBudgetError
from heatsketch.memory import physical_memory

__all__ = ["announced_bytes", "fitting_engine"]

# What the program itself takes: Python, numpy, scipy, scikit-learn, pyarrow.
PROGRAM = 200 * 2**20
CARRIED = 64  # bytes of an id or a label


def announced_bytes(rows: Rows, sketch: Any, memory_limit: int | None) -> float | None:
    """Return how much memory the command takes; None where that is not known before it reads.

    Raises
    ------
    MemoryBudgetError
        If it is more than there is, or than is allowed.
    """
    if rows.shape is None or not rows.is_dense:
        return None
    from heatsketch.resources import estimate_memory

    ours = _besides_fit(rows)
    allowed = physical_memory() if memory_limit is None else memory_limit
    needed = ours + estimate_memory(
        *rows.shape,
        n_components=sketch.n_components,
        n_neighbors=sketch.n_neighbors,
        dtype=rows.dtype,
        memory_limit=allowed - ours,
    )
    if needed > allowed:
        raise MemoryBudgetError(
            f"{rows.path}: {rows.shape[0]} rows of {rows.shape[1]} columns would take about "
            f"{readable_bytes(needed)} of memory, of {readable_bytes(allowed)} allowed; use fewer "
            "--components or --neighbors, choose --columns, or raise --memory-limit."
        )
    return needed


def fitting_engine(rows: Rows, announced: float | None, memory_limit: int | None) -> Any:
    """Return the engine that keeps to a limit; the usual one if there is none."""
    if memory_limit is None:
        return "local"
    from heatsketch import LocalEngine

    if announced is None:
        raise MemoryBudgetError(
            f"--memory-limit {readable_bytes(memory_limit)}: how much memory {rows.path} takes is "
            "not known before it is read; leave --memory-limit out."
        )
    return LocalEngine(memory_limit=int(memory_limit - _besides_fit(rows)))


def _besides_fit(rows: Rows) -> float:
    n_rows, n_columns = rows.shape or (0, 0)
    points = n_rows * n_columns * rows.dtype.itemsize
    carried = n_rows * CARRIED * (len(rows.labels) + (rows.ids is not None))
    # Rows are put in the order of their ids, if they have any.
    return PROGRAM + points * (1 if rows.ids is None else 2) + carried
