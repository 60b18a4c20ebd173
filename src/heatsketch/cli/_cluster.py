"""``heatsketch cluster``: clusters of the rows of a model, and of new rows."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from heatsketch.cli._models import load_transformer, open_like
from heatsketch.cli._options import Model, Output, Overwrite, Seed, TableOptions
from heatsketch.cli._tables import about, check_outputs, output_like, read_rows


def cluster(
    model: Model,
    input: Annotated[
        str, typer.Argument(metavar="INPUT", help="The table that was embedded, or new rows.")
    ],
    *,
    output: Output,
    clusters: Annotated[
        int, typer.Option("--clusters", "-n", min=1, metavar="N", help="Number of clusters.")
    ],
    seed: Seed = 0,
    overwrite: Overwrite = False,
    table: TableOptions,
) -> dict[str, Any]:
    """Cluster the rows of a model, and new rows.

    Clusters are those of the rows that were embedded. Other rows of the table get the cluster of
    their neighbours.

    Example: `heatsketch cluster cells.heatsketch cells.parquet -n 10 -o clusters.parquet`
    """
    from heatsketch import HeatClustering

    check_outputs([model, input], output)
    fitted = load_transformer(model)
    rows = open_like(fitted, model, input, table)
    options: dict[str, Any] = {"dtype": np.int64, "overwrite": overwrite}
    with output_like(output, ["cluster"], rows, table, **options) as writer:
        block = read_rows(rows)
        clustering = HeatClustering(clusters, random_state=seed).fit(fitted.graph_)
        writer.append(block._replace(X=clustering.predict(block.X)[:, np.newaxis]))
    sizes = np.bincount(clustering.labels_, minlength=clusters)
    result = {"model": model, **about(rows, table), "graph": repr(fitted.graph_)}
    return {**result, "clusters": clusters, "sizes": sizes, "output": output}
