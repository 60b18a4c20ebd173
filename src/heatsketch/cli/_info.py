"""``heatsketch info``: description of a model file, from its header alone."""

from __future__ import annotations

from typing import Any

from heatsketch.cli._options import Model


def info(model: Model) -> dict[str, Any]:
    """Print what a model file contains.

    Example: `heatsketch info cells.heatsketch`
    """
    from heatsketch import model_info

    return {"path": model, **model_info(model)}
