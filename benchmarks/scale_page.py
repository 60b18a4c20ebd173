"""Write the tables of docs/how_to/scale.md: a fit of 1e9 points, and of 1e10, stage by stage.

``--calibrate`` makes the short run first, on a quiet machine, and keeps it in
``docs/benchmarks/cluster-calibration.json``.
"""

import argparse
import re

from timing import RESULTS, read, write

from heatsketch.cli._cluster_cost import Calibration, Job, calibrate, forecast
from heatsketch.cli._options import readable_seconds

PAGE = RESULTS.parent / "how_to" / "scale.md"
JOBS = (
    Job(10**9, 128, 64, n_workers=64, n_threads=8),
    Job(10**10, 128, 64, n_workers=640, n_threads=8),
)


def size(number):
    return f"{number / 2**40:.1f} TiB" if number >= 2**40 else f"{number / 2**30:.1f} GiB"


def table(job):
    found = forecast(job, Calibration(**read("cluster-calibration")))
    lines = [
        f"{job.n_points:.0e} points, d = {job.n_features}, k = {job.n_components}, "
        f"p = {job.power}, {job.n_workers} workers of {job.n_threads} cores:\n",
        "| stage | moved, all workers | tasks | memory of a worker | time |",
        "|---|---|---|---|---|",
    ]
    for stage in found.stages:
        moved, memory = size(stage.bytes_moved), size(stage.bytes_per_worker)
        cells = stage.stage, moved, f"{stage.tasks:.0f}", memory, readable_seconds(stage.seconds)
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"\nA product moves {size(found.bytes_per_step)} between workers.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true")
    if parser.parse_args().calibrate:
        write("cluster-calibration", calibrate(JOBS[0])._asdict())
    tables = "\n\n".join(map(table, JOBS))
    marks = "<!-- made by benchmarks/scale_page.py -->", "<!-- until here -->"
    inside = re.compile(f"{marks[0]}.*?{marks[1]}", re.DOTALL)
    PAGE.write_text(inside.sub(f"{marks[0]}\n\n{tables}\n\n{marks[1]}", PAGE.read_text()))
    print(tables)


if __name__ == "__main__":
    main()
