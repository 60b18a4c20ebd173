"""Constants of the default embedding: what other values would give.

    python benchmarks/constants.py              # six tables of the method page
    python benchmarks/constants.py horizons     # one of them

The weight of self-loops, the first power of the sum over all times, its horizon, and whether rows
are divided by the stationary direction. A seed is of the random matrix and of the split into known
and unknown labels.
"""

import sys
import warnings
from functools import partial
from statistics import mean

import numpy as np
from data import fashion
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors
from timing import read, write
from usefulness import logistic_accuracy, mean_average_precision, nearest_accuracy, rank_correlation
from usefulness_data import CURVES, GRAPHS, POINTS

from heatsketch import HeatGraph, sketch
from heatsketch.diffusion import gaussian_matrix, sketch_all_times

N_COMPONENTS, SEEDS = 64, range(3)
N_IMAGES = 10_000  # of which the kernel is decomposed
HORIZON = 10_000
IMAGES = "digits", "MNIST, 5,000", "Fashion-MNIST, 70,000"


def score(measure, graph, first_power):
    """Return the mean over seeds of a measure of the sum over all times from a power on."""
    found = []
    for seed in SEEDS:
        G = gaussian_matrix(graph.row_numbers, N_COMPONENTS, seed=seed, dtype=graph.dtype)
        Y = sketch_all_times(graph.operator, G, first_power=first_power, labels=graph.labels)
        found.append(measure(graph.outer(Y), seed=seed))
    return round(float(mean(found)), 4)


def block_model():
    return GRAPHS["degree-corrected block model"]().values()


def of_labels(labels, *, known):
    """Return measures by the classes of points."""
    return {
        "logistic regression": partial(logistic_accuracy, labels=labels, known=known),
        "10 nearest neighbours": partial(nearest_accuracy, labels=labels, known=known),
        "mAP": partial(mean_average_precision, labels=labels),
    }


# --- graphs ---------------------------------------------------------------------------------


def self_loops(weights=(0, 0.1, 1, 3), first_power=16):
    """Accuracy by the weight of self-loops, as a multiple of the strongest link of the node."""
    graph, labels = block_model()
    measure = of_labels(labels, known=0.1)["logistic regression"]
    strongest = graph.max(axis=1).toarray().ravel()
    found = {}
    for weight in weights:
        K = sparse.csr_array(graph + sparse.diags_array(weight * strongest))
        found[weight] = score(measure, HeatGraph.from_affinity(K, self_loops=False), first_power)
    return {"nodes": len(labels), "first power": first_power, "accuracy": found}


def first_power_of_a_graph(powers=(1, 4, 8, 12, 16)):
    """Accuracy by the first power, where most of the spectrum is the noise of the links."""
    weights, labels = block_model()
    graph = HeatGraph.from_affinity(weights)
    measures = of_labels(labels, known=0.1)
    rows = {
        name: {power: score(measures[name], graph, power) for power in powers}
        for name in ("logistic regression", "10 nearest neighbours")
    }
    times = sketch(graph, N_COMPONENTS).times
    about = {"first power": times.first_power, "resolved": times.resolved_power}
    return {"nodes": len(labels), **about, "rows": rows}


# --- points ---------------------------------------------------------------------------------


def first_power_in_cubes(dimensions=(2, 6), sizes=(1000, 4000, 16_000)):
    """Rank correlation with distances in a cube, from power 1 and from the default power on."""
    rows = []
    for dimension in dimensions:
        for n_points in sizes:
            X = np.random.default_rng(0).uniform(size=(n_points, dimension))
            graph, measure = HeatGraph.from_points(X), partial(rank_correlation, flat=X)
            first_power = sketch(graph, N_COMPONENTS).first_power
            row = {"dimension": dimension, "points": n_points, "first power": first_power}
            row["from 1"] = score(measure, graph, 1)
            row["from the first power"] = score(measure, graph, first_power)
            rows.append(row)
    return rows


def first_power_of_images(powers=(1, 4, 8, 16)):
    """Accuracy of 10 nearest neighbours and mean average precision by the first power."""
    found = {}
    for name in IMAGES:
        X, labels = POINTS[name]().values()
        graph = HeatGraph.from_points(X)
        measures = of_labels(labels, known=0.5)
        found[name] = {
            power: [score(measures[of], graph, power) for of in ("10 nearest neighbours", "mAP")]
            for power in powers
        }
    return found


def horizons(values=(30, 100, 1000, 10_000, 1_000_000)):
    """Rank correlation along curves and mean average precision of images, with exact kernels."""
    found = {}
    for name, given in curves_and_images().items():
        graph = HeatGraph.from_points(given["X"].astype(np.float64))
        eigenvalues, vectors, stationary = eigenpairs(graph)
        powers = eigenvalues ** sketch(graph, N_COMPONENTS).first_power
        weights = {T: powers / (1 - (1 - 1 / T) * eigenvalues) for T in values}
        weights["commute time"] = 1 / np.sqrt(1 - eigenvalues)
        rows = {T: vectors * w / stationary for T, w in weights.items()}
        measure = measure_of(given)
        found[name] = {T: round(float(measure(Y)), 4) for T, Y in rows.items()}
        print(name, found[name], flush=True)
    return found


def weightings():
    """Exact distances, with rows divided by the stationary direction or not.

    For one outlier, the rank correlation of the distances of the other points with and without it;
    for two groups, the share of the ten nearest points among the ten nearest rows.
    """
    X, groups = (np.random.default_rng(0).normal(size=(n, 2)) for n in (200, 400))
    groups[200:, 0] += 8  # standard deviations
    outlier = np.r_[X, [[20.0, 0.0]]]
    found = {
        "outlier": {
            kind: spearmanr(pdist(Y), pdist(rows_of(outlier)[kind][:-1])).statistic
            for kind, Y in rows_of(X).items()
        },
        "two groups": {kind: recall(groups, Y) for kind, Y in rows_of(groups).items()},
        "three branches": of_branches(),
    }
    for name, given in curves_and_images().items():
        measure = measure_of(given)
        found[name] = {kind: measure(Y) for kind, Y in rows_of(given["X"]).items()}
        print(name, found[name], flush=True)
        if name == "MNIST":
            rows = rows_of(given["X"], normalization="degree")
            found["MNIST, degrees"] = {kind: measure(Y) for kind, Y in rows.items()}
    return {
        name: {kind: round(float(value), 4) for kind, value in row.items()}
        for name, row in found.items()
    }


def rows_of(X, **options):
    """Return rows of the sum over all times, undivided and divided."""
    graph = HeatGraph.from_points(X.astype(np.float64), **options)
    eigenvalues, vectors, stationary = eigenpairs(graph)
    powers = eigenvalues ** sketch(graph, N_COMPONENTS).first_power
    rows = vectors * powers / (1 - (1 - 1 / HORIZON) * eigenvalues)
    return {"undivided": rows, "divided": rows / stationary}


def of_branches(n_points=1500, n_features=10):
    """Rank correlation with the distance along three half-lines, observed with noise."""
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(n_points, 1)) * np.eye(3)[rng.integers(3, size=n_points)]
    X = 0.02 * rng.normal(size=(n_points, n_features))
    X[:, :3] += flat
    along = pdist(flat, "cityblock")
    return {kind: spearmanr(pdist(Y), along).statistic for kind, Y in rows_of(X).items()}


def recall(X, Y):
    """Share of the ten nearest points that are among the ten nearest rows."""
    near = [NearestNeighbors(n_neighbors=10).fit(Z).kneighbors()[1] for Z in (X, Y)]
    return np.mean([np.isin(*rows).mean() for rows in zip(*near, strict=True)])


def curves_and_images():
    chosen = np.random.default_rng(0).permutation(70_000)[:N_IMAGES]
    X, labels = fashion()
    return {
        "spiral": CURVES["spiral"](),
        "Swiss roll": CURVES["Swiss roll, 3,000"](),
        "digits": POINTS["digits"](),
        "MNIST": POINTS["MNIST, 5,000"](),
        "Fashion-MNIST": {"X": X[chosen], "labels": labels[chosen]},
    }


def measure_of(given):
    if "flat" in given:
        return partial(rank_correlation, flat=given["flat"], seed=0)
    return partial(mean_average_precision, labels=given["labels"], seed=0)


def eigenpairs(graph):
    """Return all eigenvalues and eigenvectors but the first, and the first as a column."""
    dense = graph.operator @ np.eye(graph.n_samples)
    eigenvalues, vectors = eigh(dense, overwrite_a=True)  # ascending
    if eigenvalues[-2] > 1 - 1e-9:
        raise RuntimeError("the graph has several connected components")
    vectors = graph.outer(vectors)
    return eigenvalues[:-1], vectors[:, :-1], np.abs(vectors[:, -1:])


PARTS = {
    part.__name__: part
    for part in (
        self_loops,
        first_power_in_cubes,
        first_power_of_a_graph,
        first_power_of_images,
        horizons,
        weightings,
    )
}


def main():
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or PARTS:
        known = read("constants", {})
        write("constants", known | {name: PARTS[name]()})


if __name__ == "__main__":
    main()
