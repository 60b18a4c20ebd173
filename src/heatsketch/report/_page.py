"""The page: template, style sheet, scripts and the data of a model."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import atomic_file
from heatsketch._core.checks import check_integers
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat import HeatGraph, Sketch
from heatsketch.heat._plane import Plane, diffusion_plane, principal_plane
from heatsketch.heat._sketch import sketch_of
from heatsketch.report._columns import Column, color_columns
from heatsketch.report._facts import components_by_size, parameters
from heatsketch.report._images import IMAGE_BYTES, check_images, packed_images
from heatsketch.report._packing import (
    as_script_text,
    packed,
    packed_text,
    rounded_rows,
    steps_of_plane,
)

LARGEST_TIME = 64  # on the slider, unless twice the power of the sketch is larger
MOST_DRAWN = 250_000  # points; more do not fit on a screen
PAGE_BYTES = 38_000_000  # limit for the data of a page
FEWEST_ROWS = 1000  # rows with a sketch, however little space there is
SCRIPTS = (
    *("blocks.js", "palette.js", "cloud.js", "chart.js", "state.js", "colors.js", "pair.js"),
    *("selection.js", "pointer.js", "words.js", "page.js"),
)
PLACE = re.compile(r"\{\{(\w+)\}\}")


class _Rows(NamedTuple):
    """Rows in a page: those drawn, and those of them with a sketch."""

    drawn: np.ndarray
    sketched: np.ndarray
    dtype: Any


def write_report(
    model: Any,
    path: Any,
    *,
    colors: Any = None,
    names: Any = None,
    images: Any = None,
    powers: Iterable[int] | None = None,
    confidence: float = 0.95,
    title: str = "Heat sketch",
    overwrite: bool = False,
) -> None:
    r"""Write an interactive HTML report of a model.

    .. math:: Y_p = \frac{1}{\sqrt k} A^p G, \qquad p = 1, 2, 4, \ldots

    Parameters
    ----------
    model : Sketch or fitted HeatSketch
        With its graph.
    path : str or path-like
        Path of the page, which is written atomically.
    colors : mapping of str to array of shape (n_samples,), or data frame, optional
        Columns for the colours of the points: labels (text, booleans, or at most 24 distinct
        integers), or values.
    names : array of shape (n_samples,), optional
        Names of the rows; by default their ids.
    images : array of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
        A small image of each point, grey or RGB, which the page shows beside the point. Numbers
        are scaled so that the smallest is black and the largest is white, unless they are uint8.
        Only as many as fit in 8 MB are stored.
    powers : iterable of int, optional
        Diffusion times on the slider; by default 1, 2, 4, ... That of the sketch is included.
    confidence : float, default=0.95
        Confidence level of the intervals.
    title : str, default="Heat sketch"
        Title of the page.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatSketch
    >>> from heatsketch.report import write_report
    >>> X, digit = load_digits(return_X_y=True)
    >>> model = HeatSketch(16, power=4).fit(X[:200])
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder, "digits.html")
    ...     write_report(model, page, colors={"digit": digit[:200]}, powers=[1, 4, 16])
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    made = sketch_of("model", model)
    n_points = len(made.embedding)
    columns, labels = color_columns(colors, n_points), _names(made, names)
    images = check_images(images, n_points)
    n_random = made.n_components - made.settings.n_leading
    law = scale_interval(n_random, confidence, random_matrix=made.settings.random_matrix)
    with atomic_file(path, overwrite=overwrite) as file:
        facts, blocks = _parts(made, _sketches(made, powers), columns, names=labels, images=images)
        facts |= {"title": str(title), "confidence": confidence}
        facts["factors"] = [factor if np.isfinite(factor) else None for factor in law]
        for part in _html(facts, blocks):
            file.write(part.encode("utf-8"))


def _names(made: Sketch, names: Any) -> list[str] | None:
    """Return the names of the rows, or None for their positions."""
    n_points, names = len(made.embedding), made.names if names is None else names
    if names is None:
        return None
    if np.shape(names) != (n_points,):
        raise HeatSketchError(
            f"names must have one entry for each of the {n_points} points, got shape "
            f"{np.shape(names)}."
        )
    return [str(name) for name in np.asarray(names).tolist()]


def _sketches(made: Sketch, powers: Iterable[int] | None) -> dict[Any, np.ndarray]:
    """Return the embedding at each time and at that of the sketch, from one pass.

    Times are sorted, and the sum over all times is the last.
    """
    if powers is None:
        powers = [2**i for i in range(12) if 2**i <= max(LARGEST_TIME, 2 * made.first_power)]
    own = made.settings.power
    others = sorted({*check_integers("powers", powers)} - {own})
    every = dict(zip(others, made.path(others), strict=True)) | {own: made.embedding}
    return every if own == "all" else dict(sorted(every.items()))


# --- data ----------------------------------------------------------------------------------


def _parts(
    made: Sketch,
    every: dict[Any, np.ndarray],
    columns: list[Column],
    *,
    names: list[str] | None,
    images: np.ndarray | None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the small data as a dict, and the packed arrays by name."""
    graph, powers = made._graph, list(every)
    components = components_by_size(graph)
    if components is not None:
        columns = columns + color_columns({"connected component": components + 1}, len(components))
    n_points, k = made.embedding.shape
    rows = _rows(n_points, k, len(powers), len(columns), with_images=images is not None)
    points, eigenvalues = plane_of(made)
    blocks = {"places": packed(steps_of_plane(points[rows.drawn]))}
    for place, Y in enumerate(every.values()):
        numbers, units = rounded_rows(Y[rows.drawn[rows.sketched]], rows.dtype)
        blocks[f"sketch-{place}"] = packed(units, numbers)
    for place, column in enumerate(columns):
        blocks[f"color-{place}"] = packed(column.data[rows.drawn])
    if names is not None:
        blocks["names"] = packed_text([names[row] for row in rows.drawn])
    if images is not None:
        blocks["images"] = packed_images(images[rows.drawn[rows.sketched]])
    blocks["rows"] = packed(rows.drawn.astype(np.int32))
    blocks["sketched"] = packed(rows.sketched.astype(np.int32))
    facts = {
        **_numbers_of(made, graph, rows),
        "component_sizes": [] if components is None else np.bincount(components)[:20].tolist(),
        "powers": powers,
        "start": powers.index(made.settings.power),
        "eigenvalues": [round(float(value), 6) for value in eigenvalues],
        "image": None if images is None else images.shape[1:],
        "colors": [{"name": column.name, "kinds": column.kinds} for column in columns],
        "named": names is not None,
    }
    return facts, blocks


def plane_of(made: Sketch) -> Plane:
    """Return the plotted points: the diffusion map, or principal components.

    An eigenvector is zero outside of one connected component. With several components, principal
    components are plotted, which show all of them apart.
    """
    if made.n_connected_components > 1:
        return Plane(principal_plane(made.embedding)[0], np.array([]))
    return diffusion_plane(made)


def _numbers_of(made: Sketch, graph: HeatGraph, rows: _Rows) -> dict[str, Any]:
    from heatsketch import __version__

    return {
        "version": __version__,
        "n_points": graph.n_samples,
        "n_components": made.n_components,
        "n_leading": made.settings.n_leading,
        "tolerance": made._law["tolerance"],
        "n_drawn": len(rows.drawn),
        "n_sketched": len(rows.sketched),
        "bytes": np.dtype(rows.dtype).itemsize,
        "n_connected": graph.n_connected_components,
        "parameters": parameters(made, graph),
    }


def _rows(
    n_points: int, k: int, n_times: int, n_columns: int, *, with_images: bool = False
) -> _Rows:
    """Sample the rows to draw, and those with a sketch, from a fixed seed."""
    rng = np.random.default_rng(0)
    drawn = np.sort(rng.permutation(n_points)[:MOST_DRAWN])
    # base64 encodes three bytes as four.
    left = PAGE_BYTES * 3 // 4 - len(drawn) * (4 + 4 * n_columns + 12)
    left -= IMAGE_BYTES if with_images else 0
    if len(drawn) == n_points and n_points * n_times * (4 * k + 8) <= left:
        return _Rows(drawn, np.arange(n_points), np.int32)
    fitting = max(FEWEST_ROWS, left // (n_times * (2 * k + 8)))
    sketched = np.sort(rng.permutation(len(drawn))[:fitting])
    return _Rows(drawn, sketched, np.int16)


# --- HTML ----------------------------------------------------------------------------------


def _html(facts: dict[str, Any], blocks: dict[str, str]) -> Iterator[str]:
    """Yield the parts of the filled template."""
    style, script = _source("page.css"), "".join(_source(name) for name in SCRIPTS)
    # Only this script can run, even if labels contain others, and nothing can be fetched.
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}"
    filled = {
        "policy": [f"{policy}; img-src data:; base-uri 'none'; form-action 'none'"],
        "style": [style],
        "script": [script],
        "facts": [as_script_text(facts)],
        "blocks": (
            part
            for name, text in blocks.items()
            for part in (f'<script type="text/plain" id="{name}">', text, "</script>\n")
        ),
    }
    for place, text in enumerate(PLACE.split(_source("page.html"))):
        yield from filled[text] if place % 2 else [text]


def _source(name: str) -> str:
    return (files("heatsketch.report") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
