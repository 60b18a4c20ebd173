"""Scatter plots of points, or density plots if there are many points."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from heatsketch.estimators._validation import is_missing
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError
from heatsketch.plot._axes import BLUE, MARKS, OKABE_ITO, new_axes, pyplot

MOST_KINDS = 24  # most labels that colours and markers can distinguish
MOST_POINTS = 100_000  # beyond this there are more points than pixels
DENSITY_BINS = 300  # bins along each axis


def embedding(
    Y: Any, color: Any = None, *, by: str = "ritz", label: str | None = None, ax: Any = None
) -> Any:
    r"""Plot the diffusion map or the principal components of a sketch.

    .. math:: \lambda_1^p v_1, \; \lambda_2^p v_2

    Both axes have the same scale, so that distances are shown correctly. With more than 100,000
    points, a density plot shows their number, the mean of their values, or their most frequent
    label.

    Parameters
    ----------
    Y : HeatSketch, or array of shape (n, k)
        A fitted model, or an embedding, which is plotted by its principal components.
    color : array of shape (n,), optional
        Labels (text, booleans, or at most 24 distinct integers), or values.
    by : {"ritz", "pca"}, default="ritz"
        For a model: the diffusion map from the sketch, or principal components.
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
    points, names = _plane(Y, by)
    ax = new_axes(ax)
    _draw(ax, points, _checked_color(color, len(points)), label)
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def multiscale(
    model: HeatSketch, powers: Iterable[int] = (1, 4, 16, 64), *, color: Any = None
) -> np.ndarray:
    r"""Plot the points at several diffusion times side by side, from one pass.

    .. math:: Y_p = \frac{1}{\sqrt{k}} A^p G

    Each panel shows the principal components of its own sketch on its own scale. Axes are flipped
    if that makes a panel more similar to the previous one.

    Parameters
    ----------
    model : HeatSketch
        A fitted model.
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
    powers = list(powers)
    _check_columns(model._as_fitted().embedding_)
    panels = [_principal(Y)[0] for Y in model.path(powers)]
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


def _plane(Y: Any, by: str) -> tuple[np.ndarray, list[str]]:
    """Return two-dimensional points, and the names of their coordinates."""
    if by not in ("ritz", "pca"):
        raise HeatSketchError(f"by={by!r} is unknown; use 'ritz' or 'pca'.")
    if isinstance(Y, HeatSketch):
        if by == "ritz":
            names = [f"diffusion coordinate {i} (Ritz vector of the sketch)" for i in (1, 2)]
            return Y.diffusion_map(2).coordinates, names
        Y = Y.embedding_
    Y = np.asarray(Y)
    _check_columns(Y)
    if Y.shape[1] == 2:
        return Y, ["coordinate 1", "coordinate 2"]
    points, shares = _principal(Y)
    names = [
        f"principal component {i + 1} of {Y.shape[1]} columns ({shares[i]:.0%})" for i in (0, 1)
    ]
    return points, names


def _check_columns(Y: np.ndarray) -> None:
    if Y.ndim != 2 or Y.shape[1] < 2:
        raise HeatSketchError(
            f"an embedding of shape {Y.shape} has no two columns; use n_components=2 or more."
        )


def _principal(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first two principal components and their shares of the variance."""
    Y = Y.astype(np.float64) - Y.mean(axis=0)
    values, directions = np.linalg.eigh(Y.T @ Y)
    # The sign is arbitrary: choose the one that makes the largest entry positive.
    first = directions[:, :-3:-1]
    first = first * np.sign(first[np.argmax(np.abs(first), axis=0), [0, 1]])
    return Y @ first, values[:-3:-1] / values.sum()


def _checked_color(color: Any, n_points: int) -> np.ndarray | None:
    if color is None:
        return None
    values = np.asarray(color)
    if values.dtype.kind == "O" and any(map(is_missing, values.flat)):  # cannot be sorted
        words = ["missing" if is_missing(value) else str(value) for value in values.flat]
        values = np.array(words).reshape(values.shape)
    if values.shape != (n_points,):
        raise HeatSketchError(
            f"color of shape {values.shape} must be {n_points} labels or values, one for each "
            "point."
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
        f"color has {len(kinds)} labels, of which {MOST_KINDS} can be distinguished; join some."
    )


# --- points and density --------------------------------------------------------------------


def _draw(
    ax: Any, points: np.ndarray, color: np.ndarray | None, label: str | None, *, keyed: bool = True
) -> None:
    """Draw points, or their density if there are many, and explain the colours."""
    kinds = None if color is None else _kinds(color)
    draw = _draw_density if len(points) > MOST_POINTS else _draw_dots
    shades = draw(ax, points, color, kinds)
    if not keyed:
        return
    if kinds is not None:
        ax.legend(title=label, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
    elif shades is not None:
        ax.figure.colorbar(shades, ax=ax, label=label or ("" if color is not None else "points"))


def _draw_dots(ax: Any, points: np.ndarray, color: Any, kinds: Any) -> Any:
    dot = {"s": float(np.clip(12000 / len(points), 1, 20)), "rasterized": True}
    if kinds is not None:
        for place, kind in enumerate(kinds):
            style = _style(place) | {"marker": MARKS[place % len(MARKS)]}
            ax.scatter(*points[color == kind].T, label=str(kind), **style, **dot)
        return None
    if color is None:
        ax.scatter(*points.T, color=BLUE, linewidths=0, **dot)
        return None
    return ax.scatter(*points.T, c=color, cmap="cividis", linewidths=0, **dot)


def _color(place: int) -> str:
    return OKABE_ITO[place % len(OKABE_ITO)]


def _style(place: int) -> dict[str, Any]:
    """Return the style of a filled marker, or of a hollow one if colours repeat."""
    hollow = place // len(OKABE_ITO) % 2
    face = "none" if hollow else _color(place)
    return {"facecolors": face, "edgecolors": _color(place), "linewidths": 0.8 * hollow}


def _draw_density(ax: Any, points: np.ndarray, color: Any, kinds: Any) -> Any:
    """Draw counts of points, means of values or most frequent labels as an image."""
    low, high = points.min(axis=0), points.max(axis=0)
    steps = (points - low) / np.where(high > low, high - low, 1) * DENSITY_BINS
    x, y = np.minimum(steps.astype(np.intp), DENSITY_BINS - 1).T
    cells = y * DENSITY_BINS + x
    counts = _per_cell(cells)
    frame = {"extent": (low[0], high[0], low[1], high[1]), "origin": "lower"}
    if kinds is not None:
        ax.imshow(_most_frequent(cells, color, kinds), **frame)
        for place, kind in enumerate(kinds):  # for the legend
            ax.scatter([], [], label=str(kind), color=_color(place), marker="s")
        return None
    shown = np.ma.masked_where(counts == 0, counts)
    if color is None:
        return ax.imshow(shown, norm="log", cmap="cividis_r", **frame)
    return ax.imshow(_per_cell(cells, color) / shown, cmap="cividis", **frame)


def _per_cell(cells: np.ndarray, weights: Any = None) -> np.ndarray:
    total = np.bincount(cells, weights, minlength=DENSITY_BINS**2)
    return total.reshape(DENSITY_BINS, DENSITY_BINS)


def _most_frequent(cells: np.ndarray, color: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return an image in the label colours, more transparent for fewer points."""
    from matplotlib.colors import to_rgb

    counts = np.array([_per_cell(cells[color == kind]) for kind in kinds])
    palette = np.array([to_rgb(_color(place)) for place in range(len(kinds))])
    strength = np.log1p(counts.sum(axis=0))
    strength = np.where(strength > 0, 0.3 + 0.7 * strength / strength.max(), 0)
    return np.dstack([palette[np.argmax(counts, axis=0)], strength])
