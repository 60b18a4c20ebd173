"""The paper's figures: mean log L by dimension or power, and samples."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.catalogue import CATALOGUE, Portrait
from paper.methods import METHODS
from paper.runner import Results, sample


def style(method: str) -> dict[str, str]:
    """Return how the curve of a method looks."""
    return dict(zip(("color", "marker", "linestyle"), METHODS[method].style, strict=True))


def draw_curves(results: Results, methods: tuple[str, ...]) -> Figure:
    """Plot the mean of log L along the axis, with its standard deviation."""
    experiment = results.experiment
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for place, method in enumerate(methods):
        values = results.log_L(method)
        # Curves are shifted slightly, so that error bars do not overlap.
        shift = (place - (len(methods) - 1) / 2) * 0.06
        points = np.array(experiment.axis)
        options: dict[str, Any] = style(method)
        axes.errorbar(
            points * 2.0**shift if experiment.letter == "p" else points + shift,
            values.mean(axis=0),
            yerr=values.std(axis=0),
            label=f"{method}: {METHODS[method].label}",
            capsize=2.5,
            elinewidth=0.8,
            markersize=5,
            **options,
        )
    _label_axes(axes, results)
    return figure


def draw_portrait(portrait: Portrait, seed: int) -> Figure:
    """Plot an embedding in the plane, coloured by the angle on the circle."""
    X, operators, block_seed = sample(portrait.experiment, portrait.trial, seed)
    method = METHODS[portrait.method]
    grid = CATALOGUE[portrait.experiment].grid[:1]
    x, y = method.embed(operators[method.normalization], grid, block_seed)[0].T
    shown = slice(len(X) - portrait.hide)
    outlying = np.linalg.norm(X, axis=1) > 1.5
    figure = Figure(figsize=(4.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    angle = np.arctan2(X[:, 1], X[:, 0])
    dot: dict[str, Any] = {"cmap": "twilight", "s": 16, "linewidths": 0.4, "edgecolors": "0.4"}
    axes.scatter(x[shown], y[shown], c=angle[shown], **dot)
    if not portrait.hide and outlying.any():
        star: dict[str, Any] = {"marker": "*", "s": 160, "c": "#D55E00", "edgecolors": "black"}
        axes.scatter(x[outlying], y[outlying], label="outliers", **star)
        axes.legend()
    axes.set(title=portrait.title, xlabel="$y_1$", ylabel="$y_2$")
    if not portrait.hide:  # a detail view scales the axes separately
        axes.set_aspect("equal", adjustable="datalim")
    axes.ticklabel_format(scilimits=(-2, 3), useOffset=False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG and PNG, without the date, for reproducible files."""
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=150)


def _label_axes(axes: Axes, results: Results) -> None:
    experiment = results.experiment
    distance = "Euclidean" if experiment.distance == "euclidean" else "diffusion"
    fixed = f"p = {experiment.powers[0]}"
    axes.set_xlabel("dimension $k$")
    if experiment.letter == "p":
        fixed = f"k = {experiment.dimensions[0]}"
        axes.set_xscale("log", base=2)
        axes.set_xlabel("power $p$")
    axes.set_xticks(experiment.axis, [str(value) for value in experiment.axis])
    axes.minorticks_off()
    axes.set_ylabel(f"$\\log L$ against the {distance} distance")
    axes.set_title(
        f"{experiment.title} ({experiment.n_points} points, {fixed}, "
        f"$\\varepsilon$ = {experiment.epsilon:g}, {len(results.trials)} trials)",
        fontsize=10,
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
