"""Compare ``HeatSketch()`` without arguments with the raw data and with other embeddings.

::

    python benchmarks/usefulness.py                    # measure what is missing, draw the figure
    python benchmarks/usefulness.py --ours             # only heatsketch
    python benchmarks/usefulness.py --data digits wine --methods UMAP --fresh
    python benchmarks/usefulness.py --page             # only write page and figure again

Labelled points: accuracy of 10 nearest neighbours with half of the labels known, mean average
precision of ranking all other points by distance, adjusted Rand index of k-means. Curves: rank
correlation of distances with the true distance along the manifold. Graphs: accuracy of logistic
regression and of 10 nearest neighbours with 10 % of the labels known, and area under the ROC
curve of predicting removed edges by distance. Logistic regression gets every embedding divided by
one number, the root mean square length of its rows: its penalty depends on the scale. (Tried on
the two block models: without it, embeddings with short rows are hardly fitted; standardized columns
were worse for scikit-network and for most sketches, but better for one without unit rows.)

Each method runs in a child process, so that it can be ended after ``LIMIT`` seconds. It first
embeds a subset of the data, so that compilation is not timed. Threads are each method's default;
UMAP gets no random_state, since that would restrict it to one thread. Its five fits differ anyway.
Link prediction keeps at least one edge at every node. "best single power" takes the best power for
each measure, by looking at the result; its seconds are those of all powers from one fit, and it
has no time limit. Needs ``apt-get update`` for the Debian data.
"""

import argparse
import multiprocessing
import os
import re
import sys
import warnings
from collections.abc import Callable
from statistics import mean, median, pstdev
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from timing import RESULTS, read, write
from usefulness_data import CURVES, GRAPHS, POINTS

NAME = "usefulness"
FIGURE = RESULTS.parent / "pictures" / f"{NAME}.png"
PAGE = RESULTS.parent / "background" / f"{NAME}.md"
SHORT_PAGES = RESULTS.parent.parent / "README.md", RESULTS.parent / "background" / "choosing.md"
MARKS = "<!-- made by benchmarks/usefulness.py -->", "<!-- until here -->"
LIMIT = 180  # seconds for one fit
SEEDS = range(5)
N_NEIGHBORS = 15
N_QUERIES, FEW_POINTS = 2000, 10_000  # up to so many points, all of them are queries
N_PAIRS = 20_000
WARM_UP = 5000  # UMAP searches neighbours in another way from 4096 points on
DATA = POINTS | CURVES | GRAPHS


# Methods: data, number of components, seed -> embeddings by variant, and products or None.
# Packages that compile are imported when they are needed, and only in the child process.


def plain(embed):
    """Return a method that has one variant and does not count products."""
    return lambda X, k, seed: ({"": embed(X, k, seed)}, None)


def unit_rows(Y):
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    return Y / np.where(lengths > 0, lengths, 1)


def umap(X, k, seed):
    from umap import UMAP

    return UMAP(n_neighbors=N_NEIGHBORS, n_components=k).fit_transform(X)


def spectral_embedding(X, k, seed):
    options = {"affinity": "nearest_neighbors", "n_neighbors": N_NEIGHBORS, "random_state": 0}
    return SpectralEmbedding(k, **options).fit_transform(X)


def fewer(k, graph):
    """Return at most a quarter of the eigenvectors, since the last ones separate neighbours."""
    return min(k, graph.shape[0] // 4)


def random_projection(graph, k, seed):
    from sknetwork.embedding import RandomProjection

    return RandomProjection(k, random_state=seed).fit_transform(graph)


def spectral(graph, k, seed):
    from sknetwork.embedding import Spectral

    return Spectral(fewer(k, graph)).fit_transform(graph)


def diffusion_map(X, k, seed):
    from heatsketch import DiffusionMap

    if sparse.issparse(X):
        return DiffusionMap(fewer(k, X)).fit_transform(X)
    return DiffusionMap(k, n_neighbors=N_NEIGHBORS).fit_transform(X)


def default_sketch(X, k, seed):
    from heatsketch import HeatSketch

    model = HeatSketch(k, random_state=seed).fit(X)
    Y = model.embedding_
    return {"": Y, ", unit rows": unit_rows(Y)}, model.sketch_.times.n_products


def every_power(X, k, seed):
    from heatsketch import HeatSketch

    options = {} if sparse.issparse(X) else {"n_neighbors": N_NEIGHBORS}
    few_features = not sparse.issparse(X) and X.shape[1] <= 3  # the curves
    powers = [2**i for i in range(1, 13 if few_features else 10)]
    model = HeatSketch(k, power=powers[0], random_state=seed, **options).fit(X)
    return dict(zip(powers, model.sketch_.path(powers), strict=True)), None


class Method(NamedTuple):
    """How to embed, with how many components, whether it is random, and whether it is ours."""

    fit: Callable
    components: tuple = ("",)
    random: bool = False
    ours: bool = False
    limit: float | None = LIMIT


SKETCHES = {
    "best single power": Method(every_power, (64, 128), random=True, ours=True, limit=None),
    "HeatSketch": Method(default_sketch, (64, 128), random=True, ours=True),
}
FOR_POINTS = {
    "raw Euclidean": Method(plain(lambda X, k, seed: X)),
    "raw cosine": Method(plain(lambda X, k, seed: unit_rows(X))),
    "PCA": Method(plain(lambda X, k, seed: PCA(k, random_state=0).fit_transform(X)), (32,)),
    "SpectralEmbedding": Method(plain(spectral_embedding), (16,)),
    "UMAP": Method(plain(umap), (2, 16), random=True),
    "DiffusionMap": Method(plain(diffusion_map), (8, 32), ours=True),
} | SKETCHES
FOR_GRAPHS = {
    "RandomProjection": Method(plain(random_projection), (64, 128), random=True),
    "Spectral": Method(plain(spectral), (64, 128)),
    "DiffusionMap": Method(plain(diffusion_map), (32,), ours=True),
} | SKETCHES


# Measures: all take the embedding and a seed, which is the same for every method.


def nearest_accuracy(Y, labels, seed, *, known):
    """Accuracy of 10 nearest neighbours, for at most ``FEW_POINTS`` of the other points."""
    train, test = train_test_split(
        np.arange(len(Y)), train_size=known, stratify=labels, random_state=seed
    )
    # With very few labels, the ten nearest would be the same for every point.
    classifier = KNeighborsClassifier(min(10, max(1, len(train) // 3)), n_jobs=2)
    classifier.fit(Y[train], labels[train])
    return classifier.score(Y[test[:FEW_POINTS]], labels[test[:FEW_POINTS]])


def logistic_accuracy(Y, labels, seed, *, known):
    Y = Y / np.sqrt(np.mean(np.sum(Y**2, axis=1)))
    train, test = train_test_split(
        np.arange(len(Y)), train_size=known, stratify=labels, random_state=seed
    )
    classifier = LogisticRegression(max_iter=1000).fit(Y[train], labels[train])
    return classifier.score(Y[test], labels[test])


def mean_average_precision(Y, labels, seed):
    queries = np.random.default_rng(seed).permutation(len(Y))
    queries = queries[: len(Y) if len(Y) <= FEW_POINTS else N_QUERIES]
    Y = Y.astype(np.float64) - Y.mean(axis=0)
    squares, found = np.sum(Y**2, axis=1), []
    for some in np.array_split(queries, len(queries) // 100 + 1):
        for i, row in zip(some, squares - 2 * Y[some] @ Y.T, strict=True):
            row[i] = np.nan
            found.append(average_precision(row, labels == labels[i]))
    return mean(found)


def average_precision(distances, relevant):
    """Mean precision at the distance of each relevant point; the query itself is NaN."""
    near = np.sort(distances[relevant])[:-1]  # NaN comes last
    n_found = np.searchsorted(near, near, side="right")
    return float(np.mean(n_found / np.searchsorted(np.sort(distances)[:-1], near, side="right")))


def rank_correlation(Y, flat, seed):
    i, j = np.random.default_rng(seed).integers(len(Y), size=(2, N_PAIRS))
    true = np.linalg.norm(flat[i] - flat[j], axis=1)
    return spearmanr(np.linalg.norm(Y[i] - Y[j], axis=1), true).statistic


def measure_points(Y, data, seed):
    if "flat" in data:
        return {"rank correlation": rank_correlation(Y, data["flat"], seed)}
    labels = data["labels"]
    clusters = KMeans(len(np.unique(labels)), n_init=4, random_state=seed).fit_predict(Y)
    return {
        "accuracy": nearest_accuracy(Y, labels, seed, known=0.5),
        "mAP": mean_average_precision(Y, labels, seed),
        "ARI": adjusted_rand_score(labels, clusters),
    }


def measure_nodes(Y, data, seed):
    some = data["labels"] >= 0
    Y, labels = Y[some], data["labels"][some]
    known = max(0.1, 2 * len(np.unique(labels)) / len(labels))  # at least two of each class
    return {
        "node accuracy": logistic_accuracy(Y, labels, seed, known=known),
        "node accuracy, 10-NN": nearest_accuracy(Y, labels, seed, known=known),
    }


def without_some_edges(graph, seed):
    """Remove a tenth of the edges, and return the rest, the removed, and as many non-edges."""
    rng = np.random.default_rng(seed)
    edges = np.column_stack(sparse.triu(graph).nonzero())
    degrees, removed = np.diff(graph.indptr), []
    for e in rng.permutation(len(edges)):
        if len(removed) < len(edges) // 10 and degrees[edges[e]].min() > 1:
            degrees[edges[e]] -= 1
            removed.append(edges[e])
    removed = np.array(removed)
    taken = sparse.coo_array((np.ones(len(removed)), removed.T), graph.shape).tocsr()
    rest = sparse.csr_matrix(graph - taken - taken.T)
    rest.eliminate_zeros()
    pairs = rng.integers(graph.shape[0], size=(3 * len(removed) + 100, 2))
    apart = (pairs[:, 0] != pairs[:, 1]) & (np.asarray(graph[pairs[:, 0], pairs[:, 1]])[0] == 0)
    return rest, removed, pairs[apart][: len(removed)]


def measure_links(Y, removed, others):
    truth = np.repeat([1, 0], [len(removed), len(others)])
    i, j = np.concatenate([removed, others]).T
    U = unit_rows(Y)
    return {
        "link AUC": roc_auc_score(truth, -np.linalg.norm(Y[i] - Y[j], axis=1)),
        "link AUC, inner product": roc_auc_score(truth, np.sum(U[i] * U[j], axis=1)),
    }


# Running: the child embeds and measures; the parent waits, ends it if need be, and adds up.


def warm_up(method, data, k):
    X = data.get("X")
    if X is None:
        i = np.arange(300)
        ring = sparse.csr_matrix((np.ones(900), (np.tile(i, 3), np.r_[i + 1, i + 2, i + 7] % 300)))
        X = ring + ring.T
    elif len(X) > 300:
        X = X[:: max(1, len(X) // WARM_UP)] if len(X) > WARM_UP else X[:: len(X) // 300]
    method.fit(X, k, 0)


def child(pipe, method, data, k):
    """Send "start" and "end" around each fit, and the scores of each seed."""
    warnings.simplefilter("ignore")

    def fit(X, seed):
        pipe.send(("start", None))
        start = perf_counter()
        embeddings, products = method.fit(X, k, seed)
        taken = perf_counter() - start
        pipe.send(("end", None))
        return {v: np.asarray(Y) for v, Y in embeddings.items()}, taken, products

    try:
        warm_up(method, data, k)
        fitted = None
        for seed in SEEDS:
            found, fitted = scores_of_seed(fit, method, data, seed, fitted)
            pipe.send(("scores", found))
        pipe.send(("done", None))
    except Exception as error:
        pipe.send(("failed", f"{type(error).__name__}: {error}".splitlines()[0][:120]))


def scores_of_seed(fit, method, data, seed, fitted):
    """Return scores by variant, seconds and products, and the fit, which may serve again."""
    scores = {}
    graph = data.get("graph")
    if graph is None or data["labels"] is not None:
        if fitted is None or method.random:
            fitted = fit(data["X"] if graph is None else graph, seed)
        measure = measure_points if graph is None else measure_nodes
        scores = {v: measure(Y, data, seed) for v, Y in fitted[0].items()}
    timed = fitted
    if graph is not None:
        rest, removed, others = without_some_edges(graph, seed)
        without = fit(rest, seed)
        timed = fitted or without
        for v, Y in without[0].items():
            scores[v] = scores.get(v, {}) | measure_links(Y, removed, others)
    return {"scores": scores, "seconds": timed[1], "products": timed[2]}, fitted


def run(method, data, k):
    """Run a method in a child process, and return a result for each variant."""
    context = multiprocessing.get_context("fork")
    pipe, other = context.Pipe()
    process = context.Process(target=child, args=(other, method, data, k))
    process.start()
    other.close()
    found, failure, limit = [], {}, None
    while True:
        if not pipe.poll(limit):
            failure = {"exceeded": f"{LIMIT} s"}
            process.kill()
            break
        try:
            kind, value = pipe.recv()
        except EOFError:
            kind, value = "failed", "the process ended early"
        if kind in ("done", "failed"):
            failure = {"failed": value} if kind == "failed" else {}
            break
        limit = method.limit if kind == "start" else None
        if kind == "scores":
            found.append(value)
    process.join()
    return summary(found) if found and "failed" not in failure else {"": failure}


def summary(found):
    """Mean and deviation over seeds for each variant; of the powers, the best for each measure."""
    about = {"seconds": short(median(one["seconds"] for one in found)), "seeds": len(found)}
    products = [one["products"] for one in found if one["products"] is not None]
    if products:
        about["products"] = int(median(products))
    tables = {}
    for variant in found[0]["scores"]:
        tables[variant] = {
            measure: spread([one["scores"][variant][measure] for one in found])
            for measure in found[0]["scores"][variant]
        }
    if "" in tables:
        return {variant: about | table for variant, table in tables.items()}
    best = {}
    for measure in next(iter(tables.values())):
        power = max(tables, key=lambda p: tables[p][measure]["mean"])
        best[measure] = tables[power][measure] | {"power": power}
    return {"": about | best}


def spread(values):
    values = [float(value) for value in values]
    return {"mean": round(mean(values), 4), "std": round(pstdev(values), 4)}


def short(number):
    return round(float(f"{number:.3g}"), 3)


def methods_for(name):
    return FOR_GRAPHS if name in GRAPHS else FOR_POINTS


def wanted(options, results):
    """Yield data set, method and number of components of what is to be measured."""
    for name in options.data or DATA:
        for title, method in methods_for(name).items():
            if options.methods and title not in options.methods:
                continue
            if options.ours and not method.ours:
                continue
            for k in method.components:
                there = results.get(name, {}).get(title, {}).get(str(k), {})
                if options.fresh or options.ours or not there or "failed" in there:
                    yield name, title, k


def applies(title, data):
    """Return False for a PCA that would keep all columns: its distances are those of the data."""
    return title != "PCA" or data["X"].shape[1] > FOR_POINTS["PCA"].components[0]


def results_so_far():
    return read(NAME, {})


def measure(options):
    """Measure what is wanted, and return what failed of our own methods."""
    loaded, failed = {}, []
    for name, title, k in list(wanted(options, results_so_far())):
        if name not in loaded:
            loaded = {name: DATA[name]()}  # one at a time
        if applies(title, loaded[name]):
            method = methods_for(name)[title]
            found = run(method, loaded[name], k)
            keep(name, title, k, found)
            if method.ours and any("failed" in result for result in found.values()):
                failed.append(f"{title} {k} of {name}")
    return failed


def keep(name, title, k, found):
    """Add results to the file, which another run may have changed meanwhile."""
    results = results_so_far()
    for variant, result in found.items():
        result["load"] = short(os.getloadavg()[0])  # far above 1: seconds are of a busy machine
        results.setdefault(name, {}).setdefault(title + variant, {})[str(k)] = result
        print(name, "|", title + variant, k, "|", result, flush=True)
    write(NAME, results, quiet=True)


# Table and figure, from the JSON file.

GRAPH_MEASURES = (
    "node accuracy", "node accuracy, 10-NN", "link AUC", "link AUC, inner product"
)  # fmt: skip
POINT_MEASURES = "accuracy", "mAP", "ARI", "rank correlation"
CLOSE = {"mAP": 0.03, "ARI": 0.03, "rank correlation": 0.03}  # to the best power; others .01
DEFAULT, UNIT, BEST = "HeatSketch", "HeatSketch, unit rows", "best single power"


def columns(methods):
    for title, method in methods.items():
        for k in method.components:
            yield title, str(k)
        if title == DEFAULT:
            yield from ((UNIT, str(k)) for k in method.components)


def value(result, measure):
    return result.get(measure, {}).get("mean")


def lost(rows, measure, k):
    """Return the names of the methods that are better than the default by too much."""
    ours = value(rows.get(DEFAULT, {}).get(k, {}), measure)
    rivals = {("raw Euclidean", ""): 0.01, (BEST, k): CLOSE.get(measure, 0.01)}
    rivals["RandomProjection", k] = 0.01
    if ours is None:
        return []
    other = {rival: value(rows.get(rival[0], {}).get(rival[1], {}), measure) for rival in rivals}
    return [rival[0] for rival, m in other.items() if m is not None and ours < m - rivals[rival]]


def cell(rows, title, k, measure):
    result = rows.get(title, {}).get(k, {})
    mean_ = value(result, measure)
    if mean_ is None:
        return "time" if "exceeded" in result else "error" if "failed" in result else "-"
    text = f"{mean_:.3f}".replace("0.", ".", 1)
    if "power" in result[measure]:
        text += f" (p = {result[measure]['power']})"
    return text + (" !" if title == DEFAULT and lost(rows, measure, k) else "")


def table(results, names, methods, measures):
    heads = list(columns(methods))
    yield "| data | measure | " + " | ".join(f"{t} {k}".strip() for t, k in heads) + " | behind |"
    yield "|---" * (len(heads) + 3) + "|"
    for name in [name for name in names if name in results]:
        rows = results[name]
        for m in measures:
            if any(m in result for by_k in rows.values() for result in by_k.values()):
                behind = {r for k in SKETCHES[DEFAULT].components for r in lost(rows, m, str(k))}
                cells = [name, m, *(cell(rows, t, k, m) for t, k in heads)]
                yield "| " + " | ".join([*cells, ", ".join(sorted(behind))]) + " |"
        taken = [rows.get(t, {}).get(k, {}).get("seconds") for t, k in heads]
        cells = ["-" if s is None else f"{s:g}" for s in taken]
        yield f"| {name} | seconds | " + " | ".join(cells) + " | |"


INTRODUCTION = """# Comparison with other tools

`HeatSketch()` without any argument against the raw data and against other methods, on labelled
points, curves, texts and graphs.

![Scores of all methods by measure and data set](../pictures/usefulness.png)

- **accuracy**: 10 nearest neighbours, half of the labels known. **mAP**: mean average precision
  when all other points are ranked by distance and those of the same label are relevant. **ARI**:
  adjusted Rand index of k-means with the true number of classes. **rank correlation**: of distances
  with the true distances along the manifold, over 20,000 random pairs.
- **node accuracy**: logistic regression with 10 % of the labels, on rows divided by their root mean
  square length. **link AUC**: a tenth of the links is removed and separated from random pairs by
  distance.
- Means of five seeds. "best single power" is the best of powers 2 to 512 (4096 for curves), chosen
  by its score. A fit may take 180 s. Seconds are medians of the fits, with little else
  running; those of other methods on Fashion-MNIST are of another session. A dash was not measured.
- "!" marks results of the default that are worse than the baseline by more than a margin: .01 for
  raw Euclidean distance and RandomProjection; .01 (accuracy) or .03 (others) for the best power.

## Where the default is worse, and why

- **Debian descriptions** (TF-IDF and 100 singular vectors of one-line texts, labelled by section).
  Every method that uses a neighbour graph is worse than the raw vectors, UMAP included. The
  neighbours of a short text share words but not the section. Cosine distance to all texts is
  better.
- **Wine**, k-means: 178 points in three round clusters, which k-means on standardized columns finds
  as they are.
- **Fashion-MNIST**, accuracy: the kinds of clothes overlap, so the nearest few of 35,000 labelled
  images matter most. A short time (p = 8) is best for these. The sum over all times has most of its
  weight at longer times, which are better for ranking and clustering.
- **Logistic regression on graphs with rows of very different length** (Debian dependencies): a few
  rows in slowly mixing parts of the graph are far longer than all others. Scaling rows to length
  one (`sklearn.preprocessing.Normalizer`) helps; RandomProjection does so by default.
- **Neighbours and links of Debian dependencies**: a single power is a little better, but was chosen
  with the labels.
- **Links of the degree-corrected block model**: links join hubs, and the first steps reveal hubs
  (power 2 alone has .71). RandomProjection keeps degrees.
- **Karate club**: 34 nodes, of which four have labels. One node is .03.
"""


def page(results):
    yield INTRODUCTION
    yield "## Points and curves\n"
    yield from table(results, POINTS | CURVES, FOR_POINTS, POINT_MEASURES)
    yield "\n## Graphs\n"
    yield from table(results, GRAPHS, FOR_GRAPHS, GRAPH_MEASURES)


SHORT_METHODS = {
    ("raw Euclidean", ""): "raw data",
    ("PCA", "32"): "PCA, 32 dimensions",
    ("SpectralEmbedding", "16"): "scikit-learn SpectralEmbedding, 16",
    ("DiffusionMap", "32"): "diffusion map, 32",
    ("UMAP", "2"): "UMAP, 2",
    ("UMAP", "16"): "UMAP, 16",
    ("HeatSketch", "64"): "`HeatSketch()`",
}
SHORT_MEASURES = {
    "digits": ("accuracy", "mAP", "ARI"),
    "MNIST, 5,000": ("accuracy", "mAP", "ARI"),
    "Fashion-MNIST, 70,000": ("accuracy", "mAP", "ARI"),
    "Swiss roll, 3,000": ("rank correlation",),
}


def short_table(results):
    """Return the table of README: those of a few data sets on which the default was measured."""
    measured = [name for name in SHORT_MEASURES if "64" in results.get(name, {}).get(DEFAULT, {})]
    shown = [(name, m) for name in measured for m in SHORT_MEASURES[name]]
    heads = [f"{name}: {m}" for name, m in shown]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for (title, k), words in SHORT_METHODS.items():
        cells = [cell(results[name], title, k, m).removesuffix(" !") for name, m in shown]
        lines.append("| " + " | ".join([words, *cells]) + " |")
    return "\n".join(lines)


def with_short_table(text, results):
    """Return the text of a page, with the short table between its marks."""
    inside = re.compile(f"{MARKS[0]}.*?{MARKS[1]}", re.DOTALL)
    return inside.sub(f"{MARKS[0]}\n\n{short_table(results)}\n\n{MARKS[1]}", text)


LOOKS = {  # colours of Okabe and Ito, and a marker for each
    ("raw Euclidean", ""): ("black", "|"),
    ("raw cosine", ""): ("0.5", "|"),
    ("PCA", "32"): ("0.5", "x"),
    ("SpectralEmbedding", "16"): ("#CC79A7", "v"),
    ("UMAP", "2"): ("#E69F00", "s"),
    ("UMAP", "16"): ("#E69F00", "D"),
    ("RandomProjection", "64"): ("#009E73", "s"),
    ("Spectral", "64"): ("#CC79A7", "^"),
    ("DiffusionMap", "32"): ("#56B4E9", "P"),
    (BEST, "64"): ("#0072B2", "o"),
    (UNIT, "64"): ("#D55E00", "o"),
    (DEFAULT, "64"): ("#D55E00", "*"),
}
HOLLOW = {BEST, UNIT}
PANELS = {
    "accuracy": "accuracy, 10-NN, half labelled",
    "mAP": "mean average precision",
    "ARI": "k-means, ARI",
    "rank correlation": "rank correlation with true distance",
    "node accuracy": "node accuracy, logistic, 10 % labelled",
    "link AUC": "link prediction, AUC",
}


def panel(ax, results, measure):
    names = [n for n in DATA if any(measure in r for m in results.get(n, {}).values()
                                    for r in m.values())]  # fmt: skip
    for y, name in enumerate(names):
        for (title, k), (color, marker) in LOOKS.items():
            x = value(results[name].get(title, {}).get(k, {}), measure)
            if x is not None:
                face = "none" if title in HOLLOW else color
                big = {"*": 13, "|": 12}.get(marker, 6.5)
                style = {"ms": big, "mec": color, "mfc": face, "mew": 1.5, "ls": ""}
                ax.plot(x, y, marker, zorder=3 + (title == DEFAULT), **style)
    ax.set_yticks(range(len(names)), [n.replace(" block", "\nblock") for n in names])
    ax.set(title=PANELS[measure], ylim=(len(names) - 0.5, -0.5))
    ax.grid(color="0.9")
    ax.title.set_size(10)


def picture(results):
    from matplotlib import pyplot as plt

    plt.style.use("heatsketch.plot.heatsketch")
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.5), layout="constrained")
    for ax, measure in zip(axes.flat, PANELS, strict=True):
        panel(ax, results, measure)
    handles = []
    for (title, k), (color, marker) in LOOKS.items():
        face = "none" if title in HOLLOW else color
        style = {"marker": marker, "color": color, "mfc": face, "ls": "", "mew": 1.5}
        handles.append(plt.Line2D([], [], label=f"{title} {k}".strip(), ms=9, **style))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(FIGURE, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", nargs="+", choices=DATA, metavar="NAME")
    titles = {*FOR_POINTS, *FOR_GRAPHS}
    parser.add_argument("--methods", nargs="+", choices=titles, metavar="NAME")
    parser.add_argument("--ours", action="store_true", help="only heatsketch, again")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument("--page", action="store_true", help="only write page and figure again")
    options = parser.parse_args()
    failed = [] if options.page else measure(options)
    results = results_so_far()
    picture(results)
    PAGE.write_text("\n".join(page(results)) + "\n")
    for path in SHORT_PAGES:
        path.write_text(with_short_table(path.read_text(), results))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
