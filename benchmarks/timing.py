"""Time two sides against each other, on a machine that does other things as well.

Absolute times drift by a factor of two; ratios hold if both sides are timed in turn. A control
times one side against itself, and tells how far from 1 a ratio may be by chance.
"""

import json
import statistics
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).parent.parent / "docs" / "benchmarks"


def seconds(function):
    start = perf_counter()
    function()
    return perf_counter() - start


def time_ratio(function, other, *, n_pairs=7):
    function(), other()  # compile, and touch memory
    ratios = []
    for i in range(n_pairs):
        if i % 2:
            ratios.append(seconds(function) / seconds(other))
        else:
            other_first = seconds(other)
            ratios.append(seconds(function) / other_first)
    return statistics.median(ratios)


def memory(name):
    """Return a figure of this process from the system: VmRSS is now, VmHWM was the highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def forget_peak():
    """Make VmHWM begin again from what this process holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def write(name, results, *, quiet=False):
    """Print results, and keep them where the page of benchmarks shows them."""
    text = json.dumps(results, indent=2)
    if not quiet:
        print(text, flush=True)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def read(name):
    return json.loads((RESULTS / f"{name}.json").read_text())
