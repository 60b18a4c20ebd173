"""A cluster of processes on this machine: same distances, bounded memory, little overhead.

``python benchmarks/cluster.py spread whole overhead messages`` runs these parts; rows that are
in the file are not run again, and a fit that was killed goes on. The folder that they work in is
under the environment variable ``SCRATCH``, and is deleted afterwards.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from data import manifold
from distributed import Client, wait
from scipy import sparse
from timing import memory, read, seconds, write

from heatsketch import DaskEngine, HeatSketch
from heatsketch._core.partitioned import over_rows
from heatsketch.diffusion import HeatOperator, gaussian_matrix
from heatsketch.engines._dask._connection import processes

N_NEIGHBORS, N_COMPONENTS, POWER = 15, 32, 8
DEFAULT = {"spread": 1_000_000, "whole": 10_000_000}
GIB = 2**30


def local_cluster():
    return processes(2, memory_limit=6 * GIB, silence_logs=50)


def keep(part, row, found):
    """Write what was found, row by row: a run that was killed continues with the next."""
    everything = kept()
    everything.setdefault(part, {})[row] = found
    write("cluster", everything, quiet=True)
    print(part, row, found, flush=True)


def kept(part=None):
    everything = read("cluster", {})
    return everything if part is None else everything.get(part, {})


def sketch(**options):
    return HeatSketch(N_COMPONENTS, n_neighbors=N_NEIGHBORS, power=POWER, **options)


def spread(folder, n_points=1_000_000):
    """Distances from the graph of the cluster over those from the local graph, with the same G."""
    X = manifold(n_points, 16)
    start = perf_counter()
    Y = sketch().fit(X).embedding_
    local = perf_counter() - start
    with local_cluster() as cluster, Client(cluster) as client:
        start = perf_counter()
        Z = sketch(engine=DaskEngine(client, storage=folder)).fit(X).embedding_.compute()
        took = perf_counter() - start
    i, j = np.random.default_rng(0).permutation(n_points).reshape(2, -1)
    ours, wanted = np.linalg.norm(Z[i] - Z[j], axis=1), np.linalg.norm(Y[i] - Y[j], axis=1)
    found = {
        "spread": float(np.std(ours / wanted)),
        "bit-identical": bool((Z == Y).all()),
        "seconds": took,
        "seconds of one process with 2 threads": local,
    }
    keep("spread", str(n_points), found)


def write_points(path, n_points):
    """Write a manifold to a zarr folder, a million points at a time."""
    from heatsketch.io import Block, table_writer

    X = manifold(n_points, 16)
    with table_writer(path, [f"x{i}" for i in range(16)], dtype=np.float32) as writer:
        for first in range(0, n_points, 1_000_000):
            writer.append(Block(X[first : first + 1_000_000]))


def of_workers(client):
    """Return the peak memory of each worker, and what all have sent: to others, and elsewhere."""

    def look(dask_worker):
        log = [(entry["who"], entry["total"]) for entry in dask_worker.transfer_outgoing_log]
        return memory_of_worker(), dask_worker.transfer_outgoing_bytes_total, log

    found = client.run(look)
    return {
        "peaks of the workers, GiB": [peak / GIB for peak, _, _ in found.values()],
        "bytes sent": sum(total for _, total, _ in found.values()),
        "bytes to the client, as far as logged": sum(
            size for _, _, log in found.values() for who, size in log if who not in found
        ),
    }


def whole(folder, n_points=10_000_000):
    """From a zarr store to an embedding, with every process under its limit."""
    path = Path(os.environ.get("POINTS", Path(folder, "points.zarr")))  # may be there already
    here = Path(__file__).parent
    if not path.exists():
        made = f"import cluster; cluster.write_points({str(path)!r}, {n_points})"
        subprocess.run([sys.executable, "-c", made], cwd=here, check=True)
    with local_cluster() as cluster, Client(cluster) as client:
        # A process of its own, so that workers that are restarted do not have its limit.
        call = f"cluster.as_client({cluster.scheduler_address!r}, {str(path)!r}, {str(folder)!r})"
        fit = subprocess.run(
            [sys.executable, "-c", f"import cluster; {call}"],
            cwd=here,
            check=True,
            stdout=subprocess.PIPE,
        )
        keep("whole", str(n_points), {**json.loads(fit.stdout), **of_workers(client)})


def as_client(address, path, folder):
    """Fit with a gigabyte: what lies beyond ends this process, and a nanny ends a worker."""
    resource.setrlimit(resource.RLIMIT_DATA, (GIB, GIB))
    start = perf_counter()
    model = sketch(engine=DaskEngine(address, storage=Path(folder, "run"))).fit(path)
    found = {
        "seconds": perf_counter() - start,
        "peak of the client, GiB": memory("VmHWM") / GIB,
        "shape": list(model.embedding_.shape),
        "first rows finite": bool(np.isfinite(model.embedding_[:1000].compute()).all()),
    }
    print(json.dumps(found))


def memory_of_worker():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def near_diagonal(n_points, n_entries=17, reach=5000):
    """Rows like those of a graph in list order: a few entries, not far from the diagonal."""
    rng = np.random.default_rng(0)
    indices = np.arange(n_points)[:, np.newaxis] + rng.integers(-reach, reach, (1, n_entries))
    indices = np.sort(np.clip(indices, 0, n_points - 1), axis=1).astype(np.int32)
    data = np.full(indices.size, 1 / n_entries, np.float32)
    indptr = np.arange(n_points + 1, dtype=np.int32) * n_entries
    return sparse.csr_array((data, indices.ravel(), indptr), shape=(n_points, n_points))


def steps(A, block, count):
    coefficients = A.stationary_coefficients(block)
    for _ in range(count):
        block, coefficients = A.step(block, coefficients)
    return block


def cluster_steps(folder, client, K, n_blocks, n_columns, count):
    """Return a function that takes steps on the cluster and waits for them, and a local one."""
    from heatsketch.engines._dask._operator import BlockHeatOperator

    rows = -(-K.shape[0] // n_blocks)
    engine = DaskEngine(client, storage=folder, rows_per_block=rows, checkpoint_every=1000)
    with engine.working() as session:
        blocks = session.hold(K)
        ones = session.hold_vector(np.ones(K.shape[0], K.dtype), blocks)
        A = BlockHeatOperator(blocks, ones, ones, float(K.shape[0]))
        ids = session.hold_vector(np.arange(K.shape[0]), blocks)
        make = partial(gaussian_matrix, n_columns=n_columns, seed=0, dtype=K.dtype)
        G = client.persist(over_rows(make, ids, n_columns))
        wait(G)

    local = HeatOperator(K, None, np.ones(K.shape[0], K.dtype))
    block = make(K.shape[0])
    return lambda: wait(steps(A, G, count)), lambda: steps(local, block, count)


def overhead(folder, n_points=4_000_000, n_pairs=31):
    """Products on the cluster against one process with 2 threads, in turn."""
    pairs, controls = [], []
    with local_cluster() as cluster, Client(cluster) as client:
        far, near = cluster_steps(folder, client, near_diagonal(n_points), 2, N_COMPONENTS, POWER)
        far(), near()
        for i in range(n_pairs):
            both = [seconds(far), seconds(near)] if i % 2 else [seconds(near), seconds(far)][::-1]
            pairs.append(both[0] / both[1])
            controls.append(seconds(near) / seconds(near))
            found = {
                "cluster / one process with 2 threads": statistics.median(pairs),
                "control: one process / itself": statistics.median(controls),
                "all ratios": pairs,
            }
            keep("overhead", str(n_points), found)


def messages(folder, n_points=8 * 4096):
    """What a step costs where there is hardly anything to compute."""
    with local_cluster() as cluster, Client(cluster) as client:
        for n_blocks in (2, 4, 8):
            far, _ = cluster_steps(folder, client, near_diagonal(n_points), n_blocks, 1, 32)
            far()
            keep("messages", f"seconds a step, {n_blocks} blocks", seconds(far) / 32)


PARTS = {
    "spread": spread,
    "whole": whole,
    "overhead": overhead,
    "messages": messages,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--n-points", type=float)
    arguments = parser.parse_args()
    options = {} if arguments.n_points is None else {"n_points": int(arguments.n_points)}
    for part in arguments.parts:
        size = str(options.get("n_points", DEFAULT.get(part)))
        if part in DEFAULT and size in kept(part):
            continue
        # Always the same folder: a fit that was killed goes on from there.
        folder = Path(os.environ.get("SCRATCH", tempfile.gettempdir()), f"heatsketch-{part}")
        folder.mkdir(parents=True, exist_ok=True)
        PARTS[part](folder, **options)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
