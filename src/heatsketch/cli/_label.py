"""``heatsketch label``: labels for all rows, from the labels of a few."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode, in_options
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
    fraction,
)
from heatsketch.cli._rows import Rows, Wanted, columns_text, open_rows, rows_output
from heatsketch.exceptions import FileFormatError
from heatsketch.io import Block, check_different_files

PREDICTED, PROBABILITY = "predicted", "probability"  # columns added to the output
SET, BETWEEN = "set", "|"
SUGGESTED = "suggested"  # column added to the table of suspects
UNKNOWN = ("", "-1")  # as text; missing values are unknown, too


def label(
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A table, some of whose rows have a label.")
    ],
    *,
    column: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="Column of labels; unknown where it is empty, missing or -1."
        ),
    ],
    output: Output,
    coverage: Annotated[
        Any,
        typer.Option(
            parser=fraction(0.9),
            metavar="FLOAT",
            help="Also write the set of possible labels of each row; this share of the sets "
            "holds the true label.",
        ),
    ] = None,
    suspects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the known labels, those first with which neighbours disagree most.",
        ),
    ] = None,
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
    Probabilities order rows by how sure their labels are, and are not calibrated. Sets (--coverage)
    have a guarantee, if the rows with a label are a random sample.
    """
    check_different_files([input], output)
    if suspects is not None:
        check_different_files([input, output], suspects)
    others = [name for name in labels or [] if name != column]
    rows = _opened(input, column, Wanted(columns, [column, *others], ids, key, header))
    added = [PREDICTED] if coverage is None else [PREDICTED, SET]
    options: Any = {"dtype": np.float64, "overwrite": overwrite}
    with ExitStack() as stack:
        widened = rows._replace(labels=(*rows.labels, *added))
        write = stack.enter_context(rows_output(output, widened, names=[PROBABILITY], **options))
        if suspects is not None:
            ranked = rows._replace(
                ids=rows.ids or "row", labels=(*rows.labels, SUGGESTED), must_keep_ids=True
            )
            write_suspects = stack.enter_context(
                rows_output(suspects, ranked, names=["margin"], **options)
            )
        block = rows.read()
        codes, classes = known_labels(block.labels[column])
        _check_labels(input, column, codes)
        found = _fitted(block.X, codes, neighbors, metric)
        text = {PREDICTED: classes[found.transduction_]}
        sets = None
        if coverage is not None:
            sets = found.predict_set(block.X, coverage=coverage)
            text[SET] = _joined(sets, classes)
        shares = found.label_distributions_.max(axis=1, keepdims=True)
        write(shares, block._replace(labels={**block.labels, **text}))
        ranking = None
        if suspects is not None:
            ranking = found.suspects()
            write_suspects(*_ranked(block, ranking, classes))
    written = [path for path in (output, suspects) if path is not None]
    return _reply(rows, written, codes, classes, found.transduction_, sets=sets, ranking=ranking)


def known_labels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the code of each label, -1 where it is unknown, and the classes.

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


def _opened(input: Path, column: str, wanted: Wanted) -> Rows:
    try:
        return open_rows(input, wanted, as_graph=False)
    except FileFormatError as error:
        if error.parameters.get("labels") != column:
            raise
        message = in_options(error).replace("--labels", "--column")
        raise CommandError(message, ExitCode.INPUT, type(error).__name__) from error


def _check_labels(input: Path, column: str, codes: np.ndarray) -> None:
    if not np.any(codes >= 0):
        raise CommandError(
            f"{input} has no label in column {column!r}; give some of its rows one.",
            ExitCode.DATA,
        )


def _fitted(X: Any, codes: np.ndarray, neighbors: Any, metric: str) -> Any:
    from heatsketch import HeatLabels, HeatSketch

    n_neighbors = None if neighbors == "all" else neighbors
    graph = HeatSketch(1, power=1, n_neighbors=n_neighbors, metric=metric)
    return HeatLabels(graph).fit(X, codes)


def _joined(sets: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the classes of each set as one string."""
    names = [str(name) for name in classes]
    texts = [BETWEEN.join(names[i] for i in np.flatnonzero(members)) for members in sets]
    return np.array(texts, dtype=object)


def _ranked(block: Block, ranking: Any, classes: np.ndarray) -> tuple[np.ndarray, Block]:
    """Return the margins of known labels, and the other columns of their rows."""
    rows = ranking.rows
    text = {name: values[rows] for name, values in block.labels.items()}
    text[SUGGESTED] = classes[ranking.suggested]
    ids = rows if block.ids is None else block.ids[rows]
    return ranking.margin[:, np.newaxis], Block(block.X[rows], ids, text)


def _reply(
    rows: Rows,
    written: list[Path],
    codes: np.ndarray,
    classes: np.ndarray,
    predicted: np.ndarray,
    *,
    sets: np.ndarray | None,
    ranking: Any,
) -> Reply:
    n_known = int(np.sum(codes >= 0))
    counts = np.bincount(predicted, minlength=len(classes))
    n_changed = int(np.sum((codes >= 0) & (codes != predicted)))
    result: dict[str, Any] = {
        "input": rows.path,
        "output": written[0],
        "column_names": rows.columns,
        "rows": len(codes),
        "known": n_known,
        "changed": n_changed,
        "predicted": {str(name): int(n) for name, n in zip(classes, counts, strict=True)},
    }
    changed = f"; another one is predicted for {n_changed} of them" if n_changed else ""
    lines = [
        f"Written: {', '.join(map(str, written))}",
        f"{len(codes)} rows, {n_known} of which had one of {len(classes)} labels{changed}",
        columns_text(rows.columns),
    ]
    if sets is not None:
        sizes = sets.sum(axis=1)
        result["labels_in_a_set"] = float(sizes.mean())
        lines.append(
            f"Labels in a set: {sizes.mean():.2g} on average; one in {np.sum(sizes == 1)} sets, "
            f"none in {np.sum(sizes == 0)}"
        )
    if ranking is not None:
        n_suspect = int(np.sum(ranking.margin < 0))
        result |= {"suspects": written[-1], "suspect": n_suspect}
        lines.append(f"Suspects: {n_suspect} labels are not those of most neighbours")
    return Reply(result, "\n".join(lines))
