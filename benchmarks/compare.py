"""``compare``: its level, its power against other tests, its flags, and what it costs.

::

    python benchmarks/compare.py --level 200    # null runs in each of six settings
    python benchmarks/compare.py --power 50     # runs for each data set and change
    python benchmarks/compare.py --power 50 --peers PYTHON  # alibi-detect and Evidently, from there
    python benchmarks/compare.py --flags 50     # how many flagged rows belong to the change
    python benchmarks/compare.py --size 2000000 # seconds and memory beyond the graph
    python benchmarks/compare.py --size 2000000 --dask # the same on a cluster of two processes

Each part is written to docs/benchmarks/compare.json row by row. The other tests are: maximum mean
discrepancy with a Gaussian kernel of median bandwidth and 199 permutations; the held-out accuracy
of a logistic regression against one half; Kolmogorov-Smirnov tests of all features with
Bonferroni's correction. With --peers, the defaults of alibi-detect (KSDrift; its MMDDrift needs a
deep-learning framework, and is the test above) and of Evidently for embeddings (a classifier),
which want another NumPy.
"""

import argparse
import json
import subprocess
import tempfile
import warnings
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import numpy as np
from data import digits, fashion, manifold
from scipy import stats
from scipy.spatial.distance import pdist, squareform
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from timing import forget_peak, memory, read, write
from usefulness_data import debian_text, mnist

from heatsketch import HeatGraph, compare

LEVEL, N_PERMUTATIONS, N_ROWS = 0.05, 199, 600
FIRST_SEED = 50_000  # far from those of tests


def compared(X, group, seed, units=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about several connected components
        graph = HeatGraph.from_points(X, **options)
        settings = {"n_permutations": N_PERMUTATIONS, "level": LEVEL, "seed": seed}
        return compare(graph, group, units=units, **settings)


# --- level ------------------------------------------------------------------------------------


def clustered(rng, n_rows):
    centers = 4 * rng.standard_normal((5, 10))
    return centers[rng.integers(5, size=n_rows)] + rng.standard_normal((n_rows, 10))


def on_a_manifold(rng, n_rows):
    return manifold(n_rows, 16, seed=rng.integers(2**31))


def texts(rng, n_rows, n_words=300, n_topics=10):
    """Counts of words in short texts of one topic each, as directions."""
    topics = rng.dirichlet(np.full(n_words, 0.05), n_topics)[rng.integers(n_topics, size=n_rows)]
    common = rng.dirichlet(np.full(n_words, 0.3))
    return normalize(rng.poisson(10 * (topics + common)) + 1e-3)


def of_units(rng, n_rows, rows_of_unit=15):
    unit = np.arange(n_rows) // rows_of_unit
    return 2 * rng.standard_normal((unit.max() + 1, 5))[unit] + rng.standard_normal((n_rows, 5))


# Name: what draws rows, how many, every how many is of the second group, rows of a unit.
NULLS = {
    "clusters, 100 + 100": (clustered, 200, 2, 1),
    "clusters, 2000 + 200": (clustered, 2200, 11, 1),
    "manifold, 500 + 500": (on_a_manifold, 1000, 2, 1),
    "manifold, 3636 + 364": (on_a_manifold, 4000, 11, 1),
    "texts, 500 + 500": (texts, 1000, 2, 1),
    "20 + 20 units of 15 rows": (of_units, 600, 2, 15),
}


def null_row(name, n_runs):
    draw, n_rows, every, rows_of_unit = NULLS[name]
    unit = np.arange(n_rows) // rows_of_unit
    rejections = 0
    for seed in range(FIRST_SEED, FIRST_SEED + n_runs):
        X = draw(np.random.default_rng(seed), n_rows)
        group = unit % every == 0
        rejections += compared(X, group, seed, unit).p_value <= LEVEL
    share = rejections / n_runs
    error = np.sqrt(LEVEL * (1 - LEVEL) / n_runs)
    return {"rejections": round(share, 4), "standard error": round(float(error), 4)}


# --- power ------------------------------------------------------------------------------------


def short_texts():
    found = debian_text()
    return normalize(found["X"]), found["labels"]


DATA = {
    "digits": digits,
    "MNIST, 5,000": mnist,
    "Fashion-MNIST": fashion,
    "Debian descriptions": short_texts,
}


@cache
def data(name):
    X, labels = DATA[name]()
    return np.asarray(X, np.float32), np.asarray(labels)


def two_samples(name, change, rng):
    """Return the rows of both samples, those of the first one first, and what has changed."""
    X, labels = data(name)
    sizes = [round(share * N_ROWS) for share in SHARES.get(change, (0.1, 0.1))]
    kinds, counts = np.unique(labels, return_counts=True)
    chosen = rng.choice(kinds[counts >= sum(sizes)])
    inside = rng.permutation(np.flatnonzero(labels == chosen))
    outside = rng.permutation(np.flatnonzero(labels != chosen))
    ends = [[*inside[: sizes[0]], *outside[: N_ROWS - sizes[0]]]]
    ends += [[*inside[-sizes[1] :], *outside[sizes[1] - N_ROWS :]]]
    rows = np.concatenate(ends)
    points, mine = X[rows].astype(np.float64), labels[rows] == chosen
    group = np.repeat([0, 1], N_ROWS)
    if change == "one cluster moves":
        others = [X[labels == c].mean(axis=0) for c in np.unique(labels) if c != chosen]
        center = X[labels == chosen].mean(axis=0, dtype=np.float64)
        nearest = min(others, key=lambda other: np.linalg.norm(other - center))
        points[mine & (group == 1)] += 0.4 * (nearest - center)
    if change == "all rows move":
        _, sizes, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
        points[group == 1] += 0.15 * sizes[0] / np.sqrt(len(points)) * directions[0]
    return points, group, mine


SHARES = {
    "unseen class, 2 %": (0, 0.02),
    "unseen class, 5 %": (0, 0.05),
    "unseen class, 10 %": (0, 0.1),
    "class from 10 to 18 %": (0.1, 0.18),
}
CHANGES = [*SHARES, "one cluster moves", "all rows move"]


def ours(X, group, seed):
    return compared(X, group, seed).p_value


def discrepancy(X, group, seed):
    """Maximum mean discrepancy, Gaussian kernel of median bandwidth, permutations."""
    squares = squareform(pdist(X, "sqeuclidean"))
    K = np.exp(-squares / np.median(squares[np.triu_indices(len(X), 1)]))
    rng = np.random.default_rng(seed)
    orders = [np.arange(len(X)), *(rng.permutation(len(X)) for _ in range(N_PERMUTATIONS))]
    signs = np.where(group, 1 / np.sum(group == 1), -1 / np.sum(group == 0))
    W = np.stack([signs[order] for order in orders], axis=1)
    found = np.sum(W * (K @ W), axis=0)
    return np.mean(found >= found[0] * (1 - 1e-12))


def classifier(X, group, seed):
    """Held-out accuracy of a logistic regression, by a binomial test."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = np.split(StandardScaler().fit_transform(X)[order], 2)
    known, hidden = np.split(group[order], 2)
    guessed = LogisticRegression(C=0.01, max_iter=200).fit(train, known).predict(test)
    n_right = int(np.sum(guessed == hidden))
    share = max(np.mean(hidden), 1 - np.mean(hidden))
    return stats.binomtest(n_right, len(hidden), share, alternative="greater").pvalue


def each_feature(X, group, seed):
    """The smallest p-value of Kolmogorov and Smirnov, times the number of features."""
    X = X[:, np.ptp(X, axis=0) > 0]
    order = np.argsort(X, axis=0, kind="stable")
    values = np.take_along_axis(X, order, axis=0)
    steps = np.where(group, 1 / np.sum(group == 1), -1 / np.sum(group == 0))[order]
    last = np.append(np.diff(values, axis=0) != 0, np.ones((1, X.shape[1]), bool), axis=0)
    distance = np.max(np.abs(np.cumsum(steps, axis=0)) * last, axis=0)
    n = round(np.sum(group == 1) * np.sum(group == 0) / len(group))
    return min(1.0, X.shape[1] * stats.kstwo.sf(distance.max(), n))


TESTS = {
    "compare": ours,
    "MMD": discrepancy,
    "logistic classifier": classifier,
    "KS, Bonferroni": each_feature,
}


def power_row(name, n_runs):
    source, change = name.split(": ")
    found = dict.fromkeys(TESTS, 0)
    for seed in range(FIRST_SEED, FIRST_SEED + n_runs):
        X, group, _ = two_samples(source, change, np.random.default_rng(seed))
        for test, function in TESTS.items():
            found[test] += bool(function(X, group, seed) <= LEVEL)
    return {test: round(n_found / n_runs, 3) for test, n_found in found.items()}


PEERS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
from alibi_detect.cd import KSDrift
from evidently.legacy.metrics import EmbeddingsDriftMetric
from evidently.legacy.pipeline.column_mapping import ColumnMapping
from evidently.legacy.report import Report
runs = np.load(sys.argv[1], mmap_mode="r")
half, names = runs.shape[1] // 2, [f"x{i}" for i in range(runs.shape[2])]
found = {"alibi-detect": 0, "Evidently": 0}
for X in runs:
    old, new = np.array(X[:half]), np.array(X[half:])
    found["alibi-detect"] += int(KSDrift(old, p_val=0.05).predict(new)["data"]["is_drift"])
    report = Report(metrics=[EmbeddingsDriftMetric("x")])
    tables = (pd.DataFrame(rows, columns=names) for rows in (old, new))
    mapping = ColumnMapping(embeddings={"x": names})
    report.run(reference_data=next(tables), current_data=next(tables), column_mapping=mapping)
    found["Evidently"] += int(report.as_dict()["metrics"][0]["result"]["drift_detected"])
print(json.dumps({name: round(count / len(runs), 3) for name, count in found.items()}))
"""


def peers_row(name, n_runs, python):
    """Return how often the tests of another environment find the same samples to differ."""
    source, change = name.split(": ")
    seeds = range(FIRST_SEED, FIRST_SEED + n_runs)
    runs = [two_samples(source, change, np.random.default_rng(seed))[0] for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "runs.npy"), np.array(runs, np.float32))
        command = [python, "-c", PEERS, str(Path(folder, "runs.npy"))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


POWERS = [f"{source}: {change}" for source in DATA for change in CHANGES]


# --- flags ------------------------------------------------------------------------------------


def five_clusters(rng):
    """Clusters that no heat connects, of which one is elsewhere in the second sample."""
    cluster, group = np.arange(1000) % 5, np.arange(1000) // 500
    X = 20 * np.eye(5)[cluster] + rng.standard_normal((1000, 5))
    changed = cluster == 2
    X[changed & (group == 1), 0] += 1
    return X, group, changed


FLAGS = {
    "five clusters, one moves": five_clusters,
    **{
        f"{source}: unseen class, 10 %": lambda rng, source=source: two_samples(
            source, "unseen class, 10 %", rng
        )
        for source in DATA
    },
}


def flags_row(name, n_runs):
    """Precision over all flagged rows; recall and errors as means over runs."""
    n_right = n_flagged = n_wrong_runs = 0
    recalls = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_runs):
        X, group, changed = FLAGS[name](np.random.default_rng(seed))
        flagged = compared(X, group, seed).flagged
        n_flagged += int(flagged.sum())
        n_right += int(flagged[changed].sum())
        n_wrong_runs += bool(flagged[~changed].any())
        recalls.append(flagged[changed].mean())
    return {
        "precision": round(n_right / max(n_flagged, 1), 3),
        "recall": round(float(np.mean(recalls)), 3),
        "runs with a flag elsewhere": round(n_wrong_runs / n_runs, 3),
    }


# --- size -------------------------------------------------------------------------------------


def rows_and_groups(name):
    n_rows = int(name.split()[0])
    return manifold(n_rows, 32), np.random.default_rng(0).integers(2, size=n_rows)


def size_row(name, n_runs):
    """Seconds and memory of the graph, and beyond it of 199 permutations at four times."""
    X, group = rows_and_groups(name)
    start = perf_counter()
    graph = HeatGraph.from_points(X)
    middle = perf_counter()
    forget_peak()
    held = memory("VmRSS")
    found = compare(graph, group, n_permutations=N_PERMUTATIONS)
    end = perf_counter()
    return {
        "seconds of the graph": round(middle - start, 1),
        "seconds beyond it": round(end - middle, 1),
        "GiB beyond it": round((memory("VmHWM") - held) / 2**30, 2),
        "p-value": found.p_value,
    }


def dask_row(name, n_runs):
    """Seconds on two processes, and whether all numbers are those of one process."""
    from distributed import Client

    from heatsketch import DaskEngine
    from heatsketch.engines._dask._connection import processes

    X, group = rows_and_groups(name)
    wanted = compare(HeatGraph.from_points(X), group, n_permutations=N_PERMUTATIONS)
    with (
        tempfile.TemporaryDirectory() as folder,
        processes(2, memory_limit=6 * 2**30, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        start = perf_counter()
        engine = DaskEngine(client, storage=Path(folder, "fit"))
        graph = HeatGraph.from_points(X, engine=engine)
        middle = perf_counter()
        found = compare(graph, group, n_permutations=N_PERMUTATIONS)
        end = perf_counter()
    fields = ("p_values", "z", "effect", "group")
    same = all(np.array_equal(getattr(found, f), getattr(wanted, f)) for f in fields)
    return {
        "seconds of the graph": round(middle - start, 1),
        "seconds beyond it": round(end - middle, 1),
        "p-value": found.p_value,
        "same bits as one process": same and found.p_value == wanted.p_value,
    }


# --- parts of the file ------------------------------------------------------------------------


def measure(part, names, function, n_runs):
    """Measure each row, and write it at once."""
    for name in names:
        results = read("compare", {})
        rows = results.setdefault(part, {})
        start = perf_counter()
        rows[name] = {"runs": n_runs} | function(name, n_runs)
        print(name, rows[name], f"{perf_counter() - start:.0f} s", flush=True)
        results |= {"level of all": LEVEL}
        write("compare", results, quiet=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--level", type=int, metavar="RUNS")
    parser.add_argument("--power", type=int, metavar="RUNS", nargs="?", const=50)
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--flags", type=int, metavar="RUNS")
    parser.add_argument("--size", type=int, metavar="ROWS")
    parser.add_argument("--dask", action="store_true")
    options = parser.parse_args()
    if options.level:
        measure("level", NULLS, null_row, options.level)
    if options.power and options.peers:
        row = partial(peers_row, python=options.peers)
        measure("power of peers", POWERS, row, options.power)
    elif options.power:
        measure("power", POWERS, power_row, options.power)
    if options.flags:
        measure("flags", FLAGS, flags_row, options.flags)
    if options.size:
        part, row = ("size on Dask", dask_row) if options.dask else ("size", size_row)
        measure(part, [f"{options.size} x 32"], row, 1)


if __name__ == "__main__":
    main()
