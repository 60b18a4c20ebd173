"""Parquet: one file, or a folder of files with the same columns, in the order of their names.

Pages are held against their checksums where the file has them; ours do. (``pyarrow`` is imported
in this file only.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError
from heatsketch.files._columns import Wanted, carried, choose_columns, float_dtype
from heatsketch.files._failures import needed
from heatsketch.files._output import Columns
from heatsketch.files._parquet_pages import check_pages, column_chunks
from heatsketch.files._table import Block, Table

__all__ = ["open_parquet", "write_parquet"]

# Of each column chunk, so that a row group is never in memory as a whole.
BUFFER_BYTES = 2**16
ARROW_NAMES = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64", "O": "string"}


def open_parquet(path: Path, wanted: Wanted) -> Table:
    """Look at the schema and at the number of rows."""
    files = _files(path)
    with _opened(files[0]) as first:
        schema = first.schema_arrow
        n_rows = _n_rows(files[0], first.metadata)
    for other in files[1:]:
        with _opened(other) as file:
            _check_schema(other, file.schema_arrow, files[0], schema)
            n_rows += _n_rows(other, file.metadata)
    numeric = {field.name: _numpy_dtype(field.type) for field in schema}
    numeric = {name: dtype for name, dtype in numeric.items() if dtype is not None}
    names = choose_columns(path, schema.names, numeric, wanted)
    _refuse_nested(path, schema, wanted)
    return ParquetTable(
        path=path,
        names=names,
        n_rows=n_rows,
        dtype=float_dtype(*(numeric[name] for name in names)),
        files=files,
        wanted=wanted,
        with_gaps=_columns_with_gaps(files, wanted.labels),
    )


def _n_rows(path: Path, metadata: Any) -> int:
    """Return the number of rows, of which a footer tells twice."""
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if min(groups, default=0) < 0 or sum(groups) != metadata.num_rows:
        raise FileFormatError(
            path,
            f"it counts {metadata.num_rows} rows in all, and {groups[:9]} in its groups",
            "write it anew; it is damaged",
        )
    return sum(groups)


def _files(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        return (path,)
    entries = [entry for entry in sorted(path.iterdir()) if entry.name[0] not in "._"]
    for entry in entries:
        if entry.is_dir() or entry.suffix.lower() != ".parquet":
            raise FileFormatError(
                path,
                f"{entry.name!r} in it is no Parquet file",
                "keep nothing but files *.parquet in one folder, without folders in it",
            )
    if not entries:
        raise FileFormatError(path, "the folder is empty", "put files *.parquet into it")
    return tuple(entries)


def _opened(path: Path) -> Any:
    parquet = needed("pyarrow.parquet", path)
    return parquet.ParquetFile(
        path, buffer_size=BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
    )


def _check_schema(path: Path, schema: Any, first_path: Path, first: Any) -> None:
    if not schema.equals(first):
        ours, theirs = ({(f.name, str(f.type)) for f in s} for s in (schema, first))
        odd = sorted(ours ^ theirs) or "their order"
        raise FileFormatError(
            path,
            f"its columns differ from those of {first_path.name!r}: {str(odd)[:200]}",
            "write all files of the folder with the same columns",
        )


def _numpy_dtype(kind: Any) -> Any:
    """Return the dtype that holds a column's numbers; None if it holds none."""
    types = needed("pyarrow", Path()).types
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind.to_pandas_dtype()
    return np.float64 if types.is_decimal(kind) else None


def _refuse_nested(path: Path, schema: Any, wanted: Wanted) -> None:
    types = needed("pyarrow", path).types
    for name in (wanted.ids, *wanted.labels):
        if name is not None and types.is_nested(schema.field(name).type):
            raise FileFormatError(
                path,
                f"column {name!r} has lists or records in it ({schema.field(name).type})",
                "carry along columns of single values",
            )


def _columns_with_gaps(files: tuple[Path, ...], labels: tuple[str, ...]) -> frozenset[str]:
    """Return the labels that have a missing value somewhere, or do not say.

    Integers among these are read as floats in every block, not only where a gap is.
    """
    return frozenset(
        chunk.name
        for path in (files if labels else ())
        for chunk in column_chunks(path, labels)
        if chunk.n_nulls != 0
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ParquetTable(Table):
    """Columns in one file or several."""

    files: tuple[Path, ...]
    wanted: Wanted
    with_gaps: frozenset[str]

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return self.wanted.ids is not None, self.wanted.labels

    def _blocks(self, rows: int) -> Iterator[Block]:
        _, labels, ids, _, _ = self.wanted
        columns = list(dict.fromkeys([*self.names, *labels, *([] if ids is None else [ids])]))
        for path in self.files:
            with _opened(path) as file:
                check_pages(path, columns)
                for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                    if batch.num_rows:
                        yield self._block(batch)
        # Which would keep what it decoded: hundreds of MiB of a table with many columns.
        needed("pyarrow", self.path).default_memory_pool().release_unused()

    def _block(self, batch: Any) -> Block:
        _, labels, ids, _, _ = self.wanted
        X = np.empty((batch.num_rows, len(self.names)), dtype=self.dtype)
        for place, name in enumerate(self.names):
            X[:, place] = _floats(batch.column(name), self.dtype)
        return Block(
            X,
            None if ids is None else _carried(batch.column(ids)),
            {name: _carried(batch.column(name), name in self.with_gaps) for name in labels},
        )


def _floats(column: Any, dtype: np.dtype) -> np.ndarray:
    """Return the numbers of a column; missing ones are NaN."""
    if column.type != str(dtype):
        column = column.cast(str(dtype).replace("float32", "float"), safe=False)
    return column.to_numpy(zero_copy_only=False)


def _carried(column: Any, may_have_gaps: bool = False) -> np.ndarray:
    types = needed("pyarrow", Path()).types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if may_have_gaps and (types.is_integer(column.type) or types.is_boolean(column.type)):
        return column.cast("double", safe=False).to_numpy(zero_copy_only=False)
    values = carried(column.to_numpy(zero_copy_only=False))
    if types.is_timestamp(column.type) and column.type.tz is not None:
        # Arrow keeps moments of all zones as those of UTC, and numpy knows no zone.
        values[:] = [None if text is None else f"{text}+00:00" for text in values]
    return values


@contextmanager
def write_parquet(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows as they come, each block as a row group."""
    arrow, parquet = needed("pyarrow", path), needed("pyarrow.parquet", path)
    order = [*([] if columns.ids is None else [columns.ids]), *columns.names, *columns.labels]
    writer: Any = None

    def schema(carried_kinds: dict[str, str]) -> Any:
        number = str(columns.dtype)
        kinds = {name: ARROW_NAMES[kind] for name, kind in carried_kinds.items()}
        return arrow.schema(
            [(name, arrow.type_for_alias(kinds.get(name, number))) for name in order]
        )

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        nonlocal writer
        values = {**labels} if columns.ids is None else {columns.ids: ids, **labels}
        if writer is None:
            kinds = {name: array.dtype.kind for name, array in values.items()}
            writer = opened(schema(kinds))
        values |= dict(zip(columns.names, X.T, strict=True))
        arrays = [arrow.array(values[field.name], field.type) for field in writer.schema]
        writer.write_table(arrow.Table.from_arrays(arrays, schema=writer.schema))

    with atomic_file(path, overwrite=overwrite) as file:

        def opened(its_schema: Any) -> Any:
            # A dictionary of numbers that never come again is a waste of time and space.
            repeated = [field.name for field in its_schema if field.type == arrow.string()]
            return parquet.ParquetWriter(
                file, its_schema, write_page_checksum=True, use_dictionary=repeated
            )

        try:
            yield write
            if writer is None:
                text = [name for name in (columns.ids, *columns.labels) if name is not None]
                writer = opened(schema(dict.fromkeys(text, "O")))
        finally:  # else it would try to, once the file is gone
            if writer is not None:
                writer.close()
