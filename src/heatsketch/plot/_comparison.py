"""Plot of the rows around which groups differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch.diffusion._compare import Comparison
from heatsketch.exceptions import DtypeError, HeatSketchError
from heatsketch.plot._axes import BLUE, MARKS, ORANGE, new_axes
from heatsketch.plot._points import MOST_POINTS, _draw_density, _plane, _style

PALE = "#c9c9c9"  # rows around which groups do not differ


def compare(Y: Any, found: Comparison, *, by: str = "ritz", ax: Any = None) -> Any:
    r"""Plot points in two dimensions, coloured where groups differ.

    .. math:: \frac{\sum_j (A^p)_{ij} \, 1[g_j = a]}{\sum_j (A^p)_{ij}} - \pi_a

    The colour of a flagged point shows the effect: the share of a group around it minus the
    expected share. With more than two groups it shows the group. Rows that are not flagged are
    grey.

    Parameters
    ----------
    Y : HeatSketch, or array of shape (n, k)
        A fitted model, or an embedding, which is plotted by its principal components. After
        ``compare_to``, pass the embeddings of training points and new points, in this order.
    found : Comparison
        Result of ``compare`` or ``compare_to``.
    by : {"ritz", "pca"}, default="ritz"
        As for :func:`embedding`.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import HeatSketch, plot
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[200:220] = X[200:220] / 10 + 2
    >>> model = HeatSketch(16).fit(X)
    >>> plot.compare(model, model.compare(np.arange(300) >= 200)).get_title()
    'p = 0.005, 21 of 300 rows flagged at level 0.05'
    """
    if not isinstance(found, Comparison):
        raise DtypeError(f"found is a {type(found).__name__}; give what compare returned.")
    points, names = _plane(Y, by)
    if len(points) != len(found.z):
        raise HeatSketchError(
            f"Y has {len(points)} rows, and found has {len(found.z)}; after compare_to give "
            "np.concatenate([model.embedding_, model.transform(X_new)]) as Y."
        )
    ax = new_axes(ax)
    _draw_others(ax, points[~found.flagged])
    if found.flagged.any():
        draw = _draw_effects if len(found.groups) == 2 else _draw_groups
        draw(ax, points, found)
    ax.set(xlabel=names[0], ylabel=names[1], title=found.summary)
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def _draw_others(ax: Any, points: np.ndarray) -> None:
    if len(points) > MOST_POINTS:
        _draw_density(ax, points, None, None).set_cmap("Greys")
    else:
        ax.scatter(*points.T, color=PALE, **_dot(len(points)))


def _draw_effects(ax: Any, points: np.ndarray, found: Comparison) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    rows = _by_size(found)
    most = float(np.abs(found.effect[rows]).max())
    shades = ax.scatter(
        *points[rows].T,
        c=found.effect[rows],
        cmap=LinearSegmentedColormap.from_list("effect", [BLUE, "#eeeeee", ORANGE]),
        vmin=-most,
        vmax=most,
        **_dot(len(points), larger=2),
    )
    ax.figure.colorbar(shades, ax=ax, label=f"share of {found.groups[-1]}, less the expected")


def _draw_groups(ax: Any, points: np.ndarray, found: Comparison) -> None:
    for place, group in enumerate(found.groups):
        for hollow, more in enumerate(("more", "less")):
            rows = found.flagged & (found.group == group) & ((found.z > 0) == (more == "more"))
            if rows.any():
                style = _style(place) | ({"facecolors": "none"} if hollow else {})
                style |= {"marker": MARKS[place % len(MARKS)], "linewidths": 0.8 * hollow}
                dot = _dot(len(points), larger=2) | style
                ax.scatter(*points[rows].T, label=f"{more} {group}", **dot)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _by_size(found: Comparison) -> np.ndarray:
    """Return the flagged rows, the largest effects last, to draw these on top."""
    rows = np.flatnonzero(found.flagged)
    return rows[np.argsort(np.abs(found.effect[rows]), kind="stable")]


def _dot(n_points: int, larger: float = 1) -> dict[str, Any]:
    size = larger * float(np.clip(12000 / max(n_points, 1), 1, 20))
    return {"s": size, "linewidths": 0, "rasterized": True}
