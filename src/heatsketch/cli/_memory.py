"""Memory of ``embed``: estimate and limit."""

from __future__ import annotations

import os
from typing import Any

from heatsketch import LocalEngine, estimate_memory  # loaded before the program is measured
from heatsketch._core.memory import physical_memory
from heatsketch.cli._text import readable_bytes
from heatsketch.exceptions import MemoryBudgetError

LATER = 32 * 2**20  # of the writer of an output, which is loaded after the estimate
READER = 12 * 2**20  # of a CSV file, which plan does not open
USUAL = 240 * 2**20  # of the program, if unknown
CARRIED = 64  # bytes of an id or a label


def engine_within_limit(
    table: Any, n_components: int, neighbors: Any, memory_limit: int | None
) -> tuple[float | None, Any]:
    """Return the memory estimate of embed, and an engine with that limit.

    The memory is None for graphs and sparse tables: it is not known before they are read.
    """
    if table is None or table.is_sparse:
        if memory_limit is not None:
            raise MemoryBudgetError(
                "--memory-limit is not supported for graphs and sparse tables, whose size is not "
                "known before they are read; remove it."
            )
        return None, None
    allowed = physical_memory() if memory_limit is None else memory_limit
    ours = program_bytes() + _table_bytes(table)
    shape = table.n_rows, len(table.names)
    needed = ours + fit_bytes(shape, table.dtype, n_components, neighbors)
    if needed > allowed:
        raise MemoryBudgetError(
            f"{table.n_rows} rows of {len(table.names)} columns with {n_components} components "
            f"need about {readable_bytes(needed)} of memory, and {readable_bytes(allowed)} is "
            "allowed. Use fewer components, neighbours or columns, or allow more memory."
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


def fit_bytes(shape: tuple[int, int], dtype: Any, n_components: int, neighbors: Any) -> float:
    """Return the estimate of a fit besides the points."""
    n_neighbors = None if neighbors == "all" else neighbors
    options = {"n_components": n_components, "n_neighbors": n_neighbors, "dtype": dtype}
    return estimate_memory(*shape, **options)


def _table_bytes(table: Any) -> float:
    points = table.n_rows * len(table.names) * table.dtype.itemsize
    carried = table.n_rows * CARRIED * (len(table.label_names) + table.has_ids)
    # Rows are sorted by their ids, if they have any; an array in .npz is loaded as a whole.
    twice = table.has_ids or str(table.path).lower().endswith(".npz")
    return points * (2 if twice else 1) + carried
