"""Trials of the experiments, in parallel, with reproducible results.

A trial is a pure function of the seed, the experiment and its number. Each is one line of a file,
written in order, so that a second call continues where the first one stopped, and the file is the
same for any number of processes or interruptions.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from heatsketch.diffusion import (
    HeatOperator,
    bilipschitz_constant,
    bistochastic_scaling,
    exact_diffusion_distances,
    gaussian_affinity,
    heat_operator,
    symmetric_scaling,
)
from heatsketch.graph import neighbor_graph
from paper.catalogue import CATALOGUE, Experiment
from paper.methods import METHODS

SCALINGS = {"symmetric": symmetric_scaling, "bistochastic": bistochastic_scaling}


@dataclass(frozen=True)
class Results:
    """All trials of an experiment, in order: its lines in the file."""

    name: str
    trials: list[dict[str, Any]]

    @property
    def experiment(self) -> Experiment:
        """The experiment in the catalogue."""
        return CATALOGUE[self.name]

    def log_L(self, method: str) -> np.ndarray:  # noqa: N802 - the paper's letter
        """Array of shape (trials, points of the axis)."""
        return np.array([trial["log_L"][method] for trial in self.trials])

    def measure(self, name: str, method: str) -> np.ndarray:
        """Array of shape (trials,)."""
        return np.array([trial[name][method] for trial in self.trials])


def sample(name: str, number: int, seed: int) -> tuple[np.ndarray, dict[str, HeatOperator], int]:
    """Return the points of a trial, its heat operators, and the seed of its G."""
    experiment = CATALOGUE[name]
    address = seed + (crc32(name.encode()) << 64) + (number << 96)
    X = experiment.sampler(experiment.n_points, seed=address)
    K = gaussian_affinity(neighbor_graph(X), epsilon=experiment.epsilon)
    kinds = {METHODS[method].normalization for method in experiment.methods}
    operators = {kind: heat_operator(K, SCALINGS[kind](K)) for kind in sorted(kinds)}
    return X, operators, address + (1 << 63)


def run_trial(name: str, number: int, seed: int) -> dict[str, Any]:
    """Embed one sample by all methods, dimensions and powers; measure distortion."""
    experiment = CATALOGUE[name]
    with threadpool_limits(1):  # processes share the cores, and rounding is reproducible
        X, operators, block_seed = sample(name, number, seed)

        @cache
        def distances(kind: str, power: int) -> np.ndarray:
            if experiment.distance == "euclidean":
                return np.sqrt(neighbor_graph(X))
            return exact_diffusion_distances(operators[kind], power=power, stationary="keep")

        log_L: dict[str, list[float]] = {}
        measures: dict[str, dict[str, float]] = {key: {} for key in experiment.measures}
        for short in experiment.methods:
            method = METHODS[short]
            kind = method.normalization
            embeddings = method.embed(operators[kind], experiment.grid, block_seed)
            log_L[short] = [
                float(np.log(bilipschitz_constant(Y, distances(kind, power))))
                for Y, (_, power) in zip(embeddings, experiment.grid, strict=True)
            ]
            for key, measure in experiment.measures.items():
                measures[key][short] = measure(embeddings[0])
    return {"trial": number, "log_L": log_L, **measures}


def run_experiment(
    name: str, folder: Path, *, trials: int | None = None, seed: int = 0, n_jobs: int = -1
) -> Results:
    """Run the missing trials of an experiment, and return all of its results.

    Parameters
    ----------
    name : str
    folder : Path
        Where the results of the experiment are, in ``{name}.jsonl``.
    trials : int, optional
        By default those of the catalogue.
    seed : int, default=0
    n_jobs : int, default=-1
        Number of processes, by default the number of cores. Results do not depend on it.
    """
    trials = trials or CATALOGUE[name].trials
    folder.mkdir(parents=True, exist_ok=True)
    path, header = folder / f"{name}.jsonl", _header(name, seed)
    text = path.read_text() if path.exists() else header
    if not text.startswith(header):
        raise ValueError(
            f"{path} has trials of another seed or catalogue, not of seed={seed}; choose another "
            "folder, or delete the file."
        )
    text = text[: text.rfind("\n") + 1]  # without an incomplete line of an interrupted run
    path.write_text(text)
    finished = text.count("\n") - 1
    numbers = range(finished, trials)
    with path.open("a") as file:
        computed = _computed(name, numbers, seed, n_jobs)
        for trial in tqdm(computed, name, len(numbers), disable=not numbers):
            print(json.dumps(trial), file=file, flush=True)
    return read_results(name, folder, trials=trials)


def read_results(name: str, folder: Path, *, trials: int | None = None) -> Results:
    """Read the trials of an experiment."""
    lines = (folder / f"{name}.jsonl").read_text().splitlines()[1:]
    return Results(name, [json.loads(line) for line in lines[: trials or CATALOGUE[name].trials]])


def _computed(name: str, numbers: range, seed: int, n_jobs: int) -> Iterator[dict[str, Any]]:
    parallel = Parallel(n_jobs if len(numbers) > 1 else 1, return_as="generator")
    return parallel(delayed(run_trial)(name, number, seed) for number in numbers)


def _header(name: str, seed: int) -> str:
    experiment = CATALOGUE[name]
    description = {
        "experiment": name,
        "seed": seed,
        "n_points": experiment.n_points,
        "epsilon": experiment.epsilon,
        "distance": experiment.distance,
        "grid": experiment.grid,
        "methods": experiment.methods,
    }
    return json.dumps(description) + "\n"
