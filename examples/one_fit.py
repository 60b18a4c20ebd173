"""One fit, five uses: search, compare, label, smooth and cluster 70,000 images.

    python examples/one_fit.py

Fashion-MNIST is the Debian package dataset-fashion-mnist. Each line prints a result and its time.
"""

import argparse
import gzip
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.metrics import adjusted_rand_score

from heatsketch import HeatClustering, HeatLabels, HeatSketch

FOLDER = Path("/usr/share/datasets/fashion-mnist")
N_TRAIN, N_LABELS = 60_000, 50


def images(part):
    """Return the images of a part, and what they show."""
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        return X.astype(np.float32), np.frombuffer(file.read(), np.uint8, offset=8).astype(int)


def same_class(u, labels, queries):
    """Return the share of the first hundred neighbours, by inner products, of the same class."""
    near = np.argpartition(-(u[queries] @ u.T), 100, axis=1)[:, :101]
    same = (labels[near] == labels[queries, np.newaxis]).sum(axis=1) - 1  # but for itself
    return same.mean() / 100


def searched(model, X, labels, queries):
    """Return how good a search by vectors is."""
    share = same_class(model.vectors(append=X), labels, queries)
    return f"search: {share:.3f} of 100 neighbours are of the same class"


def compared(model, is_test):
    """Return whether training and test images differ."""
    found = model.compare(np.where(is_test, "test", "train"))
    return f"train against test: p = {found.p_value:.3f}, {found.flagged.sum()} images flagged"


def labelled(model, labels, rng):
    """Return the accuracy of labels from 50 images, five of each class."""
    y = np.full(len(labels), -1)
    for which in np.unique(labels):
        y[rng.choice(np.flatnonzero(labels == which), N_LABELS // 10, replace=False)] = which
    found = HeatLabels(model).fit(None, y).transduction_
    return f"accuracy from {N_LABELS} labels: {np.mean(found[y < 0] == labels[y < 0]):.3f}"


def smoothed(model, X, rng):
    """Return how much of noise that was added is taken out again."""
    pixels = rng.choice(np.flatnonzero(X.std(axis=0) > 50), 64, replace=False)
    clean = X[:, pixels]
    noisy = clean + rng.normal(0, 100, clean.shape).astype(np.float32)
    found = model.smooth(noisy)
    errors = [np.sqrt(np.mean((values - clean) ** 2)) for values in (noisy, found.values)]
    return f"error of noisy pixels: {errors[0]:.0f} -> {errors[1]:.0f}, time {found.time}"


def clustered(model, labels):
    """Return how well ten clusters agree with the classes."""
    found = HeatClustering(10, model).fit(None).labels_
    return f"ten clusters: adjusted Rand index {adjusted_rand_score(labels, found):.3f}"


def main():
    """Fit once, and use it five times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=70_000, help="of which a part is used")
    options = parser.parse_args()
    parts = [images(part) for part in ("train", "t10k")]
    X, labels = (np.concatenate(both) for both in zip(*parts, strict=True))
    is_test = np.arange(len(X)) >= N_TRAIN
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(len(X))[: options.points])
    X, labels, is_test = X[some], labels[some], is_test[some]
    start = perf_counter()
    model = HeatSketch().fit(X)
    fit = perf_counter() - start
    print(f"{fit:6.1f} s  fit of {len(X)} images", flush=True)
    queries = rng.choice(len(X), 1000, replace=False)
    raw = same_class(X / np.linalg.norm(X, axis=1, keepdims=True), labels, queries)
    print(f"{'':8}  (by raw cosines {raw:.3f} of 100 neighbours are of the same class)")
    total = 0.0
    for use in (
        lambda: searched(model, X, labels, queries),
        lambda: compared(model, is_test),
        lambda: labelled(model, labels, rng),
        lambda: smoothed(model, X, rng),
        lambda: clustered(model, labels),
    ):
        start = perf_counter()
        said = use()
        seconds = perf_counter() - start
        total += seconds
        print(f"{seconds:6.1f} s  {said}", flush=True)
    print(f"{total:6.1f} s  all uses together: {total / fit:.1f} times the fit")


if __name__ == "__main__":
    main()
