"""A million rows by the command line: progress, the memory estimated, and the API's bits.

Ends with 1 if no progress was shown, more than 1.25 of the memory estimated was used, or a bit of
the embedding differs from that of ``HeatSketch().fit(X)``.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import manifold

from heatsketch import HeatSketch, load
from heatsketch.io import open_table

N_COMPONENTS = 32
MOST = 1.25  # of the memory estimated


def written(X, path):
    """Write points with ids and labels, which are no part of the embedding."""
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    columns |= {"id": np.arange(len(X)), "kind": np.arange(len(X)) % 7}
    pq.write_table(pa.table(columns), path)


def embedded(folder):
    """Run the command; return its reply, the lines of its progress, and its highest memory."""
    command = [sys.executable, "-m", "heatsketch", "embed", "points.parquet", "-o", "rows.parquet"]
    command += ["--model", "model.heatsketch", "--ids", "id", "--labels", "kind"]
    command += ["--components", str(N_COMPONENTS), "--json", "--progress"]
    with Path(folder, "stderr").open("w+") as stderr:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=stderr)
        reply = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        lines = stderr.read().splitlines()
    if process.returncode:
        sys.exit(f"exit code {process.returncode}: {reply.decode()} {lines}")
    shown = [line for line in lines if line.startswith("heatsketch: ") and "%" in line]
    return json.loads(reply), shown, usage.ru_maxrss * 1024


def differences(folder, X):
    """Count the numbers of the output, and of the model, that are not those of the API."""
    wanted = HeatSketch(N_COMPONENTS).fit(X).embedding_
    found, ids, labels = open_table(Path(folder, "rows.parquet"), ids="id", labels=["kind"]).read()
    in_model = load(Path(folder, "model.heatsketch")).embedding_
    carried = np.sum(ids != np.arange(len(X))) + np.sum(labels["kind"] != np.arange(len(X)) % 7)
    return int(np.sum(found != wanted) + np.sum(in_model != wanted) + carried)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=16)
    options = parser.parse_args()
    X = manifold(options.points, options.features)
    with TemporaryDirectory() as folder:
        written(X, Path(folder, "points.parquet"))
        start = perf_counter()
        reply, shown, peak = embedded(folder)
        took = perf_counter() - start
        results = {
            "points": options.points,
            "features": options.features,
            "components": N_COMPONENTS,
            "seconds": round(took, 1),
            "lines of progress": len(shown),
            "estimated MiB": round(reply["estimated_bytes"] / 2**20),
            "highest MiB": round(peak / 2**20),
            "highest / estimated": round(peak / reply["estimated_bytes"], 3),
            "numbers that differ from the API's": differences(folder, X),
        }
    print("\n".join(["some of the progress:", *shown[:: max(1, len(shown) // 10)]]))
    print(json.dumps(results, indent=1))
    wrong = results["numbers that differ from the API's"] or results["highest / estimated"] > MOST
    return int(bool(wrong or (took > 10 and not shown)))


if __name__ == "__main__":
    sys.exit(main())
