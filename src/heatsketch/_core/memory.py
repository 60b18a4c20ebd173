"""How much memory there is, and how much a fit takes.

The figures are sums over the arrays that are alive at once, stage by stage; the largest stage
counts. They leave out ``X`` as the caller holds it.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

# All pairs in memory, at the peak: distances and affinities.
DENSE_COPIES = 2
# All pairs recomputed: tiles and what is made of them, in all threads.
TILES = 200 * 2**20
LIBRARIES = 30 * 2**20  # what a fit loads besides what an import does, and buffers of threads
UNION = 1.25  # entries of a symmetric graph, over those of its rows
N_PROBES = 16


def physical_memory() -> float:
    """Return the bytes of memory that this process may have; infinity if that is unknown.

    These are the memory of the machine, or what its control groups (containers, batch jobs) leave.
    """
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = float("inf")
    return min(machine, *control_group_limits())


def control_group_limits(root: Path = Path("/")) -> list[float]:
    """Return the limits of memory of all control groups of this process, of version 1 and 2.

    A group has the limits of all groups above it, too. In a container, the path of a group may be
    that outside, of which only the top is seen.
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
    """Return the most bytes that this process has had; None where the system does not tell."""
    # Linux has getrusage count what the parent of the process had, too.
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return int(found[1]) * 1024
    try:
        import resource
    except ImportError:  # as on Windows
        return None
    # macOS counts in bytes, all others in KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def all_pairs_bytes(n_points: int, n_features: int, n_components: int, dtype: Any) -> float:
    """Return the bytes that a fit with all pairs of points in memory takes."""
    n_points, n_features, n_components = _exact(n_points, n_features, n_components)
    size = np.dtype(dtype).itemsize
    points = n_points * n_features * size
    return LIBRARIES + points + (DENSE_COPIES * n_points + 4 * n_components) * n_points * size


def tiles_bytes(n_points: int, n_features: int, n_components: int, dtype: Any) -> float:
    """Return the bytes that a fit with all pairs recomputed at every product takes."""
    n_points, n_features, n_components = _exact(n_points, n_features, n_components)
    size = np.dtype(dtype).itemsize
    return LIBRARIES + TILES + n_points * (n_features + 5 * n_components) * size


def neighbors_bytes(
    n_points: int, n_features: int, n_components: int, n_neighbors: int, dtype: Any
) -> float:
    """Return the bytes that a fit with neighbours takes.

    Examples
    --------
    Ten million points on a laptop:

    >>> from heatsketch._core.memory import neighbors_bytes
    >>> round(neighbors_bytes(10**7, 16, 32, 15, "float32") / 2**30)
    8
    """
    n_points, n_features, n_components = _exact(n_points, n_features, n_components)
    size = np.dtype(dtype).itemsize
    edge = int(n_neighbors) * (4 + size)  # of a point, in one direction
    whole = UNION * edge
    # Points, probes; orders, weights, and what the allocator keeps.
    common = 2 * n_features * size + 4 * N_PROBES + 100
    graph = 2 * edge + whole
    sketch = whole + 3 * n_components * size
    return LIBRARIES + n_points * (common + max(graph, sketch))


def _exact(*counts: int) -> tuple[int, ...]:
    """Return Python's integers: numpy's wrap around, and a negative need passes every limit."""
    return tuple(int(count) for count in counts)
