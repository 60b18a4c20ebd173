"""``heatsketch compare``: whether the rows of two tables differ, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse

from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode
from heatsketch.cli._options import (
    ColumnNames,
    Header,
    IdColumn,
    Key,
    LabelNames,
    Level,
    Metric,
    Neighbors,
    Output,
    Overwrite,
    whole_number,
)
from heatsketch.cli._report import check_page
from heatsketch.cli._rows import Rows, Wanted, columns_text, open_rows, rows_output
from heatsketch.diffusion._compare import POWERS
from heatsketch.estimators._validation import is_missing
from heatsketch.io import Block, check_different_files

SAMPLES = ("reference", "current")
COLUMNS = ["effect", "z", "p_value", "flagged"]


def compare(
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="A table.")],
    current: Annotated[
        Path, typer.Argument(metavar="CURRENT", help="Another, with the same columns.")
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
    level: Level = 0.05,
    permutations: Annotated[
        Any, typer.Option(parser=whole_number, metavar="N", help="Number of permutations.")
    ] = 199,
    neighbors: Neighbors = 15,
    metric: Metric = "euclidean",
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of the permutations.")
    ] = 0,
    columns: ColumnNames = None,
    labels: LabelNames = None,
    ids: IdColumn = None,
    key: Key = None,
    header: Header = None,
    overwrite: Overwrite = False,
) -> Reply:
    """Test whether two tables differ, and write around which rows they do.

    The output has a row for each row of the two: its sample, the share of current rows around
    it less the expected share (effect), the same in standard deviations (z), its p-value, and
    whether it is flagged. One graph is fitted to both tables. A unit that is in both counts as two.
    """
    from heatsketch import HeatSketch

    check_different_files([reference, current], output)
    if page is not None:
        check_different_files([reference, current, output], page)
        check_page(page, overwrite=overwrite)
    sketch = HeatSketch(
        64 if page else 2,  # the test itself needs the graph only
        power="all" if page else 1,
        n_neighbors=None if neighbors == "all" else neighbors,
        metric=_checked_metric(metric),
        random_state=seed,
    )
    carried = [*(labels or []), *([units] if units and units not in (labels or []) else [])]
    tables = _opened(reference, current, Wanted(columns, carried or None, ids, key, header))
    id_name = tables[0].ids if all(table.ids for table in tables) else None
    rows = tables[0]._replace(labels=("sample", *(labels or ())), ids=id_name)
    options: Any = {"names": COLUMNS, "dtype": np.float64, "overwrite": overwrite}
    with rows_output(output, rows, **options) as write:
        block, sample = _joined([table.read() for table in tables])
        sketch.fit(block.X)
        asked = {"n_permutations": permutations, "level": level}
        found = sketch.compare(sample, units=_units(block, units, sample), **asked)
        values = np.column_stack([found.effect, found.z, found.p_values, found.flagged])
        kept = {name: block.labels[name] for name in labels or ()}
        kept = {"sample": np.array(SAMPLES, object)[sample]} | kept
        write(values, block._replace(labels=kept))
        if page is not None:
            _write_page(sketch, found, page, kept, overwrite=overwrite)
    written = [path for path in (output, page) if path is not None]
    return _reply(found, sample, written, rows.columns)


def _checked_metric(metric: str) -> str:
    if metric == "precomputed":
        raise typer.BadParameter(
            "--metric precomputed has no distances between rows of two tables; give tables of "
            "points."
        )
    return metric


def _opened(reference: Path, current: Path, wanted: Wanted) -> list[Rows]:
    """Open both tables; those of the second have the column names of the first."""
    first = open_rows(reference, wanted)
    second = open_rows(current, wanted._replace(columns=_names(first, wanted)))
    for rows in (first, second):
        if rows.shape is None:
            message = f"{rows.path} is a graph; compare takes tables of points."
            raise CommandError(message, ExitCode.DATA)
    widths = [rows.shape[1] for rows in (first, second) if rows.shape is not None]
    if widths[0] != widths[1]:
        raise CommandError(
            f"{reference} has {widths[0]} columns of numbers, and {current} has {widths[1]}; "
            "choose them with --columns, and leave others out with --labels or --ids.",
            ExitCode.DATA,
        )
    return [first, second]


def _names(rows: Rows, wanted: Wanted) -> list[str] | None:
    return wanted.columns if rows.names is None else list(rows.names)


def _joined(blocks: list[Block]) -> tuple[Block, np.ndarray]:
    """Return the rows of both tables, and the number of the table of each row."""
    is_sparse = any(sparse.issparse(block.X) for block in blocks)
    X = (sparse.vstack if is_sparse else np.concatenate)([block.X for block in blocks])
    has_ids = all(block.ids is not None for block in blocks)
    ids = np.concatenate([block.ids for block in blocks]) if has_ids else None
    labels = {
        name: np.concatenate([block.labels[name] for block in blocks]) for name in blocks[0].labels
    }
    return Block(X, ids, labels), np.repeat([0, 1], [block.X.shape[0] for block in blocks])


def _units(block: Block, units: str | None, sample: np.ndarray) -> np.ndarray | None:
    """Return numbers of units; a unit in both samples has two numbers."""
    if units is None:
        return None
    values = block.labels[units]
    missing = np.flatnonzero([is_missing(value) for value in values.tolist()])
    if len(missing):
        row = missing[0] - (sample[missing[0]] and np.sum(sample == 0))
        raise CommandError(
            f"--units {units} is empty in row {row} of the {SAMPLES[sample[missing[0]]]} table; "
            "fill it in, or leave out such rows.",
            ExitCode.DATA,
        )
    return 2 * np.unique(values.astype(str), return_inverse=True)[1] + sample


def _write_page(
    sketch: Any, found: Any, page: Path, labels: dict[str, Any], *, overwrite: bool
) -> None:
    from heatsketch.report import write_report

    change = np.where(found.effect > 0, "more current", "less current")
    colors = {"change": np.where(found.flagged, change, "none"), "effect": found.effect} | labels
    write_report(sketch, page, colors=colors, title=found.summary, overwrite=overwrite)


def _reply(found: Any, sample: np.ndarray, written: list[Path], columns: tuple[str, ...]) -> Reply:
    sizes = np.bincount(sample), np.bincount(sample[found.flagged], minlength=2)
    rows, flagged = (dict(zip(SAMPLES, map(int, counts), strict=True)) for counts in sizes)
    result = {
        "p_value": found.p_value,
        "level": found.level,
        "permutations": found.n_permutations,
        "times": POWERS,
        "rows": rows,
        "flagged": flagged,
        "time": found.power,
        "written": [str(path) for path in written],
        "column_names": columns,
    }
    verdict = "differ" if found.p_value <= found.level else "do not differ"
    lines = [
        f"p = {found.p_value:.3g}: the tables {verdict} at level {found.level:g}",
        f"{found.flagged.sum()} of {len(sample)} rows flagged: {flagged['reference']} of the "
        f"reference, {flagged['current']} of the current table",
        *_directions(found),
        f"Diffusion time: {found.power}, of {', '.join(map(str, POWERS))}",
        f"Written: {', '.join(map(str, written))}",
        columns_text(columns),
    ]
    return Reply(result, "\n".join(lines))


def _directions(found: Any) -> list[str]:
    lines = []
    for more, side in (("More", found.effect > 0), ("Fewer", found.effect < 0)):
        rows = found.flagged & side
        if rows.any():
            median = np.median(found.effect[rows])
            lines.append(
                f"{more} current rows around {rows.sum()} of them, by a median of {median:+.2f}"
            )
    return lines
