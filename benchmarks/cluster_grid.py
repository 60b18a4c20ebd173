"""The embedding of a cluster is bit-identical to that of one process: the whole grid.

All numbers of workers and blocks, both normalizations, three powers (the largest by Chebyshev
polynomials), both dtypes, and new points. Rows that are in the file already are not run again.
"""

import itertools
import tempfile
from functools import cache

import numpy as np
from data import web
from distributed import Client
from timing import read, write

from heatsketch import DaskEngine, HeatSketch
from heatsketch._core.partitioned import PIECE
from heatsketch.engines._dask._connection import processes

# Points, and rows of a block, for each number of blocks: blocks begin at multiples of PIECE.
SHAPES = {
    1: (6 * PIECE + 77, 7 * PIECE),
    3: (6 * PIECE + 77, 3 * PIECE),
    7: (6 * PIECE + 77, PIECE),
    16: (15 * PIECE + 77, PIECE),
}
CHOICES = tuple(itertools.product(SHAPES, ("symmetric", "bistochastic"), (1, 8, 64), ("f4", "f8")))


def options(normalization, power):
    # A narrow bandwidth: few sweeps until rows sum to one.
    return {"metric": "precomputed", "weights": 0.2, "power": power, "normalization": normalization}


@cache
def wanted(n_points, normalization, power, dtype):
    """Return the embedding of one process, and that of some rows as new points."""
    distances = web(n_points, dtype)
    model = HeatSketch(4, **options(normalization, power)).fit(distances)
    return model.embedding_, model.transform(distances[::1000])


def row(client, n_blocks, normalization, power, dtype):
    n_points, rows_per_block = SHAPES[n_blocks]
    distances = web(n_points, dtype)
    with tempfile.TemporaryDirectory() as folder:
        engine = DaskEngine(client, storage=folder, rows_per_block=rows_per_block)
        model = HeatSketch(4, **options(normalization, power), engine=engine).fit(distances)
        found = model.embedding_.compute(), model.transform(distances[::1000])
    same = map(np.array_equal, found, wanted(n_points, normalization, power, dtype))
    return {
        "blocks": model.embedding_.numblocks[0],
        "embedding is the same": next(same),
        "transform is the same": next(same),
    }


def main():
    done = read("cluster-grid", {})
    for n_workers in (1, 2, 4):
        with (
            processes(n_workers, silence_logs=50) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            for choice in CHOICES:
                name = f"{n_workers} workers, {choice[0]} blocks, {choice[1]}, p = {choice[2]}, "
                name += np.dtype(choice[3]).name
                if name not in done:
                    done[name] = row(client, *choice)
                    write("cluster-grid", done, quiet=True)
                    print(name, done[name], flush=True)
    assert all(found["blocks"] == int(name.split()[2]) for name, found in done.items())
    assert all(list(found.values())[1:] == [True, True] for found in done.values())


if __name__ == "__main__":
    main()
