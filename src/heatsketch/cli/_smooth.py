"""``heatsketch smooth``: smoothing of columns over the graph of a model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch.cli._models import load_transformer, rows_in_table
from heatsketch.cli._options import Model, Output, Overwrite, TableOptions, words_or
from heatsketch.cli._tables import about, check_outputs, open_rows, output_like, read_rows
from heatsketch.exceptions import HeatSketchError

BLOCK_ENTRIES = 2**22  # numbers read from the scratch file at a time


def smooth(
    model: Model,
    input: Annotated[
        str, typer.Argument(metavar="INPUT", help="A table of the same rows, such as counts.")
    ],
    *,
    output: Output,
    time: Annotated[
        Any,
        typer.Option(
            parser=words_or("auto", kind=int, least=0),
            metavar="T|auto",
            help="Number of steps; auto chooses it on held-out values.",
        ),
    ] = "auto",
    depths: Annotated[
        bool,
        typer.Option(
            "--depths",
            help="Divide by smoothed sums of rows, for counts of cells of different depths.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    table: TableOptions,
) -> dict[str, Any]:
    """Smooth columns of numbers over the graph of a model, to reduce noise.

    Rows of the table are matched with those that were embedded by their ids, or by their positions
    if the model has no ids. The columns may be different ones. The result is written to a temporary
    file beside the output by columns, and from there to the output by rows.

    Example: `heatsketch smooth cells.heatsketch counts.parquet -o smoothed.zarr`
    """
    check_outputs([model, input], output)
    graph = load_transformer(model).graph_
    rows = open_rows(input, table)
    settings: dict[str, Any] = {"dtype": graph.dtype, "overwrite": overwrite}
    with output_like(output, rows.names, rows, table, **settings) as writer:
        block = read_rows(rows)
        order = rows_in_table(graph.numbers, model, rows, block.ids)
        if rows.n_rows != len(order):
            raise HeatSketchError(
                f"{input} has {rows.n_rows} rows, but {model} has {len(order)}. Use a table of the "
                "rows that were embedded."
            )
        options = {"time": time, "sizes": "sum" if depths else None}
        smoothed = _smoothed(graph, block, order, options, writer, output.parent)
    result = {"model": model, **about(rows, table), "graph": repr(graph), "time": smoothed.time}
    chosen = {"times": smoothed.times, "scores": smoothed.scores} if time == "auto" else {}
    return {**result, **chosen, "output": output}


def _smoothed(
    graph: Any, block: Any, order: np.ndarray, options: Any, writer: Any, folder: Path
) -> Any:
    """Smooth all columns via a scratch file, and write rows in the order of the table."""
    from heatsketch import smooth as smooth_over

    shape = block.X.shape
    with TemporaryDirectory(dir=folder, prefix=".heatsketch-") as scratch:
        out = np.lib.format.open_memmap(
            Path(scratch, "columns.npy"), "w+", graph.dtype, shape, fortran_order=True
        )
        smoothed = smooth_over(graph, block.X[order], out=out, **options)
        back = np.argsort(order)
        step = max(1, BLOCK_ENTRIES // shape[1])
        for start in range(0, shape[0], step):
            some = slice(start, start + step)
            writer.append(block.rows(some)._replace(X=out[back[some]]))
    return smoothed
