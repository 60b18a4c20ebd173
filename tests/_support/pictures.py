"""The pictures that are compared with those in ``tests/baseline``.

Run it after a wanted change, and look at what it wrote: ``python tests/_support/pictures.py``.
"""

from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from heatsketch import HeatSketch, compare, drift, plot
from heatsketch.diffusion import estimate_epsilon

BASELINE = Path(__file__).parents[1] / "baseline"
SIZE = {"dpi": 60, "metadata": {"Software": None}}


@cache
def digits():
    X, digit = load_digits(return_X_y=True)
    return X[:600], digit[:600]


@cache
def model():
    return HeatSketch(64, weights="gaussian").fit(digits()[0])


@cache
def crowd():
    """More points than pixels: three heaps."""
    rng = np.random.default_rng(0)
    heap = rng.integers(3, size=150_000)
    centres = np.array([[0, 0], [4, 0], [2, 3]])
    return centres[heap] + rng.normal(size=(150_000, 2)), heap


def moved():
    X, _ = digits()
    noise = np.random.default_rng(0).normal(size=(2, *X.shape)) / 2
    before, after = X + noise
    after[7], after[100] = X[0], X[1]
    models = (HeatSketch(power=2, weights=500).fit(points) for points in (before, after))
    return drift(*models)


def curves():
    sizes, rng = [2, 4, 8, 16, 32], np.random.default_rng(0)
    return {
        name: (sizes, 1 + scale / np.sqrt(sizes) * rng.uniform(0.8, 1.2, (5, 5)))
        for name, scale in (("diffusion map", 30), ("sketch", 12), ("near isometry", 3))
    }


@cache
def compared(n_samples=2):
    """The sixes of the last sample are missing in the others."""
    X, digit = load_digits(return_X_y=True)
    sample = np.random.default_rng(0).integers(n_samples, size=len(X))
    kept = (digit != 6) | (sample == n_samples - 1)
    fitted = HeatSketch(16).fit(X[kept])
    return fitted, compare(fitted, sample[kept])


PICTURES = {
    "embedding-ritz-labels": lambda: plot.embedding(model(), digits()[1], label="digit"),
    "embedding-pca-values": lambda: plot.embedding(
        model().embedding_, digits()[0].sum(axis=1), label="ink"
    ),
    "embedding-plain": lambda: plot.embedding(model().embedding_[:, :2]),
    "density-plain": lambda: plot.embedding(crowd()[0]),
    "density-labels": lambda: plot.embedding(crowd()[0], crowd()[1], label="heap"),
    "density-values": lambda: plot.embedding(crowd()[0], crowd()[0][:, 0], label="x"),
    "multiscale": lambda: plot.multiscale(model(), (1, 8, 64), color=digits()[1])[0],
    "heat_trace": lambda: plot.heat_trace(HeatSketch(16).fit(digits()[0])),
    "epsilon": lambda: plot.epsilon(estimate_epsilon(digits()[0], metric="euclidean")),
    "distances": lambda: plot.distances(model()),
    "distortion-model": lambda: plot.distortion(model()),
    "distortion-curves": lambda: plot.distortion(curves()),
    "drift": lambda: plot.drift(moved()),
    "compare-two": lambda: plot.compare(*compared()),
    "compare-three": lambda: plot.compare(*compared(3)),
}


def save(name, folder):
    """Draw a picture, save it, and return its path."""
    with mpl.style.context("default"):
        ax = PICTURES[name]()
        path = folder / f"{name}.png"
        ax.figure.savefig(path, **SIZE)
        plt.close(ax.figure)
    return path


if __name__ == "__main__":
    BASELINE.mkdir(exist_ok=True)
    for name in PICTURES:
        print(save(name, BASELINE))
