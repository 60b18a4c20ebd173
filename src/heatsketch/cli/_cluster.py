"""``heatsketch cluster``: clusters of the rows of a model, and of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

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
    whole_number,
)
from heatsketch.cli._rows import Rows, Wanted, columns_text, open_rows, rows_output
from heatsketch.io import check_different_files


def cluster(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that embed saved.")],
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="The table that was embedded, or new rows.")
    ],
    *,
    output: Output,
    clusters: Annotated[
        Any,
        typer.Option(
            "--clusters", "-n", parser=whole_number, metavar="N", help="Number of clusters."
        ),
    ],
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of k-means.")
    ] = 0,
    columns: ColumnNames = None,
    labels: LabelNames = None,
    ids: IdColumn = None,
    key: Key = None,
    header: Header = None,
    overwrite: Overwrite = False,
) -> Reply:
    """Write the clusters of the rows of a model, and of new rows.

    Clusters are those of the rows that were embedded, whatever the table holds. Rows of it that
    were not embedded get the cluster that their neighbours are in.
    """
    from heatsketch import HeatClustering

    check_different_files([model, input], output)
    fitted = load_embedding(model)
    known = getattr(fitted, "feature_names_in_", None)
    if columns is None and known is not None:
        columns = known.tolist()
    rows = open_rows(input, Wanted(columns, labels, ids, key, header))
    _check_points(rows, fitted, model)
    fitted.__dict__.pop("feature_names_in_", None)  # the rows are an array without names
    with rows_output(output, rows, names=["cluster"], dtype=np.int64, overwrite=overwrite) as write:
        block = rows.read()
        found = HeatClustering(clusters, fitted, random_state=seed).fit(None)
        numbers = found.predict(block.X)
        write(numbers[:, np.newaxis], block)
    sizes = np.bincount(found.labels_, minlength=clusters)
    result = {"model": model, "input": input, "output": output, "rows": len(numbers)}
    return Reply(
        {**result, "clusters": clusters, "sizes": sizes.tolist(), "column_names": rows.columns},
        f"Written: {output}\n{len(numbers)} rows in {clusters} clusters, of {sizes.min()} to "
        f"{sizes.max()} rows of the model\n{columns_text(rows.columns)}",
    )


def _check_points(rows: Rows, fitted: Any, model: Path) -> None:
    if rows.shape is None or rows.shape[1] != fitted.n_features_in_:
        found = "is a graph" if rows.shape is None else f"has {rows.shape[1]} columns of numbers"
        raise CommandError(
            f"{rows.path} {found}, and {model} was fitted to {fitted.n_features_in_}; choose them "
            "with --columns, and leave others out with --labels or --ids.",
            ExitCode.DATA,
        )
