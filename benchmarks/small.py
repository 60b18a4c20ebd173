"""Measure small things that we promise to keep cheap."""

import statistics
import subprocess
import sys
from functools import partial

import numpy as np
from timing import time_ratio, write

from heatsketch.diffusion import gaussian_matrix

SHAPE = 1_000_000, 32

IMPORTS = """
from time import perf_counter
start = perf_counter()
import sklearn
middle = perf_counter()
import heatsketch
print((perf_counter() - middle) / (middle - start))
"""


def added_by_import():
    done = subprocess.run([sys.executable, "-c", IMPORTS], check=True, stdout=subprocess.PIPE)
    return float(done.stdout)


def main():
    ours = partial(gaussian_matrix, *SHAPE, seed=0, dtype=np.float32)
    numpys = partial(np.random.default_rng(0).standard_normal, SHAPE, dtype=np.float32)
    results = {
        "gaussian_matrix / standard_normal": time_ratio(ours, numpys),
        "control: standard_normal / standard_normal": time_ratio(numpys, numpys),
        "time added by import heatsketch / import sklearn": statistics.median(
            added_by_import() for _ in range(7)
        ),
    }
    write("small", {name: round(ratio, 3) for name, ratio in results.items()})


if __name__ == "__main__":
    main()
