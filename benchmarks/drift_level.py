"""How often ``drift`` raises an alarm where nothing but noise moved, and how many moves it finds.

Each run measures the same points twice, with independent noise of standard deviation 0.05 (features
of real data have 1, and so has each blob), sketches both with one seed, and tests which rows moved
more than the others at the level of 5 %. In a null run nothing else moves, and any row is a false
alarm. For the share of rows found, five rows move to the places of five others. For the share of
single rows found, one row moves close to another, and all others stay exactly where they are.
"""

import argparse
import warnings

import numpy as np
from sklearn import datasets
from timing import write

from heatsketch import HeatGraph, drift, sketch

LEVEL, NOISE, N_MOVED = 0.05, 0.05, 5
FIRST_SEED = 10_000  # far from those on which the rule was chosen


def standardized(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def real(load, n_rows=None):
    X = standardized(load(return_X_y=True)[0])[:n_rows]
    return lambda seed: X


def blobs(seed):
    return datasets.make_blobs(500, centers=5, random_state=seed)[0]


def cloud(n_points, n_features):
    return lambda seed: np.random.default_rng(seed).standard_normal((n_points, n_features))


def heavy(seed):
    return np.random.default_rng(seed).standard_t(3, (400, 5))


def distant(seed):
    """Return two groups of normal points, which are two connected components."""
    X = np.random.default_rng(seed).standard_normal((400, 3))
    X[200:] += 100
    return X


def moons(seed):
    return datasets.make_moons(400, noise=0.05, random_state=seed)[0]


ALL_PAIRS = {"n_neighbors": None}
# The points, options of their graph, and options of its sketch.
SETTINGS = {
    "five blobs, all pairs, epsilon 1, power 4": (
        blobs,
        {"weights": 1.0, **ALL_PAIRS},
        {"power": 4},
    ),
    "five blobs, all pairs, power 4": (blobs, ALL_PAIRS, {"power": 4}),
    "five blobs": (blobs, {}, {}),
    "breast cancer, power 8": (real(datasets.load_breast_cancer), {}, {"power": 8}),
    "breast cancer": (real(datasets.load_breast_cancer), {}, {}),
    "600 digits": (real(datasets.load_digits, 600), {}, {}),
    "iris": (real(datasets.load_iris), {}, {}),
    "wine, bistochastic, power 2, 32 signs": (
        real(datasets.load_wine),
        {"normalization": "bistochastic"},
        {"power": 2, "random_matrix": "rademacher", "n_components": 32},
    ),
    "diabetes, all pairs, epsilon auto": (
        real(datasets.load_diabetes),
        {"weights": "gaussian", **ALL_PAIRS},
        {},
    ),
    "1200 normal points in 3 dimensions, power 4": (cloud(1200, 3), {}, {"power": 4}),
    "Student's t, 3 degrees of freedom, power 4": (heavy, {}, {"power": 4}),
    "two moons, power 8": (moons, {}, {"power": 8}),
    "two distant groups": (distant, {}, {}),
    "two distant groups, power 8": (distant, {}, {"power": 8}),
}


def compared(name, seed, n_moved=0, noise=NOISE):
    """Return what drift finds in two noisy copies, and which rows were put elsewhere."""
    draw, of_graph, of_sketch = SETTINGS[name]
    X, rng = draw(seed), np.random.default_rng(seed + 1000)
    before, after = X + noise * rng.standard_normal((2, *X.shape))
    moved, places = rng.choice(len(X), (2, n_moved), replace=False)
    after[moved] = after[places] + (NOISE - noise) * rng.standard_normal((n_moved, X.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about several connected components
        graphs = [HeatGraph.from_points(X, **of_graph) for X in (before, after)]
        pair = [sketch(graph, random_state=seed, **of_sketch) for graph in graphs]
        return drift(*pair, confidence=1 - LEVEL).moved, moved


def _seeds(n_runs):
    return range(FIRST_SEED, FIRST_SEED + n_runs)


def measured(name, n_runs, n_power_runs):
    alarms = sum(compared(name, seed)[0].any() for seed in _seeds(n_runs))
    found, others = [], []
    for seed in _seeds(n_power_runs):
        flagged, moved = compared(name, seed, N_MOVED)
        found.append(flagged[moved].mean())
        others.append((flagged.sum() - flagged[moved].sum()) / max(flagged.sum(), 1))
    single = [compared(name, seed, 1, noise=0) for seed in _seeds(n_power_runs)]
    return {
        "setting": name,
        "null runs": n_runs,
        "alarms": int(alarms),
        "share of alarms": round(float(alarms / n_runs), 4),
        "share of moved rows found": round(float(np.mean(found)), 3),
        "share of others among the found": round(float(np.mean(others)), 3),
        "share of single rows found": float(np.mean([found[row].all() for found, row in single])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="null runs for each setting")
    parser.add_argument("--power-runs", type=int, default=40, help="runs in which rows move")
    parser.add_argument("--dry", action="store_true", help="print, and keep the file as it is")
    options = parser.parse_args()
    rows = []
    for name in SETTINGS:
        rows.append(measured(name, options.runs, options.power_runs))
        print(rows[-1], flush=True)
    if not options.dry:
        write("drift_level", {"level": LEVEL, "noise": NOISE, "settings": rows}, quiet=True)


if __name__ == "__main__":
    main()
