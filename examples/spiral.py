"""Draw distances along a spiral, by ``HeatSketch()`` with default parameters."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from heatsketch import HeatSketch

FILE = Path(__file__).parent.parent / "docs" / "pictures" / "spiral.png"
BLUE, ORANGE = "#0072B2", "#D55E00"
N_POINTS, START = 600, 40


def spiral():
    """Return points along nearly two turns, with noise, in their order."""
    rng = np.random.default_rng(0)
    along = np.sqrt(np.linspace(0.15, 1, N_POINTS))  # evenly spaced on the curve, nearly
    angle = 6 * np.pi * along
    curve = along[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return curve + 0.006 * rng.normal(size=curve.shape)


def main():
    """Draw it."""
    plt.style.use("heatsketch.plot.heatsketch")
    X = spiral()
    model = HeatSketch().fit(X)  # no arguments
    others = np.arange(0, N_POINTS, 12)
    pairs = np.column_stack([np.full(len(others), START), others])
    distance, low, high = model.sketch_.distances(pairs)
    straight = np.linalg.norm(X[others] - X[START], axis=1)
    everywhere = np.linalg.norm(model.embedding_ - model.embedding_[START], axis=1)

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    points = left.scatter(*X.T, c=everywhere, s=8)
    left.plot(*X[START], "*", color=ORANGE, ms=15)
    left.set(title="Distance from the star", xticks=[], yticks=[])
    left.set_aspect("equal")
    figure.colorbar(points, ax=left, label="diffusion distance")

    unit = straight.max() / distance.max()
    bars = unit * np.array([distance - low, high - distance])
    label = "diffusion distance, scaled, 95 % interval"
    right.errorbar(others, unit * distance, bars, fmt="o", ms=3, lw=1, color=BLUE, label=label)
    right.plot(others, straight, "--", color="0.4", label="Euclidean distance")
    right.axvline(START, color=ORANGE, lw=1)
    right.set(
        title="Diffusion distances follow the curve",
        xlabel="position along the spiral (point number)",
        ylabel="distance",
    )
    right.legend(loc="lower right")
    figure.savefig(FILE, dpi=130)


if __name__ == "__main__":
    main()
