"""``heatsketch plan``: what an embedding will take, in words."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from heatsketch.cli._console import Reply
from heatsketch.cli._options import (
    Components,
    Neighbors,
    Power,
    readable_bytes,
    readable_seconds,
    whole_number,
)

__all__ = ["plan"]


def plan(
    n: Annotated[str, typer.Option("--n", "--rows", metavar="N", help="Rows, like 1e7.")],
    d: Annotated[str, typer.Option("--d", "--columns", metavar="N", help="Columns of numbers.")],
    components: Components = 64,
    power: Power = "auto",
    neighbors: Neighbors = "auto",
    dtype: Annotated[str, typer.Option(help="Of the numbers: float32 or float64.")] = "float32",
) -> Reply:
    """Say how much memory and time an embedding takes on this machine.

    From formulas, and from a short run on made-up points, which takes some seconds.
    """
    from heatsketch import estimate_resources
    from heatsketch.memory import physical_memory

    if dtype not in ("float32", "float64"):
        raise typer.BadParameter(f"--dtype {dtype!r} is unknown; use float32 or float64.")
    shape = whole_number(n), whole_number(d)
    options = {"power": power, "n_neighbors": None if neighbors == "all" else neighbors}
    needed = estimate_resources(*shape, n_components=components, dtype=dtype, **options)
    points = shape[0] * shape[1] * (4 if dtype == "float32" else 8)
    whole, there = needed.bytes + points, physical_memory()
    told = {
        "rows": shape[0],
        "columns": shape[1],
        "components": components,
        "bytes": whole,
        "bytes_of_points": points,
        "seconds": needed.seconds,
        "physical_bytes": there,
        "cores": os.cpu_count(),
        "fits": whole <= there,
    }
    verdict = (
        "fits" if whole <= there else "does not fit: use fewer rows, --components, --neighbors"
    )
    return Reply(
        told,
        f"Memory: about {readable_bytes(whole)}, of which the points are {readable_bytes(points)}\n"
        f"Time: about {readable_seconds(needed.seconds)}, within a factor of two\n"
        f"This machine: {readable_bytes(there)}, {os.cpu_count()} cores; it {verdict}",
    )
