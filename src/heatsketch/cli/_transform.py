"""``heatsketch transform``: embedding of new rows by a model, in blocks."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer

from heatsketch._core.progress import reporting_to, steps
from heatsketch.cli._models import load_transformer, open_like
from heatsketch.cli._options import Model, Output, Overwrite, TableOptions
from heatsketch.cli._tables import about, check_block, check_outputs, output_like

BLOCK_BYTES = 2**25  # of the rows embedded at a time


def transform(
    model: Model,
    input: Annotated[str, typer.Argument(metavar="INPUT", help="A table of new rows.")],
    *,
    output: Output,
    overwrite: Overwrite = False,
    table: TableOptions,
) -> dict[str, Any]:
    """Embed new rows with a fitted model.

    Columns are matched by their names, in any order. The table is read in blocks.

    Example: `heatsketch transform cells.heatsketch new.parquet -o new_embedding.parquet`
    """
    check_outputs([model, input], output)
    fitted = load_transformer(model)
    rows = open_like(fitted, model, input, table)
    n_components, dtype = fitted.embedding_.shape[1], fitted.embedding_.dtype
    names = [f"heatsketch{column}" for column in range(n_components)]
    options: dict[str, Any] = {"dtype": dtype, "overwrite": overwrite}
    with output_like(output, names, rows, table, **options) as writer:
        _write_blocks(fitted, rows, writer)
    return {"model": model, **about(rows, table), "components": n_components, "output": output}


def _write_blocks(fitted: Any, rows: Any, writer: Any) -> None:
    step = max(1, BLOCK_BYTES // (len(rows.names) * rows.dtype.itemsize))
    done, start = steps("embedding", -(-rows.n_rows // step)), 0
    for block in rows.blocks(step):
        check_block(rows, block, start)
        # Only the progress of all rows is shown, not that of each block.
        silence = reporting_to(lambda name, n_steps: lambda: None)
        with silence, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Y = fitted.transform(block.X)
        for warning in caught:  # row numbers in the message are those of the block
            place = f"{rows.path}, rows from {start} on" if start else rows.path
            warnings.warn(f"{place}: {warning.message}", warning.category, stacklevel=2)
        writer.append(block._replace(X=Y))
        start += block.X.shape[0]
        done()
