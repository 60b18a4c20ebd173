"""Loading of models, and lookup of their rows by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heatsketch._core.row_names import FIRST_OF_TEXT, row_number
from heatsketch.cli._exit_codes import CommandError, ExitCode


def load_embedding(path: Path) -> Any:
    """Load a model that can embed new rows."""
    from heatsketch import DiffusionMap, HeatSketch, load

    model = load(path)
    if not isinstance(model, HeatSketch | DiffusionMap):
        raise _other_kind(path, model, "a HeatSketch or a DiffusionMap")
    return model


def load_sketch(path: Path) -> Any:
    """Load a model that has distances with intervals."""
    from heatsketch import HeatSketch, load

    model = load(path)
    if not isinstance(model, HeatSketch):
        raise _other_kind(path, model, "a HeatSketch, as embed saves it")
    return model


def _other_kind(path: Path, model: Any, wanted: str) -> CommandError:
    message = f"{path} holds a {type(model).__name__}; give {wanted}."
    return CommandError(message, ExitCode.ARGUMENTS)


def row_ids(model: Any) -> np.ndarray:
    """Return the ids of the rows, in the order of the embedding."""
    ids = np.empty_like(model.row_ids_)
    ids[model.order_] = model.row_ids_
    return ids


def positions(model: Any, path: Path, names: list[str]) -> np.ndarray:
    """Return the positions of the rows of the embedding with these names.

    Parameters
    ----------
    model : HeatSketch
    path : pathlib.Path
        Path of the model, for messages.
    names : list of str
        Ids in the table that was embedded; positions, counted from 0, if it had no ids.
    """
    ids = row_ids(model)
    order = np.argsort(ids)
    numbers = np.array([row_number(name) for name in names], dtype=np.int64)
    places = np.searchsorted(ids[order], numbers).clip(max=len(ids) - 1)
    found = order[places]
    absent = ids[found] != numbers
    if absent.any():
        name = names[int(np.argmax(absent))]
        raise CommandError(
            f"row {name!r} is not in {path}, which has {len(ids)} rows; use its {_known(ids)}.",
            ExitCode.ARGUMENTS,
        )
    return found


def _known(ids: np.ndarray) -> str:
    if ids.max() >= FIRST_OF_TEXT:  # a model keeps only the numbers of text ids
        return "ids, which are text, as in the --ids column or the graph given to embed"
    return f"ids, for instance {ids[0]}" if ids.max() >= len(ids) else f"rows 0 to {ids.max()}"
