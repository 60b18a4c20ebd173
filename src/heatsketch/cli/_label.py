"""``heatsketch label``: a label for every row, from labels of a few."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode
from heatsketch.cli._options import (
    ColumnNames,
    Header,
    IdColumn,
    Key,
    LabelNames,
    Metric,
    Neighbors,
    Output,
    Overwrite,
)
from heatsketch.cli._rows import Wanted, open_rows, rows_output
from heatsketch.io import Block, check_different_files

PREDICTED, PROBABILITY = "predicted", "probability"  # what the output has besides
UNKNOWN = ("", "-1")  # as text; what is missing is unknown, too


def label(
    input: Annotated[Path, typer.Argument(help="A table, some of whose rows have a label.")],
    *,
    column: Annotated[
        str,
        typer.Option(help="The column of labels; unknown where it is empty, missing or -1."),
    ],
    output: Output,
    columns: ColumnNames = None,
    labels: LabelNames = None,
    ids: IdColumn = None,
    key: Key = None,
    header: Header = None,
    neighbors: Neighbors = 15,
    metric: Metric = "euclidean",
    overwrite: Overwrite = False,
) -> Reply:
    """Label all rows of a table from labels of a few.

    The output has a row for each row of the input: the label that it had, the predicted label
    and its probability. Rows that had a label get one as well, which may be another one.
    Probabilities order rows by how sure their labels are, and are not calibrated.
    """
    check_different_files([input], output)
    others = [name for name in labels or [] if name != column]
    wanted = Wanted(columns, [column, *others], ids, key, header)
    rows = open_rows(input, wanted, as_graph=False)
    rows = rows._replace(labels=(*rows.labels, PREDICTED))
    options: Any = {"dtype": np.float64, "overwrite": overwrite}
    with rows_output(output, rows, names=[PROBABILITY], **options) as write:
        block = rows.read()
        codes, names = known_labels(block.labels[column])
        if not len(names):
            raise CommandError(
                f"{input} has no label in column {column!r}; give some of its rows one.",
                ExitCode.DATA,
            )
        found = _fitted(block.X, codes, neighbors, metric)
        predicted = {PREDICTED: names[found.transduction_]}
        shares = found.label_distributions_.max(axis=1, keepdims=True)
        write(shares, Block(block.X, block.ids, {**block.labels, **predicted}))
    return _reply(input, output, codes, names, found.transduction_)


def known_labels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each label, -1 where it is unknown, and the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.cli._label import known_labels
    >>> known_labels(np.array(["b", "", "a", "-1", None], dtype=object))
    (array([ 1, -1,  0, -1, -1]), array(['a', 'b'], dtype=object))
    """
    if values.dtype.kind == "O":
        is_known = np.array([v is not None and v.strip() not in UNKNOWN for v in values.tolist()])
    else:
        is_known = ~np.isnan(values) & (values != -1) if values.dtype.kind != "b" else values >= 0
    codes = np.full(len(values), -1)
    names, codes[is_known] = np.unique(values[is_known], return_inverse=True)
    return codes, names


def _fitted(X: Any, codes: np.ndarray, neighbors: Any, metric: str) -> Any:
    from heatsketch import HeatLabels, HeatSketch

    n_neighbors = None if neighbors == "all" else neighbors
    graph = HeatSketch(1, power=1, n_neighbors=n_neighbors, metric=metric)
    return HeatLabels(graph).fit(X, codes)


def _reply(
    input: Path, output: Path, codes: np.ndarray, names: np.ndarray, predicted: np.ndarray
) -> Reply:
    n_known = int(np.sum(codes >= 0))
    counts = np.bincount(predicted, minlength=len(names))
    n_changed = int(np.sum((codes >= 0) & (codes != predicted)))
    result = {
        "input": input,
        "output": output,
        "rows": len(codes),
        "known": n_known,
        "changed": n_changed,
        "predicted": {str(name): int(n) for name, n in zip(names, counts, strict=True)},
    }
    changed = f"; {n_changed} of them were predicted otherwise" if n_changed else ""
    return Reply(
        result,
        f"Written: {output}\n{len(codes)} rows, {n_known} of which had one of {len(names)} labels"
        f"{changed}",
    )
