"""Draw docs/pictures/labels.png: three labels among 1500 points, and what becomes of them.

::

    python examples/labels.py
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from heatsketch import HeatLabels

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "labels.png"
COLORS = np.array(["#0072b2", "#d55e00", "#009e73"])


def spirals(n_points=1500, seed=0):
    """Return points of three spirals, and which one each point belongs to."""
    rng = np.random.default_rng(seed)
    arm = np.arange(n_points) % 3
    along = np.sqrt(rng.uniform(0.03, 1, n_points))
    angle = 1.5 * np.pi * along + 2 * np.pi * arm / 3
    X = along[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.045 * rng.standard_normal(X.shape), arm, along


def draw():
    """Draw it."""
    plt.style.use("heatsketch.plot.heatsketch")
    X, arm, along = spirals()
    y = np.full(len(X), -1)
    known = [np.flatnonzero(arm == i)[np.argmax(along[arm == i])] for i in range(3)]
    y[known] = arm[known]
    nearest = KNeighborsClassifier(1).fit(X[known], arm[known]).predict(X)
    model = HeatLabels().fit(X, y)
    panels = {"Three labels": np.full(len(X), "#cccccc")}
    for name, found in (("Nearest label", nearest), ("HeatLabels", model.transduction_)):
        panels[f"{name}: {np.mean(found == arm):.0%} correct"] = COLORS[found]
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.6))
    for axis, (title, colors) in zip(axes, panels.items(), strict=True):
        axis.scatter(*X.T, s=4, c=colors, linewidths=0)
        axis.scatter(*X[known].T, s=90, c=COLORS[arm[known]], edgecolors="black", zorder=3)
        axis.set(aspect="equal", xticks=[], yticks=[], title=title)
        axis.spines[:].set_visible(False)
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    draw()
