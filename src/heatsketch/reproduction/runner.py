"""Parallel and resumable trials of experiments, with reproducible results.

A trial is a pure function of the seed, the experiment and its number. Each is written as one line
of a file as soon as it is done, so that a second call continues where the first one stopped. The
finished file is sorted, and therefore bit-identical for any number of processes or interruptions.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

from heatsketch.diffusion._affinity import gaussian_affinity
from heatsketch.diffusion._distances import bilipschitz_constant, exact_diffusion_distances
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import HeatOperator, heat_operator
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph._neighbors import neighbor_graph
from heatsketch.reproduction.catalogue import CATALOGUE, Experiment
from heatsketch.reproduction.methods import METHODS

__all__ = [
    "Results",
    "Run",
    "Trial",
    "read_results",
    "run_experiments",
    "run_trial",
    "sample",
]


@dataclass(frozen=True)
class Run:
    """Experiments to run, with number of trials, seed and output folder.

    Attributes
    ----------
    names : tuple of str
        Names in the catalogue.
    folder : Path
    trials : int or None
        Number of trials; that of the catalogue if None.
    seed : int
    """

    names: tuple[str, ...]
    folder: Path
    trials: int | None = None
    seed: int = 0

    def n_trials(self, name: str) -> int:
        """Return the number of trials of an experiment."""
        return self.trials or CATALOGUE[name].trials

    def path(self, name: str) -> Path:
        """Return the path of the results of an experiment."""
        return self.folder / f"{name}.jsonl"


@dataclass(frozen=True)
class Trial:
    """Results of one sample.

    Attributes
    ----------
    number : int
    log_L : dict of str to list of float
        The logarithm of the distortion, for each method along the axis.
    measures : dict of str to dict of str to float
        Additional measures, by measure and method.
    """

    number: int
    log_L: dict[str, list[float]]  # noqa: N815 - the paper's letter
    measures: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Results:
    """All trials of an experiment, in order."""

    name: str
    trials: tuple[Trial, ...]

    @property
    def experiment(self) -> Experiment:
        """The experiment in the catalogue."""
        return CATALOGUE[self.name]

    @property
    def is_complete(self) -> bool:
        """Whether all trials of the catalogue are done."""
        return len(self.trials) >= self.experiment.trials

    def log_L(self, method: str) -> np.ndarray:  # noqa: N802 - the paper's letter
        """Array of shape (trials, points of the axis)."""
        return np.array([trial.log_L[method] for trial in self.trials])

    def measure(self, name: str, method: str) -> np.ndarray:
        """Array of shape (trials,)."""
        return np.array([trial.measures[name][method] for trial in self.trials])


def sample(name: str, number: int, seed: int) -> tuple[np.ndarray, dict[str, HeatOperator], int]:
    """Return the points of a trial, its heat operators, and the seed of its G."""
    experiment = CATALOGUE[name]
    address = seed + (crc32(name.encode()) << 64) + (number << 96)
    X = experiment.sampler(experiment.n_points, seed=address)
    K = gaussian_affinity(neighbor_graph(X), epsilon=experiment.epsilon)
    needed = {METHODS[method].normalization for method in experiment.methods}
    operators = {kind: heat_operator(K, SCALINGS[kind](K)) for kind in sorted(needed)}
    return X, operators, address + (1 << 63)


def run_trial(name: str, number: int, seed: int) -> Trial:
    """Embed one sample by all methods, dimensions and powers; measure distortion.

    Examples
    --------
    >>> from heatsketch.reproduction import run_trial
    >>> trial = run_trial("outliers", 0, seed=0)
    >>> len(trial.log_L["GPS"])
    4
    """
    with threadpool_limits(1):  # processes share the cores, and rounding is reproducible
        experiment = CATALOGUE[name]
        X, operators, block_seed = sample(name, number, seed)
        distances = _Distances(experiment, X, operators)
        log_L: dict[str, list[float]] = {}
        measures: dict[str, dict[str, float]] = {key: {} for key in experiment.measures}
        for method in experiment.methods:
            kind = METHODS[method].normalization
            embeddings = METHODS[method].embed(operators[kind], experiment.grid, block_seed)
            log_L[method] = [
                float(np.log(bilipschitz_constant(Y, distances(kind, power))))
                for Y, (_, power) in zip(embeddings, experiment.grid, strict=True)
            ]
            for key, measure in experiment.measures.items():
                measures[key][method] = measure(embeddings[0])
    return Trial(number, log_L, measures)


class _Distances:
    """Distances to which embeddings are compared, each computed once."""

    def __init__(self, experiment: Experiment, X: np.ndarray, operators: dict) -> None:
        self.experiment, self.X, self.operators = experiment, X, operators
        self.known: dict = {}

    def __call__(self, normalization: str, power: int) -> np.ndarray:
        if self.experiment.distance == "euclidean":
            normalization, power = "", 0
        if (normalization, power) not in self.known:
            self.known[normalization, power] = self._compute(normalization, power)
        return self.known[normalization, power]

    def _compute(self, normalization: str, power: int) -> np.ndarray:
        if self.experiment.distance == "euclidean":
            return np.sqrt(neighbor_graph(self.X))
        A = self.operators[normalization]
        return exact_diffusion_distances(A, power=power, stationary="keep")


# --- all of them --------------------------------------------------------------------------


def run_experiments(
    run: Run, *, processes: int | None = None, on_trial: Callable[[str], None] = lambda name: None
) -> list[Results]:
    """Run the missing trials, and return all results.

    Parameters
    ----------
    run : Run
    processes : int, optional
        Number of processes, by default the number of cores. Results do not depend on it.
    on_trial : callable, optional
        Called with the name of the experiment for each trial, including those already done.
    """
    run.folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for name in run.names:
        done = {trial.number for trial in _start_or_resume(run, name)}
        for number in range(run.n_trials(name)):
            if number in done:
                on_trial(name)
            else:
                missing.append((name, number))
    for name, trial in _computed(missing, run.seed, processes or os.cpu_count() or 1):
        with run.path(name).open("a") as file:
            file.write(_line(trial))
        on_trial(name)
    return [read_results(run, name) for name in run.names]


def read_results(run: Run, name: str) -> Results:
    """Read the trials of a finished experiment, and sort its file."""
    trials = sorted(_read_trials(run.path(name)), key=lambda trial: trial.number)
    _write(run, name, trials)
    return Results(name, tuple(trials[: run.n_trials(name)]))


def _computed(
    tasks: Sequence[tuple[str, int]], seed: int, processes: int
) -> Iterator[tuple[str, Trial]]:
    if processes == 1 or len(tasks) < 2:
        for name, number in tasks:
            yield name, run_trial(name, number, seed)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _leave_interrupts) as pool:
        futures = {pool.submit(run_trial, name, number, seed): name for name, number in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # if interrupted, cancel pending trials and let running ones finish
            pool.shutdown(cancel_futures=True)


def _leave_interrupts() -> None:
    """Ignore Ctrl-C in workers; the parent handles it and stops them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _start_or_resume(run: Run, name: str) -> list[Trial]:
    """Return the trials that an earlier call finished."""
    path = run.path(name)
    trials = _read_trials(path) if path.exists() else []
    if trials and not path.read_text().startswith(_header(run, name)):
        raise HeatSketchError(
            f"{path} holds {len(trials)} trials of another seed or another catalogue, not of "
            f"seed={run.seed}; choose another folder, or delete the file."
        )
    _write(run, name, trials)  # drops an incomplete line of an interrupted run
    return trials


def _header(run: Run, name: str) -> str:
    experiment = CATALOGUE[name]
    description = {
        "experiment": name,
        "seed": run.seed,
        "n_points": experiment.n_points,
        "epsilon": experiment.epsilon,
        "distance": experiment.distance,
        "grid": experiment.grid,
        "methods": experiment.methods,
    }
    return json.dumps(description) + "\n"


def _line(trial: Trial) -> str:
    return json.dumps({"trial": trial.number, "log_L": trial.log_L, **trial.measures}) + "\n"


def _read_trials(path: Path) -> list[Trial]:
    lines = path.read_text().splitlines(keepends=True)[1:]
    found = {}
    for line in lines:
        if line.endswith("\n"):
            values = json.loads(line)
            trial = Trial(values.pop("trial"), values.pop("log_L"), values)
            found[trial.number] = trial
    return list(found.values())


def _write(run: Run, name: str, trials: Iterable[Trial]) -> None:
    path = run.path(name)
    temporary = path.with_suffix(".partial")
    temporary.write_text(_header(run, name) + "".join(map(_line, trials)))
    temporary.replace(path)
