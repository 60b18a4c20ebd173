"""``heatsketch report``: a model as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.atomic_file import check_output_file
from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode, in_options
from heatsketch.cli._models import load_sketch, row_ids
from heatsketch.cli._options import Confidence, Header, IdColumn, Key, Overwrite, whole_number
from heatsketch.exceptions import FileFormatError
from heatsketch.io import Block, Table, check_different_files, open_table

PAGES = (".html", ".htm")


def _powers(text: str) -> list[int]:
    return [whole_number(word.strip()) for word in text.split(",")]


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Page to write (.html).")
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table of the same rows, for colours and ids."),
    ] = None,
    color: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of it to colour by; may be repeated."),
    ] = None,
    ids: IdColumn = None,
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
) -> Reply:
    """Write a model as one page, which opens in a browser without a network.

    It draws the points at several diffusion times, coloured by columns of a table, and computes
    the diffusion distance of any two of them, with its interval. Rows of the table are those of the
    model by their ids (--ids), or by their positions if it has none.
    """
    if data is None and (color or ids or key or header is not None):
        raise typer.BadParameter("--color, --ids, --key and --header are about --data; give both.")
    check_different_files([model, *([data] if data else [])], output)
    check_page(output, overwrite=overwrite)
    wanted = {"ids": ids, "key": key, "header": header}
    table = None if data is None else _opened(data, color or [], wanted)
    fitted = load_sketch(model)
    names, colors = (None, {}) if table is None else _found(fitted, model, data, table.read())
    from heatsketch.report import write_report

    write_report(
        fitted,
        output,
        colors=colors,
        names=names,
        powers=powers,
        confidence=confidence,
        title=model.name if title is None else title,
        overwrite=overwrite,
    )
    size = output.stat().st_size
    result = {"model": model, "output": output, "rows": len(fitted.embedding_), "bytes": size}
    return Reply(
        {**result, "colors": list(colors)},
        f"Written: {output}\n{result['rows']} rows, {size / 1e6:.1f} MB; open it in a browser",
    )


def check_page(path: Path, *, overwrite: bool) -> None:
    """Raise if a page cannot be written to a path."""
    if path.suffix.lower() not in PAGES:
        message = f"{path}: its extension is not that of a page; use one of {', '.join(PAGES)}."
        raise CommandError(message, ExitCode.OUTPUT)
    check_output_file(path, overwrite=overwrite)


def _opened(path: Path, color: list[str], wanted: dict[str, Any]) -> Table:
    """Open a table for the columns of ``--color``, and adapt error messages."""
    try:
        return open_table(path, columns=(), labels=list(dict.fromkeys(color)), **wanted)
    except FileFormatError as error:
        message = in_options(error).replace("--labels", "--color")
        raise CommandError(message, ExitCode.INPUT, type(error).__name__) from error


def _found(fitted: Any, model: Path, path: Any, block: Block) -> tuple[Any, dict[str, Any]]:
    """Return names and colours in the order of the rows of the model."""
    wanted = row_ids(fitted)
    if block.ids is None and not np.array_equal(wanted, np.arange(len(wanted))):
        # By position, rows would silently get the colours of other rows.
        message = f"{model} knows its rows by ids; name their column of {path} with --ids."
        raise CommandError(message, ExitCode.ARGUMENTS)
    if block.ids is None:
        if block.X.shape[0] != len(wanted):
            raise CommandError(
                f"{path} has {block.X.shape[0]} rows, and {model} has {len(wanted)}; give the "
                "table that was embedded, or name its rows with --ids.",
                ExitCode.DATA,
            )
        return None, dict(block.labels)
    places = _places(wanted, model, path, block.ids)
    return block.ids[places], {name: values[places] for name, values in block.labels.items()}


def _places(wanted: np.ndarray, model: Path, path: Any, ids: np.ndarray) -> np.ndarray:
    from heatsketch._core.row_names import row_numbers

    numbers = row_numbers(ids)
    order = np.argsort(numbers)
    places = order[np.searchsorted(numbers[order], wanted).clip(max=len(numbers) - 1)]
    absent = int(np.sum(numbers[places] != wanted))
    if absent:
        raise CommandError(
            f"{path} lacks {absent} of the {len(wanted)} rows of {model}, by their ids; give the "
            "table that was embedded, with the --ids that embed was given.",
            ExitCode.DATA,
        )
    return places
