"""Cost model of a fit on a cluster; write the tables of docs/how_to/scale.md with it.

``--calibrate`` measures the stages again, on a quiet machine, and keeps them in
``docs/benchmarks/cluster-calibration.json``; ``--check`` compares the forecast with fits of this
machine.

A stage takes a fixed time and a time for each point. Both are measured in two short fits on local
processes, with the requested columns and neighbours. Points are divided between all threads, while
tasks pass through one scheduler. Workers exchange the halo of each block, which grows like a power
of its rows, as a surface does with a volume, as long as there are enough other rows.
"""

import argparse
import math
import os
import re
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from data import manifold
from timing import RESULTS, read, write

from heatsketch import DaskEngine, HeatSketch
from heatsketch._core.memory import UNION, neighbors_bytes
from heatsketch._core.partitioned import CHUNK_BYTES, rows_of_blocks
from heatsketch._core.progress import reporting_to
from heatsketch.graph._ivf import POINTS_PER_LIST, SAMPLE_PER_LIST, tree_height

PAGE = RESULTS.parent / "how_to" / "scale.md"
STAGES = (
    "reading",
    "lists",
    "partition",
    "search",
    "symmetrising",
    "normalization",
    "products",
    "output",
)
MOST_SEEN = 0.999  # share of other rows; a sample that includes all may be of any size
TASK = (
    2.5e-3  # seconds that a task takes the scheduler and a worker: benchmarks/cluster.py messages
)
N_VECTORS = 8  # vectors whose halos are exchanged for the normalization
PROGRAM = 250 * 2**20  # an idle worker
SAMPLE = SAMPLE_PER_LIST / POINTS_PER_LIST  # share of the points used to build inverted lists


class Job(NamedTuple):
    """Problem size and cluster size.

    ``network`` is the bandwidth of a worker in bytes per second: 10 gigabits by default.
    ``memory`` is the memory limit of a worker, from which the engine sets the size of blocks; None
    for no limit.
    """

    n_points: int
    n_features: int
    n_components: int = 64
    power: int = 8
    n_neighbors: int = 15
    itemsize: int = 4
    n_workers: int = 2
    n_threads: int = 1
    network: float = 1.25e9
    memory: float | None = None

    @property
    def rows(self) -> int:
        """Rows of a block."""
        point = self.n_features * self.itemsize
        return rows_of_blocks(self.n_points, self.n_workers, self.memory, point)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n_points // self.rows)

    @property
    def points(self) -> float:
        """Bytes of all points."""
        return self.n_points * self.n_features * self.itemsize

    @property
    def edges(self) -> float:
        """Bytes of the graph."""
        return UNION * self.n_points * self.n_neighbors * (4 + self.itemsize)

    @property
    def branches(self) -> float:
        """Branches of the tree of inverted lists; each is built by a task."""
        return (self.n_points / POINTS_PER_LIST) ** (1 / max(1, tree_height(self.n_points)))


class Calibration(NamedTuple):
    """Measurements on this machine.

    Attributes
    ----------
    fixed, per_point : mappings of stages to seconds
        With ``n_threads`` threads in all.
    n_threads : int
    halo : pair of floats
        Factor and exponent: a block of m rows needs as many distinct rows of other blocks as
        ``factor * m**exponent`` draws from all of these contain.
    neighbor_blocks : float
        Number of other blocks whose rows a block needs, if there are many blocks.
    """

    fixed: Mapping[str, float]
    per_point: Mapping[str, float]
    n_threads: int
    halo: tuple[float, float]
    neighbor_blocks: float


class StageForecast(NamedTuple):
    """Cost of one stage: totals over all workers, and memory of the fullest one."""

    stage: str
    seconds: float
    bytes_moved: float
    tasks: float
    bytes_per_worker: float


class ClusterForecast(NamedTuple):
    """Cost of a fit on a cluster, and the bytes sent between workers for a product."""

    stages: tuple[StageForecast, ...]
    bytes_per_step: float


def readable_seconds(seconds):
    """Format a duration for display."""
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def forecast(job: Job, calibration: Calibration) -> ClusterForecast:
    r"""Predict the cost of a fit on a cluster.

    The time of a stage is :math:`a + b N / threads + c \cdot tasks`, and that of the bytes moved.

    """
    halo = halo_rows(job, calibration)
    sent = _rows_sent(job, halo)
    step = sent * job.n_components * job.itemsize
    moved, tasks, memory = _moved(job, sent, step), _tasks(job, calibration), _memory(job, halo)
    stages = []
    for stage in STAGES:
        share = calibration.n_threads / (job.n_workers * job.n_threads)
        seconds = (
            calibration.fixed[stage]
            + calibration.per_point[stage] * job.n_points * share
            + TASK * tasks[stage]
            + moved[stage] / (job.n_workers * job.network)
        )
        stages.append(StageForecast(stage, seconds, moved[stage], tasks[stage], memory[stage]))
    return ClusterForecast(tuple(stages), step)


def halo_rows(job: Job, calibration: Calibration) -> float:
    """Return the number of rows of other blocks that a block needs."""
    factor, exponent = calibration.halo
    others = job.n_points - job.rows
    return _different(factor * job.rows**exponent, others) if others else 0.0


def _rows_sent(job: Job, halo: float) -> float:
    """Return the number of rows sent between workers, for one halo of each block."""
    of_worker = job.blocks / job.n_workers
    elsewhere = (job.blocks - of_worker) / max(1, job.blocks - 1)
    return job.blocks * halo * elsewhere


def _different(n_draws: float, n_rows: float) -> float:
    """Return the expected number of distinct rows in draws with replacement."""
    return -n_rows * math.expm1(-n_draws / n_rows)


def _draws(n_different: float, n_rows: float) -> float:
    """Return the number of draws that contain so many distinct rows."""
    return -n_rows * math.log1p(-min(n_different / n_rows, MOST_SEEN))


def _moved(job: Job, sent: float, step: float) -> dict[str, float]:
    """Return the bytes moved over the network or through storage, by stage."""
    return {
        "reading": job.points,
        "lists": 5 * SAMPLE * job.points,
        "partition": 3 * job.points,
        "search": 2 * job.points,
        "symmetrising": 3 * job.edges,
        "normalization": 3 * job.edges + N_VECTORS * 8 * sent,
        "products": job.edges + job.power * step,
        "output": 3 * job.n_points * job.n_components * job.itemsize,
    }


def _tasks(job: Job, calibration: Calibration) -> dict[str, float]:
    chunks = max(1, math.ceil(job.points / CHUNK_BYTES))
    blocks = job.blocks
    step = blocks * (4 + min(blocks - 1, calibration.neighbor_blocks)) + 1
    return {
        "reading": chunks,
        "lists": 3 * chunks + job.branches + 3,
        "partition": chunks + blocks + 1,
        "search": blocks,
        "symmetrising": blocks,
        "normalization": 6 * step,
        "products": (job.power + 2) * step,
        "output": 4 * blocks,
    }


def _memory(job: Job, halo: float) -> dict[str, float]:
    """Return the memory of the fullest worker: its share, and its working memory."""
    points, edges = job.points / job.n_workers, job.edges / job.n_workers
    tree, chunks = job.points / POINTS_PER_LIST, 3 * min(CHUNK_BYTES, job.points) * job.n_threads
    branches = min(job.n_threads, math.ceil(job.branches / job.n_workers)) / job.branches
    of_worker = math.ceil(job.blocks / job.n_workers)
    row = job.n_components * job.itemsize
    columns, halos = row * job.n_points / job.n_workers, row * halo * of_worker
    needed = {
        "reading": chunks,
        "lists": max(chunks, 3 * SAMPLE * job.points * branches, 2 * tree),
        "partition": max(chunks + tree, 3 * points),
        "search": min(job.n_threads, of_worker) * _search_bytes(job),
        "symmetrising": 4 * edges,
        "normalization": 4 * edges,
        "products": 2 * edges + 4 * columns + halos,
        "output": 2 * edges + 3 * columns,
    }
    return {stage: PROGRAM + size for stage, size in needed.items()}


def _search_bytes(job: Job) -> float:
    """Return the memory of the search in a block: local fit, points and links."""
    options = job.n_features, 1, job.n_neighbors, f"f{job.itemsize}"
    found = 4 * job.n_neighbors * (4 + job.itemsize)
    return neighbors_bytes(job.rows, *options) + job.rows * (job.points / job.n_points + found)


# --- calibration ------------------------------------------------------------------------------

SIZES = 60_000, 180_000  # points of the two runs


def calibrate(job: Job) -> Calibration:
    """Measure the stages of fits to two numbers of points on local processes."""
    few, many = SIZES
    # First without a cluster, for the halos and as a warm-up.
    model = _sketch(job).fit(manifold(few, job.n_features))
    halo, neighbor_blocks = halo_law(model.graph_.operator.matrix)
    seconds = {size: _stage_seconds(job, manifold(size, job.n_features)) for size in SIZES}
    per_point = {
        stage: max(0.0, (seconds[many][stage] - seconds[few][stage]) / (many - few))
        for stage in STAGES
    }
    fixed = {stage: max(0.0, seconds[few][stage] - per_point[stage] * few) for stage in STAGES}
    return Calibration(fixed, per_point, os.cpu_count() or 1, halo, neighbor_blocks)


def _sketch(job: Job, **options: Any) -> HeatSketch:
    options |= {"power": job.power, "n_neighbors": job.n_neighbors}
    return HeatSketch(job.n_components, **options)


def _stage_seconds(job: Job, X: np.ndarray) -> dict[str, float]:
    """Fit on a local cluster, and return the seconds of each stage."""
    with TemporaryDirectory() as folder:
        model = _sketch(job, engine=DaskEngine(storage=folder))
        watch = StageWatch()
        with reporting_to(watch):
            model.fit(X)
        return watch.seconds()


class StageWatch:
    """Progress callback that records when stages begin; stages do not recur."""

    def __init__(self) -> None:
        self.begun = {STAGES[0]: perf_counter()}

    def __call__(self, name: str, n_steps: int) -> Callable[[], None]:
        """Record the start of a stage."""
        stage = name if name in STAGES else "products"
        if STAGES.index(stage) >= max(map(STAGES.index, self.begun)):
            self.begun.setdefault(stage, perf_counter())
        return lambda: None

    def seconds(self) -> dict[str, float]:
        """Return the duration of each stage; the last one ends now."""
        moments = [*self.begun.values(), perf_counter()]
        taken = dict(zip(self.begun, np.diff(moments).tolist(), strict=True))
        return {stage: taken.get(stage, 0.0) for stage in STAGES}


def halo_law(matrix: Any) -> tuple[tuple[float, float], float]:
    """Return factor and exponent of halo sizes, and number of neighbour blocks."""
    sizes, halos, others = [], [], 0.0
    for n_blocks in (4, 8, 16):
        rows = -(-matrix.shape[0] // n_blocks)
        inner = range(rows, matrix.shape[0] - rows, rows)  # the first and the last have one side
        columns = [np.unique(matrix[start : start + rows].indices) for start in inner]
        outside = [
            ids[(ids < start) | (ids >= start + rows)]
            for ids, start in zip(columns, inner, strict=True)
        ]
        sizes.append(rows)
        n_others = matrix.shape[0] - rows
        halos.append(max(1.0, _draws(float(np.mean([len(ids) for ids in outside])), n_others)))
        others = float(np.mean([len(np.unique(ids // rows)) for ids in outside]))
    exponent, constant = np.polyfit(np.log(sizes), np.log(halos), 1)
    return (float(np.exp(constant)), float(exponent)), others


# --- the page ---------------------------------------------------------------------------------

JOBS = (
    Job(10**9, 128, 64, n_workers=64, n_threads=8),
    Job(10**10, 128, 64, n_workers=640, n_threads=8),
)


def table(job: Job, calibration: Calibration) -> str:
    """Return the forecast of a job, stage by stage."""
    cost = forecast(job, calibration)
    lines = [
        f"{job.n_points:.0e} points, d = {job.n_features}, k = {job.n_components}, "
        f"p = {job.power}, {job.n_workers} workers of {job.n_threads} cores:\n",
        "| stage | moved, all workers | tasks | memory of a worker | time |",
        "|---|---|---|---|---|",
    ]
    for stage in cost.stages:
        moved, memory = _size(stage.bytes_moved), _size(stage.bytes_per_worker)
        cells = stage.stage, moved, f"{stage.tasks:.0f}", memory, readable_seconds(stage.seconds)
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"\nA product moves {_size(cost.bytes_per_step)} between workers.")
    return "\n".join(lines)


def _size(number: float) -> str:
    return f"{number / 2**40:.1f} TiB" if number >= 2**40 else f"{number / 2**30:.1f} GiB"


def check(sizes: tuple[int, ...] = (300_000, 1_000_000)) -> None:
    """Print the seconds of fits on two local processes, predicted and measured."""
    calibration = calibrate(Job(0, 16, 32))
    for size in sizes:
        job = Job(size, 16, 32)
        measured = sum(_stage_seconds(job, manifold(size, 16)).values())
        predicted = sum(stage.seconds for stage in forecast(job, calibration).stages)
        print(f"{size} points: {predicted:.0f} s predicted, {measured:.0f} s measured")


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check()
        return
    if options.calibrate:
        write("cluster-calibration", calibrate(JOBS[0])._asdict())
    calibration = Calibration(**read("cluster-calibration"))
    tables = "\n\n".join(table(job, calibration) for job in JOBS)
    marks = "<!-- made by benchmarks/cluster_cost.py -->", "<!-- until here -->"
    inside = re.compile(f"{marks[0]}.*?{marks[1]}", re.DOTALL)
    PAGE.write_text(inside.sub(f"{marks[0]}\n\n{tables}\n\n{marks[1]}", PAGE.read_text()))
    print(tables)


if __name__ == "__main__":
    main()
