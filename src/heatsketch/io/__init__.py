"""Readers and writers of tables and graphs, by file extension.

=================  ===========================================  =======  =======  ===============
extension          what it is                                   blocks   writes   ids and labels
=================  ===========================================  =======  =======  ===============
.npy               one array                                    yes      rows     no
.npz               one array of several, or a sparse matrix     no       no       other arrays
.csv .tsv (.gz)    text                                         yes      rows     columns, as text
.parquet           Parquet                                      yes      rows     columns
.feather .arrow    Arrow IPC                                    yes      rows     columns
.zarr              a folder of chunks                           yes      rows     other arrays
.h5ad              X, or a layer or obsm, dense or sparse       yes      no       obs
.mtx               Matrix Market, for graphs                    no       no       numbers
.edges .edgelist   lines ``i j`` or ``i j weight``, for graphs  no       no       nodes
=================  ===========================================  =======  =======  ===============

"Blocks: yes" means that a table is read in blocks, without loading all of it into memory, and
"writes: rows" that it is written in the same way. numpy loads an array of ``.npz`` as a whole, and
a CSC matrix inside ``.h5ad`` has to be converted. Ids and labels of ``.npz``, ``.zarr`` and
``.h5ad`` are in memory as a whole.

Text, Parquet and Arrow may also be a folder of files with the same columns, a pattern such as
``data/*.parquet``, or a URL that ``fsspec`` can open (``https://``, ``s3://``, ``gs://``, ...).
They need the extra ``heatsketch[files]``, as do zarr and h5ad.

With :func:`read_graph`, a graph may also be a list of edges in a table, or a sparse matrix of
``scipy.sparse.save_npz``.

Outputs are atomic: they are complete, or absent. A damaged or invalid file raises
:class:`~heatsketch.exceptions.FileFormatError` with the path, the cause and a remedy. Nothing is
ever unpickled, and a missing chunk is an error.
"""

from __future__ import annotations

from heatsketch.io._graphs import Graph
from heatsketch.io._open import (
    GRAPH_EXTENSIONS,
    OUTPUT_EXTENSIONS,
    TABLE_EXTENSIONS,
    open_table,
    read_graph,
    table_writer,
)
from heatsketch.io._output import TableWriter
from heatsketch.io._paths import check_different_files
from heatsketch.io._table import Block, Table, joined

__all__ = [
    "GRAPH_EXTENSIONS",
    "OUTPUT_EXTENSIONS",
    "TABLE_EXTENSIONS",
    "Block",
    "Graph",
    "Table",
    "TableWriter",
    "check_different_files",
    "joined",
    "open_table",
    "read_graph",
    "table_writer",
]
