"""``heatsketch compare``: whether the rows of two tables differ, and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch._core.atomic_file import check_output_file
from heatsketch._core.checks import is_missing
from heatsketch.cli import _tables as tables
from heatsketch.cli._models import graph_of_points
from heatsketch.cli._options import GraphOptions, Output, Overwrite, Seed, TableOptions
from heatsketch.exceptions import HeatSketchError
from heatsketch.io import Block, joined

SAMPLES = ("reference", "current")
COLUMNS = ["effect", "z", "p_value", "flagged"]


def compare(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="A table.")],
    current: Annotated[
        str, typer.Argument(metavar="CURRENT", help="Another, with the same columns.")
    ],
    *,
    output: Output,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Page to write (.html), which shows where they differ."),
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of units whose rows belong together, such as users."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(min=0, max=1, help="Family-wise error of the flagged rows.")
    ] = 0.05,
    permutations: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of permutations.")
    ] = 199,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    table: TableOptions,
    options: GraphOptions,
) -> dict[str, Any]:
    """Test whether two tables differ, and write around which rows they do.

    The output has a row for each row of both tables: its sample, the share of current rows around
    it minus the expected share (effect), the same in standard deviations (z), its p-value, and
    whether it is flagged. One graph is made of both tables. A unit in both tables counts as two.

    Example: `heatsketch compare monday.parquet tuesday.parquet -o rows.parquet --page where.html`
    """
    from heatsketch import compare as compare_groups

    tables.check_outputs([reference, current], output, page)
    if page is not None:
        check_output_file(page, overwrite=overwrite)
    if options.metric == "precomputed":
        raise typer.BadParameter("--metric must be that of points, got 'precomputed'.")
    both = _opened(reference, current, table, units)
    with tables.output_like(
        output, COLUMNS, both[0], table, labels=["sample"], overwrite=overwrite
    ) as writer:
        X, ids, labels = joined([tables.read_rows(rows) for rows in both])
        sample = np.repeat([0, 1], [rows.n_rows for rows in both])
        graph = graph_of_points(X, options)
        result = compare_groups(
            graph,
            sample,
            units=None if units is None else _units(labels[units], sample, units),
            n_permutations=permutations,
            level=level,
            seed=seed,
        )
        numbers = [result.effect, result.z, result.p_values, result.flagged]
        labels = {"sample": np.array(SAMPLES, object)[sample], **labels}
        writer.append(Block(np.column_stack(numbers), ids, labels))
        if page is not None:
            _write_page(graph, result, page, labels, seed=seed, overwrite=overwrite)
    inputs = {**tables.about(both[0], table), "input": [reference, current], "rows": len(sample)}
    written = {"output": output, "page": page}
    return {**inputs, "graph": repr(graph), **_about(result, sample), **written}


def _opened(reference: str, current: str, table: TableOptions, units: str | None) -> list[Any]:
    """Open both tables; those of the second have the column names of the first."""
    labels = [*(table.labels or ()), *([units] if units else [])]
    table = replace(table, labels=list(dict.fromkeys(labels)))
    first = tables.open_rows(reference, table)
    second = tables.open_rows(
        current, replace(table, columns=table.columns or tables.names_of(first))
    )
    tables.check_width(second, len(first.names), Path(reference))
    return [first, second]


def _units(values: np.ndarray, sample: np.ndarray, name: str) -> np.ndarray:
    """Return numbers of units; a unit in both samples has two numbers."""
    n_missing = sum(is_missing(value) or value == "" for value in values.tolist())
    if n_missing:
        raise HeatSketchError(
            f"Column {name!r} of --units is empty in {n_missing} rows. Fill it in, or leave these "
            "rows out."
        )
    return 2 * np.unique(values.astype(str), return_inverse=True)[1] + sample


def _write_page(
    graph: Any, result: Any, page: Path, labels: dict[str, Any], *, seed: int, overwrite: bool
) -> None:
    from heatsketch import sketch
    from heatsketch.report import write_report

    change = np.where(result.effect > 0, "more current", "less current")
    colors = {"change": np.where(result.flagged, change, "none"), "effect": result.effect} | labels
    made = sketch(graph, random_state=seed)
    write_report(made, page, colors=colors, title=result.summary, overwrite=overwrite)


def _about(result: Any, sample: np.ndarray) -> dict[str, Any]:
    flagged = np.bincount(sample[result.flagged], minlength=2).tolist()
    sides = {"more_current": result.effect > 0, "less_current": result.effect < 0}
    return {
        "p_value": result.p_value,
        "level": result.level,
        "differ": result.p_value <= result.level,
        "permutations": result.n_permutations,
        "time": result.power,
        "flagged": dict(zip(SAMPLES, flagged, strict=True)),
        **{name: int(np.sum(result.flagged & side)) for name, side in sides.items()},
    }
