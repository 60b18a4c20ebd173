"""Edge lists in tables: two columns of ends, and optionally one of weights."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.exceptions import FileFormatError
from heatsketch.io._graphs import Graph, graph_of_edges
from heatsketch.io._table import Table

# Names of the ends of an edge in networkx, igraph, Gephi, pandas and other tools.
ENDS = (
    {"source", "target"},
    {"src", "dst"},
    {"from", "to"},
    {"node1", "node2"},
    {"node_1", "node_2"},
)
WEIGHTS = ("weight", "weights")
EXAMPLE = ["source", "target", "weight"]


def edge_columns(names: Sequence[str], carried: Collection[str | None] = ()) -> tuple[str, ...]:
    """Return the columns of an edge list by their names; none if it is not one.

    Examples
    --------
    >>> from heatsketch.io._edge_tables import edge_columns
    >>> edge_columns(["Source", "Target", "Type", "Weight"]), edge_columns(["x", "y"])
    (('Source', 'Target', 'Weight'), ())
    """
    left = [name for name in names if name and name not in carried]  # an index has no name
    if {name.strip().lower() for name in left[:2]} not in ENDS:
        return ()
    weight = [name for name in left[2:] if name.strip().lower() in WEIGHTS]
    return (*left[:2], *weight[:1])


def edges_in_columns(
    path: Path, names: Sequence[str], columns: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the columns of ends and weight, as given, or else by their names."""
    chosen = edge_columns(names) if columns is None else tuple(columns)
    if not chosen and len(names) in (2, 3) and "" not in names:
        chosen = tuple(names)
    if len(chosen) not in (2, 3) or len(set(chosen)) < len(chosen):
        raise FileFormatError(
            path,
            f"which of its columns {list(names)[:8]} are the ends of edges is not clear",
            f"name them, and perhaps their weight: columns={EXAMPLE}",
            columns=EXAMPLE,
        )
    return chosen


def read_edges(table: Table, ends: Sequence[str]) -> Graph:
    """Read an edge list from a table with weights as features, ends as labels."""
    X, _, labels = table.read()
    nodes = [_node_names(table.path, name, labels[name]) for name in ends]
    number_of: dict[str, int] = {}
    places = array("q")
    for edge in zip(*nodes, strict=True):
        places.extend(number_of.setdefault(name, len(number_of)) for name in edge)
    if not number_of:
        raise FileFormatError(table.path, "it has no edges", "check that it was written")
    weights = X[:, 0].astype(np.float64) if X.shape[1] else np.ones(X.shape[0])
    return graph_of_edges(table.path, number_of, places, weights)


def _node_names(path: Path, column: str, values: Any) -> list[str]:
    """Return node names: text without outer blanks, integers without a point."""
    if values.dtype.kind == "f":  # integers with missing values are read as floats
        names = [f"{v:.17g}" if v == v else "" for v in values.tolist()]
    else:
        names = ["" if value is None else str(value).strip() for value in values.tolist()]
    for row, name in enumerate(names):
        if not name:
            raise FileFormatError(
                path, f"row {row} of column {column!r} has no node", "fill it in, or drop the row"
            )
    return names
