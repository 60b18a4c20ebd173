"""Model files, their rows by id, and graphs of tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from heatsketch._core.row_names import row_numbers
from heatsketch.cli._options import GraphOptions, TableOptions
from heatsketch.cli._tables import check_width, open_rows
from heatsketch.exceptions import HeatSketchError


def load_transformer(path: Path) -> Any:
    """Load a model that can embed new rows."""
    from heatsketch import DiffusionMap, HeatSketch, load

    return _checked(path, load(path), HeatSketch | DiffusionMap)


def load_sketch(path: Path) -> Any:
    """Load a sketch, or the one of a model."""
    from heatsketch import Sketch, load

    model = load(path)
    return _checked(path, getattr(model, "sketch_", model), Sketch)


def _checked(path: Path, model: Any, kinds: Any) -> Any:
    if not isinstance(model, kinds):
        raise typer.BadParameter(
            f"{path} must hold a model that embed saved, got {type(model).__name__}."
        )
    return model


def open_like(model: Any, path: Path, table: str, options: TableOptions) -> Any:
    """Open a table of the columns that a model was fitted to, by their names if it has any."""
    names = getattr(model, "feature_names_in_", None)
    if options.columns is None and names is not None:
        options = replace(options, columns=names.tolist())
    opened = open_rows(table, options)
    check_width(opened, model.n_features_in_, path)
    model.__dict__.pop("feature_names_in_", None)  # blocks are arrays without names
    return opened


def places(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the position in ``numbers`` of each of some other row numbers, or -1."""
    order = np.argsort(numbers)
    positions = order[np.searchsorted(numbers[order], others).clip(max=len(order) - 1)]
    return np.where(numbers[positions] == others, positions, -1)


def rows_in_table(numbers: np.ndarray, model: Path, table: Any, ids: Any) -> np.ndarray:
    """Return the row of a table for each row of a model: by ids, or by position without ids."""
    if ids is None:
        if (numbers != np.arange(len(numbers))).any():
            # By position, rows would silently get the values of other rows.
            raise typer.BadParameter(f"{model} has row ids; name those of {table.path} with --ids.")
        if table.n_rows != len(numbers):
            raise HeatSketchError(
                f"{table.path} has {table.n_rows} rows, but {model} has {len(numbers)}. Use the "
                "table that was embedded, or name its row ids with --ids."
            )
        return numbers
    rows = places(row_numbers(ids), numbers)
    n_absent = int((rows < 0).sum())
    if n_absent:
        raise HeatSketchError(
            f"{table.path} has no rows for {n_absent} of the {len(numbers)} row ids of {model}. "
            "Use the table that was embedded, with the same --ids."
        )
    return rows


def graph_of_points(X: Any, options: GraphOptions, **more: Any) -> Any:
    """Return the graph of points, made with the options of a command."""
    from heatsketch import HeatGraph

    if options.normalization is not None:
        more["normalization"] = options.normalization
    return HeatGraph.from_points(
        X,
        n_neighbors=None if options.neighbors == "all" else options.neighbors,
        metric=options.metric,
        weights=options.weights,
        **more,
    )
