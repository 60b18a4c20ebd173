"""Draw the pictures of the page on parameters: time, horizon, neighbours, normalization.

::

    python examples/parameters.py
    python examples/parameters.py neighbors  # one of time, horizon, neighbors, normalization
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from spiral import START, spiral

from heatsketch import HeatGraph, HeatSketch, sketch
from heatsketch.diffusion import gaussian_matrix, sketch_all_times
from heatsketch.exceptions import DisconnectedGraphWarning

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "0.5"
MARKS = {"spiral": ("o", BLUE), "Swiss roll": ("^", GREEN), "digits": ("s", ORANGE)}
SEEDS = range(3)


# --- data -------------------------------------------------------------------------------------


def swiss_roll(*, seed=0, density_ratio=1.0, n_points=2000):
    """Return a Swiss roll and its flat coordinates; one end may be sampled more densely."""
    rng = np.random.default_rng(seed)
    along, across = rng.random((2, n_points))
    if density_ratio != 1:
        along = np.log1p(along * (density_ratio - 1)) / np.log(density_ratio)
    angle = 1.5 * np.pi * (1 + 2 * along)
    X = np.column_stack([angle * np.cos(angle), 21 * across, angle * np.sin(angle)])
    length = (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2
    return X, np.column_stack([length, 21 * across])


def block_model(n_nodes=2000, n_groups=5, n_edges=14_500):
    """Return a graph of groups whose nodes differ widely in degree, and the group of each."""
    rng = np.random.default_rng(0)
    groups, weights = np.arange(n_nodes) % n_groups, 1 + rng.pareto(1.5, n_nodes)
    weights = np.minimum(weights, 30 * np.median(weights))
    ends = rng.choice(n_nodes, (2, n_edges), p=weights / weights.sum())
    for group in range(n_groups):
        inside = (groups[ends[0]] == group) & (rng.random(n_edges) < 0.4)
        p = weights * (groups == group)
        ends[1, inside] = rng.choice(n_nodes, inside.sum(), p=p / p.sum())
    ends = ends[:, ends[0] != ends[1]]
    graph = sparse.csr_array((np.ones(ends.shape[1]), tuple(ends)), (n_nodes, n_nodes))
    graph = ((graph + graph.T) > 0).astype(float)
    linked = np.flatnonzero(graph.sum(axis=1))
    return graph[linked][:, linked], groups[linked]


# --- measures ---------------------------------------------------------------------------------


def distances_from(Y, row):
    """Return Euclidean distances of all rows from one."""
    return np.linalg.norm(Y - Y[row], axis=1)


def rank_correlation(Y, flat):
    """Rank correlation of embedded distances with those along the manifold, random pairs."""
    i, j = np.random.default_rng(0).integers(len(Y), size=(2, 10_000))
    found = [np.linalg.norm(points[i] - points[j], axis=1) for points in (Y, flat)]
    return spearmanr(*found).statistic


def mean_average_precision(Y, labels):
    """Precision of ranking all other points by distance; the same label is relevant."""
    lengths = (Y**2).sum(axis=1)
    squares = lengths[:, np.newaxis] + lengths - 2 * Y @ Y.T
    np.fill_diagonal(squares, -np.inf)
    hits = labels[np.argsort(squares, axis=1)[:, 1:]] == labels[:, np.newaxis]
    precision = hits.cumsum(axis=1) / np.arange(1, hits.shape[1] + 1)
    return np.mean((precision * hits).sum(axis=1) / hits.sum(axis=1))


def accuracy(classifier, Y, labels, *, known):
    """Return the accuracy of a classifier, mean over three splits."""
    scores = []
    for seed in SEEDS:
        Y_train, Y_test, train, test = train_test_split(
            Y, labels, train_size=known, random_state=seed, stratify=labels
        )
        scores.append(classifier.fit(Y_train, train).score(Y_test, test))
    return np.mean(scores)


# --- pictures ---------------------------------------------------------------------------------


def data_sets():
    """Return the name of each data set, its points, and a score of an embedding."""
    X, digit = load_digits(return_X_y=True)
    roll, flat = swiss_roll()
    along = np.arange(600)[:, np.newaxis]  # the points of the spiral are in order
    return [
        ("spiral", spiral(), lambda Y: rank_correlation(Y, along)),
        ("Swiss roll", roll, lambda Y: rank_correlation(Y, flat)),
        ("digits", X, lambda Y: mean_average_precision(Y, digit)),
    ]


def time():
    """One power against the sum over all times."""
    powers = [2**i for i in range(13)]
    figure, (left, right) = two_panels()
    for name, X, score in data_sets():
        made = sketch(HeatGraph.from_points(X))
        mark, color = MARKS[name]
        path = made.path(powers)
        right.plot(powers, [score(Y) for Y in path], f"{mark}-", color=color, ms=4, label=name)
        right.plot([powers[0], powers[-1]], 2 * [score(made.embedding)], ":", color=color, lw=2)
        if name == "spiral":
            shown = {
                "power = 8": path[3],
                "power = 512": path[9],
                'power = "all"': made.embedding,
            }
    draw_along(left, shown)
    left.set_title("Spiral: distances from one point")
    right.set(xscale="log", ylim=(0, 1.02), xlabel="power", ylabel="score")
    right.set_title("One power (lines), all times (dotted)")
    right.legend(loc="lower right")
    save(figure, "time")


def horizon():
    """Time after which heat is lost."""
    horizons = [30, 100, 300, 1000, 3000, 10_000, 100_000]
    figure, (left, right) = two_panels()
    for name, X, score in data_sets():
        graph = HeatGraph.from_points(X)
        first_power = sketch(graph).first_power
        G = graph.inner(gaussian_matrix(len(X), 64, seed=0))
        mark, color = MARKS[name]
        embeddings = {}
        for T in horizons:
            Y = sketch_all_times(graph.operator, G, first_power=first_power, horizon=T)
            embeddings[T] = graph.outer(Y)
        scores = [score(Y) for Y in embeddings.values()]
        right.plot(horizons, scores, f"{mark}-", color=color, ms=4, label=name)
        if name == "spiral":
            draw_along(left, {f"T = {T:,}": embeddings[T] for T in (30, 300, 10_000)})
    left.set_title("Spiral: distances from one point")
    right.axvline(10_000, color=GRAY, lw=1, ls="--")
    right.text(11_000, 0.04, "default", color="0.3")
    right.set(xscale="log", ylim=(0, 1.02), xlabel="horizon T", ylabel="score")
    right.set_title("Rank correlation; digits: mean average precision", fontsize=11)
    right.legend(loc="lower center")
    save(figure, "horizon")


def draw_along(axes, embeddings):
    """Draw distances from one point of the spiral to all others."""
    styles = zip(embeddings.items(), (":", "--", "-"), (ORANGE, GREEN, BLUE), strict=True)
    for (label, Y), style, color in styles:
        found = distances_from(Y, START)
        axes.plot(found / found.max(), style, color=color, lw=1.8, label=label)
    axes.plot(START, 0, "*", color="black", ms=10)
    axes.set(xlabel="position along the spiral (point number)", ylabel="distance / largest")
    axes.legend(loc="lower right")


def neighbors():
    """How many neighbours the graph keeps."""
    X, digit = load_digits(return_X_y=True)
    sizes = [4, 7, 15, 30, 60, 120, 300, len(X)]
    scores = np.empty((2, len(SEEDS), len(sizes)))
    for place, size in enumerate(sizes):
        for seed in SEEDS:
            n_neighbors = None if size == len(X) else size
            Y = HeatSketch(n_neighbors=n_neighbors, random_state=seed).fit_transform(X)
            nearest = KNeighborsClassifier(10)
            scores[0, seed, place] = accuracy(nearest, Y, digit, known=0.5)
            scores[1, seed, place] = mean_average_precision(Y, digit)
    raw = accuracy(KNeighborsClassifier(10), X, digit, known=0.5), mean_average_precision(X, digit)
    figure, axes = two_panels()
    for ax, values, pixels in zip(axes, scores, raw, strict=True):
        low, middle, high = values.min(axis=0), values.mean(axis=0), values.max(axis=0)
        bars = [middle - low, high - middle]
        ax.errorbar(sizes, middle, bars, fmt="o-", color=BLUE, ms=4)
        ax.text(80, middle[4], "HeatSketch", color=BLUE)
        ax.axhline(pixels, color=ORANGE, ls="--")
        above = {"xytext": (0, 4), "textcoords": "offset points"}
        ax.annotate("64 pixels, Euclidean", (200, pixels), color=ORANGE, ha="center", **above)
        ax.axvline(15, color=GRAY, lw=1, ls=":")
        ax.text(16, 0.97, "default", color="0.3", transform=ax.get_xaxis_transform(), va="top")
        ax.set(xscale="log", xlabel="n_neighbors")
        ax.set_xticks([4, 15, 60, 300, len(X)], ["4", "15", "60", "300", "all"])
        ax.minorticks_off()
    axes[0].set(ylabel="accuracy", title="Ten neighbours, half labelled")
    axes[1].set(ylabel="mean average precision", title="Rank all other digits")
    save(figure, "neighbors")


def normalization():
    """Three normalizations, on a graph and on unevenly sampled points."""
    names = {"degree": (BLUE, "o"), "symmetric": (ORANGE, "^"), "bistochastic": (GREEN, "s")}
    graph, group = block_model()
    # Nodes by degree, in ten groups of about equal size.
    tenths = np.array_split(np.argsort(graph.sum(axis=1), kind="stable"), 10)
    degrees = [np.median(graph.sum(axis=1)[rows]) for rows in tenths]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.6))
    for place, (name, (color, mark)) in enumerate(names.items()):
        Y = HeatSketch(normalization=name).fit_transform(graph)
        lengths = np.linalg.norm(Y, axis=1)
        Y /= np.sqrt(np.mean(lengths**2))
        means = [np.mean(lengths[rows] ** 2) / np.mean(lengths**2) for rows in tenths]
        left.plot(degrees, means, f"{mark}-", ms=5, color=color, label=name)
        score = accuracy(LogisticRegression(max_iter=1000), Y, group, known=0.1)
        middle.bar_label(middle.bar(place, score, color=color, edgecolor="black"), fmt="%.2f")
        for seed in SEEDS:
            X, flat = swiss_roll(seed=seed, density_ratio=1000)
            for shift, weights, face in ((-0.15, "local", color), (0.15, "gaussian", "white")):
                Y = HeatSketch(normalization=name, weights=weights).fit_transform(X)
                score = rank_correlation(Y, flat)
                right.plot(place + shift, score, mark, color=color, mfc=face, ms=7, mew=1.5)
    for face, weights in (("black", "local"), ("white", "gaussian")):
        label = f'weights="{weights}"'
        right.plot([], [], "o", color="black", mfc=face, ms=7, label=label)
    right.legend(loc="lower right")
    left.axhline(1, color=GRAY, ls="--", lw=1)
    left.set(xscale="log", yscale="log", xlabel="degree of the nodes")
    left.set_ylabel("mean squared row length / overall")
    left.set_xticks([3, 5, 10, 20, 40], ["3", "5", "10", "20", "40"])
    left.set_xticks([], minor=True)
    left.set_title("Graph: which rows are long", fontsize=11)
    left.legend(loc="upper right")
    middle.axhline(0.2, color="black", ls="--", lw=1)
    middle.set(ylim=(0, 0.9), ylabel="accuracy")
    middle.set_title("Graph: logistic regression", fontsize=11)
    right.set(xlim=(-0.5, 2.5), ylim=(0.75, 1), ylabel="rank correlation")
    right.set_title("Points: uneven Swiss roll", fontsize=11)
    for ax in (middle, right):
        ax.set_xticks(range(len(names)), names)
    save(figure, "normalization")


def two_panels():
    """Return a figure with two axes."""
    return plt.subplots(1, 2, figsize=(9.5, 3.8))


def save(figure, name):
    """Write a picture of the page."""
    figure.savefig(PICTURES / f"parameters-{name}.png", dpi=100)
    plt.close(figure)


DRAWN = {
    "time": time,
    "horizon": horizon,
    "neighbors": neighbors,
    "normalization": normalization,
}


def main():
    """Draw those that are named, or all."""
    plt.style.use("heatsketch.plot.heatsketch")
    warnings.simplefilter("ignore", DisconnectedGraphWarning)  # some values tried are bad ones
    for name in sys.argv[1:] or DRAWN:
        DRAWN[name]()


if __name__ == "__main__":
    main()
