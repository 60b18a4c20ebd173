"""Available memory, and memory estimates of a fit.

The estimates are sums over the arrays that exist at the same time in each stage; the largest stage
counts. They do not include the caller's ``X``.
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
# All pairs recomputed: tiles and their temporaries, in all threads.
TILES = 200 * 2**20
LIBRARIES = 30 * 2**20  # libraries that a fit loads beyond the import, and thread buffers
UNION = 1.25  # entries of a symmetrized graph, relative to those of the directed one
N_PROBES = 16


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

    The limits of all parent groups also apply. In a container, the path of a group may be its path
    on the host, of which only the top is visible.
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
    # On Linux, getrusage includes the peak of the parent process.
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return int(found[1]) * 1024
    try:
        import resource
    except ImportError:  # as on Windows
        return None
    # macOS reports bytes, all others KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def all_pairs_bytes(n_points: int, n_features: int, n_components: int, dtype: Any) -> float:
    """Return the memory of a fit with all pairs of points in memory, in bytes."""
    n_points, n_features, n_components = _exact(n_points, n_features, n_components)
    size = np.dtype(dtype).itemsize
    points = n_points * n_features * size
    return LIBRARIES + points + (DENSE_COPIES * n_points + 4 * n_components) * n_points * size


def tiles_bytes(n_points: int, n_features: int, n_components: int, dtype: Any) -> float:
    """Return the memory of a fit that recomputes all pairs, in bytes."""
    n_points, n_features, n_components = _exact(n_points, n_features, n_components)
    size = np.dtype(dtype).itemsize
    return LIBRARIES + TILES + n_points * (n_features + 5 * n_components) * size


def neighbors_bytes(
    n_points: int, n_features: int, n_components: int, n_neighbors: int, dtype: Any
) -> float:
    """Return the memory of a fit with nearest neighbours, in bytes.

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
    # Points, probes; orders, weights, and allocator overhead.
    common = 2 * n_features * size + 4 * N_PROBES + 100
    graph = 2 * edge + whole
    sketch = whole + 3 * n_components * size
    return LIBRARIES + n_points * (common + max(graph, sketch))


def _exact(*counts: int) -> tuple[int, ...]:
    """Convert to Python integers, since numpy's may overflow to negative values."""
    return tuple(int(count) for count in counts)
