"""Draw the picture of docs/how_to/compare.md: a new class of digits, and the rows around it."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from heatsketch import HeatGraph, compare_to, plot

FILE = Path(__file__).parent.parent / "docs" / "pictures" / "compare.png"
BLUE, ORANGE = "#0072B2", "#D55E00"
NEW = 6  # the digit that the reference lacks


def samples():
    """Return the rows of January and of February, and the digits of February."""
    X, digit = load_digits(return_X_y=True)
    is_january = np.random.default_rng(0).integers(2, size=len(X)) == 0
    return X[is_january & (digit != NEW)], X[~is_january], digit[~is_january]


def main():
    """Draw it."""
    plt.style.use("heatsketch.plot.heatsketch")
    january, february, digit = samples()
    comparison = compare_to(HeatGraph.from_points(january), february)
    of_february = comparison.at(np.arange(len(january), len(january) + len(february)))
    flagged = of_february.flagged & (of_february.effect > 0)
    share = np.mean(digit[flagged] == NEW)
    print(f"{comparison}; {share:.0%} of {flagged.sum()} flagged rows of February are new")
    plane = TSNE(random_state=0, max_iter=500).fit_transform(np.concatenate([january, february]))

    figure = plt.figure(figsize=(12, 4))
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.2, 0.8])
    rows = np.arange(len(plane)) >= len(january)
    for name, some, color in (("January", ~rows, BLUE), ("February", rows, ORANGE)):
        left.scatter(*plane[some].T, s=5, linewidths=0, color=color, label=name)
    left.legend(markerscale=3, loc="upper left")
    left.set(title="Two samples of digits", xticks=[], yticks=[], xlabel="t-SNE")
    left.set_aspect("equal", adjustable="datalim")
    plot.compare(plane, comparison, ax=middle)
    middle.set(xticks=[], yticks=[], xlabel="t-SNE", ylabel="")
    shown = np.random.default_rng(0).permutation(np.flatnonzero(flagged))[:20]
    images = np.pad(february[shown].reshape(4, 5, 8, 8), [(0, 0), (0, 0), (1, 1), (1, 1)])
    images = images.transpose(0, 2, 1, 3).reshape(40, 50)
    right.imshow(images, cmap="gray_r")
    right.set(title="20 flagged rows of February", xticks=[], yticks=[])
    figure.savefig(FILE, dpi=100)


if __name__ == "__main__":
    main()
