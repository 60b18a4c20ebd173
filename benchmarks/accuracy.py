"""Errors of distances: random components only, leading directions as well, and eigenvectors.

    python benchmarks/accuracy.py                    # measure what is missing, draw the figure
    python benchmarks/accuracy.py digits MNIST       # some data sets, again

Root mean square of ``estimate / exact - 1`` over 4000 random pairs of points, and over pairs of
points and their ten nearest neighbours, in per cent; means over three seeds. "eigenvectors" are as
many leading ones, with the weights of the sum over all times: what a diffusion map would keep, and
biased. Exact distances are those of the spectrum in float64 with up to 5000 points. With more
points they are those of 200 random points, and of 20 of them and points near these, by a polynomial
with an error of 1e-5. In graphs neighbours are linked nodes, and only the largest component counts.
Recall is the share of the 15 nearest points by exact distance among the 15 nearest in the sketch.

Debian's dependencies need ``apt-get update``.
"""

import sys
import warnings
from statistics import mean
from time import perf_counter

import numpy as np
from data import fashion
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from timing import RESULTS, read, write
from usefulness_data import debian_graph, mnist, spiral, swiss_roll

from heatsketch import HeatGraph, sketch
from heatsketch.diffusion._all_times import all_times_weights, resolvent
from heatsketch.diffusion._sketch import diffuse
from heatsketch.diffusion._spectral import leading_eigenpairs

NAME = "accuracy"
FIGURE = RESULTS.parent / "pictures" / f"{NAME}.png"
PAGE = RESULTS.parent / "background" / "parameters.md"
MARKS = "<!-- made by benchmarks/accuracy.py -->", "<!-- until here -->"
COMPONENTS, SEEDS = (8, 16, 32, 64, 128), range(3)
N_PAIRS, N_SAMPLED, MOST_DENSE, N_NEAREST = 4000, 200, 5000, 15
METHODS = "random components", "with leading directions", "eigenvectors"


def branches(n_points=1500):
    """Return points around three segments in ten dimensions that start at the same point."""
    rng = np.random.default_rng(0)
    ends = np.linalg.qr(rng.standard_normal((10, 3)))[0].T
    along, branch = rng.random((n_points, 1)), rng.integers(0, 3, n_points)
    return 3 * along * ends[branch] + 0.1 * rng.standard_normal((n_points, 10))


DATA = {
    "digits": lambda: load_digits().data,
    "MNIST, 5,000": lambda: mnist()[0],
    "spiral, 600": lambda: spiral()["X"],
    "Swiss roll, 3,000": lambda: swiss_roll(3000)["X"],
    "three branches, 1,500": branches,
    "Gaussian in 10 dimensions, 2,000": lambda: np.random.default_rng(0).normal(size=(2000, 10)),
    "Debian dependencies": lambda: debian_graph()["graph"],
    "Fashion-MNIST, 70,000": lambda: fashion()[0].astype(np.float32),
}


def pairs_of(graph, rng):
    """Return random pairs of rows, and pairs of rows and their neighbours."""
    rows = np.flatnonzero(graph.components == np.bincount(graph.components).argmax())
    if graph.n_samples > MOST_DENSE:
        rows = rng.choice(rows, N_SAMPLED, replace=False)
    random = rows[rng.integers(0, len(rows), (N_PAIRS, 2))]
    n_centers = min(len(rows), N_PAIRS // 10) if graph.n_samples <= MOST_DENSE else N_SAMPLED // 10
    first = rng.choice(rows, n_centers, replace=False)
    if graph.rule.kind == "nodes":
        places, A = np.argsort(graph.order), graph.operator.matrix
        near = [graph.order[A.indices[A.indptr[i] : A.indptr[i + 1]][:11]] for i in places[first]]
    else:
        X = graph.outer(graph.rule.neighbors.points)
        near = NearestNeighbors(n_neighbors=11).fit(X).kneighbors(X[first])[1]
    nearest = [(i, j) for i, others in zip(first, near, strict=True) for j in others]
    pairs = {"random": random, "nearest": np.array(nearest)}
    return {name: some[some[:, 0] != some[:, 1]] for name, some in pairs.items()}


def spectral_kernel(graph):
    """Return a function of the first power: the kernel, from all eigenvectors."""
    A, parts = graph.operator, graph.parts
    matrix = deflated(A, parts, A @ deflated(A, parts, np.eye(A.shape[0])))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    places = np.argsort(graph.order)
    return lambda power: (vectors[places] * all_times_weights(values, power)) @ vectors.T


def sampled_kernel(graph, rows):
    """Return a function of the first power: some rows of the kernel, by a long polynomial."""
    A, parts, places = graph.operator, graph.parts, np.argsort(graph.order)[rows]
    blocks = []
    for some in np.array_split(places, -(-len(places) // 100)):
        block = np.zeros((A.shape[0], len(some)))
        block[some, np.arange(len(some))] = 1
        block = deflated(A, parts, block)
        blocks.append(resolvent(A, block, components=parts, tolerance=1e-5).block)
    return lambda power: np.hstack([diffuse(A, block, power=power) for block in blocks]).T


def deflated(A, parts, block):
    return A.deflate(block) if parts is None else parts.deflate(block)


def lengths(rows, pairs, places=None):
    """Return distances of pairs of rows."""
    first, second = (pairs if places is None else np.searchsorted(places, pairs)).T
    steps = range(0, len(pairs), 500)
    parts = [rows[first[i : i + 500]] - rows[second[i : i + 500]].astype(float) for i in steps]
    return np.concatenate([np.linalg.norm(part, axis=1) for part in parts])


def errors(embedding, pairs, exact):
    """Return root mean square errors of distances, in per cent."""
    figures = {}
    for name, some in pairs.items():
        apart = exact[name] > 1e-9 * exact[name].max()  # equal points have distance zero
        ratios = lengths(embedding, some)[apart] / exact[name][apart]
        figures[name] = 100 * float(np.sqrt(np.mean((ratios - 1) ** 2)))
    return figures


def nearest(rows):
    found = NearestNeighbors(n_neighbors=N_NEAREST).fit(rows)
    return found.kneighbors(return_distance=False)


def recall(embedding, wanted):
    shared = [len(np.intersect1d(*both)) for both in zip(nearest(embedding), wanted, strict=True)]
    return {"recall of 15": float(np.mean(shared)) / N_NEAREST}


class Truth:
    """Exact distances by first power, which depends on the number of components."""

    def __init__(self, graph):
        self.pairs = pairs_of(graph, np.random.default_rng(1))
        self.is_whole = graph.n_samples <= MOST_DENSE
        sampled = np.unique(np.concatenate(list(self.pairs.values())))
        self.rows = np.arange(graph.n_samples) if self.is_whole else sampled
        self.kernel = spectral_kernel(graph) if self.is_whole else sampled_kernel(graph, self.rows)
        walk = graph.stationary_length / graph.outer(graph.operator.stationary)
        self.walk, self.exact, self.near = walk[self.rows, np.newaxis], {}, {}

    def score(self, embedding, power):
        if power not in self.exact:
            kernel = self.kernel(power) * self.walk
            self.exact[power] = {
                name: lengths(kernel, some, self.rows) for name, some in self.pairs.items()
            }
            if self.is_whole:
                self.near[power] = nearest(kernel)
        scores = errors(embedding, self.pairs, self.exact[power])
        return scores | (recall(embedding, self.near[power]) if self.is_whole else {})


def measure(name):
    """Return rows of all methods and numbers of components for one data set."""
    X = DATA[name]()
    make = HeatGraph.from_affinity if hasattr(X, "indptr") else HeatGraph.from_points
    graph, wide = make(X), make(X.astype(np.float64))
    truth, rows = Truth(wide), []
    for k in COMPONENTS if truth.is_whole else (32, 64):
        for method in METHODS[:2]:
            scores = []
            for seed in SEEDS:
                n_leading = 0 if method == METHODS[0] else k // 2
                start = perf_counter()
                made = sketch(graph, k, n_leading=n_leading, random_state=seed)
                score = {"seconds": perf_counter() - start, "first power": made.first_power}
                scores.append(truth.score(made.embedding, made.first_power) | score)
            rows.append(summary(name, k, method, scores))
        A, power = wide.operator, made.first_power
        start = perf_counter()
        values, vectors = leading_eigenpairs(A, k, components=wide.parts)
        score = {"seconds": perf_counter() - start, "first power": power}
        vectors *= all_times_weights(values, power)
        vectors *= (wide.stationary_length / A.stationary)[:, np.newaxis]
        rows.append(summary(name, k, METHODS[2], [truth.score(wide.outer(vectors), power) | score]))
    return rows


def summary(name, k, method, scores):
    means = {figure: round(mean(score[figure] for score in scores), 3) for figure in scores[0]}
    row = {"data": name, "k": k, "method": method} | means
    print(row, flush=True)
    return row


def draw(rows):
    """Draw the error over the number of components, a panel for each data set."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    axes = figure.subplots(2, -(-len(names) // 2), sharex=True, sharey=True)
    colors = dict(zip(METHODS, ("#888888", "#D55E00", "#0072B2"), strict=True))
    for ax, name in zip(axes.flat, names, strict=False):
        for method in METHODS:
            some = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            for pair, style in (("random", "-"), ("nearest", "--")):
                ax.plot(
                    [row["k"] for row in some],
                    [row[pair] for row in some],
                    style,
                    color=colors[method],
                    label=f"{method}, {pair} pairs",
                )
        ax.set(xscale="log", yscale="log", ylim=(0.05, 60))
        ax.set_title(name, fontsize=9)
        ax.set_xticks(COMPONENTS, [str(k) for k in COMPONENTS])
        ax.set_yticks([0.1, 1, 10], ["0.1 %", "1 %", "10 %"])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    for ax in axes[1]:
        ax.set_xlabel("components", fontsize=8)
    figure.supylabel("error of distances", fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(FIGURE, dpi=150)


def page(rows):
    """Write the table of docs/background/parameters.md."""
    cells = {(row["data"], row["k"]): row for row in rows if row["method"] == METHODS[1]}
    lines = [
        "Errors of distances of random pairs / of near pairs, in % (`benchmarks/accuracy.py`):",
        "",
        "| components | " + " | ".join(map(str, COMPONENTS[1:])) + " |",
        "|---" * len(COMPONENTS) + "|",
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        found = [cells.get((name, k)) for k in COMPONENTS[1:]]
        shown = [f"{row['random']:.2g} / {row['nearest']:.2g}" if row else "" for row in found]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text("\n".join([before + MARKS[0], "", *lines, "", MARKS[1] + after]))


def main(names):
    """Measure the named data sets again, and those that are missing."""
    warnings.simplefilter("ignore")
    rows = [row for row in read(NAME, []) if row["data"] not in names]
    for name in DATA:
        if not any(row["data"] == name for row in rows):
            rows += measure(name)
            write(NAME, rows, quiet=True)
    order = list(DATA)
    rows.sort(key=lambda row: order.index(row["data"]))
    write(NAME, rows, quiet=True)
    draw(rows)
    page(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
