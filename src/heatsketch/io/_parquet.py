"""Parquet: one file, or a folder of files with the same columns, in the order of their names.

A column of lists of numbers, all of one length, is as many columns: ``e`` is ``e_0``, ``e_1``, ...
Embeddings are kept so.

Pages are held against their checksums where the file has them; ours do. (``pyarrow`` is imported
in this file only.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import FEW, Wanted, carried, choose_columns, float_dtype
from heatsketch.io._failures import needed
from heatsketch.io._output import Columns
from heatsketch.io._parquet_pages import check_pages, column_chunks
from heatsketch.io._table import Block, Table

__all__ = ["open_parquet", "parquet_names", "write_parquet"]

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
    _refuse_nested(path, schema, wanted)
    widths = {name: _width(files, schema.field(name)) for name in _lists(schema, wanted)}
    places = _places(schema, widths)
    numeric = {name: _numpy_dtype(schema.field(at.column).type) for name, at in places.items()}
    numeric = {name: dtype for name, dtype in numeric.items() if dtype is not None}
    names = choose_columns(path, _all_names(schema, widths), numeric, _in_parts(wanted, widths))
    return ParquetTable(
        path=path,
        names=names,
        n_rows=n_rows,
        dtype=float_dtype(*(numeric[name] for name in names)),
        files=files,
        wanted=wanted,
        with_gaps=_columns_with_gaps(files, wanted.labels),
        places=tuple(places[name] for name in names),
        widths=widths,
    )


def parquet_names(path: Path, header: bool | None) -> tuple[str, ...]:
    """Return the names of all columns, whatever they hold."""
    with _opened(_files(path)[0]) as file:
        return tuple(file.schema_arrow.names)


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
    if types.is_nested(kind):
        return _numpy_dtype(kind.value_type) if hasattr(kind, "value_type") else None
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind.to_pandas_dtype()
    return np.float64 if types.is_decimal(kind) else None


def _refuse_nested(path: Path, schema: Any, wanted: Wanted) -> None:
    types = needed("pyarrow", path).types
    nested = [field.name for field in schema if types.is_nested(field.type)]
    for name in (wanted.ids, *wanted.labels):
        if name in nested:
            raise FileFormatError(
                path,
                f"column {name!r} has lists or records in it ({schema.field(name).type})",
                "carry along columns of single values",
            )
    for name in nested if wanted.columns is None else wanted.columns:
        if name in nested and not _is_list(schema.field(name).type):
            others = [other for other in schema.names if other not in nested]
            raise FileFormatError(
                path,
                f"column {name!r} holds {schema.field(name).type}, neither numbers nor lists of "
                "numbers",
                f"choose others, for instance columns={others[:FEW]}"
                if others
                else "write a number, or a list of numbers, for each row",
            )


# --- lists of numbers ---------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a feature is: a column, and where in its lists, if these are lists."""

    column: str
    inside: int | None = None


def _is_list(kind: Any) -> bool:
    types = needed("pyarrow", Path()).types
    is_one = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_one and not types.is_nested(kind.value_type) and _numpy_dtype(kind) is not None


def _lists(schema: Any, wanted: Wanted) -> list[str]:
    """Return the columns of lists that may be asked for, as a whole or in part."""
    names = [field.name for field in schema if _is_list(field.type)]
    if wanted.columns is None:
        return names
    return [n for n in names if any(c == n or c.startswith(f"{n}_") for c in wanted.columns)]


def _width(files: tuple[Path, ...], field: Any) -> int:
    """Return how long the first list of a column is, by which all others are judged."""
    for path in files:
        check_pages(path, [field.name])
        n_values = sum(chunk.n_values for chunk in column_chunks(path, [field.name]))
        claimed = getattr(field.type, "list_size", 0)
        if n_values and claimed > n_values:  # of which Arrow would make room
            raise FileFormatError(
                path,
                f"column {field.name!r} claims lists of {claimed} numbers, and has {n_values}",
                "check that the file is whole",
            )
        with _opened(path) as file:
            for batch in file.iter_batches(1, columns=[field.name], use_threads=False):
                first = batch.column(0)[0]
                if first.is_valid and len(first):
                    return len(first)
    raise FileFormatError(
        files[0],
        f"column {field.name!r} has no list with a number in it",
        "leave it out, with columns= for the others",
    )


def _parts(name: str, width: int) -> list[str]:
    return [f"{name}_{inside}" for inside in range(width)]


def _all_names(schema: Any, widths: dict[str, int]) -> list[str]:
    names = ([n] if n not in widths else _parts(n, widths[n]) for n in schema.names)
    return [name for some in names for name in some]


def _places(schema: Any, widths: dict[str, int]) -> dict[str, _Place]:
    single = {name: _Place(name) for name in schema.names if name not in widths}
    return single | {
        inside: _Place(name, place)
        for name, width in widths.items()
        for place, inside in enumerate(_parts(name, width))
    }


def _in_parts(wanted: Wanted, widths: dict[str, int]) -> Wanted:
    """Ask for every number of a list that is asked for."""
    if wanted.columns is None:
        return wanted
    names = ([n] if n not in widths else _parts(n, widths[n]) for n in wanted.columns)
    return wanted._replace(columns=tuple(name for some in names for name in some))


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
    places: tuple[_Place, ...]
    widths: dict[str, int]

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return self.wanted.ids is not None, self.wanted.labels

    def _blocks(self, rows: int) -> Iterator[Block]:
        _, labels, ids, _, _ = self.wanted
        features = [place.column for place in self.places]
        columns = list(dict.fromkeys([*features, *labels, *([] if ids is None else [ids])]))
        start = 0
        for path in self.files:
            with _opened(path) as file:
                check_pages(path, columns)
                for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                    if batch.num_rows:
                        yield self._block(batch, start)
                        start += batch.num_rows
        # Which would keep what it decoded: hundreds of MiB of a table with many columns.
        needed("pyarrow", self.path).default_memory_pool().release_unused()

    def _block(self, batch: Any, start: int) -> Block:
        _, labels, ids, _, _ = self.wanted
        X = np.empty((batch.num_rows, len(self.names)), dtype=self.dtype)
        done = 0
        for name, some in groupby(self.places, key=lambda place: place.column):
            inside = np.array([place.inside or 0 for place in some])
            part = slice(done, done := done + len(inside))
            if name in self.widths:
                X[:, part] = self._matrix(batch, name, start)[:, inside]
            else:
                X[:, part] = _floats(batch.column(name), self.dtype)[:, np.newaxis]
        return Block(
            X,
            None if ids is None else _carried(batch.column(ids)),
            {name: _carried(batch.column(name), name in self.with_gaps) for name in labels},
        )

    def _matrix(self, batch: Any, name: str, start: int) -> np.ndarray:
        """Return lists as rows; one that is missing is a row of NaN."""
        compute = needed("pyarrow.compute", self.path)
        column, width = batch.column(name), self.widths[name]
        lengths = compute.fill_null(compute.list_value_length(column), width).to_numpy()
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            raise FileFormatError(
                self.path,
                f"row {start + row} of column {name!r} is a list of {lengths[row]} numbers, where "
                f"the first has {width}",
                "make all lists of a column as long",
            )
        X = np.full((len(column), width), np.nan, dtype=self.dtype)
        there = column.is_valid().to_numpy(zero_copy_only=False)
        X[there] = _floats(column.flatten(), self.dtype).reshape(-1, width)
        return X


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
