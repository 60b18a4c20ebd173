"""``heatsketch embed``: embedding and model of a table or a graph."""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.atomic_file import check_output_file
from heatsketch._core.memory import peak_memory
from heatsketch.cli import _options as options_of
from heatsketch.cli import _tables as tables
from heatsketch.cli._memory import engine_within_limit
from heatsketch.cli._models import graph_of_points
from heatsketch.cli._options import GraphOptions, Output, Overwrite, Seed, TableOptions
from heatsketch.exceptions import HeatSketchWarning
from heatsketch.io import GRAPH_EXTENSIONS, Block, table_writer


class _DryRun(Exception):  # noqa: N818 - it is not an error
    """Raised to discard an output before it appears."""


def embed(
    input: Annotated[
        str, typer.Argument(metavar="INPUT", help="A table, or a graph (.mtx, .edges, --graph).")
    ],
    *,
    output: Output,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to save the model to.")
    ] = None,
    overwrite: Overwrite = False,
    memory_limit: Annotated[
        Any,
        typer.Option(
            parser=options_of.number_of_bytes,
            metavar="SIZE",
            help="Most memory to use, for instance 2GiB.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; write nothing.")
    ] = False,
    table: TableOptions,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph",
            help="Read a table as a list of edges (source, target, and optionally weight), and a "
            "matrix (.npz, .npy, .zarr) as the weights of links.",
        ),
    ] = False,
    components: options_of.Components = 64,
    power: options_of.Power = "all",
    weighting: options_of.Weighting = "random_walk",
    seed: Seed = 0,
    options: GraphOptions,
) -> dict[str, Any]:
    """Embed the rows of a table, or the nodes of a graph.

    Euclidean distances between rows of the output estimate diffusion distances. Ids and labels
    are passed through. Rows with the same id in two tables have the same random numbers, so that
    two models can be compared (see drift).

    Example: `heatsketch embed cells.parquet -o embedding.parquet --model cells.heatsketch`
    """
    start = perf_counter()
    tables.check_outputs([input], output, model)
    if model is not None:
        check_output_file(model, overwrite=overwrite)
    names = [f"heatsketch{column}" for column in range(components)]
    rows: Any = None
    affinity: Any = None
    if graph or input.lower().endswith(GRAPH_EXTENSIONS):
        affinity = tables.read_affinity(input, table, options)
        result = {"input": input, "rows": affinity.affinity.shape[0]}
        ids = None if affinity.ids is None else "id"
        opened = table_writer(output, names, ids=ids, overwrite=overwrite)
    else:
        rows = tables.open_rows(input, table)
        result = tables.about(rows, table)
        facts: dict[str, Any] = {"dtype": rows.dtype, "overwrite": overwrite}
        opened = tables.output_like(output, names, rows, table, **facts)
    needed, engine = engine_within_limit(rows, components, options.neighbors, memory_limit)
    result |= {"output": output, "model": model, "estimated_bytes": needed}
    try:
        with opened as writer:
            if dry_run:
                raise _DryRun
            made, ids, labels = _graph(rows, affinity, options, engine)
            settings = {"power": power, "weighting": weighting, "random_state": seed}
            fitted = _fitted(components, settings, made, rows)
            writer.append(Block(fitted.embedding_, ids, labels))
            # Last, so that an earlier failure leaves neither of the two.
            if model is not None:
                fitted.save(model, overwrite=overwrite)
    except _DryRun:
        return {**result, "dry_run": True}
    result |= {"rows": made.n_samples, "graph": repr(made), "components": components}
    result |= {"power": power, "first_power": fitted.sketch_.first_power, "seed": seed}
    return {**result, "seconds": perf_counter() - start, "peak_bytes": peak_memory()}


def _graph(rows: Any, affinity: Any, options: GraphOptions, engine: Any) -> tuple[Any, Any, Any]:
    """Return the graph of rows or of affinities, and the ids and labels of its nodes."""
    from heatsketch import HeatGraph

    if rows is not None:
        if rows.is_sparse and rows.n_rows == len(rows.names) and options.metric != "precomputed":
            message = f"{rows.path} is a square matrix; use --graph if it holds weights of links."
            warnings.warn(HeatSketchWarning(message), stacklevel=2)
        X, ids, labels = tables.read_rows(rows)
        return graph_of_points(X, options, ids=ids, engine=engine), ids, labels
    W, ids = affinity
    normalization = options.normalization or "degree"
    return HeatGraph.from_affinity(W, normalization=normalization, ids=ids), ids, {}


def _fitted(components: int, settings: dict[str, Any], graph: Any, rows: Any) -> Any:
    """Return the model of a graph, with the names of columns for transform."""
    from heatsketch import HeatSketch

    model = HeatSketch(components, **settings).fit(graph)
    if rows is not None and tables.names_of(rows) is not None:
        model.feature_names_in_ = np.array(rows.names, dtype=object)
    return model
