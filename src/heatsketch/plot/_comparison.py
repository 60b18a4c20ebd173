"""Plot of the rows around which groups differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch.exceptions import HeatSketchError
from heatsketch.plot._axes import BLUE, ORANGE, check_kind, new_axes
from heatsketch.plot._points import MOST_POINTS, dot_of, draw_density, plane_of, style_of
from heatsketch.uses._compare import Comparison

PALE = "#c9c9c9"  # rows around which groups do not differ


def compare(Y: Any, comparison: Comparison, *, ax: Any = None) -> Any:
    r"""Plot points in two dimensions, coloured where groups differ.

    .. math:: \frac{\sum_j (A^p)_{ij} \, 1[g_j = a]}{\sum_j (A^p)_{ij}} - \pi_a

    The colour of a flagged point shows the effect: the share of a group around it minus the
    expected share. With more than two groups it shows the group. Rows that are not flagged are
    grey.

    Parameters
    ----------
    Y : Sketch, fitted HeatSketch, or array of shape (n, k)
        As for :func:`embedding`. After :func:`heatsketch.compare_to`, pass the embeddings of
        training points and new points, in this order.
    comparison : Comparison
        Result of :func:`heatsketch.compare` or :func:`heatsketch.compare_to`.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import HeatSketch, compare, plot
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[200:220] = X[200:220] / 10 + 2
    >>> model = HeatSketch(16).fit(X)
    >>> plot.compare(model, compare(model, np.arange(300) >= 200)).get_title()
    'p = 0.005, 21 of 300 rows flagged at level 0.05'
    """
    check_kind("comparison", comparison, Comparison)
    points, names = plane_of(Y)
    if len(points) != len(comparison.z):
        raise HeatSketchError(
            f"Y must have the {len(comparison.z)} rows of comparison, got {len(points)}; after "
            "compare_to pass np.concatenate([model.embedding_, model.transform(X_new)])."
        )
    ax = new_axes(ax)
    _draw_others(ax, points[~comparison.flagged])
    if comparison.flagged.any():
        draw = _draw_effects if len(comparison.groups) == 2 else _draw_groups
        draw(ax, points, comparison)
    ax.set(xlabel=names[0], ylabel=names[1], title=comparison.summary)
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def _draw_others(ax: Any, points: np.ndarray) -> None:
    if len(points) > MOST_POINTS:
        draw_density(ax, points, None, None).set_cmap("Greys")
    else:
        ax.scatter(*points.T, color=PALE, **dot_of(len(points)))


def _draw_effects(ax: Any, points: np.ndarray, comparison: Comparison) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    rows = np.flatnonzero(comparison.flagged)
    # The largest effects are drawn last, on top.
    rows = rows[np.argsort(np.abs(comparison.effect[rows]), kind="stable")]
    most = float(np.abs(comparison.effect[rows]).max())
    shades = ax.scatter(
        *points[rows].T,
        c=comparison.effect[rows],
        cmap=LinearSegmentedColormap.from_list("effect", [BLUE, "#eeeeee", ORANGE]),
        vmin=-most,
        vmax=most,
        **dot_of(len(points), larger=2),
    )
    ax.figure.colorbar(
        shades, ax=ax, label=f"share of {comparison.groups[-1]} minus expected share"
    )


def _draw_groups(ax: Any, points: np.ndarray, comparison: Comparison) -> None:
    for place, group in enumerate(comparison.groups):
        for more, hollow in (("more", False), ("less", True)):
            signed = (comparison.z > 0) == (more == "more")
            rows = comparison.flagged & (comparison.group == group) & signed
            if rows.any():
                dot = dot_of(len(points), larger=2) | style_of(place, hollow=hollow)
                ax.scatter(*points[rows].T, label=f"{more} {group}", **dot)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
