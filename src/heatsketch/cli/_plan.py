"""``heatsketch plan``: estimate the memory of an embedding."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from heatsketch.cli._memory import READER, fit_bytes, program_bytes
from heatsketch.cli._options import Components, Neighbors


def plan(
    n: Annotated[float, typer.Option("--n", "--rows", min=2, metavar="N", help="Rows, like 1e7.")],
    d: Annotated[
        float, typer.Option("--d", "--columns", min=1, metavar="D", help="Columns of numbers.")
    ],
    *,
    components: Components = 64,
    neighbors: Neighbors = 15,
    dtype: Annotated[
        Literal["float32", "float64"], typer.Option(help="Precision of the numbers.")
    ] = "float32",
) -> dict[str, Any]:
    """Print how much memory an embedding takes on this machine.

    Example: `heatsketch plan --n 1e7 --d 16 -k 32`
    """
    from heatsketch._core.memory import physical_memory

    shape, program = (int(n), int(d)), program_bytes() + READER
    points = shape[0] * shape[1] * (4 if dtype == "float32" else 8)
    whole = program + points + fit_bytes(shape, dtype, components, neighbors)
    available = physical_memory()
    return {
        "rows": shape[0],
        "columns": shape[1],
        "components": components,
        "memory_bytes": whole,
        "points_bytes": points,
        "program_bytes": program,
        "physical_bytes": available,
        "cores": os.cpu_count(),
        "fits": whole <= available,
    }
