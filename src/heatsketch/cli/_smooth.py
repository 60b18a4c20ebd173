"""``heatsketch smooth``: smoothing of columns over the graph of a model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.row_names import row_numbers
from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode
from heatsketch.cli._models import load_embedding, row_ids
from heatsketch.cli._options import (
    ColumnNames,
    Header,
    IdColumn,
    Key,
    LabelNames,
    Output,
    Overwrite,
    words_or,
)
from heatsketch.cli._rows import Rows, Wanted, columns_text, open_rows, rows_output
from heatsketch.io import Block, check_different_files

BLOCK_ENTRIES = 2**22  # numbers written at a time
Time = Annotated[
    Any,
    typer.Option(
        parser=words_or("auto", number=int, fits=lambda t: t >= 0, kind="an integer of at least 0"),
        metavar="T|auto",
        help="Number of steps; auto chooses it by values that are held out.",
    ),
]


Depths = Annotated[
    bool,
    typer.Option(
        "--depths",
        help="Divide by sums of rows, smoothed likewise: for counts of cells of different depths.",
    ),
]


def smooth(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")],
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A table of the same rows, such as counts.")
    ],
    *,
    output: Output,
    time: Time = "auto",
    depths: Depths = False,
    columns: ColumnNames = None,
    labels: LabelNames = None,
    ids: IdColumn = None,
    key: Key = None,
    header: Header = None,
    overwrite: Overwrite = False,
) -> Reply:
    """Smooth columns of numbers over the graph of a model, to reduce their noise.

    The rows of the table are those that were embedded: by their ids, or by their positions if the
    model has none. The columns may be others. The result goes to a scratch file beside the output
    some columns at a time, and from there to the output some rows at a time.
    """
    check_different_files([model, input], output)
    fitted = load_embedding(model)
    rows = open_rows(input, Wanted(columns, labels, ids, key, header))
    if rows.shape is None:
        raise CommandError(f"{input} is a graph; give a table of numbers.", ExitCode.DATA)
    names = list(rows.columns)
    dtype = fitted.embedding_.dtype
    with rows_output(output, rows, names=names, dtype=dtype, overwrite=overwrite) as write:
        block = rows.read()
        places = _places(fitted, model, rows, block)
        options = {"time": time, "sizes": "sum" if depths else None}
        found = _smoothed(fitted, block, places, options, write, output.parent)
    result = {"model": model, "input": input, "output": output, "rows": len(places)}
    result |= {"column_names": names}
    chosen = "" if not len(found.times) else f", chosen from {found.times.tolist()}"
    return Reply(
        {**result, "time": found.time, "times": found.times, "scores": found.scores},
        f"Written: {output}\n{len(places)} rows, {len(names)} columns, time {found.time}{chosen}\n"
        f"{columns_text(names)}",
    )


def _smoothed(
    fitted: Any, block: Block, places: np.ndarray, options: Any, write: Any, folder: Path
) -> Any:
    """Smooth all columns via a scratch file, and write rows in table order."""
    shape = block.X.shape
    with TemporaryDirectory(dir=folder, prefix=".heatsketch-") as scratch:
        out = np.lib.format.open_memmap(
            Path(scratch, "columns.npy"), "w+", fitted.embedding_.dtype, shape, fortran_order=True
        )
        found = fitted.smooth(block.X[places], out=out, **options)
        back = np.argsort(places)
        step = max(1, BLOCK_ENTRIES // shape[1])
        for start in range(0, shape[0], step):
            some = slice(start, start + step)
            kept = {name: values[some] for name, values in block.labels.items()}
            ids = None if block.ids is None else block.ids[some]
            write(np.asarray(out[back[some]]), block._replace(ids=ids, labels=kept))
    return found


def _places(fitted: Any, model: Path, rows: Rows, block: Block) -> np.ndarray:
    """Return the position in the table of each row of the model."""
    wanted = row_ids(fitted)
    if block.X.shape[0] != len(wanted):
        raise CommandError(
            f"{rows.path} has {block.X.shape[0]} rows, and {model} has {len(wanted)}; give a table "
            "of the rows that were embedded.",
            ExitCode.DATA,
        )
    given = np.arange(len(wanted)) if block.ids is None else row_numbers(block.ids)
    order = np.argsort(given)
    places = order[np.searchsorted(given[order], wanted).clip(max=len(given) - 1)]
    if not np.array_equal(given[places], wanted):
        raise CommandError(
            f"{rows.path} has rows that {model} does not have, by their ids; name the column of "
            "ids that embed was given with --ids.",
            ExitCode.DATA,
        )
    return places
