"""Draw the pictures of the page "Distances and their intervals", from scikit-learn's digits.

Run it from the root of the project: ``python examples/distances.py``.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll

from heatsketch import HeatGraph, plot, sketch
from heatsketch.diffusion import (
    estimate_epsilon,
    exact_diffusion_distances,
    gaussian_matrix,
    heat_trace,
    sketch_all_times,
)
from heatsketch.diffusion._all_times import DIRECTIONS_PER_COMPONENT
from heatsketch.diffusion._confidence import scale_interval

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
BLUE, ORANGE, GRAY = "#0072b2", "#d55e00", "#999999"


def _pairs(n_points, n_pairs, seed=0):
    return np.random.default_rng(seed).permutation(n_points)[: 2 * n_pairs].reshape(-1, 2)


def intervals(graph):
    """Sketched distances against exact ones."""
    pairs = _pairs(graph.n_samples, 60)
    made = sketch(graph)
    # With the identity instead of a random matrix, the rows are those of the operator itself.
    identity, options = np.eye(graph.n_samples), {"first_power": made.first_power}
    rows = sketch_all_times(graph.operator, identity, tolerance=1e-6, **options)
    rows = graph.outer(rows * np.sqrt(len(identity)))
    exact = np.linalg.norm(np.diff(rows[pairs], axis=1)[:, 0], axis=1)
    distance, low, high = made.distances(pairs)
    missed = (exact < low) | (exact > high)
    figure, ax = plt.subplots(figsize=(5.5, 4.5))
    for some, color, label in ((~missed, BLUE, "covers"), (missed, ORANGE, "misses")):
        bars = [(distance - low)[some], (high - distance)[some]]
        ax.errorbar(
            exact[some], distance[some], bars, fmt="o", ms=3, color=color, lw=1, label=label
        )
    ends = [0, exact.max() * 1.05]
    ax.plot(ends, ends, color=GRAY, zorder=0)
    ax.set(
        xlabel="exact diffusion distance",
        ylabel="distance in the embedding, 95 % interval",
        title=f"{missed.sum()} of 60 intervals miss; 3 are expected",
    )
    ax.legend()
    _save(figure, "intervals")


def growth(graph):
    """One distance, while the sketch grows."""
    made = sketch(graph, 4, power=8)
    pairs = [[0, 1000]]
    places = np.argsort(graph.order)[pairs]
    exact = exact_diffusion_distances(graph.operator, places, power=8, weighting="random_walk")
    sizes = [4, 8, 16, 32, 64, 128, 256, 512]
    estimates = [made.grow(k).distances(pairs) for k in sizes]
    figure, ax = plt.subplots(figsize=(5.5, 4))
    middle, low, high = (np.array([d[part][0] for d in estimates]) for part in range(3))
    ax.errorbar(sizes, middle, [middle - low, high - middle], fmt="o-", color=BLUE)
    ax.axhline(exact[0], color=ORANGE, label="exact")
    ax.set(
        xscale="log",
        xlabel="components",
        ylabel="diffusion distance",
        title="One distance in a growing sketch",
    )
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.minorticks_off()
    ax.legend()
    _save(figure, "growth")


def signs():
    """Intervals of Gaussian and of Rademacher matrices."""
    sizes = np.arange(4, 257)
    figure, ax = plt.subplots(figsize=(5.5, 4))
    for kind, color in (("gaussian", BLUE), ("rademacher", ORANGE)):
        ends = np.array([scale_interval(k, 0.95, random_matrix=kind) for k in sizes])
        ax.fill_between(sizes, ends[:, 0], np.minimum(ends[:, 1], 9), color=color, alpha=0.35)
        ax.plot(sizes, ends, color=color, label=["", kind])
    ax.set(
        xscale="log",
        ylim=(0.3, 4),
        xlabel="components",
        ylabel="true distance / sketched distance",
        title="95 % intervals, Gaussian and Rademacher",
    )
    ax.legend()
    _save(figure, "signs")


def epsilon_curve(X):
    """The curve from which one bandwidth for all links is estimated."""
    estimate = estimate_epsilon(X, metric="euclidean")
    figure, ax = plt.subplots(figsize=(5.5, 4))
    ax.plot(estimate.epsilons, estimate.dimensions, color=BLUE)
    ax.axvline(estimate.epsilon, color=ORANGE)
    ax.text(estimate.epsilon, 0, f" epsilon = {estimate.epsilon:.3g}", color=ORANGE)
    ax.axhline(estimate.dimension, color=GRAY, lw=1, ls="--")
    ax.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="estimated dimension",
        title=f"Digits: estimated dimension {estimate.dimension:.1f}",
    )
    _save(figure, "epsilon")


def trace_curve(graph):
    """Where the sum over all times starts, by the first of two conditions."""
    figure, ax = plt.subplots(figsize=(5.5, 4))
    G = gaussian_matrix(graph.n_samples, 256, seed=0)
    curve = heat_trace(graph.operator, G, largest=16)
    ax.plot(curve.powers, curve.directions, "-", color=GRAY, label="all powers, 256 components")
    for k, color, mark in ((16, ORANGE, "s"), (64, BLUE, "o")):
        trace = sketch(graph, k).times.heat_trace
        label = f"k = {k}: resolved at p = {trace.powers[-1]}"
        ax.plot(trace.powers, trace.directions, mark, color=color, label=label)
        ax.axhline(DIRECTIONS_PER_COMPONENT * k, color=color, lw=1, ls="--")
    ax.set(
        yscale="log",
        ylim=(10, 1500),
        xlabel="power p",
        ylabel="directions of the heat kernel",
        title="Heat flows until the sketch resolves the kernel",
    )
    ax.legend()
    _save(figure, "trace")


def path(graph, labels):
    """Distances at several times, and the diffusion map."""
    made = sketch(graph)
    coordinates = made.diffusion_map(2).coordinates
    figure, axes = plt.subplots(1, 3, figsize=(12, 4))
    powers = (1, 8, 64)
    for ax, power, Y in zip(axes, powers, made.path(powers), strict=True):
        rows = np.argsort(labels, kind="stable")[::6]
        distances = np.linalg.norm(Y[rows][:, np.newaxis] - Y[rows], axis=2)
        ax.imshow(distances, cmap="cividis")
        ax.set(title=f"p = {power}", xticks=[], yticks=[])
    figure.suptitle("Diffusion distances at three single powers: ten digits appear, then merge")
    _save(figure, "path")
    figure, ax = plt.subplots(figsize=(6.5, 5))
    plot.embedding(coordinates, labels, label="digit", ax=ax)
    ax.set(title="Diffusion map, computed from the sketch")
    _save(figure, "map")


def pseudotime():
    """Pseudotime from one end of a roll."""
    X, position = make_swiss_roll(2000, noise=0.3, random_state=0)
    made = sketch(HeatGraph.from_points(X), 128)
    distance, low, high = made.pseudotime(int(np.argmin(position)))
    order = np.argsort(position)
    figure, (roll, line) = plt.subplots(1, 2, figsize=(10, 4))
    points = roll.scatter(X[:, 0], X[:, 2], c=distance, s=6, cmap="cividis")
    figure.colorbar(points, label="pseudotime")
    roll.set(title="Swiss roll, from its inner end", xticks=[], yticks=[])
    line.fill_between(position[order], low[order], high[order], color=BLUE, alpha=0.3)
    line.plot(position[order], distance[order], color=BLUE, lw=0.8)
    line.set(
        xlabel="position along the roll (not given to the method)",
        ylabel="pseudotime, 95 % interval",
        title="It follows the roll, without eigenvectors",
    )
    _save(figure, "pseudotime")


def weightings(graph):
    """The two diffusion distances, pair by pair."""
    pairs = _pairs(graph.n_samples, 400)
    distances = [
        sketch(graph, 512, power=8, weighting=weighting).distances(pairs).distance
        for weighting in ("symmetric", "random_walk")
    ]
    density = graph.outer(graph.operator.stationary)
    figure, ax = plt.subplots(figsize=(5.5, 4.5))
    color = density[pairs].min(axis=1)
    points = ax.scatter(*distances, c=color / density.mean(), s=12, cmap="cividis")
    figure.colorbar(points, label="density where it is lower, over the mean")
    ax.set(
        xlabel='weighting="symmetric", as in the paper',
        ylabel='weighting="random_walk"',
        title="Sparse regions are farther away for a random walk",
    )
    _save(figure, "weightings")


def _save(figure, name):
    figure.savefig(PICTURES / f"{name}.png", dpi=110)
    plt.close(figure)


def main():
    """Draw all of them."""
    plt.style.use("heatsketch.plot.heatsketch")
    X, labels = load_digits(return_X_y=True)
    graph = HeatGraph.from_points(X)
    intervals(graph)
    growth(graph)
    signs()
    epsilon_curve(X)
    trace_curve(graph)
    path(graph, labels)
    pseudotime()
    weightings(graph)


if __name__ == "__main__":
    main()
