"""``heatsketch info``: description of a model file, from its header alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heatsketch.cli._console import Reply
from heatsketch.cli._options import readable_bytes

# By the names that the other commands use.
SHOWN = {
    "class": "model",
    "n_points": "rows",
    "n_features": "columns",
    "n_components": "components",
    "power": "power",
    "first_power": "first power",
    "seed": "seed",
    "training_data": "training data",
    "format_version": "format",
}


def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")],
) -> Reply:
    """Print what a model holds: its options, its size, and what wrote it."""
    from heatsketch import model_info

    result = model_info(model)
    lines = [(name, result[key]) for key, name in SHOWN.items() if result[key] is not None]
    lines.append(("size", readable_bytes(result["bytes"])))
    shown = {**result["parameters"], **{f"with {n}": v for n, v in result["versions"].items()}}
    lines += [(name, value) for name, value in shown.items() if name not in result]
    return Reply({"path": model, **result}, "\n".join(_line(*line) for line in lines))


def _line(name: str, value: Any) -> str:
    words = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
    return f"{name:20} {words}"
