"""Plots of curves and errors: power, epsilon, distances, distortion, drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.distance import squareform

from heatsketch.diffusion._all_times import DIRECTIONS_PER_COMPONENT, resolvent, without_stationary
from heatsketch.diffusion._bandwidth import EpsilonEstimate
from heatsketch.diffusion._distances import bilipschitz_constant
from heatsketch.diffusion._sketch import diffuse
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat import Sketch
from heatsketch.heat._sketch import sketch_of
from heatsketch.plot._axes import (
    BLUE,
    DASHES,
    GRAY,
    MARKS,
    OKABE_ITO,
    ORANGE,
    check_kind,
    new_axes,
)
from heatsketch.uses._drift import Drift

MOST_NAMES = 12


def heat_trace(sketch: Any, *, ax: Any = None) -> Any:
    r"""Plot the heat trace against the power, and the power at which the sum starts.

    .. math:: \mathrm{tr}(A^{2p}), \qquad \mathrm{tr}(A^{2p})^2 / \mathrm{tr}(A^{4p})

    Parameters
    ----------
    sketch : Sketch or fitted HeatSketch
        With ``power="all"``. The band extends two standard errors to either side.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, plot
    >>> from sklearn.datasets import load_digits
    >>> model = HeatSketch(n_neighbors=15).fit(load_digits().data)
    >>> plot.heat_trace(model).get_title() == f"the sum starts at p = {model.sketch_.first_power}"
    True
    """
    made = sketch_of("sketch", sketch)
    if made.times is None:
        raise HeatSketchError(
            f"sketch must have power='all', got power={made.settings.power}; use "
            "heatsketch.diffusion.heat_trace instead."
        )
    ax, curve = new_axes(ax), made.times.heat_trace
    band = 2 * curve.error
    lowest = curve.trace.min() / 10  # zero cannot be shown on a logarithmic scale
    ends = np.maximum(curve.trace - band, lowest), curve.trace + band
    ax.fill_between(curve.powers, *ends, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(curve.powers, curve.trace, "o-", color=BLUE, ms=4, label="heat trace")
    ax.plot(curve.powers, curve.directions, "s--", color=ORANGE, ms=4, label="directions")
    text = f"directions that {made.n_components} components resolve"
    ax.axhline(DIRECTIONS_PER_COMPONENT * made.n_components, color=GRAY, ls=":", label=text)
    ax.axvline(made.first_power, color="black", lw=1)
    ax.set(yscale="log", xlabel="power p", ylabel="size of the heat kernel")
    ax.set_title(f"the sum starts at p = {made.first_power}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _plain_numbers(ax.yaxis)
    ax.legend()
    return ax


def epsilon(estimate: EpsilonEstimate, *, ax: Any = None) -> Any:
    r"""Plot the dimension estimated with each bandwidth, and the chosen bandwidth.

    .. math:: 2 \, \frac{d \log \sum_j \exp(-d_{ij}^2 / \varepsilon)}{d \log \varepsilon}

    Parameters
    ----------
    estimate : EpsilonEstimate
        Result of :func:`heatsketch.diffusion.estimate_epsilon`.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import plot
    >>> from heatsketch.diffusion import estimate_epsilon
    >>> from sklearn.datasets import load_digits
    >>> plot.epsilon(estimate_epsilon(load_digits().data, metric="euclidean")).get_xlabel()
    'epsilon'
    """
    check_kind("estimate", estimate, EpsilonEstimate)
    ax = new_axes(ax)
    ax.plot(estimate.epsilons, estimate.dimensions, color=BLUE, label="dimension by bandwidth")
    chosen = f"epsilon = {estimate.epsilon:.3g}"
    ax.axvline(estimate.epsilon, color=ORANGE, ls="--", label=chosen)
    size = f"estimated dimension {estimate.dimension:.1f}"
    ax.axhline(estimate.dimension, color=GRAY, ls=":", label=size)
    ax.set(xscale="log", xlabel="epsilon", ylabel="dimension", title=f"{chosen}, {size}")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def distances(sketch: Any, *, n_pairs: int = 60, ax: Any = None) -> Any:
    r"""Plot sketched distances with their intervals against exact distances.

    .. math:: |y_i - y_j| \quad \mathrm{against} \quad d_p(i, j)

    Parameters
    ----------
    sketch : Sketch or fitted HeatSketch
    n_pairs : int, default=60
        Size of a fixed sample of pairs.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, plot
    >>> from sklearn.datasets import load_digits
    >>> model = HeatSketch(n_neighbors=15, random_state=3).fit(load_digits().data)
    >>> plot.distances(model).get_xlabel()
    'exact diffusion distance'
    """
    made = _comparable("sketch", sketch)
    # Disjoint pairs, whose errors are nearly independent.
    drawn = np.random.default_rng(0).permutation(len(made.embedding))
    pairs = drawn[: 2 * min(n_pairs, len(drawn) // 2)].reshape(-1, 2)
    exact, (middle, low, high) = _exact(made, pairs), made.distances(pairs)
    missed = (exact < low) | (exact > high)
    ax = new_axes(ax)
    styles = ((~missed, BLUE, "o", "covers the exact distance"), (missed, ORANGE, "X", "misses it"))
    for some, color, mark, label in styles[: 1 + missed.any()]:
        bars = np.stack([middle - low, high - middle])[:, some]
        style = {"fmt": mark, "ms": 4 if mark == "o" else 7, "color": color, "elinewidth": 1}
        ax.errorbar(exact[some], middle[some], bars, label=label, **style)
    ends = [0, 1.05 * float(np.max(exact))]
    ax.plot(ends, ends, color=GRAY, zorder=0)
    ax.set(
        xlabel="exact diffusion distance",
        ylabel="distance in the embedding, with its interval",
        title=f"{missed.sum()} of {len(middle)} intervals miss",
    )
    ax.legend(loc="upper left")
    return ax


def distortion(curves: Any, *, n_points: int = 200, ax: Any = None) -> Any:
    r"""Plot the distortion of distances against the number of components.

    .. math:: L = \max_{i \ne j} \frac{|y_i - y_j|}{d_{ij}} \Big/
                  \min_{i \ne j} \frac{|y_i - y_j|}{d_{ij}}

    Parameters
    ----------
    curves : mapping of str to (sizes, distortions), Sketch or fitted HeatSketch
        Curves, or a sketch, whose first 1, 2, 4, ... components are compared with the exact
        distances of some of its points. Distortions of several trials, of shape
        (n_trials, n_sizes), are plotted as their median, with a band from minimum to maximum.
    n_points : int, default=200
        Number of points of a sketch.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import plot
    >>> ax = plot.distortion({"sketch": ([2, 4, 8], [[9, 4, 2], [7, 4, 3]])})
    >>> ax.get_xlabel()
    'components k'
    """
    if not isinstance(curves, Mapping):
        curves = {"sketch": _distortions(_comparable("curves", curves), n_points)}
    ax = new_axes(ax)
    for place, (name, (sizes, values)) in enumerate(curves.items()):
        trials = np.atleast_2d(np.asarray(values, np.float64))
        color, mark = OKABE_ITO[place % len(OKABE_ITO)], MARKS[place % len(MARKS)]
        ls = DASHES[place % len(DASHES)]
        ax.plot(sizes, np.median(trials, axis=0), color=color, marker=mark, ls=ls, label=name)
        if len(trials) > 1:
            ends = trials.min(axis=0), trials.max(axis=0)
            ax.fill_between(sizes, *ends, color=color, alpha=0.2, linewidth=0)
    ax.axhline(1, color=GRAY, lw=1)
    ax.set(xscale="log", yscale="log", xlabel="components k", ylabel="distortion L (1 is none)")
    ticks = np.unique(np.concatenate([np.asarray(sizes) for sizes, _ in curves.values()]))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.minorticks_off()
    _plain_numbers(ax.yaxis)
    ax.legend()
    return ax


def drift(change: Drift, *, ax: Any = None) -> Any:
    r"""Plot which rows moved from one sketch to another, and how far.

    .. math:: |y_i - z_i| \quad \mathrm{with \; its \; interval}

    Parameters
    ----------
    change : Drift
        Result of :func:`heatsketch.drift`. Of the rows that moved more than the others, the
        farthest are labelled with their ids, at most twelve.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, drift, plot
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> before = HeatSketch(power=2).fit(X)
    >>> X[7] = X[0]
    >>> plot.drift(drift(before, HeatSketch(power=2).fit(X))).get_xlabel()
    'row'
    """
    check_kind("change", change, Drift)
    ax = new_axes(ax)
    middle, low, high = change.rows
    rows, moved = np.arange(len(middle)), change.moved
    ax.plot(rows[~moved], middle[~moved], ".", color=GRAY, ms=3, label="moved like the others")
    if moved.any():
        bars = [(middle - low)[moved], (high - middle)[moved]]
        style = {"fmt": "^", "ms": 6, "color": ORANGE, "elinewidth": 1}
        ax.errorbar(rows[moved], middle[moved], bars, label="moved more", **style)
    farthest = np.flatnonzero(moved)[np.argsort(-middle[moved])][:MOST_NAMES]
    for row in farthest:
        place = {"xytext": (5, 4), "textcoords": "offset points", "fontsize": 9}
        ax.annotate(str(change.ids[row]), (row, middle[row]), **place)
    came_or_went = f", {len(change.came)} came, {len(change.went)} went"
    ax.set(
        xlabel="row",
        ylabel="distance moved",
        title=f"{change.relative:.1%} of the heat kernel moved; {moved.sum()} rows more than "
        f"others{came_or_went if len(change.came) + len(change.went) else ''}",
    )
    ax.title.set_fontsize("medium")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def _plain_numbers(axis: Any) -> None:
    """Format tick labels as plain numbers, such as 60, not as powers of ten."""
    from matplotlib.ticker import LogFormatter

    axis.set_major_formatter(LogFormatter())
    axis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))


# --- exact distances -----------------------------------------------------------------------


def _comparable(name: str, source: Any) -> Sketch:
    """Return a sketch without the arbitrary distances between connected components."""
    made = sketch_of(name, source)
    return replace(made, embedding=made.without_offsets(), offsets=None)


def _exact(made: Sketch, pairs: np.ndarray) -> np.ndarray:
    """Return exact diffusion distances of pairs of rows of ``X``, for any power."""
    graph, settings = made._graph, made.settings
    A, parts = graph.operator, graph.parts
    rows, places = np.unique(pairs, return_inverse=True)
    units = np.zeros((graph.n_samples, len(rows)), graph.dtype)
    units[rows, np.arange(len(rows))] = 1
    units = graph.inner(units)
    # The columns of f(A) are also its rows, since A is symmetric.
    if made.times is None:
        columns = diffuse(A, units, power=settings.power)
    else:
        block = diffuse(A, without_stationary(A, units, parts), power=made.first_power - 1)
        columns = A @ resolvent(A, block, components=parts, tolerance=1e-6).block
    if settings.stationary == "keep":
        columns = columns + A.stationary_part(A.stationary_coefficients(units))
    if settings.weighting == "random_walk":
        columns = columns * (graph.stationary_length / graph.outer(A.stationary)[rows])
    first, second = columns.T.astype(np.float64)[places.reshape(pairs.shape)].swapaxes(0, 1)
    return np.linalg.norm(first - second, axis=1)


def _distortions(made: Sketch, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n_columns = made.embedding.shape
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_points, n_rows)).astype(int))
    first, second = np.triu_indices(len(rows), 1)
    exact = squareform(_exact(made, np.column_stack([rows[first], rows[second]])))
    sizes = np.unique([*2 ** np.arange(int(np.log2(n_columns)) + 1), n_columns])
    Y = made.embedding[rows]
    return sizes, np.array([bilipschitz_constant(Y[:, :k], exact) for k in sizes])
