"""Plots of curves and errors: power, epsilon, distances, distortion, drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.distance import squareform

from heatsketch.diffusion._bandwidth import EpsilonEstimate
from heatsketch.diffusion._confidence import DistanceEstimate
from heatsketch.diffusion._distances import bilipschitz_constant
from heatsketch.diffusion._drift import Drift
from heatsketch.diffusion._heat_trace import HeatTrace
from heatsketch.estimators.heat_sketch import DIRECTIONS_PER_COMPONENT, HeatSketch
from heatsketch.exceptions import HeatSketchError
from heatsketch.plot._axes import BLUE, DASHES, GRAY, MARKS, OKABE_ITO, ORANGE, new_axes

MOST_NAMES = 12


def heat_trace(found: HeatTrace | HeatSketch, *, ax: Any = None) -> Any:
    r"""Plot the heat trace against the power, and the chosen power.

    .. math:: \mathrm{tr}(A^{2p}), \qquad \mathrm{tr}(A^{2p})^2 / \mathrm{tr}(A^{4p})

    Parameters
    ----------
    found : HeatTrace, or HeatSketch
        A model with ``power="all"``, or the result of :func:`heat_trace`. The band extends two
        standard errors to either side.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, plot
    >>> from sklearn.datasets import load_digits
    >>> model = HeatSketch(n_neighbors=15).fit(load_digits().data)
    >>> plot.heat_trace(model).get_title() == f"the sum starts at p = {model.power_}"
    True
    """
    curve = _part(found, HeatTrace, "heat_trace_", 'power="all"')
    ax = new_axes(ax)
    band = 2 * curve.error
    lowest = curve.trace.min() / 10  # zero cannot be shown on a logarithmic scale
    ends = np.maximum(curve.trace - band, lowest), curve.trace + band
    ax.fill_between(curve.powers, *ends, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(curve.powers, curve.trace, "o-", color=BLUE, ms=4, label="heat trace")
    ax.plot(curve.powers, curve.directions, "s--", color=ORANGE, ms=4, label="directions")
    if isinstance(found, HeatSketch):
        n_columns = found.embedding_.shape[1]
        text = f"directions that {n_columns} components may hold"
        ax.axhline(DIRECTIONS_PER_COMPONENT * n_columns, color=GRAY, ls=":", label=text)
        ax.axvline(found.power_, color="black", lw=1)
        ax.set_title(f"the sum starts at p = {found.power_}")
    ax.set(yscale="log", xlabel="power p", ylabel="size of the heat kernel")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _plain_numbers(ax.yaxis)
    ax.legend()
    return ax


def epsilon(found: EpsilonEstimate | HeatSketch, *, ax: Any = None) -> Any:
    r"""Plot the dimension estimated with each bandwidth, and the chosen bandwidth.

    .. math:: 2 \, \frac{d \log \sum_j \exp(-d_{ij}^2 / \varepsilon)}{d \log \varepsilon}

    Parameters
    ----------
    found : EpsilonEstimate, or HeatSketch
        Result of :func:`estimate_epsilon`, or a model with ``epsilon="auto"``.
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
    curve = _part(found, EpsilonEstimate, "epsilon_estimate_", 'epsilon="auto"')
    ax = new_axes(ax)
    ax.plot(curve.epsilons, curve.dimensions, color=BLUE, label="kernel of that bandwidth")
    chosen = f"epsilon = {curve.epsilon:.3g}"
    ax.axvline(curve.epsilon, color=ORANGE, ls="--", label=f"{chosen}, chosen")
    size = f"dimension {curve.dimension:.1f}"
    ax.axhline(curve.dimension, color=GRAY, ls=":", label=f"{size}, seen there")
    ax.set(xscale="log", xlabel="epsilon", ylabel="dimension", title=f"{chosen}, {size}")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def distances(
    found: DistanceEstimate | HeatSketch, exact: Any = None, *, n_pairs: int = 60, ax: Any = None
) -> Any:
    r"""Plot sketched distances with their intervals against exact distances.

    .. math:: |y_i - y_j| \quad \mathrm{against} \quad d_p(i, j)

    Parameters
    ----------
    found : DistanceEstimate, or HeatSketch
        Estimates, or a fitted model, for which a fixed sample of pairs is plotted.
    exact : array of shape (m,), optional
        Exact distances for the estimates. For a model they are computed.
    n_pairs : int, default=60
        Number of pairs of a model.
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
    if isinstance(found, HeatSketch):
        found = found._as_fitted()
        pairs = _some_pairs(len(found.embedding_), n_pairs)
        exact, found = _exact(found, pairs), found.diffusion_distances(pairs)
    _check_kind(found, DistanceEstimate)
    exact = np.asarray(exact)
    if exact.shape != found.distance.shape:
        raise HeatSketchError(
            f"exact of shape {exact.shape} must be the truth of each of the "
            f"{len(found.distance)} estimates; see exact_diffusion_distances."
        )
    middle, low, high = found
    missed = (exact < low) | (exact > high)
    ax = new_axes(ax)
    styles = ((~missed, BLUE, "o", "covers the truth"), (missed, ORANGE, "X", "misses it"))
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


def distortion(
    found: HeatSketch | Mapping[str, tuple[Any, Any]], *, n_points: int = 200, ax: Any = None
) -> Any:
    r"""Plot the distortion of distances against the number of components.

    .. math:: L = \max_{i \ne j} \frac{|y_i - y_j|}{d_{ij}} \Big/
                  \min_{i \ne j} \frac{|y_i - y_j|}{d_{ij}}

    Parameters
    ----------
    found : HeatSketch, or mapping of names to (sizes, distortions)
        Curves, or a fitted model, whose first 1, 2, 4, ... components are compared with the exact
        distances of some of its points. Distortions of several trials, of shape
        (n_trials, n_sizes), are plotted as their median, with a band from minimum to maximum.
    n_points : int, default=200
        Number of points of a model.
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
    curves = {"sketch": _distortions(found, n_points)} if isinstance(found, HeatSketch) else found
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


def drift(found: Drift, *, ax: Any = None) -> Any:
    r"""Plot which rows moved from one sketch to another, and how far.

    .. math:: |y_i - z_i| \quad \mathrm{with \; its \; interval}

    Parameters
    ----------
    found : Drift
        Result of :func:`heatsketch.diffusion.drift` or :meth:`HeatSketch.drift`. Of the rows that
        moved more than the others, the farthest are labelled with their ids, at most twelve.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, plot
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HeatSketch(n_neighbors=15, power=2)
    >>> before = model.fit_transform(X)
    >>> X[7] = X[0]
    >>> from heatsketch.diffusion import drift
    >>> plot.drift(drift(before, model.fit_transform(X))).get_xlabel()
    'row'
    """
    _check_kind(found, Drift)
    ax = new_axes(ax)
    middle, low, high = found.rows
    rows, moved = np.arange(len(middle)), found.moved
    ax.plot(rows[~moved], middle[~moved], ".", color=GRAY, ms=3, label="as the others")
    if moved.any():
        bars = [(middle - low)[moved], (high - middle)[moved]]
        style = {"fmt": "^", "ms": 6, "color": ORANGE, "elinewidth": 1}
        ax.errorbar(rows[moved], middle[moved], bars, label="moved more", **style)
    farthest = np.flatnonzero(moved)[np.argsort(-middle[moved])][:MOST_NAMES]
    for row in farthest:
        place = {"xytext": (5, 4), "textcoords": "offset points", "fontsize": 9}
        ax.annotate(str(found.ids[row]), (row, middle[row]), **place)
    came_or_went = f", {len(found.came)} came, {len(found.went)} went"
    ax.set(
        xlabel="row",
        ylabel="how far it moved",
        title=f"{found.relative:.1%} of the heat kernel moved; {moved.sum()} rows more than "
        f"others{came_or_went if len(found.came) + len(found.went) else ''}",
    )
    ax.title.set_fontsize("medium")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


# --- validation and sampling ---------------------------------------------------------------


def _part(found: Any, kind: type, name: str, option: str) -> Any:
    """Return the curve, or that of a model whose option was chosen automatically."""
    if isinstance(found, kind):
        return found
    if isinstance(found, HeatSketch) and hasattr(found, name):
        return getattr(found, name)
    raise HeatSketchError(
        f"found={found!r} holds no {kind.__name__}; give one, or a HeatSketch fitted with {option}."
    )


def _check_kind(found: Any, kind: type) -> None:
    if not isinstance(found, kind):
        verb = {Drift: "model.drift(other)", DistanceEstimate: "model.diffusion_distances(pairs)"}
        raise HeatSketchError(
            f"found is a {type(found).__name__}, not a {kind.__name__}; give what "
            f"{verb[kind]} returns."
        )


def _plain_numbers(axis: Any) -> None:
    """Format tick labels as plain numbers, such as 60, not as powers of ten."""
    from matplotlib.ticker import LogFormatter

    axis.set_major_formatter(LogFormatter())
    axis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))


def _some_pairs(n_points: int, n_pairs: int) -> np.ndarray:
    """Return disjoint pairs of points, whose errors are nearly independent."""
    drawn = np.random.default_rng(0).permutation(n_points)
    return drawn[: 2 * min(n_pairs, n_points // 2)].reshape(-1, 2)


def _exact(model: HeatSketch, pairs: np.ndarray) -> np.ndarray:
    """Return exact diffusion distances of pairs of rows of ``X``, for any power."""
    model = model._as_fitted()
    A = model._training_operator("a picture of exact distances")
    points, places = np.unique(np.argsort(model.order_)[pairs], return_inverse=True)
    units = np.zeros((A.shape[0], len(points)), A.dtype)
    units[points, np.arange(len(points))] = 1
    columns = model._diffused(A, units)  # also the rows, since A is symmetric
    if model.stationary == "keep":
        columns = columns + A.stationary_part(A.stationary_coefficients(units))
    if model.weighting == "random_walk":
        columns = columns * (model.stationary_length_ / A.stationary[points])
    first, second = columns.T.astype(np.float64)[places.reshape(pairs.shape)].swapaxes(0, 1)
    return np.linalg.norm(first - second, axis=1)


def _distortions(model: HeatSketch, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n_columns = model.embedding_.shape
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_points, n_rows)).astype(int))
    first, second = np.triu_indices(len(rows), 1)
    wanted = squareform(_exact(model, np.column_stack([rows[first], rows[second]])))
    sizes = np.unique([*2 ** np.arange(int(np.log2(n_columns)) + 1), n_columns])
    Y = model.embedding_[rows]
    return sizes, np.array([bilipschitz_constant(Y[:, :k], wanted) for k in sizes])
