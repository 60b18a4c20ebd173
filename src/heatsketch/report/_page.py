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
from heatsketch._core.progress import steps
from heatsketch._core.row_names import FIRST_OF_TEXT
from heatsketch.diffusion._confidence import scale_interval
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.exceptions import HeatSketchError
from heatsketch.report._columns import Column, color_columns
from heatsketch.report._facts import CITATION, bandwidth, component_of_each, parameters, trace
from heatsketch.report._images import IMAGE_BYTES, check_images, packed_images
from heatsketch.report._packing import (
    as_script_text,
    packed,
    packed_text,
    rounded_rows,
    steps_of_plane,
)
from heatsketch.report._pictures import own_time, plane_of, sketches, times

MOST_DRAWN = 250_000  # points; a screen cannot show more
PAGE_BYTES = 38_000_000  # limit for the data of a page
FEWEST_ROWS = 1000  # rows with a sketch, however little space there is
SCRIPTS = (
    *("blocks.js", "palette.js", "cloud.js", "chart.js", "state.js", "colors.js", "pair.js"),
    *("selection.js", "pointer.js", "words.js", "page.js"),
)
PLACE = re.compile(r"\{\{(\w+)\}\}")


class _Rows(NamedTuple):
    """Rows of a model in a page: those drawn, and those of them with a sketch."""

    drawn: np.ndarray
    sketched: np.ndarray
    dtype: Any


def write_report(
    model: HeatSketch,
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
    model : HeatSketch
        A fitted model with its training data.
    path : str or path-like
        Path of the page, which is written atomically.
    colors : mapping of str to array of shape (n_samples,), or data frame, optional
        Columns for the colours of the points: labels (text, booleans, or at most 24 distinct
        integers), or values.
    names : array of shape (n_samples,), optional
        Names of the rows; by default their ids or positions.
    images : array of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
        A small image of each point, grey or RGB, which the page shows beside the point. Numbers
        are scaled so that the smallest is black and the largest is white, unless they are uint8.
        Only as many as fit in 8 MB are stored.
    powers : iterable of int, optional
        Diffusion times on the slider; by default 1, 2, 4, ... The model's own is always included.
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
    >>> model = HeatSketch(16, power=4, n_neighbors=15).fit(X[:200])
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder, "digits.html")
    ...     write_report(model, page, colors={"digit": digit[:200]}, powers=[1, 4, 16])
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    model = _checked(model)
    columns = color_columns(colors, len(model.embedding_))
    given = times(model, powers)
    called = _names(model, names)
    images = check_images(images, len(model.embedding_))
    factors = scale_interval(model.n_components, confidence, random_matrix=model.random_matrix)
    with atomic_file(path, overwrite=overwrite) as file:
        found = sketches(model, given)
        done = steps("page", len(given) + 2)
        facts, blocks = _parts(model, found, given, columns, done, names=called, images=images)
        facts |= {"title": str(title), "confidence": confidence, "factors": _finite(factors)}
        for part in _html(facts, blocks):
            file.write(part.encode("utf-8"))
        done()


def _checked(model: Any) -> HeatSketch:
    if not isinstance(model, HeatSketch):
        raise HeatSketchError(
            f"model={type(model).__name__} has no sketch at several times, with intervals; give a "
            "HeatSketch."
        )
    fitted = model._as_fitted()
    fitted._training_operator("a report")
    return fitted


def _names(model: HeatSketch, names: Any) -> list[str] | None:
    """Return the names of the rows, or None for their positions."""
    n_points = len(model.embedding_)
    if names is None:
        ids = model._in_given_order(model.row_ids_)
        if (ids == np.arange(n_points)).all() or ids.max() >= FIRST_OF_TEXT:
            return None
        names = ids
    if np.shape(names) != (n_points,):
        raise HeatSketchError(
            f"names of shape {np.shape(names)} must be {n_points}, one for each point."
        )
    return [str(name) for name in np.asarray(names).tolist()]


def _finite(factors: tuple[float, float]) -> list[float | None]:
    return [factor if np.isfinite(factor) else None for factor in factors]


# --- data ----------------------------------------------------------------------------------


def _parts(
    model: HeatSketch,
    found: list[np.ndarray],
    given: list[Any],
    columns: list[Column],
    done: Any,
    *,
    names: list[str] | None,
    images: np.ndarray | None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the small data as a dict, and the packed arrays by name."""
    components = component_of_each(model)
    if components is not None:
        columns = [
            *columns,
            *color_columns({"connected component": components + 1}, len(components)),
        ]
    start = given.index(own_time(model))
    n_points, k = model.embedding_.shape
    rows = _rows(n_points, k, len(given), len(columns), with_images=images is not None)
    points, eigenvalues = plane_of(model)
    blocks = {"places": packed(steps_of_plane(points[rows.drawn]))}
    for place, Y in enumerate(found):
        sketch = rounded_rows(Y[rows.drawn[rows.sketched]], rows.dtype)
        blocks[f"sketch-{place}"] = packed(sketch.units, sketch.numbers)
        done()
    for place, column in enumerate(columns):
        blocks[f"color-{place}"] = packed(column.data[rows.drawn])
    if names is not None:
        blocks["names"] = packed_text([names[row] for row in rows.drawn])
    if images is not None:
        blocks["images"] = packed_images(images[rows.drawn[rows.sketched]])
    blocks["rows"] = packed(rows.drawn.astype(np.int32))
    blocks["sketched"] = packed(rows.sketched.astype(np.int32))
    facts = {
        **_numbers_of(model, rows, components),
        "powers": given,
        "start": start,
        "eigenvalues": [round(float(value), 6) for value in eigenvalues],
        "image": None if images is None else images.shape[1:],
        "colors": [{"name": column.name, "kinds": column.kinds} for column in columns],
        "named": names is not None,
        "trace": trace(model, given, found),
        "bandwidth": bandwidth(model),
    }
    done()
    return facts, blocks


def _numbers_of(model: HeatSketch, rows: _Rows, components: np.ndarray | None) -> dict[str, Any]:
    from heatsketch import __version__

    sizes = [] if components is None else np.bincount(components).tolist()
    return {
        "version": __version__,
        "n_points": len(model.embedding_),
        "n_features": model.n_features_in_,
        "n_components": model.n_components,
        "n_drawn": len(rows.drawn),
        "n_sketched": len(rows.sketched),
        "bytes": np.dtype(rows.dtype).itemsize,
        "n_connected": model.n_connected_components_,
        "component_sizes": sizes[:20],
        "power": model.power_,
        "parameters": parameters(model),
        "citation": CITATION.replace("VERSION", __version__),
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
    # Whatever labels contain, only this script can run, and nothing can be fetched.
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
