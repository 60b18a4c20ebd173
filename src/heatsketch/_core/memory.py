"""Available memory, and estimates of the memory that a fit needs.

An estimate adds up the arrays that exist at the same time in each stage of a fit, and returns the
largest sum. It does not include the caller's ``X``.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

DENSE_COPIES = 2  # matrices over all pairs that exist at the same time: distances and affinities
LIBRARIES = 30 * 2**20  # bytes of libraries that a fit imports, and of thread buffers
UNION = 1.25  # entries of a symmetrized graph, relative to the directed graph
N_PROBES = 16  # inverted lists that each point probes


def physical_memory() -> float:
    """Return the memory limit of this process in bytes; infinity if unknown.

    It is the memory of the machine, or the limit of control groups (containers, batch jobs) if that
    is lower.
    """
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = float("inf")
    return min(machine, *control_group_limits())


def control_group_limits(root: Path = Path("/")) -> list[float]:
    """Return the memory limits of all control groups (v1 and v2) of this process.

    The limits of parent groups also apply. In a container, the path of a group may be the path on
    the host, where only the top folder is visible.
    """
    limits = [float("inf")]
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # as on macOS and Windows
        return limits
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = Path(path.lstrip("/"))
        for folder in (group, *group.parents):
            try:
                limits.append(float((top / folder / file).read_text()))
            except (OSError, ValueError):  # no such file, or the word "max"
                continue
    return limits


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if unknown."""
    # Not getrusage on Linux, which includes the peak of the parent process.
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if peak:
        return int(peak[1]) * 1024
    try:
        import resource
    except ImportError:  # as on Windows
        return None
    # macOS reports bytes, all others KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def all_pairs_bytes(n_points: int, n_features: int, n_components: int, dtype: Any) -> float:
    """Return the memory of a fit with all pairs of points, in bytes."""
    size = np.dtype(dtype).itemsize
    points = n_points * n_features * size
    return LIBRARIES + points + (DENSE_COPIES * n_points + 4 * n_components) * n_points * size


def neighbors_bytes(
    n_points: int, n_features: int, n_components: int, n_neighbors: int, dtype: Any
) -> float:
    """Return the memory of a fit with nearest neighbours, in bytes."""
    size = np.dtype(dtype).itemsize
    edges = n_neighbors * (4 + size)  # of one point, in one direction
    symmetric = UNION * edges
    # Points and probes; orders, weights and allocator overhead.
    common = 2 * n_features * size + 4 * N_PROBES + 100
    graph = 2 * edges + symmetric
    sketch = symmetric + 3 * n_components * size
    return LIBRARIES + n_points * (common + max(graph, sketch))
