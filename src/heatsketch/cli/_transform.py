"""``heatsketch transform``: embedding of new rows by a model, in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heatsketch._core.progress import reporting_to, steps
from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode
from heatsketch.cli._models import load_embedding
from heatsketch.cli._options import (
    ColumnNames,
    Header,
    IdColumn,
    Key,
    LabelNames,
    Output,
    Overwrite,
)
from heatsketch.cli._rows import (
    Rows,
    Wanted,
    check_block,
    columns_text,
    component_names,
    named_in_file,
    open_rows,
    open_wanted,
    rows_output,
)
from heatsketch.io import check_different_files

BLOCK_BYTES = 2**25  # of the rows embedded at a time


def transform(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")],
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A table of new rows.")],
    *,
    output: Output,
    columns: ColumnNames = None,
    labels: LabelNames = None,
    ids: IdColumn = None,
    key: Key = None,
    header: Header = None,
    overwrite: Overwrite = False,
) -> Reply:
    """Embed new rows by the rule that embedded those of the model.

    Columns are found by the names that the model knows, in whatever order they come. The table
    is never in memory as a whole.
    """
    check_different_files([model, input], output)
    fitted = load_embedding(model)
    known = getattr(fitted, "feature_names_in_", None)
    if columns is None and known is not None:
        columns = known.tolist()
    wanted = Wanted(columns, labels, ids, key, header)
    rows = open_rows(input, wanted)
    _check_columns(rows, fitted, model)
    fitted.__dict__.pop("feature_names_in_", None)  # blocks are arrays without names
    dtype, n_components = fitted.embedding_.dtype, fitted.embedding_.shape[1]
    names = component_names(n_components)
    with rows_output(output, rows, names=names, dtype=dtype, overwrite=overwrite) as write:
        n_rows = _write_blocks(fitted, input, wanted, write)
    result = {"model": model, "input": input, "output": output}
    return Reply(
        {**result, "rows": n_rows, "components": n_components, "column_names": rows.columns},
        f"Written: {output}\n{n_rows} rows, {n_components} components\n"
        f"{columns_text(rows.columns)}",
    )


def _check_columns(rows: Rows, fitted: Any, model: Path) -> None:
    if rows.shape is None:
        raise CommandError(
            f"{rows.path} is a graph, and nodes of another graph are none of {model}; use embed.",
            ExitCode.DATA,
        )
    if rows.shape[1] != fitted.n_features_in_:
        raise CommandError(
            f"{rows.path} has {rows.shape[1]} columns of numbers, and {model} was fitted to "
            f"{fitted.n_features_in_}; choose them with --columns, and leave others out with "
            "--labels or --ids.",
            ExitCode.DATA,
        )


def _write_blocks(fitted: Any, path: Path, wanted: Wanted, write: Any) -> int:
    table = open_wanted(path, wanted)
    step = max(1, BLOCK_BYTES // (len(table.names) * table.dtype.itemsize))
    done, start = steps("embedding", -(-table.n_rows // step)), 0
    for block in table.blocks(step):
        check_block(table, block, start)
        # The progress of a block would hide that of all rows.
        silence = reporting_to(lambda name, n_steps: lambda: None)
        with silence, named_in_file(path, block, table.names, first_row=start):
            Y = fitted.transform(block.X)
        write(Y, block)
        start += block.X.shape[0]
        done()
    return start
