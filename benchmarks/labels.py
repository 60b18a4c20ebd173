"""Few labels, wrong labels and fates, against the tools that people use for them.

::

    python benchmarks/labels.py                       # accuracy with 1 and 5 labels of each class
    python benchmarks/labels.py --coverage            # of the sets of predict_set
    python benchmarks/labels.py --rare                # the same, with rare classes
    python benchmarks/labels.py --suspects            # precision of finding wrong labels
    python benchmarks/labels.py --scale [--points N]  # 697,526 points of 15 features by default
    python benchmarks/labels.py --fates [--points N]  # against a direct solver, and one million
    python benchmarks/labels.py --fresh ...           # measure again what the file has

Results are added to docs/benchmarks/labels.json one by one, and what is there is not measured
again. Accuracy is that of rows without a label, over 20 samples of labels. GraphLearning and
cleanlab are compared with if they are installed; nothing of theirs is used otherwise.
LabelSpreading of scikit-learn has a graph of 10 neighbours and three values of ``alpha``. cleanlab
gets the class shares of the 10 nearest other points, or of cross-validated 10-NN, for two scores.
"""

import argparse
import subprocess
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from data import digits, fashion, manifold
from scipy import sparse
from scipy.sparse.linalg import splu
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors, kneighbors_graph
from sklearn.semi_supervised import LabelSpreading
from timing import forget_peak, memory, read, write
from usefulness_data import debian_text, mnist

from heatsketch import HeatGraph, HeatLabels, harmonic
from heatsketch.exceptions import RareClassWarning

SEEDS, RATES, ALPHAS = range(20), (1, 5), (0.2, 0.8, 0.99)
N_OTHERS = 10  # neighbours of the other methods
COVERAGE, N_LABELS = 0.9, 100
N_RARE_SEEDS, N_RARE_POINTS, N_MODELS = 40, 800, 4
# Classes, their frequencies (proportional to a power of their rank), the standard deviation of
# their centres (1 within each class, 10 features), and the number of labels.
RARE = {
    "20 equal": (20, 0.0, 1.0, 40),
    "20 Zipf": (20, -1.0, 1.0, 40),
    "50 equal": (50, 0.0, 1.0, 100),
    "50 equal, more labels": (50, 0.0, 1.0, 300),
    "50 Zipf": (50, -1.0, 1.0, 200),
    "30 Zipf, overlapping": (30, -1.5, 0.5, 100),
}
WRONG, N_WRONG_SEEDS = 0.1, 5
N_SCALE, N_CLASSES = 697_526, 10
N_DIRECT, N_FATES = 20_000, 1_000_000


def texts():
    found = debian_text()
    return found["X"], found["labels"]


def first(load, n_points):
    return lambda: tuple(part[:n_points] for part in load())


IMAGES = {"digits": digits, "MNIST, 5,000": mnist, "Fashion-MNIST, 10,000": first(fashion, 10_000)}
LABELLED = {**IMAGES, "Debian descriptions, 6,000": first(texts, 6000)}


@cache
def data(name):
    X, labels = LABELLED[name]()
    return np.asarray(X, np.float32), np.unique(labels, return_inverse=True)[1]


def metric_of(name):
    return "cosine" if "Debian" in name else "euclidean"


@cache
def graph_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about several connected components
        return HeatGraph.from_points(data(name)[0], metric=metric_of(name))


def some_of_each(labels, rate, seed):
    """Return labels of ``rate`` rows of each class, -1 elsewhere."""
    rng, y = np.random.default_rng(seed), np.full(len(labels), -1)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))[:rate]
        y[rows] = label
    return y


# --- accuracy -----------------------------------------------------------------------------------


def by_heat(name):
    graph = graph_of(name)
    return lambda y: HeatLabels().fit(graph, y).transduction_


@cache
def plain_graph(name):
    return kneighbors_graph(data(name)[0], N_OTHERS, metric=metric_of(name))


def by_spreading(alpha):
    def method(name):
        model = LabelSpreading(lambda X, Y=None: plain_graph(name), alpha=alpha, max_iter=1000)
        return lambda y: model.fit(np.zeros((len(y), 1)), y).transduction_

    return method


def by_graph_learning(name):
    import graphlearning

    X, _ = data(name)
    search = NearestNeighbors(n_neighbors=N_OTHERS + 1).fit(X)  # exact, with the point itself
    W = graphlearning.weightmatrix.knn(X, N_OTHERS, knn_data=search.kneighbors(X)[::-1])

    def poisson(y):
        known = np.flatnonzero(y >= 0)
        return graphlearning.ssl.poisson(W).fit_predict(known, y[known])

    return poisson


METHODS = {
    "HeatLabels": by_heat,
    "GraphLearning, Poisson": by_graph_learning,
    **{f"LabelSpreading, alpha {alpha}": by_spreading(alpha) for alpha in ALPHAS},
}


def accuracies(name, method, rate):
    truth, found = data(name)[1], []
    for seed in SEEDS:
        y = some_of_each(truth, rate, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of spreading that has not converged
            predicted = method(y)
        found.append(float(np.mean(predicted[y < 0] == truth[y < 0])))
    return {**summary("accuracy", found), "seeds": len(SEEDS)}


def summary(name, values):
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return {name: round(float(np.mean(values)), 4), "standard error": round(float(error), 4)}


def accuracy(keep, is_there, options):
    for name in IMAGES:
        for title, method in METHODS.items():
            if "GraphLearning" in title and find_spec("graphlearning") is None:
                continue
            for rate in RATES:
                key = f"{name}, {rate} a class"
                if not is_there("accuracy", key, title):
                    keep("accuracy", key, title, accuracies(name, method(name), rate))


# --- coverage -----------------------------------------------------------------------------------


def coverage(keep, is_there, options):
    """Rows with a label are a random sample here, as the guarantee needs."""
    for name in IMAGES:
        if is_there("coverage", name):
            continue
        graph, truth, shares, sizes = graph_of(name), data(name)[1], [], []
        for seed in SEEDS:
            known = np.random.default_rng(seed).permutation(len(truth))[:N_LABELS]
            y = np.full(len(truth), -1)
            y[known] = truth[known]
            sets = sets_of(graph, data(name)[0], truth, y, seed)
            shares.append(sets[np.arange(len(sets)), truth[y < 0]].mean())
            sizes.append(sets.sum(axis=1).mean())
        found = {**summary("share that holds the truth", shares), "labels": N_LABELS}
        keep("coverage", name, None, {**found, "classes in a set": round(np.mean(sizes), 2)})


def sets_of(graph, X, truth, y, seed):
    """Return the sets of rows without a label; a column for each class, with a label or not."""
    labels = HeatLabels(random_state=seed).fit(graph, y)
    sets = np.zeros((np.sum(y < 0), truth.max() + 1), bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RareClassWarning)
        sets[:, labels.classes_] = labels.predict_set(X[y < 0], coverage=COVERAGE)
    return sets


@cache
def clusters(name, seed):
    n_classes, power, spread, _ = RARE[name]
    rng, frequencies = np.random.default_rng(seed), np.arange(1.0, n_classes + 1) ** power
    truth = rng.choice(n_classes, N_RARE_POINTS, p=frequencies / frequencies.sum())
    centres = spread * rng.standard_normal((n_classes, 10))
    X = centres[truth] + rng.standard_normal((N_RARE_POINTS, 10))
    return X, truth, HeatGraph.from_points(X)


def rare(keep, is_there, options):
    for name, (*_, n_labels) in RARE.items():
        if is_there("rare", name):
            continue
        shares, sure, known_classes, all_classes, sizes = [], [], [], [], []
        for seed in range(N_RARE_SEEDS):
            X, truth, graph = clusters(name, seed % N_MODELS)
            known = np.random.default_rng(seed).permutation(len(truth))[:n_labels]
            y = np.full(len(truth), -1)
            y[known] = truth[known]
            sets = sets_of(graph, X, truth, y, seed)
            holds = sets[np.arange(len(sets)), truth[y < 0]]
            is_all = bool((sets.sum(axis=1) == len(np.unique(truth[known]))).all())
            shares.append(holds.mean())
            sure.append(1.0 if is_all else holds.mean())
            known_classes.append(np.isin(truth[y < 0], truth[known]).mean())
            all_classes.append(is_all)
            sizes.append(sets.sum(axis=1).mean())
        found = {**summary("share that holds the truth", shares), "labels": n_labels}
        found |= {"classes in a set": round(np.mean(sizes), 2)}
        found |= {"share whose class has a label": round(np.mean(known_classes), 4)}
        found |= {"samples with all classes": round(np.mean(all_classes), 3)}
        found |= {"share, if all classes are any class": round(np.mean(sure), 4)}
        keep("rare", name, None, found)


# --- wrong labels -------------------------------------------------------------------------------


def with_errors(truth, type_of_error, seed):
    rng, n_classes = np.random.default_rng(seed), truth.max() + 1
    is_wrong = rng.random(len(truth)) < WRONG
    step = rng.integers(1, n_classes, len(truth)) if type_of_error == "random" else 1
    return np.where(is_wrong, (truth + step) % n_classes, truth)


def by_margin(name, y):
    found = HeatLabels().fit(graph_of(name), y).suspects()
    scores = np.empty(len(y))
    scores[found.rows] = found.margin
    return {"HeatLabels.suspects": scores}


@cache
def other_neighbors(name):
    X, _ = data(name)
    search = NearestNeighbors(n_neighbors=N_OTHERS + 1, metric=metric_of(name)).fit(X)
    return search.kneighbors(X, return_distance=False)[:, 1:]


def by_cleanlab(name, y):
    if find_spec("cleanlab") is None:
        return {}
    from cleanlab.rank import get_label_quality_scores

    classifier = KNeighborsClassifier(N_OTHERS, metric=metric_of(name))
    folds = cross_val_predict(classifier, data(name)[0], y, method="predict_proba", cv=5)
    others = np.eye(y.max() + 1)[y[other_neighbors(name)]].mean(axis=1)
    return {
        f"cleanlab, {title}, {method}": get_label_quality_scores(y, shares, method=method)
        for title, shares in (("cross-validated 10-NN", folds), ("10 others", others))
        for method in ("self_confidence", "normalized_margin")
    }


def suspects(keep, is_there, options):
    for name in LABELLED:
        for type_of_error in ("random", "next class"):
            key = f"{name}, {type_of_error}"
            if is_there("suspects", key):
                continue
            found = {}
            for seed in range(N_WRONG_SEEDS):
                truth = data(name)[1]
                y = with_errors(truth, type_of_error, seed)
                for title, scores in (by_margin(name, y) | by_cleanlab(name, y)).items():
                    precision = average_precision_score(y != truth, -scores)
                    found.setdefault(title, []).append(precision)
            for title, values in found.items():
                keep("suspects", key, title, summary("average precision", values))


# --- scale --------------------------------------------------------------------------------------


def scale(keep, is_there, options):
    """All in one process: the graph of the points and the labels; memory is that of the process."""
    n_points = options.points or N_SCALE
    if is_there("scale", str(n_points)):
        return
    X, rng = manifold(n_points, 15), np.random.default_rng(0)
    angles = X[:, 0] + 2 * X[:, 1]  # something that labels may depend on
    truth = np.searchsorted(np.quantile(angles, np.linspace(0, 1, N_CLASSES + 1)[1:-1]), angles)
    y = np.where(rng.random(n_points) < 1000 / n_points, truth, -1)
    forget_peak()
    start = perf_counter()
    labels = HeatLabels().fit(X, y)
    found = {"fit, s": round(perf_counter() - start, 1)}
    found["peak of the process, GiB"] = round(memory("VmHWM") / 2**30, 2)
    start = perf_counter()
    labels.predict(X[:10_000])
    found["predict 10,000, s"] = round(perf_counter() - start, 1)
    found |= {"labels": int(np.sum(y >= 0)), "classes": N_CLASSES}
    keep("scale", str(n_points), None, found)


# --- fates --------------------------------------------------------------------------------------


def branches(n_points, seed=0):
    """Return points of three arms that meet in a plane of 10 features, and where the ends are."""
    rng = np.random.default_rng(seed)
    arm, along = rng.integers(0, 3, n_points), rng.uniform(0, 1, n_points)
    angle = 2 * np.pi * arm / 3
    X = 0.02 * rng.standard_normal((n_points, 10))
    X[:, :2] += along[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X.astype(np.float32), arm, along > 0.99


def direct_solution(A, values, rows):
    """Solve for the probabilities of all fates by a sparse factorisation."""
    v = A.stationary.astype(np.float64)
    W = sparse.diags_array(v) @ A.matrix.astype(np.float64) @ sparse.diags_array(v)
    L = sparse.csc_array(sparse.diags_array(W.sum(axis=1)) - W)
    inner = np.setdiff1d(np.arange(len(v)), rows)
    found = np.zeros((len(v), values.shape[1]))
    found[rows] = values
    found[inner] = splu(L[inner][:, inner]).solve(-(L[inner][:, rows] @ values))
    return found


def fates(keep, is_there, options):
    for n_points in [options.points] if options.points else [N_DIRECT, N_FATES]:
        if is_there("fates", str(n_points)):
            continue
        X, arm, is_end = branches(n_points)
        start = perf_counter()
        graph = HeatGraph.from_points(X)
        found = {"graph, s": round(perf_counter() - start, 1)}
        rows = np.flatnonzero(is_end)
        values = np.eye(3)[arm[rows]]
        forget_peak()
        start = perf_counter()
        shares = harmonic(graph, values, rows)
        found["fates, s"] = round(perf_counter() - start, 1)
        found["peak of the process, GiB"] = round(memory("VmHWM") / 2**30, 2)
        found["terminal rows"] = len(rows)
        found["largest error of a row's sum"] = float(f"{np.abs(shares.sum(axis=1) - 1).max():.1e}")
        if n_points <= N_DIRECT:
            found |= against_direct(graph, values, rows, shares)
        keep("fates", str(n_points), None, found)


def against_direct(graph, values, rows, shares):
    places = np.argsort(graph.order)
    start = perf_counter()
    exact = graph.outer(direct_solution(graph.operator, values, places[rows]))
    seconds = round(perf_counter() - start, 1)
    difference = float(f"{np.abs(shares - exact).max():.1e}")
    return {"direct solver, s": seconds, "largest difference": difference}


# --- the file -----------------------------------------------------------------------------------


def results_so_far():
    return read("labels", {})


def keep(section, key, title, found):
    results = results_so_far()
    if title is None:
        results.setdefault(section, {})[key] = found
    else:
        results.setdefault(section, {}).setdefault(key, {})[title] = found
    print(section, "|", key, "|", title, "|", found, flush=True)
    write("labels", results, quiet=True)


SECTIONS = {f.__name__: f for f in (accuracy, coverage, rare, suspects, scale, fates)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in SECTIONS:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--points", type=int, help="instead of the size that scale and fates have")
    parser.add_argument("--fresh", action="store_true", help="measure again what the file has")
    options = parser.parse_args()
    known = {} if options.fresh else results_so_far()

    def is_there(section, key, title=None):
        found = known.get(section, {}).get(key, {})
        return bool(found) if title is None else title in found

    chosen = [name for name in SECTIONS if getattr(options, name)] or ["accuracy"]
    if len(chosen) == 1:
        SECTIONS[chosen[0]](keep, is_there, options)
        return
    for name in chosen:  # each in a process of its own, whose memory is measured
        others = {f"--{other}" for other in chosen if other != name}
        given = [argument for argument in sys.argv[1:] if argument not in others]
        subprocess.run([sys.executable, __file__, *given], check=True)


if __name__ == "__main__":
    main()
