"""Fits under a limit of memory: each keeps to it, or is rejected before it takes any."""

import argparse
import json
import subprocess
import sys

from data import manifold
from timing import forget_peak, memory, write

from heatsketch import HeatSketch, LocalEngine
from heatsketch.exceptions import MemoryBudgetError

LIMITS = 512, 1024, 2048  # MiB
FITS = (5_000, None), (15_000, None), (300_000, 15), (1_000_000, 15), (2_000_000, 15)


def run_one(n_points, n_neighbors, limit):
    HeatSketch(4, n_neighbors=n_neighbors).fit(manifold(2000, 16))  # compile
    X = manifold(n_points, 16)
    engine, result = LocalEngine(memory_limit=limit * 2**20), "done"
    forget_peak()  # of the compiling, and of the making of X
    before = memory("VmRSS")
    try:
        HeatSketch(32, power=2, n_neighbors=n_neighbors, engine=engine).fit(X)
    except MemoryBudgetError:
        result = "rejected"
    taken = max(0, memory("VmHWM") - before) / 2**20
    figures = {"MiB of the fit": round(taken), "over limit": round(taken / limit, 2)}
    print(json.dumps({"result": result} | figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=json.loads, help="[points, neighbours or null, MiB]")
    options = parser.parse_args()
    if options.one:
        return run_one(*options.one)
    rows = []
    for n_points, n_neighbors in FITS:
        for limit in LIMITS:
            one = json.dumps([n_points, n_neighbors, limit])
            call = [sys.executable, __file__, "--one", one]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            row = {"points": n_points, "n_neighbors": n_neighbors, "limit MiB": limit}
            rows.append(row | json.loads(done.stdout.splitlines()[-1]))
            write("limits", rows)  # each time: these are minutes
    return None


if __name__ == "__main__":
    main()
