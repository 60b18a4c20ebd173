"""Memory: estimated before it is allocated, and never more than allowed."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from heatsketch._core.memory import (
    all_pairs_bytes,
    control_group_limits,
    neighbors_bytes,
    physical_memory,
)

# A process of its own, since memory that was once taken is not all given back.
MEASURE = textwrap.dedent("""
    import json, resource, sys
    import numpy as np
    from heatsketch import HeatSketch, LocalEngine
    from heatsketch.exceptions import MemoryBudgetError

    def memory(name):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024

    n, d, k, neighbors, limit, values = json.loads(sys.argv[1])
    angles = np.random.default_rng(0).random((n, 4), np.float32) * 6
    X = np.cos(angles @ np.random.default_rng(1).random((4, d), np.float32))
    del angles
    if values:
        X = np.random.default_rng(0).integers(0, values, (n, d)).astype(np.float32)
    if limit:
        # The system holds it to the limit as well, with a margin for code and stacks.
        HeatSketch(k, n_neighbors=neighbors, power=2).fit(X[:500])
        most = int(memory("VmSize") + 1.1 * limit + 2**27)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    before, result = memory("VmRSS"), "done"
    try:
        engine = LocalEngine(memory_limit=limit)
        HeatSketch(k, n_neighbors=neighbors, power=2, engine=engine).fit(X)
    except MemoryBudgetError:
        result = "rejected"
    print(json.dumps([result, memory("VmHWM") - before]))
""")


def measured(n, d, k, n_neighbors, limit=None, values=None):
    """Fit in a process of its own, and return how it ended and the memory it took."""
    call = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        MEASURE,
        json.dumps([n, d, k, n_neighbors, limit, values]),
    ]
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}  # of address space, 64 MiB a thread
    done = subprocess.run(call, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


@pytest.mark.untraced
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("n", "d", "k", "n_neighbors"), [(300_000, 8, 32, 15), (150_000, 32, 128, 10)]
)
def test_memory_of_a_fit_is_predicted(n, d, k, n_neighbors):
    result, taken = measured(n, d, k, n_neighbors)
    assert result == "done"
    assert taken / neighbors_bytes(n, d, k, n_neighbors, "float32") == pytest.approx(1, abs=0.25)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_all_pairs_is_predicted():
    result, taken = measured(8000, 4, 16, None)
    assert result == "done"
    assert taken / all_pairs_bytes(8000, 4, 16, "float32") == pytest.approx(1, abs=0.25)


@pytest.mark.untraced
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("n", "n_neighbors", "wanted"),
    [
        (5_000, None, "done"),
        (15_000, None, "rejected"),
        (15_000, 15, "done"),
        (600_000, 15, "rejected"),
    ],
)
def test_a_limit_holds_or_the_fit_is_rejected(n, n_neighbors, wanted):
    limit = 512 * 2**20
    result, taken = measured(n, 8, 64, n_neighbors, limit)
    assert result == wanted
    assert taken <= (1.1 * limit if result == "done" else 2**26)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("n", "d", "values"),
    [(40_000, 3, 3), (60_000, 2, 5), (50_000, 20, 2), (50_000, 3, 40)],
    ids=["27 cells", "25 cells", "20 truth values", "64,000 cells"],
)
def test_ties_stay_within_the_forecast(n, d, values):
    """Copies and ties of distinct points alike."""
    result, taken = measured(n, d, 64, 15, 512 * 2**20, values)
    assert result == "done"
    assert taken <= neighbors_bytes(n, d, 64, 15, "float32")


GROUPS = {
    "version 2": ("0::/jobs/7", {"jobs/memory.max": "4096", "jobs/7/memory.max": "max"}, 4096),
    "version 2, the group itself": ("0::/jobs/7", {"jobs/7/memory.max": "100"}, 100),
    "in a container, with a name space": ("0::/", {"memory.max": "512\n"}, 512),
    "in a container, by its outer name": ("0::/docker/abc", {"memory.max": "512"}, 512),
    "version 1": (
        "5:cpu,cpuacct:/a\n4:memory:/a\n0::/b",
        {"memory/a/memory.limit_in_bytes": "300", "memory/memory.limit_in_bytes": str(2**63)},
        300,
    ),
    "both": ("4:memory:/a\n0::/", {"memory/a/memory.limit_in_bytes": "9", "memory.max": "8"}, 8),
    "none": ("0::/", {"memory.max": "max\n"}, np.inf),
    "no files": ("0::/a", {}, np.inf),
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no control groups")
@pytest.mark.parametrize("name", GROUPS)
def test_the_limit_of_a_control_group_is_the_memory_there_is(name, tmp_path, monkeypatch):
    line, files, limit = GROUPS[name]
    for path, text in {"proc/self/cgroup": line, **files}.items():
        file = tmp_path / ("" if path.startswith("proc") else "sys/fs/cgroup") / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = control_group_limits(tmp_path)
    assert min(found) == limit
    monkeypatch.setattr("heatsketch._core.memory.control_group_limits", lambda: found)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert physical_memory() == min(limit, machine)
