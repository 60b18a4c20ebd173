"""Encoding of arrays as text in a page, which the browser decodes."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

LEVELS = 2**16 - 1  # of a coordinate in two dimensions


def rounded_rows(Y: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows rounded to integers so that the largest entry just fits, and their units.

    The entries of a row of a sketch are Gaussian with a scale of that row, so one unit per row
    loses the least precision. The mean of all rows is subtracted, which leaves distances unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.report._packing import rounded_rows
    >>> numbers, units = rounded_rows(np.array([[1.0, 3.0], [3.0, 1.0]]), np.int16)
    >>> numbers.tolist(), (numbers * units[:, np.newaxis]).round(9).tolist()
    ([[-32767, 32767], [32767, -32767]], [[-1.0, 1.0], [1.0, -1.0]])
    """
    Y = Y.astype(np.float64) - Y.mean(axis=0, dtype=np.float64)
    units = np.abs(Y).max(axis=1) / np.iinfo(dtype).max
    safe = np.where(units > 0, units, 1)
    return np.rint(Y / safe[:, np.newaxis]).astype(dtype), units


def steps_of_plane(points: np.ndarray) -> np.ndarray:
    """Return two-dimensional points as integers over the full range, x before y."""
    low, side = points.min(axis=0), np.ptp(points, axis=0)
    places = np.where(side > 0, (points - low) / np.where(side > 0, side, 1), 0.5)
    return np.rint(places * LEVELS).astype(np.uint16).T.copy()


def packed(*arrays: np.ndarray) -> str:
    """Return arrays, concatenated and compressed, in base64."""
    parts = (np.ascontiguousarray(part, part.dtype.newbyteorder("<")) for part in arrays)
    return _text(b"".join(part.tobytes() for part in parts))


def packed_text(words: list[str]) -> str:
    """Return a list of strings, compressed, in base64."""
    return _text(json.dumps(words, ensure_ascii=False).encode("utf-8", "replace"))


def _text(raw: bytes) -> str:
    # Random numbers hardly compress at any level.
    return b64encode(zlib.compress(raw, level=1 if len(raw) > 2**20 else 6)).decode("ascii")


def as_script_text(value: Any) -> str:
    r"""Return JSON without ``<``, ``>`` and ``&``, which cannot contain a tag."""
    text = json.dumps(value, allow_nan=False)  # ASCII only, which escapes lone surrogates
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
