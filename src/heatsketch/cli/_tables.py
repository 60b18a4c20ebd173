"""Reading and writing of tables and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from heatsketch._core.checks import check_finite
from heatsketch._core.progress import steps
from heatsketch.cli._options import GraphOptions, TableOptions
from heatsketch.exceptions import HeatSketchError
from heatsketch.io import (
    Block,
    Graph,
    Table,
    check_different_files,
    open_table,
    read_graph,
    table_writer,
)

NUMBERS_ONLY = ".npy"  # stores neither ids nor labels
MATRICES = (".npy", ".zarr")  # with --graph, a square matrix of weights
WITHOUT_NAMES = (*MATRICES, ".npz", ".mtx")  # of nodes


def check_outputs(inputs: Sequence[Any], *outputs: Path | None) -> None:
    """Raise if an output is also an input, or another output."""
    files = list(inputs)
    for path in outputs:
        if path is not None:
            check_different_files(files, path)
            files.append(path)


# --- tables ---------------------------------------------------------------------------------


def open_rows(path: Any, options: TableOptions) -> Table:
    """Open a table with the given columns, labels and ids; the rows are read later."""
    table = open_table(path, **{**asdict(options), "labels": options.labels or ()})
    if not table.n_rows:
        raise HeatSketchError(f"{path} must have at least one row; check that it was written.")
    return table


def read_rows(table: Table) -> Block:
    """Read all rows, and report progress."""
    done = steps("reading", 1)
    block = table.read()
    check_block(table, block)
    done()
    return block


def check_block(table: Table, block: Block, first_row: int = 0) -> None:
    """Raise for NaN and infinity, with their place in the file."""
    check_finite(block.X, names_of(table), str(table.path), ids=block.ids, first_row=first_row)


def names_of(table: Table) -> list[str] | None:
    """Return the names of the columns; None for an array, whose columns have none."""
    names = list(table.names)
    return None if names == [f"x{column}" for column in range(len(names))] else names


def about(table: Table, options: TableOptions) -> dict[str, Any]:
    """Return what is printed of a table that is read."""
    return {
        "input": table.path,
        "rows": table.n_rows,
        "columns": list(table.names),
        "ids": id_column(table, options),
        "labels": options.labels,
    }


def id_column(table: Table, options: TableOptions) -> str | None:
    """Return the name of the column of ids, if there are any."""
    return options.ids or ("id" if table.has_ids else None)


def check_width(table: Table, n_columns: int, model: Path) -> None:
    """Raise unless a table has as many columns as a model was fitted to."""
    if len(table.names) != n_columns:
        raise HeatSketchError(
            f"{table.path} has {len(table.names)} columns of numbers, but {model} was fitted to "
            f"{n_columns}. Choose them with --columns, or leave others out with --labels or --ids."
        )


# --- graphs ---------------------------------------------------------------------------------


def read_affinity(path: str, table: TableOptions, options: GraphOptions) -> Graph:
    """Read a graph; its ids are None if its nodes have no names."""
    for name in ("labels", "ids", "key"):
        if getattr(table, name) is not None:
            raise typer.BadParameter(f"--{name} is not supported for graphs.")
    if replace(options, normalization=None) != GraphOptions():
        raise typer.BadParameter("--neighbors, --metric and --weights are for points, not graphs.")
    done = steps("reading", 1)
    if path.lower().endswith(MATRICES):
        graph = Graph(open_table(path).read().X, None)
    else:
        graph = read_graph(path, columns=table.columns, header=table.header)
        check_finite(graph.affinity, graph.ids, path, ids=graph.ids)
    done()
    return graph._replace(ids=None) if path.lower().endswith(WITHOUT_NAMES) else graph


# --- outputs --------------------------------------------------------------------------------


def output_like(
    path: Path,
    names: Sequence[str],
    table: Table,
    options: TableOptions,
    *,
    labels: Sequence[str] = (),
    **more: Any,
) -> Any:
    """Open an output with the ids and labels of a table, and more labels.

    It is opened before the work starts, so that errors are raised early. Ids that were not
    requested are left out of a format that stores numbers only.
    """
    is_left_out = options.ids is None and path.suffix.lower() == NUMBERS_ONLY
    ids = None if is_left_out else id_column(table, options)
    return table_writer(path, names, ids=ids, labels=[*(options.labels or ()), *labels], **more)
