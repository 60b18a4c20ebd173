r"""Find the regions of the brain that are wired differently in another strain of mice.

Two sketches that share their random numbers are subtracted, row by row, without alignment.
Diffusion maps have to be aligned: the signs, order and rotation of their eigenvectors are
arbitrary. Orthogonal Procrustes finds the best rotation.

The data are 32 connectomes of four strains (Wang et al., NeuroImage 2020), in the wheel of
graspologic. BTBR mice lack a corpus callosum (Wahlsten et al., Brain Research 2003); B6 do not.

::

    pip download --no-deps graspologic==3.4.4 -d .
    python examples/drift.py --wheel graspologic-3.4.4-py3-none-any.whl
"""

import argparse
import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from scipy.linalg import orthogonal_procrustes

from heatsketch import DiffusionMap, HeatGraph, drift, sketch

FOLDER = "graspologic/datasets/mice"
POWER, N_COLUMNS, LEVEL = 2, 256, 0.05
N_VECTORS = 3, 5, 10, 20, 50, 100
COLORS = {"found": "#D55E00", "not found": "#0072B2", "chance": "0.8"}


# --- the data -------------------------------------------------------------------------------


def connectomes(wheel):
    """Return the graphs of each strain, each mouse's weights summing to one, and the regions."""
    with zipfile.ZipFile(wheel) as files:

        def table(name):
            return list(csv.DictReader(io.StringIO(files.read(f"{FOLDER}/{name}").decode())))

        strains = {}
        for mouse in table("participants.csv"):
            name = f"{FOLDER}/edgelists/{mouse['participant_id']}_ses-1_dti.edgelist"
            edges = np.loadtxt(io.BytesIO(files.read(name)))
            strains.setdefault(mouse["genotype"], []).append(weights(edges))
        blocks = table("blocks.csv")
    regions = np.concatenate([[row["block"]] * (int(row["j"]) - int(row["i"])) for row in blocks])
    return {strain: np.array(graphs) for strain, graphs in strains.items()}, regions


def weights(edges):
    """Return a symmetric matrix of the numbers of fibres, which sum to one."""
    rows, columns = edges[:, :2].astype(int).T
    graph = np.zeros((332, 332))
    graph[rows, columns] = edges[:, 2]
    graph = np.maximum(graph, graph.T)  # one triangle is stored
    return graph / graph.sum()


def mean_graph(graphs):
    """Return the mean graph, each region as close to itself as to the closest other."""
    mean = graphs.mean(axis=0)
    np.fill_diagonal(mean, 0)
    np.fill_diagonal(mean, mean.max(axis=1))
    return HeatGraph.from_affinity(mean, normalization="symmetric")


# --- two ways to compare --------------------------------------------------------------------


def sketched(first, second):
    """Return the drift of two groups of mice: same regions, same random numbers."""
    pair = [sketch(mean_graph(graphs), N_COLUMNS, power=POWER) for graphs in (first, second)]
    squares = [np.sum(made.embedding**2, axis=1) for made in pair]
    return drift(*pair, confidence=1 - LEVEL), np.sqrt(np.mean(squares, axis=0))


def aligned(first, second):
    """Return residuals of orthogonal Procrustes relative to the rows, for each of N_VECTORS."""
    model = DiffusionMap(max(N_VECTORS), power=POWER)
    maps = [model.fit_transform(mean_graph(graphs)) for graphs in (first, second)]
    residuals = []
    for n_vectors in N_VECTORS:
        Y, Z = (coordinates[:, :n_vectors] for coordinates in maps)
        turn, _ = orthogonal_procrustes(Y, Z)
        lengths = np.sqrt((np.sum(Y**2, axis=1) + np.sum(Z**2, axis=1)) / 2)
        residuals.append(np.linalg.norm(Y @ turn - Z, axis=1) / lengths)
    return residuals


def compared(first, second):
    """Return the relative drift of each region: sketched, then aligned with few to many vectors."""
    change, lengths = sketched(first, second)
    return np.array([change.rows.distance / lengths, *aligned(first, second)])


def relabelled(first, second, n_times):
    """Return the same for mice that are randomly divided into two groups of eight."""
    mice, rng = np.concatenate([first, second]), np.random.default_rng(0)
    orders = [rng.permutation(len(mice)) for _ in range(n_times)]
    return np.array([compared(*np.split(mice[order], [len(first)])) for order in orders])


def limits(null):
    """Return what a region exceeds in one of twenty relabellings, if any does (Westfall, Young).

    Regions differ in how much they vary from mouse to mouse, so each has its own scale.
    """
    centre, spread = np.log(null).mean(axis=0), np.log(null).std(axis=0)
    largest = ((np.log(null) - centre) / spread).max(axis=-1)
    return np.exp(centre + spread * np.quantile(largest, 1 - LEVEL, axis=0)[:, np.newaxis])


# --- the picture ----------------------------------------------------------------------------


def draw(observed, chance, *, regions, factors):
    """Draw drift by region, sketched and aligned, and how many regions either finds."""
    counts, n_regions = (observed > chance).sum(axis=1), len(regions)
    best = 1 + int(np.argmax(counts[1:]))
    plt.style.use("heatsketch.plot.heatsketch")
    figure = plt.figure(figsize=(12, 6.6))
    grid = figure.add_gridspec(2, 2, width_ratios=[3.4, 1])
    figure.suptitle(
        f"BTBR mice lack a corpus callosum, and {counts[0]} of their {n_regions} brain regions "
        "are wired unlike those of B6 mice",
        fontsize=13,
        weight="bold",
    )
    titles = {
        0: f"Two heat sketches subtracted, with 95 % intervals: {counts[0]} regions found",
        best: f"Two maps by {N_VECTORS[best - 1]} eigenvectors, aligned by Procrustes: "
        f"{counts[best]} regions found",
    }
    for place, (method, title) in enumerate(titles.items()):
        axes = figure.add_subplot(grid[place, 0])
        bars = factors if method == 0 else (1, 1)
        draw_regions(axes, observed[method], chance[method], regions=regions, factors=bars)
        axes.set_title(title, loc="left", fontsize=11)
        if method == 0:
            axes.legend(ncols=3, loc="upper right", frameon=True, framealpha=1, edgecolor="white")
    draw_counts(figure.add_subplot(grid[:, 1]), counts, n_regions)
    return figure


def draw_regions(axes, observed, chance, *, regions, factors):
    """Draw each region above the range of chance, by part of the brain."""
    parts = list(dict.fromkeys(regions))
    order = np.lexsort([observed, [parts.index(part) for part in regions]])
    places, observed, chance = np.arange(len(order)), observed[order], chance[order]
    label = "range of chance: mice in random groups"
    axes.fill_between(places, chance, step="mid", color=COLORS["chance"], label=label)
    found = observed > chance
    for label, some, mark in (("found", found, "o"), ("not found", ~found, "x")):
        low, high = (factor * observed[some] for factor in factors)
        axes.vlines(places[some], low, high, COLORS[label], lw=0.6)
        axes.plot(places[some], observed[some], mark, ms=3, color=COLORS[label], label=label)
    sizes = np.array([np.sum(regions == part) for part in parts])
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        axes.axvline(end - 0.5, color="0.5", lw=0.5)
    # On two lines in turn: some parts are narrower than their names.
    names = [place % 2 * "\n" + part.replace("_", " ") for place, part in enumerate(parts)]
    axes.set_xticks(ends - sizes / 2, names, fontsize=9)
    axes.tick_params(axis="x", length=0)
    axes.set(xlim=(-1, len(order)), ylim=(0, 1.6), ylabel="relative drift of a region")


def draw_counts(axes, counts, n_regions):
    """Draw how many regions each way of comparing finds."""
    places = np.array([0.0, *(1.5 + np.arange(len(N_VECTORS)))])
    colors = [COLORS["found"]] + ["0.7"] * len(N_VECTORS)
    axes.bar_label(axes.bar(places, counts, color=colors), padding=2)
    axes.set_xticks(places, ["sketch", *map(str, N_VECTORS)])
    axes.set(ylim=(0, n_regions), ylabel=f"regions found, of {n_regions}")
    axes.set_xlabel("eigenvectors aligned", loc="right")
    title = "The number of eigenvectors\nchanges the result"
    axes.set_title(title, loc="left", fontsize=11)


# --- the numbers ----------------------------------------------------------------------------


def summary(strains, found, counts, *, n_relabelled):
    """Return the figures to quote."""
    halves = {
        strain: round(sketched(graphs[::2], graphs[1::2])[0].relative, 3)
        for strain, graphs in strains.items()
        if strain in ("B6", "BTBR")
    }
    return {
        "data": "mean connectomes of 8 B6 and 8 BTBR mice, 332 regions, graspologic 3.4.4",
        "power": POWER,
        "columns": N_COLUMNS,
        "relative drift between strains": round(found.relative, 3),
        "its interval": [round(found.relative * end / found.total, 3) for end in found[2:4]],
        "its standard error": round(found.relative * found.standard_error / found.total, 3),
        "relative drift between halves of one strain": halves,
        "regions that drift() finds to move more than the others": int(found.moved.sum()),
        "relabellings of the mice": n_relabelled,
        "regions found with them, sketch": int(counts[0]),
        "regions found with them, eigenvectors": {
            str(n): int(count) for n, count in zip(N_VECTORS, counts[1:], strict=True)
        },
    }


def main():
    """Compare, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--relabellings", type=int, default=200)
    options = parser.parse_args()
    strains, regions = connectomes(options.wheel)
    pair = strains["B6"], strains["BTBR"]
    observed = compared(*pair)
    chance = limits(relabelled(*pair, options.relabellings))
    whole, _ = sketched(*pair)
    factors = [side[0] / whole.rows.distance[0] for side in (whole.rows.low, whole.rows.high)]
    options.out.mkdir(parents=True, exist_ok=True)
    figure = draw(observed, chance, regions=regions, factors=factors)
    figure.savefig(options.out / "drift.png", dpi=150)
    counts = (observed > chance).sum(axis=1)
    figures = summary(strains, whole, counts, n_relabelled=options.relabellings)
    (options.out / "drift.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
