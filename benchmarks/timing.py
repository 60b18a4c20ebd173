"""Time two sides against each other, on a machine that does other things as well.

Absolute times drift by a factor of two; ratios hold if both sides are timed in turn. A control
times one side against itself, and tells how far from 1 a ratio may be by chance.
"""

import json
import os
import statistics
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "benchmarks"
LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "cleanlab",
    "dask",
    "faiss-cpu",
    "graphlearning",
    "igraph",
    "pynndescent",
    "scanpy",
    "scikit-network",
    "umap-learn",
)


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
    """Print results, and keep them with version, date, command and libraries.

    A script that adds rows to its file writes them all again: the date is that of the last row.
    """
    if not quiet:
        print(json.dumps(results, indent=2), flush=True)
    script = os.path.relpath(sys.argv[0], ROOT)
    entry = {
        "version": metadata.version("heatsketch"),
        "date": date.today().isoformat(),
        "command": " ".join(["python", script, *sys.argv[1:]]),
        "libraries": {library: version for library in LIBRARIES if (version := installed(library))},
        "results": results,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(entry, indent=2) + "\n")


def installed(library):
    """Return the version of a library, or None."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def read(name, default=None):
    """Return results, or the default if there are none yet."""
    path = RESULTS / f"{name}.json"
    if default is not None and not path.exists():
        return default
    return json.loads(path.read_text())["results"]
