"""Draw what the page "Distances and their intervals" shows, from scikit-learn's digits.

Run it from the root of the project: ``python examples/distances.py``.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll

from heatsketch import HeatSketch, components_needed, plot
from heatsketch.diffusion import (
    exact_diffusion_distances,
    gaussian_matrix,
    heat_trace,
    sketch_all_times,
)
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.estimators.heat_sketch import DIRECTIONS_PER_COMPONENT

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
BLUE, ORANGE, GRAY = "#0072b2", "#d55e00", "#999999"


def _pairs(n_points, n_pairs, seed=0):
    return np.random.default_rng(seed).permutation(n_points)[: 2 * n_pairs].reshape(-1, 2)


def intervals(model):
    """Sketched distances against exact ones."""
    pairs = _pairs(len(model.embedding_), 60)
    # With the identity instead of a random matrix, the rows are those of the operator itself.
    identity, options = np.eye(len(model.order_)), {"first_power": model.power_, "tolerance": 1e-6}
    rows = sketch_all_times(model.heat_operator_, identity, **options) * np.sqrt(len(identity))
    exact = np.linalg.norm(np.diff(rows[np.argsort(model.order_)[pairs]], axis=1)[:, 0], axis=1)
    distance, low, high = model.diffusion_distances(pairs)
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


def components():
    """How many columns an error needs."""
    errors = np.geomspace(0.02, 0.5, 25)
    figure, ax = plt.subplots(figsize=(5.5, 4))
    for n_pairs, style in ((1, "-"), (1000, "--"), (10**6, ":")):
        needed = [components_needed(error, n_pairs=n_pairs) for error in errors]
        ax.plot(errors, needed, style, color=BLUE, label=f"{n_pairs:,} at once")
    ax.plot(errors, 0.5 / errors**2, color=GRAY, lw=1, label="1 / (2 error^2)")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="relative error of a distance",
        ylabel="components needed",
        title="Components for an error, at 95 %",
    )
    ax.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5], ["2 %", "5 %", "10 %", "20 %", "50 %"])
    ax.minorticks_off()
    ax.legend()
    _save(figure, "components")


def growth(X):
    """One distance, while the sketch grows."""
    model = HeatSketch(4, power=8).fit(X)
    pairs = [[0, 1000]]
    places = np.argsort(model.order_)[pairs]
    exact = exact_diffusion_distances(model.heat_operator_, places, power=8)
    sizes = [4, 8, 16, 32, 64, 128, 256, 512]
    found = [model.grow(k).diffusion_distances(pairs) for k in sizes]
    figure, ax = plt.subplots(figsize=(5.5, 4))
    middle, low, high = (np.array([f[part][0] for f in found]) for part in range(3))
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
    """Why signs have intervals of their own."""
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
    """Where one epsilon for all is read from."""
    estimate = HeatSketch(epsilon="auto").fit(X).epsilon_estimate_
    figure, ax = plt.subplots(figsize=(5.5, 4))
    ax.plot(estimate.epsilons, estimate.dimensions, color=BLUE)
    ax.axvline(estimate.epsilon, color=ORANGE)
    ax.text(estimate.epsilon, 0, f" epsilon = {estimate.epsilon:.3g}", color=ORANGE)
    ax.axhline(estimate.dimension, color=GRAY, lw=1, ls="--")
    ax.set(
        xscale="log",
        xlabel="epsilon",
        ylabel="dimension that the kernel sees there",
        title=f"Digits: the kernel sees about {estimate.dimension:.1f} dimensions",
    )
    _save(figure, "epsilon")


def trace_curve(X):
    """Where the sum over all times starts, by the first of two conditions."""
    figure, ax = plt.subplots(figsize=(5.5, 4))
    A = HeatSketch().fit(X).heat_operator_
    curve = heat_trace(A, gaussian_matrix(len(X), 256, seed=0), largest=16)
    ax.plot(curve.powers, curve.directions, "-", color=GRAY, label="all powers, 256 components")
    for k, color, mark in ((16, ORANGE, "s"), (64, BLUE, "o")):
        found = HeatSketch(k).fit(X).heat_trace_
        label = f"k = {k}: resolved at p = {found.powers[-1]}"
        ax.plot(found.powers, found.directions, mark, color=color, label=label)
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


def path(X, labels):
    """The same points at several times, by the diffusion map of each sketch."""
    model = HeatSketch().fit(X)
    coordinates = model.diffusion_map(2).coordinates
    figure, axes = plt.subplots(1, 3, figsize=(12, 4))
    powers = (1, 8, 64)
    for ax, power, Y in zip(axes, powers, model.path(powers), strict=True):
        rows = np.argsort(labels, kind="stable")[::6]
        distances = np.linalg.norm(Y[rows][:, np.newaxis] - Y[rows], axis=2)
        ax.imshow(distances, cmap="cividis")
        ax.set(title=f"p = {power}", xticks=[], yticks=[])
    figure.suptitle("Diffusion distances at three single powers: ten digits appear, then merge")
    _save(figure, "path")
    figure, ax = plt.subplots(figsize=(6.5, 5))
    plot.embedding(coordinates, labels, label="digit", ax=ax)
    ax.set(title="Diffusion map out of the sketch")
    _save(figure, "map")


def pseudotime():
    """All times together, from one end of a roll."""
    X, position = make_swiss_roll(2000, noise=0.3, random_state=0)
    model = HeatSketch(128).fit(X)
    distance, low, high = model.pseudotime(int(np.argmin(position)))
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


def weightings(X):
    """The two diffusion distances, pair by pair."""
    pairs = _pairs(len(X), 400)
    found = {}
    for weighting in ("symmetric", "random_walk"):
        model = HeatSketch(512, power=8, weighting=weighting).fit(X)
        found[weighting] = model.diffusion_distances(pairs).distance
        density = model._in_given_order(model.heat_operator_.stationary)
    figure, ax = plt.subplots(figsize=(5.5, 4.5))
    color = density[pairs].min(axis=1)
    points = ax.scatter(*found.values(), c=color / density.mean(), s=12, cmap="cividis")
    figure.colorbar(points, label="density where it is lower, over the mean")
    ax.set(
        xlabel='weighting="symmetric", as in the paper',
        ylabel='weighting="random_walk"',
        title="A random walk finds sparse regions farther away",
    )
    _save(figure, "weightings")


def _save(figure, name):
    figure.savefig(PICTURES / f"{name}.png", dpi=110)
    plt.close(figure)


def main():
    """Draw all of them."""
    plt.style.use("heatsketch.plot.heatsketch")
    X, labels = load_digits(return_X_y=True)
    model = HeatSketch().fit(X)
    intervals(model)
    components()
    growth(X)
    signs()
    epsilon_curve(X)
    trace_curve(X)
    path(X, labels)
    pseudotime()
    weightings(X)


if __name__ == "__main__":
    main()
