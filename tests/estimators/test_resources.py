"""Memory: estimated before it is allocated, and never more than allowed."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from heatsketch import HeatSketch, estimate_memory
from heatsketch._core.memory import (
    all_pairs_bytes,
    control_group_limits,
    neighbors_bytes,
    physical_memory,
    tiles_bytes,
)
from heatsketch.exceptions import HeatSketchError

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
@pytest.mark.parametrize("n_neighbors", [None, 15])
@pytest.mark.parametrize("n", [15_000, 600_000])
def test_a_limit_holds_or_the_fit_is_rejected(n, n_neighbors):
    limit = 512 * 2**20
    if n_neighbors is None and n > 15_000:
        n = 250_000  # all pairs beyond all patience
    result, taken = measured(n, 8, 64, n_neighbors, limit)
    assert result == ("done" if n == 15_000 else "rejected")
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((-1, 5), "n_points=-1 must be an integer of at least 2"),
        (("1e6", 5), "n_points='1e6' must be"),
        ((99.5, 5), "n_points=99.5 must be"),
        ((float("inf"), 5), "n_points=inf must be"),
        ((100, 0), "n_features=0 must be an integer of at least 1"),
    ],
)
def test_no_number_of_points_is_rejected_by_name(given, message):
    n_points, n_features, *n_neighbors = given
    with pytest.raises(HeatSketchError, match=message):
        estimate_memory(n_points, n_features, n_neighbors=(*n_neighbors, None)[0])


def test_numbers_may_be_written_as_floats():
    assert estimate_memory(1e2, 5.0, n_neighbors=15.0) == estimate_memory(100, 5, n_neighbors=15)


def test_estimates_grow_with_what_is_asked():
    less = {"n_points": 10_000, "n_features": 4, "n_components": 8, "n_neighbors": 10}
    for name, value in less.items():
        assert estimate_memory(**less) < estimate_memory(**less | {name: 10 * value}), name
    assert estimate_memory(**less) < estimate_memory(**less, dtype="float64")


@pytest.mark.parametrize("number", [np.int32, np.int64, np.uint16])
def test_integers_of_numpy_do_not_wrap_around(number):
    """A negative need would pass every limit."""
    size = 60_000, 50, 64
    numbers = [number(value) for value in size]
    for needed in (all_pairs_bytes, tiles_bytes):
        assert needed(*numbers, "f8") == needed(*size, "f8")
    found = neighbors_bytes(*numbers, np.uint8(200), "f8")
    assert found == neighbors_bytes(*size, 200, "f8")


def test_a_fit_takes_the_smallest_integers():
    X = np.random.default_rng(0).normal(size=(40, 3))
    found = HeatSketch(np.uint8(4), power=2).fit(X).embedding_
    np.testing.assert_array_equal(found, HeatSketch(4, power=2).fit(X).embedding_)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no peak that we read")
def test_the_peak_is_that_of_this_process_not_of_who_started_it():
    code = "from heatsketch._core.memory import peak_memory; print(peak_memory())"
    held = np.ones(2**27)  # a gigabyte, of which the child has nothing
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert 2**20 < int(found.stdout) < held.nbytes / 2


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


def test_where_there_are_no_control_groups_nothing_is_limited(tmp_path):
    assert control_group_limits(tmp_path) == [np.inf]
