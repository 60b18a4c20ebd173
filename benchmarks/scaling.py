"""Time and memory of ``HeatSketch().fit(X)`` from 1e5 to 1e7 points; and their picture.

Each size has a process of its own.
"""

import argparse
import json
import subprocess
import sys
from time import perf_counter

import numpy as np
from data import manifold
from timing import RESULTS, memory, read, write

from heatsketch import HeatSketch, estimate_memory

SIZES = 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000
N_FEATURES = 16


def run_one(n_points):
    before = memory("VmRSS")  # what a first fit loads and compiles is its own
    HeatSketch().fit(manifold(60_000, N_FEATURES))  # compile
    X = manifold(n_points, N_FEATURES)
    start = perf_counter()
    model = HeatSketch().fit(X)
    took = perf_counter() - start
    assert np.isfinite(model.embedding_).all()
    print(json.dumps({
        "points": n_points,
        "seconds": round(took, 1),
        "microseconds a point": round(1e6 * took / n_points, 1),
        "process GiB": round(memory("VmHWM") / 2**30, 2),
        "fit GiB": round((memory("VmHWM") - before - X.nbytes) / 2**30, 3),
        "products": model.sketch_.times.n_products,
        "probes": model.graph_.rule.neighbors.lists.probes.shape[1],
    }))  # fmt: skip


def draw(rows):
    import matplotlib.pyplot as plt

    points = [row["points"] for row in rows]
    plt.style.use("heatsketch.plot.heatsketch")
    figure, (time, memory) = plt.subplots(1, 2, figsize=(10, 4))
    time.loglog(points, [row["seconds"] for row in rows], "o-", color="#0072B2")
    time.set(xlabel="points", ylabel="time, s", title="Time of a fit, 2 cores")
    memory.loglog(points, [row["fit GiB"] for row in rows], "o-", color="#D55E00", label="measured")
    memory.loglog(points, [row["predicted GiB"] for row in rows], "k--", label="predicted")
    memory.set(xlabel="points", ylabel="memory, GiB", title="Peak memory besides X")
    memory.legend()
    for axes in (time, memory):
        axes.grid(visible=True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    for row, offset, side in ((rows[0], (12, -4), "left"), (rows[-1], (-14, -4), "right")):
        text = f"{row['microseconds a point']:.0f} μs a point"
        place = row["points"], row["seconds"]
        time.annotate(text, place, xytext=offset, textcoords="offset points", ha=side, fontsize=10)
    figure.savefig(RESULTS / "scaling.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--draw", action="store_true", help="draw the results that are there")
    options = parser.parse_args()
    if options.points:
        return run_one(options.points)
    if not options.draw:
        known = {row["points"]: row for row in read("scaling", [])}
        for n_points in options.sizes:
            call = [sys.executable, __file__, "--points", str(n_points)]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1])
            wanted = estimate_memory(n_points, N_FEATURES)
            row["predicted GiB"] = round(wanted / 2**30, 3)
            print(row, flush=True)
            known[n_points] = row
        write("scaling", [known[n_points] for n_points in sorted(known)])
    return draw(read("scaling"))


if __name__ == "__main__":
    main()
