"""``heatsketch report``: a model as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heatsketch._core.atomic_file import check_output_file
from heatsketch.cli._models import load_sketch, rows_in_table
from heatsketch.cli._options import Confidence, Header, Ids, Key, Model, Overwrite, TableOptions
from heatsketch.cli._tables import check_outputs, open_rows


def _powers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def report(
    model: Model,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Page to write (.html).")
    ],
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Table of the same rows, for colours and ids."),
    ] = None,
    color: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of colours; may be repeated."),
    ] = None,
    ids: Ids = None,
    key: Key = None,
    header: Header = None,
    powers: Annotated[
        Any,
        typer.Option(
            parser=_powers, metavar="P,...", help="Diffusion times; by default 1, 2, 4, ..."
        ),
    ] = None,
    confidence: Confidence = 0.95,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    overwrite: Overwrite = False,
) -> dict[str, Any]:
    """Write a model as one HTML page, which needs no network.

    The page plots the points at several diffusion times, coloured by columns of a table, and shows
    the diffusion distance of any two of them, with its interval. Rows of the table are matched with
    those of the model by their ids (--ids), or by their positions if the model has none.

    Example: `heatsketch report cells.heatsketch --data cells.parquet --color type -o cells.html`
    """
    if data is None and (color or ids or key or header is not None):
        raise typer.BadParameter("--color, --ids, --key and --header need --data.")
    check_outputs([model, *([data] if data else [])], output)
    check_output_file(output, overwrite=overwrite)
    labels = list(dict.fromkeys(color or []))
    given = TableOptions(columns=(), labels=labels, ids=ids, key=key, header=header)
    table = None if data is None else open_rows(data, given)
    sketch, colors = load_sketch(model), {}
    if table is not None:
        block = table.read()
        order = rows_in_table(sketch.numbers, model, table, block.ids)
        colors = {name: values[order] for name, values in block.labels.items()}
    from heatsketch.report import write_report

    options = {"powers": powers, "confidence": confidence, "title": title or model.name}
    write_report(sketch, output, colors=colors, overwrite=overwrite, **options)
    result = {"model": model, "input": data, "ids": ids, "colors": list(colors)}
    size = output.stat().st_size
    return {**result, "rows": len(sketch.embedding), "output": output, "bytes": size}
