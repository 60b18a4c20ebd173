"""Thumbnail images of the points."""

from __future__ import annotations

from typing import Any

import numpy as np

from heatsketch.exceptions import HeatSketchError
from heatsketch.report._packing import packed

IMAGE_BYTES = 8_000_000  # of all images in a page


def check_images(images: Any, n_points: int) -> np.ndarray | None:
    """Return images as uint8, of shape (n, height, width) or (..., 3)."""
    if images is None:
        return None
    array = np.asarray(images)
    is_picture = array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)
    if not is_picture or len(array) != n_points or array.dtype.kind not in "biuf":
        raise HeatSketchError(
            f"images must be numbers of shape ({n_points}, height, width), or ({n_points}, height, "
            f"width, 3) for colours, got shape {array.shape} and dtype {array.dtype}."
        )
    if array.dtype == np.uint8:
        return array
    low, high = float(np.nanmin(array)), float(np.nanmax(array))
    scaled = (np.nan_to_num(array.astype(np.float64), nan=low) - low) * 255 / ((high - low) or 1.0)
    return np.rint(scaled).astype(np.uint8)


def packed_images(images: np.ndarray) -> str:
    """Return as many of the first images, packed, as a page may contain."""
    each = int(np.prod(images.shape[1:]))
    return packed(images[: IMAGE_BYTES // each])
