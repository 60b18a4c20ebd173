"""A cluster of processes on this machine: same distances, bounded memory, little overhead.

``python benchmarks/cluster.py spread whole overhead`` runs these parts, each of them alone; the
folder that they work in is the environment variable ``SCRATCH``, and is deleted afterwards.
"""

import argparse
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
from distributed import Client, LocalCluster, wait
from scipy import sparse
from timing import RESULTS, memory, read, seconds, write

from heatsketch import DaskEngine, HeatOperator, HeatSketch, gaussian_block
from heatsketch.row_blocks import over_rows

N_NEIGHBORS, N_COMPONENTS, POWER = 15, 32, 8
GIB = 2**30


def local_cluster(n_workers=2, memory_limit=6 * GIB):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=memory_limit,
    )


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
    return {
        "points": n_points,
        "spread": float(np.std(ours / wanted)),
        "bit-identical": bool((Z == Y).all()),
        "seconds": took,
        "seconds of one process with 2 threads": local,
    }


def write_points(path, n_points):
    """Write a manifold to a zarr folder, a million points at a time."""
    from heatsketch.files import Block, table_writer

    with table_writer(path, [f"x{i}" for i in range(16)], dtype=np.float32) as writer:
        for first in range(0, n_points, 1_000_000):
            writer.append(Block(manifold(min(1_000_000, n_points - first), 16, seed=first + 1)))


def sent_elsewhere(client):
    """Bytes that workers sent to anybody but workers: the client, in the end."""

    def outgoing(dask_worker):
        return [(entry["who"], entry["total"]) for entry in dask_worker.transfer_outgoing_log]

    logs = client.run(outgoing)
    among = sum(size for log in logs.values() for who, size in log if who in logs)
    others = sum(size for log in logs.values() for who, size in log if who not in logs)
    return {"bytes between workers, as far as logged": among, "bytes to the client": others}


def whole(folder, n_points=10_000_000):
    """From a zarr store to an embedding, with every process under its limit."""
    path = Path(os.environ.get("POINTS", Path(folder, "points.zarr")))  # may be there already
    if not path.exists():
        made = f"import cluster; cluster.write_points({str(path)!r}, {n_points})"
        subprocess.run([sys.executable, "-c", made], cwd=Path(__file__).parent, check=True)
    with local_cluster() as cluster, Client(cluster) as client:
        # What lies beyond ends the client with a MemoryError; a nanny ends a worker.
        resource.setrlimit(resource.RLIMIT_DATA, (GIB, GIB))
        start = perf_counter()
        engine = DaskEngine(client, storage=Path(folder, "run"))
        model = sketch(engine=engine).fit(path)
        took = perf_counter() - start
        peaks = client.run(lambda: memory_of_worker())
        sent = sent_elsewhere(client)
    return {
        "points": n_points,
        "seconds": took,
        "peak of the client and scheduler, GiB": memory("VmHWM") / GIB,
        "peaks of the workers, GiB": [peak / GIB for peak in peaks.values()],
        "shape": list(model.embedding_.shape),
        "first rows finite": bool(np.isfinite(model.embedding_[:1000].compute()).all()),
        **sent,
    }


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
        ones = session.hold(np.ones(K.shape[0], K.dtype))
        A = BlockHeatOperator(session.hold(K), ones, ones, float(K.shape[0]))
        ids = session.hold(np.arange(K.shape[0]))
        make = partial(gaussian_block, n_columns=n_columns, seed=0, dtype=K.dtype)
        G = client.persist(over_rows(make, ids, n_columns))
        wait(G)

    local = HeatOperator(K, None, np.ones(K.shape[0], K.dtype))
    block = make(K.shape[0])
    return lambda: wait(steps(A, G, count)), lambda: steps(local, block, count)


def overhead(folder, n_points=4_000_000, n_pairs=5):
    """Products on the cluster against one process with 2 threads, in turn; and messages."""
    found = {"points": n_points, "columns": N_COMPONENTS, "steps": POWER}
    with local_cluster() as cluster, Client(cluster) as client:
        K = near_diagonal(n_points)
        far, near = cluster_steps(folder, client, K, 2, N_COMPONENTS, POWER)
        far(), near()
        pairs = []
        for i in range(n_pairs):
            both = [seconds(far), seconds(near)] if i % 2 else [seconds(near), seconds(far)][::-1]
            pairs.append(both[0] / both[1])
        found["cluster / one process with 2 threads"] = statistics.median(pairs)
        found["all ratios"] = pairs
        found["control: one process / itself"] = seconds(near) / seconds(near)
        del far, near
        K = near_diagonal(8 * 4096)
        for n_blocks in (2, 4, 8):
            far, _ = cluster_steps(folder, client, K, n_blocks, 1, 32)
            far()
            found[f"seconds of messages a step, {n_blocks} blocks"] = seconds(far) / 32
    return found


PARTS = {"spread": spread, "whole": whole, "overhead": overhead}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--n-points", type=float)
    arguments = parser.parse_args()
    for part in arguments.parts:
        folder = tempfile.mkdtemp(dir=os.environ.get("SCRATCH"))
        try:
            options = {} if arguments.n_points is None else {"n_points": int(arguments.n_points)}
            found = PARTS[part](folder, **options)
        finally:
            shutil.rmtree(folder)
        before = read("cluster") if (RESULTS / "cluster.json").exists() else {}
        write("cluster", {**before, part: found})
