"""Measure what we promise to keep cheap; print it and write ``benchmarks/results.json``.

Two sides are timed in pairs, each going first in turn, and the median of the ratios is kept:
whatever else the machine does then falls on both sides. The control times one side against
itself, and tells how far from 1 a ratio may be by chance.
"""

import json
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from heatsketch import gaussian_block

SHAPE = 1_000_000, 32

IMPORTS = """
from time import perf_counter
start = perf_counter()
import sklearn
middle = perf_counter()
import heatsketch
print((perf_counter() - middle) / (middle - start))
"""


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


def added_by_import():
    done = subprocess.run([sys.executable, "-c", IMPORTS], check=True, stdout=subprocess.PIPE)
    return float(done.stdout)


def main():
    ours = partial(gaussian_block, *SHAPE, seed=0, dtype=np.float32)
    numpys = partial(np.random.default_rng(0).standard_normal, SHAPE, dtype=np.float32)
    results = {
        "gaussian_block / standard_normal": time_ratio(ours, numpys),
        "control: standard_normal / standard_normal": time_ratio(numpys, numpys),
        "time added by import heatsketch / import sklearn": statistics.median(
            added_by_import() for _ in range(7)
        ),
    }
    results = {name: round(ratio, 3) for name, ratio in results.items()}
    text = json.dumps(results, indent=2)
    print(text)
    Path(__file__).with_name("results.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
