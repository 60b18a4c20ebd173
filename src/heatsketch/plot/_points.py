"""Scatter plots of points, or density plots if there are many points."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from heatsketch._core.checks import is_missing
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat import Sketch
from heatsketch.heat._plane import principal_plane
from heatsketch.heat._sketch import sketch_of
from heatsketch.plot._axes import BLUE, MARKS, OKABE_ITO, new_axes, pyplot

MOST_KINDS = 24  # most labels that colours and markers can distinguish
MOST_POINTS = 100_000  # beyond this there are more points than pixels
DENSITY_BINS = 300  # bins along each axis


def embedding(Y: Any, color: Any = None, *, label: str | None = None, ax: Any = None) -> Any:
    r"""Plot the diffusion map of a sketch, or the principal components of an embedding.

    .. math:: \lambda_1^p v_1, \; \lambda_2^p v_2

    Both axes have the same scale, so that distances are shown correctly. With more than 100,000
    points, a density plot shows their number, the mean of their values, or their most frequent
    label.

    Parameters
    ----------
    Y : Sketch, fitted HeatSketch, or array of shape (n, k)
        A sketch is plotted by its diffusion map, an array by its principal components.
    color : array of shape (n,), optional
        Labels (text, booleans, or at most 24 distinct integers), or values.
    label : str, optional
        Title of the legend or colour bar.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, plot
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(return_X_y=True)
    >>> ax = plot.embedding(HeatSketch(n_neighbors=15).fit(X), digit, label="digit")
    >>> ax.get_xlabel()
    'diffusion coordinate 1 (Ritz vector of the sketch)'
    """
    points, names = plane_of(Y)
    ax = new_axes(ax)
    _draw(ax, points, _checked_color(color, len(points)), label)
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def multiscale(
    sketch: Any, powers: Iterable[int] = (1, 4, 16, 64), *, color: Any = None
) -> np.ndarray:
    r"""Plot the points at several diffusion times side by side, from one pass.

    .. math:: Y_p = \frac{1}{\sqrt{k}} A^p G

    Each panel shows the principal components of its own sketch on its own scale. Axes are flipped
    if that makes a panel more similar to the previous one.

    Parameters
    ----------
    sketch : Sketch or fitted HeatSketch
    powers : iterable of int, default=(1, 4, 16, 64)
    color : array of shape (n,), optional
        As for :func:`embedding`.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> from heatsketch import HeatSketch, plot
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(return_X_y=True)
    >>> axes = plot.multiscale(HeatSketch(n_neighbors=15).fit(X), (2, 8, 32), color=digit)
    >>> [ax.get_title() for ax in axes]
    ['p = 2', 'p = 8', 'p = 32']
    """
    powers, made = list(powers), sketch_of("sketch", sketch)
    _check_columns(made.embedding)
    panels = [principal_plane(Y)[0] for Y in made.path(powers)]
    for before, after in pairwise(panels):
        after *= np.where(np.sum(before * after, axis=0) < 0, -1, 1)
    kinds = _checked_color(color, len(panels[0]))
    plt = pyplot()
    size = (2.6 * len(powers) + 0.8, 3.0)
    _, axes = plt.subplots(1, len(powers), figsize=size, layout="constrained", squeeze=False)
    for ax, power, points in zip(axes[0], powers, panels, strict=True):
        _draw(ax, points, kinds, None, keyed=ax is axes[0, -1])
        ax.set(title=f"p = {power}", xticks=[], yticks=[], xlabel="principal component 1")
        ax.set_aspect("equal", adjustable="datalim")
    axes[0, 0].set_ylabel("principal component 2")
    return axes[0]


# --- validation and projection -------------------------------------------------------------


def plane_of(Y: Any) -> tuple[np.ndarray, list[str]]:
    """Return two-dimensional points, and the names of their coordinates."""
    made = getattr(Y, "sketch_", Y)
    if isinstance(made, Sketch):
        _check_columns(made.embedding)
        names = [f"diffusion coordinate {i} (Ritz vector of the sketch)" for i in (1, 2)]
        return made.diffusion_map(2).coordinates, names
    Y = np.asarray(Y)
    _check_columns(Y)
    if Y.shape[1] == 2:
        return Y, ["coordinate 1", "coordinate 2"]
    points, shares = principal_plane(Y)
    names = [
        f"principal component {i + 1} of {Y.shape[1]} columns ({shares[i]:.0%})" for i in (0, 1)
    ]
    return points, names


def _check_columns(Y: np.ndarray) -> None:
    if Y.ndim != 2 or Y.shape[1] < 2:
        raise HeatSketchError(
            f"The embedding must have at least two columns, got shape {Y.shape}; use "
            "n_components=2 or more."
        )


def _checked_color(color: Any, n_points: int) -> np.ndarray | None:
    if color is None:
        return None
    values = np.asarray(color)
    if values.dtype.kind == "O" and any(map(is_missing, values.flat)):  # cannot be sorted
        texts = ["missing" if is_missing(value) else str(value) for value in values.flat]
        values = np.array(texts).reshape(values.shape)
    if values.shape != (n_points,):
        raise HeatSketchError(
            f"color must have one label or value for each of the {n_points} points, got shape "
            f"{values.shape}."
        )
    return values


def _kinds(color: np.ndarray) -> np.ndarray | None:
    """Return the distinct labels, or None for values."""
    if color.dtype.kind == "f":
        return None
    kinds = np.unique(color)
    if len(kinds) <= MOST_KINDS:
        return kinds
    if color.dtype.kind in "iu":
        return None
    raise HeatSketchError(
        f"color must have at most {MOST_KINDS} distinct labels, got {len(kinds)}; merge some."
    )


# --- points and density --------------------------------------------------------------------


def _draw(
    ax: Any, points: np.ndarray, color: np.ndarray | None, label: str | None, *, keyed: bool = True
) -> None:
    """Draw points, or their density if there are many, and explain the colours."""
    kinds = None if color is None else _kinds(color)
    draw = draw_density if len(points) > MOST_POINTS else _draw_dots
    shades = draw(ax, points, color, kinds)
    if not keyed:
        return
    if kinds is not None:
        ax.legend(title=label, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
    elif shades is not None:
        ax.figure.colorbar(shades, ax=ax, label=label or ("" if color is not None else "points"))


def _draw_dots(ax: Any, points: np.ndarray, color: Any, kinds: Any) -> Any:
    dot = dot_of(len(points))
    if kinds is not None:
        for place, kind in enumerate(kinds):
            ax.scatter(*points[color == kind].T, label=str(kind), **(dot | style_of(place)))
        return None
    if color is None:
        ax.scatter(*points.T, color=BLUE, **dot)
        return None
    return ax.scatter(*points.T, c=color, cmap="cividis", **dot)


def dot_of(n_points: int, larger: float = 1) -> dict[str, Any]:
    """Return the style of dots, which are smaller if there are many."""
    size = larger * float(np.clip(12000 / max(n_points, 1), 1, 20))
    return {"s": size, "linewidths": 0, "rasterized": True}


def style_of(place: int, *, hollow: bool | None = None) -> dict[str, Any]:
    """Return the marker of a label: filled, or hollow if colours repeat or if asked for."""
    color = _color(place)
    hollow = place // len(OKABE_ITO) % 2 == 1 if hollow is None else hollow
    face = {"facecolors": "none" if hollow else color, "edgecolors": color}
    return face | {"linewidths": 0.8 * hollow, "marker": MARKS[place % len(MARKS)]}


def _color(place: int) -> str:
    return OKABE_ITO[place % len(OKABE_ITO)]


def draw_density(ax: Any, points: np.ndarray, color: Any, kinds: Any) -> Any:
    """Draw counts of points, means of values or most frequent labels as an image."""
    bounds = np.column_stack([points.min(axis=0), points.max(axis=0)])

    def per_cell(some: Any = slice(None), weights: Any = None) -> np.ndarray:
        x, y = points[some].T
        return np.histogram2d(y, x, DENSITY_BINS, bounds[::-1], weights=weights)[0]

    frame = {"extent": bounds.ravel(), "origin": "lower"}
    if kinds is not None:
        ax.imshow(_most_frequent([per_cell(color == kind) for kind in kinds]), **frame)
        for place, kind in enumerate(kinds):  # for the legend
            ax.scatter([], [], label=str(kind), color=_color(place), marker="s")
        return None
    shown = np.ma.masked_equal(per_cell(), 0)
    if color is None:
        return ax.imshow(shown, norm="log", cmap="cividis_r", **frame)
    return ax.imshow(per_cell(weights=color) / shown, cmap="cividis", **frame)


def _most_frequent(counts: list[np.ndarray]) -> np.ndarray:
    """Return an image in the label colours, more transparent for fewer points."""
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(_color(place)) for place in range(len(counts))])
    strength = np.log1p(np.sum(counts, axis=0))
    strength = np.where(strength > 0, 0.3 + 0.7 * strength / strength.max(), 0)
    return np.dstack([palette[np.argmax(counts, axis=0)], strength])
