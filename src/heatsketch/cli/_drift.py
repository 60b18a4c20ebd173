"""``heatsketch drift``: change of geometry between models, and moved rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch.cli._models import load_sketch
from heatsketch.cli._options import Confidence


def drift(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The earlier model.")],
    other: Annotated[
        Path,
        typer.Argument(metavar="OTHER", help="The later model, embedded with the same options."),
    ],
    confidence: Confidence = 0.95,
) -> dict[str, Any]:
    """Print how far the geometry moved between two models, and which rows moved more.

    Both must have the same options and seed. Rows are matched by their ids, or by their positions
    if the tables had no ids. The interval covers the error of the sketch only, not that of the
    samples or of approximate graphs.

    Example: `heatsketch drift monday.heatsketch tuesday.heatsketch --json`
    """
    from heatsketch import drift as drift_between

    change = drift_between(load_sketch(model), load_sketch(other), confidence=confidence)
    order = np.argsort(change.p_values, kind="stable")
    return {
        "model": model,
        "other": other,
        "confidence": confidence,
        **{name: getattr(change, name) for name in ("total", "standard_error", "low", "high")},
        "relative": change.relative,
        "common_rows": len(change.ids),
        "moved": change.ids[order][change.moved[order]],
        "came": change.came,
        "went": change.went,
    }
