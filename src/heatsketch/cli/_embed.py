"""``heatsketch embed``: embedding and model of a table or a graph."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from heatsketch._core.memory import peak_memory
from heatsketch.cli._console import Reply, say
from heatsketch.cli._memory import engine_within_limit
from heatsketch.cli._options import (
    INPUT,
    Affinity,
    Bandwidth,
    ColumnNames,
    Components,
    Header,
    IdColumn,
    Key,
    LabelNames,
    MemoryLimit,
    Metric,
    Neighbors,
    Normalization,
    Output,
    Overwrite,
    Power,
    RandomMatrix,
    Seed,
    Weighting,
    readable_bytes,
    readable_seconds,
)
from heatsketch.cli._rows import (
    Rows,
    Wanted,
    columns_text,
    component_names,
    is_graph,
    named_in_file,
    open_rows,
    rows_output,
)


class _Places(NamedTuple):
    """Paths of the outputs, and whether existing ones may be replaced."""

    embedding: Path
    model: Path | None
    overwrite: bool


class _DryRun(Exception):  # noqa: N818 - it is not an error
    """Raised to discard an output before it appears."""


def embed(
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A table, or a graph (.mtx, .edges, --graph).")
    ],
    *,
    output: Output,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to save the model to.")
    ] = None,
    overwrite: Overwrite = False,
    memory_limit: MemoryLimit = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would be written, and the memory; write nothing."
        ),
    ] = False,
    columns: ColumnNames = None,
    labels: LabelNames = None,
    ids: IdColumn = None,
    key: Key = None,
    header: Header = None,
    graph: Annotated[
        bool | None,
        typer.Option(
            help="Whether a table is a list of edges (source, target, perhaps weight), or a "
            "sparse matrix .npz that of a graph.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    components: Components = 64,
    power: Power = "all",
    weighting: Weighting = "random_walk",
    random_matrix: RandomMatrix = "gaussian",
    seed: Seed = 0,
    neighbors: Neighbors = 15,
    metric: Metric = "euclidean",
    affinity: Affinity = "gaussian",
    epsilon: Bandwidth = "local",
    normalization: Normalization = "auto",
) -> Reply:
    """Embed the rows of a table, or the nodes of a graph.

    Euclidean distances between rows of the output estimate diffusion distances. Ids and labels
    are passed through; rows with the same id in two tables get the same random numbers, so that
    two models can be compared (see drift).
    """
    from heatsketch import HeatSketch

    places = _Places(output, model, overwrite)
    _check_collisions(input, places)
    sketch = HeatSketch(
        components,
        power=power,
        epsilon=epsilon,
        n_neighbors=None if neighbors == "all" else neighbors,
        metric=metric,
        affinity=affinity,
        normalization=normalization,
        weighting=weighting,
        random_matrix=random_matrix,
        random_state=seed,
    )
    wanted = Wanted(columns, labels, ids, key, header)
    is_matrix = "precomputed" in (metric, affinity)
    rows = open_rows(input, wanted, as_graph=is_graph(input, wanted, graph, is_matrix=is_matrix))
    if rows.shape is None:
        sketch.set_params(affinity="precomputed")
    estimated, engine = engine_within_limit(rows, sketch, places.embedding, memory_limit)
    sketch.set_params(engine=engine)
    return _run(rows, sketch, places, estimated, dry_run=dry_run)


def _check_collisions(input: Path, places: _Places) -> None:
    from heatsketch._core.atomic_file import check_output_file
    from heatsketch.io import check_different_files

    check_different_files([input], places.embedding)
    if places.model is not None:
        check_different_files([input, places.embedding], places.model)
        check_output_file(places.model, overwrite=places.overwrite)


def _run(
    rows: Rows, sketch: Any, places: _Places, estimated: float | None, *, dry_run: bool
) -> Reply:
    start = perf_counter()
    options = {"names": component_names(sketch.n_components), "dtype": rows.dtype}
    try:
        with rows_output(places.embedding, rows, overwrite=places.overwrite, **options) as write:
            if dry_run:
                raise _DryRun
            if estimated is not None and sys.stderr.isatty():
                say(f"Takes about {readable_bytes(estimated)} of memory.")
            block = rows.read()
            _fit(sketch, block, rows)
            write(sketch.embedding_, block)
            # Last, so that an earlier failure leaves neither of the two.
            if places.model is not None:
                sketch.save(places.model, overwrite=places.overwrite)
    except _DryRun:
        return _estimate(rows, places, estimated)
    return _reply(rows, sketch, places, estimated, perf_counter() - start)


def _fit(sketch: Any, block: Any, rows: Rows) -> None:
    from heatsketch._core.row_names import row_numbers

    ids = None if block.ids is None else row_numbers(block.ids)
    with named_in_file(rows.path, block, rows.names, is_graph=rows.shape is None):
        sketch.fit(block.X, row_ids=ids)
    if rows.names is not None:
        # So that transform finds the columns by their names, in any order.
        sketch.feature_names_in_ = np.array(rows.names, dtype=object)


def _estimate(rows: Rows, places: _Places, estimated: float | None) -> Reply:
    result = {**_what(rows, places), "dry_run": True, "bytes": estimated}
    lines = [f"Would read: {rows.path}", f"Would write: {_written(places)}"]
    if estimated is None or rows.shape is None:
        what = "a graph" if rows.shape is None else "a sparse table"
        lines += [*_columns(rows), f"Memory: unknown until {what} is read."]
        return Reply(result, "\n".join(lines))
    lines[0] += f" ({rows.shape[0]} rows, {rows.shape[1]} columns)"
    lines += [*_columns(rows), f"Memory: about {readable_bytes(estimated)}"]
    return Reply(result, "\n".join(lines))


def _what(rows: Rows, places: _Places) -> dict[str, Any]:
    n_rows, n_columns = rows.shape or (None, None)
    return {
        "input": rows.path,
        "rows": n_rows,
        "columns": n_columns,
        "column_names": rows.columns,
        "dtype": str(rows.dtype),
        "output": places.embedding,
        "model": places.model,
    }


def _columns(rows: Rows) -> list[str]:
    """Return a line that names the columns; none for a graph."""
    return [columns_text(rows.columns)] if rows.columns else []


def _written(places: _Places) -> str:
    return ", ".join(str(path) for path in (places.embedding, places.model) if path is not None)


def _reply(
    rows: Rows, sketch: Any, places: _Places, estimated: float | None, seconds: float
) -> Reply:
    n_rows, n_components = sketch.embedding_.shape
    peak = peak_memory()
    memory = "" if peak is None else f" and {readable_bytes(peak)} of memory"
    result = {
        **_what(rows, places),
        "rows": n_rows,
        "columns": sketch.n_features_in_,
        "components": n_components,
        "power": sketch.power,
        "first_power": sketch.power_,
        "epsilon": "local" if isinstance(sketch.epsilon_, np.ndarray) else sketch.epsilon_,
        "seed": sketch.seed_,
        "connected_components": sketch.n_connected_components_,
        "seconds": seconds,
        "estimated_bytes": estimated,
        "peak_bytes": peak,
    }
    lines = [
        f"Written: {_written(places)}",
        f"{n_rows} rows, {n_components} components, {_times(sketch)}, "
        f"in {readable_seconds(seconds)}{memory}",
    ]
    return Reply(result, "\n".join([*lines, *_columns(rows)]))


def _times(sketch: Any) -> str:
    if sketch.power == "all":
        return f"all diffusion times from power {sketch.power_} on"
    return f"power {sketch.power_}"
