"""How good ``weights="gaussian"`` is: its estimated dimensions, and the distortion with it.

Every experiment of the paper is run twice on the same points with the same random block, once
with the paper's epsilon and once with ours; the target distances are of the same kernel, or
Euclidean, as in the experiment. Ratios are of the mean of log L over methods, axis and trials.

Run it with ``PYTHONPATH=. python benchmarks/epsilon.py``, which finds the folder ``paper``.
"""

import argparse
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll
from timing import write

from heatsketch.diffusion import estimate_epsilon
from paper import datasets
from paper.catalogue import CATALOGUE
from paper.runner import run_trial, sample

SEED = 1  # of the experiments; the constants of the rule were chosen on points of seed 0
SEEDS = (0, 1, 2)
SIZES = (400, 1000, 2000)


def swiss_roll(n_points, *, seed):
    return make_swiss_roll(n_points, random_state=seed)[0]


MANIFOLDS = {
    "circle": (datasets.circle, 1),
    "torus": (datasets.stretched_torus, 2),
    "Klein bottle": (datasets.klein_bottle, 2),
    "swiss roll": (swiss_roll, 2),
}


def seen(X):
    """Return what is estimated from points."""
    estimate = estimate_epsilon(X, metric="euclidean")
    return {"epsilon": float(f"{estimate.epsilon:.3g}"), "dimension": round(estimate.dimension, 2)}


def dimensions():
    rows = [
        {"data": name, "points": size, "seed": seed, "true dimension": dimension}
        | seen(sampler(size, seed=seed))
        for name, (sampler, dimension) in MANIFOLDS.items()
        for size in SIZES
        for seed in SEEDS
    ]
    X = load_digits().data
    return [*rows, {"data": "digits", "points": len(X), "true dimension": None} | seen(X)]


def mean_log_distortion(name, number, epsilon):
    changed = replace(CATALOGUE[name], epsilon=epsilon)
    with patch.dict(CATALOGUE, {name: changed}):
        return np.mean(list(run_trial(name, number, seed=SEED)["log_L"].values()))


def distortion(name, n_trials):
    given, chosen, epsilons = [], [], []
    for number in range(n_trials):
        points, _, _ = sample(name, number, seed=SEED)
        epsilons.append(estimate_epsilon(points, metric="euclidean").epsilon)
        given.append(mean_log_distortion(name, number, CATALOGUE[name].epsilon))
        chosen.append(mean_log_distortion(name, number, epsilons[-1]))
    return {
        "experiment": name,
        "trials": n_trials,
        "epsilon of the paper": CATALOGUE[name].epsilon,
        "epsilon, from": float(f"{min(epsilons):.3g}"),
        "to": float(f"{max(epsilons):.3g}"),
        "log L of the paper's": round(float(np.mean(given)), 3),
        "log L of ours": round(float(np.mean(chosen)), 3),
        "ratio": round(float(np.mean(chosen) / np.mean(given)), 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--names", nargs="*", default=list(CATALOGUE))
    arguments = parser.parse_args()
    results = {
        "dimensions": dimensions(),
        "distortion": [distortion(name, arguments.trials) for name in arguments.names],
    }
    write("epsilon", results)


if __name__ == "__main__":
    main()
