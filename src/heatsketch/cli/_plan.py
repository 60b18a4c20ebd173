"""``heatsketch plan``: estimates of the memory and time of an embedding."""

from __future__ import annotations

import os
from math import ceil
from typing import Annotated, Any

import typer

from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import ExitCode, as_exit_code
from heatsketch.cli._memory import READER, program_bytes
from heatsketch.cli._options import (
    Components,
    Neighbors,
    Power,
    one_of,
    readable_bytes,
    readable_seconds,
    whole_number,
)

PRODUCTS = 60  # assumed for all diffusion times; real data take 20 to 120


def plan(
    n: Annotated[
        Any,
        typer.Option("--n", "--rows", parser=whole_number, metavar="N", help="Rows, like 1e7."),
    ],
    d: Annotated[
        Any,
        typer.Option(
            "--d", "--columns", parser=whole_number, metavar="D", help="Columns of numbers."
        ),
    ],
    *,
    components: Components = 64,
    power: Power = "all",
    neighbors: Neighbors = 15,
    dtype: Annotated[
        Any, one_of("float32", "float64", about="Precision of the numbers")
    ] = "float32",
    workers: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Machines of a cluster; 0 is this machine alone."),
    ] = 0,
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="Cores of each machine of the cluster.")
    ] = 8,
) -> Reply:
    """Print how much memory an embedding takes here, or memory and time on a cluster.

    For this machine, formulas give the memory at once. For a cluster, short runs on simulated
    points take about a minute here. --power changes the time on a cluster only.
    """
    if not workers:
        n_neighbors = None if neighbors == "all" else neighbors
        return _on_this_machine((n, d), components, dtype, n_neighbors)
    if neighbors == "all":
        raise typer.BadParameter("--neighbors all is not for a cluster; give a number, like 15.")
    return _on_cluster(
        n_points=n,
        n_features=d,
        n_components=components,
        power=PRODUCTS if power == "all" else int(power),
        n_neighbors=neighbors,
        itemsize=4 if dtype == "float32" else 8,
        n_workers=workers,
        n_threads=threads,
    )


def _on_this_machine(
    shape: tuple[int, int], components: int, dtype: str, n_neighbors: int | None
) -> Reply:
    from heatsketch import estimate_memory
    from heatsketch._core.memory import physical_memory

    program = program_bytes() + READER
    options: dict[str, Any] = {
        "n_components": components,
        "n_neighbors": n_neighbors,
        "dtype": dtype,
    }
    points = shape[0] * shape[1] * (4 if dtype == "float32" else 8)
    whole, there = program + points + estimate_memory(*shape, **options), physical_memory()
    result = {
        "rows": shape[0],
        "columns": shape[1],
        "components": components,
        "bytes": whole,
        "bytes_of_points": points,
        "bytes_of_program": program,
        "physical_bytes": there,
        "cores": os.cpu_count(),
        "fits": whole <= there,
    }
    verdict = "it fits"
    if whole > there:
        # A cluster with twice the memory, since rows are not divided evenly.
        workers = max(2, ceil(2 * whole / there))
        verdict = (
            "it does not fit: use fewer rows, --components or --neighbors, or a cluster "
            f"(plan it with --workers {workers})"
        )
    return Reply(
        result,
        f"Memory: about {readable_bytes(whole)}, of which the points are {readable_bytes(points)} "
        f"and the program is {readable_bytes(program)}\n"
        f"This machine: {readable_bytes(there)}, {os.cpu_count()} cores; {verdict}",
    )


def _on_cluster(**job: Any) -> Reply:
    """Return the cost of an embedding on a cluster, stage by stage."""
    from heatsketch.cli._cluster_cost import Job, calibrate, forecast

    asked = Job(**job)
    with as_exit_code(ExitCode.ARGUMENTS, ImportError):  # dask may not be installed
        calibration = calibrate(asked)
    found = forecast(asked, calibration)
    slow, full = found.bottleneck, found.fullest
    result = {
        **asked._asdict(),
        "seconds": found.seconds,
        "tasks": found.tasks,
        "bytes_per_worker": found.bytes_per_worker,
        "bytes_per_step": found.bytes_per_step,
        "bottleneck": slow.stage,
        "fullest": full.stage,
        "stages": [stage._asdict() for stage in found.stages],
    }
    lines = [
        f"{stage.stage:14}{readable_seconds(stage.seconds):>8}{stage.tasks:>11.0f} tasks"
        f"{readable_bytes(stage.bytes_moved):>15} moved"
        f"{readable_bytes(stage.bytes_per_worker):>13} a worker"
        for stage in found.stages
    ]
    return Reply(
        result,
        "\n".join(lines) + f"\nTime: about {readable_seconds(found.seconds)}, most of it: "
        f"{slow.stage}\nMemory: {readable_bytes(full.bytes_per_worker)} in one worker, for: "
        f"{full.stage}\nMoved at each product: {readable_bytes(found.bytes_per_step)}",
    )
