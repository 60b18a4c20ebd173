"""Cost model of a fit on a cluster, calibrated by short runs on this machine.

A stage takes a fixed time and a time for each point. Both are measured in two short fits on local
processes, with the requested columns and neighbours. Points are divided between all threads, while
tasks pass through one scheduler. Workers exchange the halo of each block, which grows like a power
of its rows, as a surface does with a volume, as long as there are enough other rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.memory import UNION, neighbors_bytes
from heatsketch._core.partitioned import CHUNK_BYTES, rows_of_blocks
from heatsketch._core.progress import reporting_to
from heatsketch.engines import DaskEngine
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.graph._ivf import POINTS_PER_LIST, SAMPLE_PER_LIST, tree_height

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
    """Cost of a fit on a cluster.

    Attributes
    ----------
    stages : tuple of StageForecast
    bytes_per_step : float
        Bytes sent between workers for a product with a block.
    bytes_sent : float
        Bytes sent between workers in all; the rest of the traffic goes through storage.
    """

    stages: tuple[StageForecast, ...]
    bytes_per_step: float
    bytes_sent: float

    @property
    def seconds(self) -> float:
        """Time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def tasks(self) -> float:
        """Number of tasks of all stages."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def bytes_per_worker(self) -> float:
        """Largest memory of a worker in any stage."""
        return max(stage.bytes_per_worker for stage in self.stages)

    @property
    def bottleneck(self) -> StageForecast:
        """The stage that takes the most time."""
        return max(self.stages, key=lambda stage: stage.seconds)

    @property
    def fullest(self) -> StageForecast:
        """The stage that takes the most memory."""
        return max(self.stages, key=lambda stage: stage.bytes_per_worker)


def forecast(job: Job, calibration: Calibration) -> ClusterForecast:
    r"""Predict the cost of a fit on a cluster.

    The time of a stage is :math:`a + b N / threads + c \cdot tasks`, and that of the bytes moved.

    Examples
    --------
    >>> from heatsketch.cli._cluster_cost import STAGES, Calibration, Job, forecast
    >>> each = dict.fromkeys(STAGES, 1e-5)
    >>> calibration = Calibration(each, each, n_threads=2, halo=(4.0, 0.75), neighbor_blocks=8.0)
    >>> few, many = (forecast(Job(10**9, 128, n_workers=w), calibration) for w in (64, 512))
    >>> few.seconds > many.seconds
    True
    >>> few.fullest.stage
    'search'
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
    return ClusterForecast(tuple(stages), step, job.power * step + N_VECTORS * sent * 8)


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

N_TRIED = 60_000  # points of the first run; the second has three times as many


def bent_surface(n_points: int, n_features: int, dtype: Any) -> np.ndarray:
    """Return simulated points: a torus of dimension 4, embedded in all features."""
    rng = np.random.default_rng(0)
    waves = rng.integers(-2, 3, (4, n_features))
    return np.cos(rng.uniform(0, 2 * np.pi, (n_points, 4)) @ waves).astype(dtype)


def calibrate(
    job: Job,
    *,
    sizes: tuple[int, int] = (N_TRIED, 3 * N_TRIED),
    points: Callable[[int], np.ndarray] | None = None,
) -> Calibration:
    """Measure the stages of fits to two numbers of points on local processes.

    ``points(n)`` returns the points; by default they are from :func:`bent_surface`.
    """
    make = points or partial(bent_surface, n_features=job.n_features, dtype=f"f{job.itemsize}")
    # First without a cluster, for the halos and as a warm-up.
    model = _sketch(job).fit(make(sizes[0]))
    halo, neighbor_blocks = halo_law(model.heat_operator_.matrix)
    few, many = (_stage_seconds(job, make(size)) for size in sizes)
    per_point = {
        stage: max(0.0, (many[stage] - few[stage]) / (sizes[1] - sizes[0])) for stage in STAGES
    }
    fixed = {stage: max(0.0, few[stage] - per_point[stage] * sizes[0]) for stage in STAGES}
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
        found = dict(zip(self.begun, np.diff(moments).tolist(), strict=True))
        return {stage: found.get(stage, 0.0) for stage in STAGES}


def halo_law(matrix: sparse.csr_array) -> tuple[tuple[float, float], float]:
    """Return factor and exponent of halo sizes, and number of neighbour blocks.

    Examples
    --------
    In a chain, a block needs two rows of others, independently of its size:

    >>> from scipy import sparse
    >>> from heatsketch.cli._cluster_cost import halo_law
    >>> chain = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4096, 4096)).tocsr()
    >>> (factor, exponent), neighbor_blocks = halo_law(chain)
    >>> round(factor, 3), round(abs(exponent), 3), neighbor_blocks
    (2.0, 0.0, 2.0)
    """
    sizes, halos, others = [], [], 0.0
    for n_blocks in (4, 8, 16):
        rows = -(-matrix.shape[0] // n_blocks)
        inner = range(rows, matrix.shape[0] - rows, rows)  # the first and the last have one side
        found = [np.unique(matrix[start : start + rows].indices) for start in inner]
        outside = [
            ids[(ids < start) | (ids >= start + rows)]
            for ids, start in zip(found, inner, strict=True)
        ]
        sizes.append(rows)
        n_others = matrix.shape[0] - rows
        halos.append(max(1.0, _draws(float(np.mean([len(ids) for ids in outside])), n_others)))
        others = float(np.mean([len(np.unique(ids // rows)) for ids in outside]))
    exponent, constant = np.polyfit(np.log(sizes), np.log(halos), 1)
    return (float(np.exp(constant)), float(exponent)), others
