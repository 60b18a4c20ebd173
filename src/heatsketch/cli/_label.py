"""``heatsketch label``: labels for all rows, from the labels of a few."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from heatsketch.cli._models import graph_of_points
from heatsketch.cli._options import GraphOptions, Output, Overwrite, TableOptions
from heatsketch.cli._tables import about, check_outputs, open_rows, output_like, read_rows
from heatsketch.io import Block, table_writer

PREDICTED, PROBABILITY, SET = "predicted", "probability", "set"  # columns added to the output
SUGGESTED = "suggested"  # column added to the table of suspects
BETWEEN = "|"  # the labels of a set
UNKNOWN = ("", "-1")  # as text; missing values are unknown, too


def label(
    input: Annotated[
        str, typer.Argument(metavar="INPUT", help="A table, some of whose rows have a label.")
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
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Also write the set of possible labels of each row; this share of the sets "
            "contains the true label.",
        ),
    ] = None,
    suspects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the known labels, sorted by how much neighbours disagree.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    table: TableOptions,
    options: GraphOptions,
) -> dict[str, Any]:
    """Label all rows of a table from the labels of a few.

    The output has a row for each row of the input: the given label, the predicted label and its
    probability. The two labels of a row may differ. Probabilities rank rows by how certain their
    labels are, and are not calibrated. Sets (--coverage) contain the true label with this
    probability if the rows with a label are a random sample.

    Example: `heatsketch label cells.parquet --column type -o labelled.parquet`
    """
    from heatsketch import HeatLabels

    check_outputs([input], output, suspects)
    table = replace(table, labels=list(dict.fromkeys([column, *(table.labels or ())])))
    rows = open_rows(input, table)
    added = [PREDICTED, *([] if coverage is None else [SET])]
    with ExitStack() as stack:
        opened = output_like(output, [PROBABILITY], rows, table, labels=added, overwrite=overwrite)
        writer = stack.enter_context(opened)
        if suspects is not None:
            ranked: dict[str, Any] = {
                "ids": table.ids or "row",
                "labels": [*table.labels, SUGGESTED],
            }
            opened = table_writer(suspects, ["margin"], overwrite=overwrite, **ranked)
            writer_of_suspects = stack.enter_context(opened)
        block = read_rows(rows)
        codes, classes = known_labels(block.labels[column])
        model = HeatLabels().fit(graph_of_points(block.X, options), codes)
        values = {**block.labels, PREDICTED: classes[model.transduction_]}
        more: dict[str, Any] = {}
        if coverage is not None:
            sets = model.predict_set(block.X, coverage=coverage)
            values[SET] = _joined(sets, classes)
            more = {"coverage": coverage, "labels_in_a_set": float(sets.sum(axis=1).mean())}
        probabilities = model.label_distributions_.max(axis=1, keepdims=True)
        writer.append(Block(probabilities, block.ids, values))
        if suspects is not None:
            ranking = model.suspects()
            writer_of_suspects.append(_ranked(block, ranking, classes))
            more |= {"suspects": suspects, "suspect": int(np.sum(ranking.margin < 0))}
    return {**about(rows, table), **_about(model, codes, classes), **more, "output": output}


def _about(model: Any, codes: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    counts = np.bincount(model.transduction_, minlength=len(classes)).tolist()
    return {
        "graph": repr(model.graph_),
        "known": int(np.sum(codes >= 0)),
        "changed": int(np.sum((codes >= 0) & (codes != model.transduction_))),
        "predicted": dict(zip(map(str, classes), counts, strict=True)),
    }


def known_labels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the code of each label, -1 where it is unknown, and the classes."""
    if values.dtype.kind == "O":
        is_known = np.array([not (v is None or v.strip() in UNKNOWN) for v in values.tolist()])
    else:
        is_known = ~np.isnan(values) & (values != -1) if values.dtype.kind != "b" else values >= 0
    codes = np.full(len(values), -1)
    names, codes[is_known] = np.unique(values[is_known], return_inverse=True)
    return codes, names


def _joined(sets: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the classes of each set as one string."""
    names = [str(name) for name in classes]
    texts = [BETWEEN.join(names[i] for i in np.flatnonzero(members)) for members in sets]
    return np.array(texts, dtype=object)


def _ranked(block: Block, ranking: Any, classes: np.ndarray) -> Block:
    """Return the margins of known labels, and the ids and labels of their rows."""
    block = block.rows(ranking.rows)
    labels = {**block.labels, SUGGESTED: classes[ranking.suggested]}
    ids = ranking.rows if block.ids is None else block.ids
    return Block(ranking.margin[:, np.newaxis], ids, labels)
