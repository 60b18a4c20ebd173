"""Workers and drivers that die, by the dozen: every run is held against the local embedding.

``python benchmarks/chaos.py kills stops memory all drivers`` runs these parts; without names,
all of them, in hours. No run passes without comparing values.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import dask
import numpy as np
from data import manifold
from distributed import Client
from timing import read, write

from heatsketch import DaskEngine, HeatSketch
from heatsketch.engines._dask._connection import processes
from heatsketch.graph import neighbor_graph

PIECE = 4096
OPTIONS = {"metric": "precomputed", "power": 40, "weights": 0.5}


def graph(n_points, dtype="float32"):
    distances = neighbor_graph(manifold(n_points, 6).astype(dtype), n_neighbors=8)
    distances.data **= 0.5
    return distances


def runs(client):
    """Count the tasks that came to an end so far, those that are done again included."""
    return client.run_on_scheduler(
        lambda dask_scheduler: sum(
            prefix.state_counts["memory"] for prefix in dask_scheduler.task_prefixes.values()
        )
    )


def pids(client):
    """Return the processes of workers that work."""
    alive = set(client.nthreads())
    nannies = client.cluster.workers.values()
    return [nanny.process.pid for nanny in nannies if nanny.worker_address in alive]


def kill_one(client, rng):
    os.kill(int(rng.choice(pids(client))), signal.SIGKILL)


def kill_all(client, rng):
    for pid in pids(client):
        os.kill(pid, signal.SIGKILL)


def stop_one(client, rng):
    pid = int(rng.choice(pids(client)))
    os.kill(pid, signal.SIGSTOP)
    time.sleep(10)
    os.kill(pid, signal.SIGCONT)


def fill_memory(client, rng):
    """Let a worker take more memory than its nanny allows."""
    client.submit(_take_memory, pure=False, retries=0)


def _take_memory():
    blocks = [np.ones(2**27) for _ in range(64)]
    return len(blocks)


def harmed(harm, n_harms, seed, wanted, n_tasks, **limits):
    """Fit while harm is done at random moments; return whether all is well, and its price."""
    rng, done, distances = np.random.default_rng(seed), threading.Event(), graph(4 * PIECE)
    harms = []

    def work(client):
        for moment in np.sort(rng.uniform(0.05, 0.95, n_harms)) * n_tasks:
            while runs(client) < moment or not pids(client):
                if done.wait(0.02):
                    return
            harm(client, rng)
            harms.append(moment)

    with (
        tempfile.TemporaryDirectory() as folder,
        processes(2, silence_logs=50, **limits) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        thread = threading.Thread(target=work, args=(client,), daemon=True)
        thread.start()
        engine = DaskEngine(client, storage=folder, rows_per_block=PIECE, checkpoint_every=1)
        model = HeatSketch(8, **OPTIONS, engine=engine).fit(distances)
        done.set()
        thread.join()
        same = bool((model.embedding_.compute() == wanted).all())
        return {"same": same, "harms": len(harms), "tasks": runs(client)}


def under(harm, n_runs, n_harms, **limits):
    """Run the same fit many times under harm; runs that are in the file are not run again."""
    part = harm.__name__
    found = kept(part) or {"runs": []}
    wanted = HeatSketch(8, **OPTIONS).fit(graph(4 * PIECE)).embedding_
    if "tasks of a run" not in found:
        found["tasks of a run"] = harmed(harm, 0, 0, wanted, 0)["tasks"]
    n_tasks = found["tasks of a run"]
    for seed in range(len(found["runs"]), n_runs):
        found["runs"].append(harmed(harm, n_harms, seed, wanted, n_tasks, **limits))
        n_done = sum(run["harms"] for run in found["runs"])
        redone = sum(run["tasks"] - n_tasks for run in found["runs"])
        found["bit-identical"] = sum(run["same"] for run in found["runs"])
        found["harms"] = n_done
        found["tasks done again for each harm, share"] = redone / max(1, n_done) / n_tasks
        keep(part, found)
        print(part, found["runs"][-1], flush=True)


def kept(part):
    everything = read("chaos", {})
    return everything.get(part)


def keep(part, found):
    everything = read("chaos", {})
    write("chaos", {**everything, part: found}, quiet=True)


# Points, not a graph: so there are all stages.
N_POINTS, OF_POINTS = 40_000, {"n_neighbors": 8, "power": 40, "weights": 0.5}
DRIVER = """
import sys, numpy as np
sys.path.insert(0, {here!r})
import chaos
from distributed import Client
from heatsketch import DaskEngine, HeatSketch
if __name__ == "__main__":
    with chaos.processes(1) as cluster, Client(cluster, set_as_default=False) as client:
        engine = DaskEngine(client, storage={folder!r}, rows_per_block=20_000, checkpoint_every=1)
        model = HeatSketch(8, **chaos.OF_POINTS, engine=engine)
        model.fit(chaos.manifold(chaos.N_POINTS, 6))
        np.save({folder!r} + "/embedding.npy", model.embedding_.compute())
"""


def drivers():
    """Kill the driver after every line of its journal, and let it go on each time."""
    if kept("drivers"):
        return
    wanted = HeatSketch(8, **OF_POINTS).fit(manifold(N_POINTS, 6)).embedding_
    with tempfile.TemporaryDirectory() as folder:
        journal, deaths = Path(folder, "journal.jsonl"), 0
        script = Path(folder, "driver.py")
        script.write_text(DRIVER.format(here=str(Path(__file__).parent), folder=folder))
        while killed_after_a_line([sys.executable, script], journal):
            deaths += 1
        same = bool((np.load(Path(folder, "embedding.npy")) == wanted).all())
        lines = [line for line in journal.read_text().splitlines() if line]
    again = len(lines) - len(set(lines))
    found = {"deaths": deaths, "bit-identical": same, "lines": len(set(lines)), "again": again}
    keep("drivers", found)
    print("drivers", found, flush=True)


def killed_after_a_line(command, journal):
    """Start a driver, kill it when it has written a line, and say whether it came to that."""

    def n_lines():
        return journal.read_text().count("\n") if journal.exists() else 0

    before = n_lines()
    driver = subprocess.Popen(command, start_new_session=True)
    while driver.poll() is None and n_lines() == before:
        time.sleep(0.01)
    if driver.poll() is not None:
        return False
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    return True


PARTS = {
    "kills": lambda: under(kill_one, ARGUMENTS.runs, ARGUMENTS.harms),
    "all": lambda: under(kill_all, ARGUMENTS.runs, 3),
    "stops": lambda: under(stop_one, ARGUMENTS.runs, 2),
    "memory": lambda: under(fill_memory, ARGUMENTS.runs, 2, memory_limit=2**30),
    "drivers": drivers,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--harms", type=int, default=20)
    ARGUMENTS = parser.parse_args()
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    for part in ARGUMENTS.parts or PARTS:
        PARTS[part]()
