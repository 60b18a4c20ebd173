"""Parquet: a file, or a folder of files of equal columns, sorted by name.

A column of lists of numbers, all of one length, is expanded to as many columns: ``e`` becomes
``e_0``, ``e_1``, ... Embeddings are often stored like this.

Columns that pandas has written for the index of a frame are features only if they are requested.

Pages are verified against their checksums if the file has them; files written here do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import atomic_file
from heatsketch._core.checks import float_dtype, index_columns
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import FEW, Wanted, carried, choose_columns
from heatsketch.io._failures import needed
from heatsketch.io._output import Columns
from heatsketch.io._table import Block, Table

# Buffer of each column chunk, so that a row group is never in memory as a whole.
BUFFER_BYTES = 2**16
ARROW_NAMES = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64", "O": "string"}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ParquetTable(Table):
    """Columns in one file or several."""

    files: tuple[Path, ...]


class _Layout(NamedTuple):
    """Columns to read; a feature is a column and an index in its lists."""

    path: Path
    features: tuple[tuple[str, int], ...]
    widths: dict[str, int]
    dtype: np.dtype
    ids: str | None
    labels: tuple[str, ...]
    with_gaps: set[str]


def open_parquet(path: Path, wanted: Wanted) -> Table:
    """Read the schema and the number of rows."""
    files = _files(path)
    schema, indexes, n_rows = _schema(files)
    _check_nested(path, schema, wanted)
    parts = {name: _parts(files, name) for name in _lists(schema, wanted)}
    places = {name: (name, 0) for name in schema.names if name not in parts}
    places |= {part: (name, i) for name in parts for i, part in enumerate(parts[name])}
    kinds = {name: _numpy_dtype(schema.field(column).type) for name, (column, _) in places.items()}
    numeric = {name: dtype for name, dtype in kinds.items() if dtype is not None}

    def in_parts(names: Any) -> tuple[str, ...]:
        return tuple(part for name in names for part in parts.get(name, [name]))

    asked = wanted.columns and wanted._replace(columns=in_parts(wanted.columns))
    names = choose_columns(path, in_parts(schema.names), numeric, asked or wanted, indexes)
    layout = _Layout(
        path,
        features=tuple(places[name] for name in names),
        widths={name: len(parts[name]) for name in parts},
        dtype=float_dtype(*(numeric[name] for name in names)),
        ids=wanted.ids,
        labels=wanted.labels,
        with_gaps=_columns_with_gaps(files, schema, wanted.labels),
    )
    return ParquetTable(
        path=path,
        names=names,
        n_rows=max(0, n_rows),
        dtype=layout.dtype,
        stream=partial(_stream, layout, files),
        has_ids=wanted.ids is not None,
        label_names=wanted.labels,
        files=files,
    )


def _stream(layout: _Layout, files: tuple[Path, ...], rows: int) -> Iterator[Block]:
    others = layout.labels if layout.ids is None else (*layout.labels, layout.ids)
    columns = dict.fromkeys([*(column for column, _ in layout.features), *others])
    start = 0
    for batch in _batches(files, rows, list(columns)):
        yield _block(layout, batch, start)
        start += batch.num_rows
    # Arrow would keep decoded buffers: hundreds of MiB for a table with many columns.
    needed("pyarrow", layout.path).default_memory_pool().release_unused()


def _block(layout: _Layout, batch: Any, start: int) -> Block:
    X = np.empty((batch.num_rows, len(layout.features)), dtype=layout.dtype)
    found = {column: _matrix(layout, batch, column, start) for column, _ in layout.features}
    for column, (name, inside) in enumerate(layout.features):
        X[:, column] = found[name][:, inside]
    labels = {n: _carried(batch.column(n), n in layout.with_gaps) for n in layout.labels}
    return Block(X, None if layout.ids is None else _carried(batch.column(layout.ids)), labels)


def _schema(files: tuple[Path, ...]) -> tuple[Any, set[str], int]:
    """Return the schema of all files, their index columns, and their number of rows."""
    schema, indexes, n_rows = None, set(), 0
    for path in files:
        with _opened(path) as file:
            schema = schema or file.schema_arrow
            _check_schema(path, file.schema_arrow, files[0], schema)
            indexes |= index_columns(file.schema_arrow)
            n_rows += file.metadata.num_rows
    return schema, indexes, n_rows


def parquet_names(path: Path, header: bool | None) -> tuple[str, ...]:
    """Return the names of all columns but indexes, numeric or not."""
    with _opened(_files(path)[0]) as file:
        indexes = index_columns(file.schema_arrow)
        return tuple(name for name in file.schema_arrow.names if name not in indexes)


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


def _batches(files: tuple[Path, ...], rows: int, columns: list[str]) -> Iterator[Any]:
    for path in files:
        with _opened(path) as file:
            batches = file.iter_batches(rows, columns=columns, use_threads=False)
            yield from (batch for batch in batches if batch.num_rows)


def _check_schema(path: Path, schema: Any, first_path: Path, first: Any) -> None:
    if not schema.equals(first):
        ours, theirs = ({(f.name, str(f.type)) for f in s} for s in (schema, first))
        odd = sorted(ours ^ theirs) or "their order"
        raise FileFormatError(
            path,
            f"its columns differ from those of {first_path.name!r}: {str(odd)[:200]}",
            "write all files of the folder with the same columns",
        )


def _types() -> Any:
    return needed("pyarrow", Path()).types


def _numpy_dtype(kind: Any) -> Any:
    """Return the dtype for the numbers of a column; None if it is not numeric."""
    types = _types()
    if types.is_nested(kind):
        return _numpy_dtype(kind.value_type) if hasattr(kind, "value_type") else None
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind.to_pandas_dtype()
    return np.float64 if types.is_decimal(kind) else None


def _check_nested(path: Path, schema: Any, wanted: Wanted) -> None:
    """Raise if a requested column of lists or records cannot be read."""
    nested = {field.name: field.type for field in schema if _types().is_nested(field.type)}
    for name in (wanted.ids, *wanted.labels):
        if name in nested:
            raise FileFormatError(
                path,
                f"column {name!r} has lists or records in it ({nested[name]})",
                "use columns of single values for ids and labels",
            )
    for name in nested if wanted.columns is None else wanted.columns:
        if name in nested and not _is_list(nested[name]):
            others = [other for other in schema.names if other not in nested][:FEW]
            raise FileFormatError(
                path,
                f"column {name!r} holds {nested[name]}, neither numbers nor lists of numbers",
                f"choose others, for instance columns={others}"
                if others
                else "write a number, or a list of numbers, for each row",
                columns=others,
            )


# --- lists of numbers ---------------------------------------------------------------------------


def _is_list(kind: Any) -> bool:
    types = _types()
    is_one = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_one and not types.is_nested(kind.value_type) and _numpy_dtype(kind) is not None


def _lists(schema: Any, wanted: Wanted) -> list[str]:
    """Return the list columns that may be requested, as a whole or in part."""
    names = [field.name for field in schema if _is_list(field.type)]
    if wanted.columns is None:
        return names
    return [n for n in names if any(c == n or c.startswith(f"{n}_") for c in wanted.columns)]


def _parts(files: tuple[Path, ...], name: str) -> list[str]:
    """Return the names of an expanded list column, by its first list."""
    for batch in _batches(files, 1, [name]):
        first = batch.column(0)[0]
        if first.is_valid and len(first):
            return [f"{name}_{inside}" for inside in range(len(first))]
    raise FileFormatError(
        files[0],
        f"column {name!r} has no list with a number in it",
        "leave it out, and choose other columns",
    )


def _matrix(layout: _Layout, batch: Any, name: str, start: int) -> np.ndarray:
    """Return a column or list column as a matrix, with NaN for missing lists."""
    column, dtype = batch.column(name), layout.dtype
    if name not in layout.widths:
        return _floats(column, dtype)[:, np.newaxis]
    compute, width = needed("pyarrow.compute", layout.path), layout.widths[name]
    lengths = compute.fill_null(compute.list_value_length(column), width).to_numpy()
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        raise FileFormatError(
            layout.path,
            f"row {start + row} of column {name!r} is a list of {lengths[row]} numbers, where "
            f"the first has {width}",
            "make all lists of a column as long",
        )
    X = np.full((len(column), width), np.nan, dtype=dtype)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    X[there] = _floats(column.flatten(), dtype).reshape(-1, width)
    return X


def _floats(column: Any, dtype: np.dtype) -> np.ndarray:
    """Return the numbers of a column, with NaN for missing values."""
    if column.type != str(dtype):
        column = column.cast(str(dtype).replace("float32", "float"), safe=False)
    return column.to_numpy(zero_copy_only=False)


# --- ids and labels -----------------------------------------------------------------------------


def _is_whole(kind: Any) -> bool:
    return _types().is_integer(kind) or _types().is_boolean(kind)


def _columns_with_gaps(files: tuple[Path, ...], schema: Any, labels: Any) -> set[str]:
    """Return the integer labels with missing values, which are read as floats."""
    whole = [name for name in labels if _is_whole(schema.field(name).type)]
    batches = _batches(files, 2**16, whole) if whole else ()
    return {name for batch in batches for name in whole if batch.column(name).null_count}


def _carried(column: Any, may_have_gaps: bool = False) -> np.ndarray:
    types = _types()
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if may_have_gaps:
        return column.cast("double", safe=False).to_numpy(zero_copy_only=False)
    values = carried(column.to_numpy(zero_copy_only=False))
    if types.is_timestamp(column.type) and column.type.tz is not None:
        # Arrow stores times of all zones as UTC, and numpy has no time zones.
        values[:] = [None if text is None else f"{text}+00:00" for text in values]
    return values


@contextmanager
def write_parquet(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows block by block, each as a row group."""
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
            # Dictionary encoding of numbers that do not repeat wastes time and space.
            repeated = [field.name for field in its_schema if field.type == arrow.string()]
            return parquet.ParquetWriter(
                file, its_schema, write_page_checksum=True, use_dictionary=repeated
            )

        try:
            yield write
            if writer is None:
                text = [name for name in (columns.ids, *columns.labels) if name is not None]
                writer = opened(schema(dict.fromkeys(text, "O")))
        finally:  # otherwise it would be closed after the file
            if writer is not None:
                writer.close()
