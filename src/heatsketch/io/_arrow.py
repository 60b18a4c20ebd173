"""Tables that ``pyarrow`` reads: text (``.csv``, ``.tsv``), Parquet, and Arrow IPC (``.feather``).

A table is one file, a folder of files, a pattern, or a URL of ``fsspec``; all its files have the
same columns. Files are read one after the other by the readers of pyarrow, in batches. (Scanning
a ``pyarrow.dataset`` would hold two row groups of Parquet, or most of a text file, in memory.)

In text, numbers are float64, ids and labels are unchanged text (``007`` stays ``007``), and an
empty field in a numeric column is NaN. A column of lists of numbers, all of one length, is expanded
to as many columns: ``e`` becomes ``e_0``, ``e_1``, ... Embeddings are often stored like this.
Columns that pandas has written for the index of a frame are features only if they are selected.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as text
from pyarrow import fs, ipc, parquet, types

from heatsketch._core.atomic_file import atomic_file
from heatsketch._core.checks import float_dtype, index_columns
from heatsketch.exceptions import FileFormatError
from heatsketch.io._checks import (
    Selection,
    carried,
    check_unique,
    choose_columns,
    numbered_names,
)
from heatsketch.io._graphs import edge_columns
from heatsketch.io._output import Columns
from heatsketch.io._paths import ARROW, TEXT, extension_of, is_pattern, is_url
from heatsketch.io._table import Block, Table

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
MISSING = ["", "NA", "Na", "na", "NULL", "Null", "null"]
# Bytes of text parsed at a time, more if lines are long. Arrow reads up to 32 blocks ahead.
TEXT_BYTES, HEAD_BYTES = 2**18, 2**22
PARQUET = {
    "buffer_size": 2**16,  # of each column, so that no row group is in memory as a whole
    "pre_buffer": False,
    "page_checksum_verification": True,
}


@dataclass(frozen=True)
class _Files:
    """Files of one table, and how to read them."""

    path: Any
    filesystem: Any
    names: tuple[str, ...]
    extension: str
    columns: tuple[str, ...] | None = None  # names for text without a header
    text_bytes: int = TEXT_BYTES

    @property
    def is_text(self) -> bool:
        return self.extension in TEXT

    @contextmanager
    def opened(self, name: str, columns: dict[str, Any] | None = None) -> Iterator[Any]:
        """Yield the reader of a file by pyarrow; ``columns`` are the types of those of text."""
        if self.is_text:
            with (
                self.filesystem.open_input_stream(name) as stream,
                self._text_reader(stream, columns) as reader,
            ):
                yield reader
        else:
            with self.filesystem.open_input_file(name) as file:
                is_parquet = self.extension == ".parquet"
                yield parquet.ParquetFile(file, **PARQUET) if is_parquet else ipc.open_file(file)

    def _text_reader(self, stream: Any, columns: dict[str, Any] | None) -> Any:
        return text.open_csv(
            stream,
            text.ReadOptions(
                use_threads=False,  # so that errors name the row
                block_size=self.text_bytes,
                column_names=self.columns,
            ),
            text.ParseOptions(delimiter=_delimiter(self.extension), newlines_in_values=True),
            text.ConvertOptions(
                column_types=columns,
                include_columns=columns and list(columns),
                null_values=MISSING,
                true_values=[],
                false_values=[],
            ),
        )

    def schema(self, name: str) -> Any:
        """Return the columns of a file; types of text are those of the first rows."""
        with self.opened(name) as reader:
            return reader.schema_arrow if self.extension == ".parquet" else reader.schema

    def batches(self, rows: int, columns: dict[str, Any]) -> Iterator[Any]:
        """Yield some columns of all files, in batches of at most ``rows``."""
        for name in self.names:
            with self.opened(name, columns) as batches:
                if self.extension == ".parquet":
                    batches = batches.iter_batches(rows, columns=list(columns), use_threads=False)
                elif not self.is_text:
                    batches = _ipc_batches(batches)
                for batch in batches:
                    yield from (batch.slice(i, rows) for i in range(0, batch.num_rows, rows))

    def n_rows(self, column: str) -> int:
        """Count the rows of all files, which reads text once."""
        if self.extension != ".parquet":
            return sum(batch.num_rows for batch in self.batches(2**16, {column: "string"}))
        total = 0
        for name in self.names:
            with self.opened(name) as reader:
                n_rows = reader.metadata.num_rows
            if n_rows < 0:
                raise FileFormatError(name, f"it has {n_rows} rows", "restore it from a copy")
            total += n_rows
        return total


def _delimiter(extension: str) -> str:
    return "\t" if extension.startswith(".tsv") else ","


def _ipc_batches(reader: Any) -> Iterator[Any]:
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        batch.validate(full=True)  # invalid offsets would read out of bounds
        yield batch
        del batch  # before the next one is read


def _find_files(path: Any, header: bool | None) -> _Files:
    """Return the files of a table: one, those of a folder, or those that match a pattern."""
    plain, root, filesystem = fsspec.filesystem("file"), str(path), fs.LocalFileSystem()
    if is_url(path):
        plain, root = fsspec.core.url_to_fs(str(path))
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(plain))
    names = [root]
    if is_pattern(path):
        names = plain.glob(root)
    elif plain.info(root)["type"] == "directory":
        names = plain.ls(root, detail=False)
    names = sorted(name for name in names if Path(name).name[:1] not in "._")
    extensions = {extension_of(name) for name in names} or {None}
    extension = extensions.pop()
    if extensions or extension is None:
        cause = f"it must hold files of one format, got {[Path(name).name for name in names[:8]]}"
        raise FileFormatError(path, cause, f"use one of {', '.join(ARROW)}")
    files = _Files(path, filesystem, tuple(names), extension)
    return _with_header(files, header) if files.is_text else files


def _with_header(files: _Files, header: bool | None) -> _Files:
    """Look at the first lines of text: whether they are names, and how long they are."""
    with files.filesystem.open_input_stream(files.names[0]) as stream:
        lines = stream.read(HEAD_BYTES).lstrip(b"\r\n").split(b"\n", 3)[:3]
    head = io.StringIO(b"\n".join(lines).decode("utf-8-sig", errors="replace"), newline="")
    fields = next(csv.reader(head, delimiter=_delimiter(files.extension)), [])
    if header is None and fields and all(map(NUMBER.fullmatch, fields)):
        cause = f"its first line, {','.join(fields)[:60]!r}, may be names or numbers"
        raise FileFormatError(files.path, cause, "pass header=True or header=False")
    if header is not False:  # Arrow would take long for many equal names
        check_unique(files.path, fields, "names of columns")
    columns = numbered_names(len(fields)) if header is False else None
    text_bytes = max(TEXT_BYTES, 4 * max(map(len, lines)))
    return replace(files, columns=columns, text_bytes=text_bytes)


def _schema(files: _Files) -> tuple[Any, set[str]]:
    """Return the columns of all files, and those that are indexes in one of them."""
    schemas = [files.schema(name) for name in files.names]
    first = schemas[0]
    for name, schema in zip(files.names, schemas, strict=True):
        # Types of text are only those of its first rows.
        if schema.names != first.names or not (files.is_text or schema == first):
            cause = f"the columns of {Path(name).name!r} differ from those of its other files"
            raise FileFormatError(files.path, cause, "write all files with the same columns")
    check_unique(files.path, first.names, "names of columns")
    return first, set().union(*map(index_columns, schemas))


def column_names(path: Any, header: bool | None) -> tuple[str, ...]:
    """Return the names of all columns but indexes, numeric or not."""
    schema, indexes = _schema(_find_files(path, header))
    return tuple(name for name in schema.names if name not in indexes)


def open_arrow(path: Any, selection: Selection) -> Table:
    """Read the columns of all files, and count the rows."""
    files = _find_files(path, selection.header)
    schema, indexes = _schema(files)
    parts = {field.name: _parts(files, field, selection.columns) for field in schema}
    check_unique(path, [part for name in parts for part in parts[name]], "names of columns")
    dtypes = {part: _numpy_dtype(field.type) for field in schema for part in parts[field.name]}
    if selection.columns is not None:
        columns = [part for name in selection.columns for part in parts.get(name, [name])]
        selection = selection._replace(columns=tuple(columns))
    elif ends := edge_columns(schema.names, selection.beside)[:2]:
        cause = f"its columns {ends[0]!r} and {ends[1]!r} are the ends of edges"
        raise FileFormatError(path, cause, "read it as a graph (--graph), or choose columns=")
    names = choose_columns(path, dtypes, selection, indexes)
    dtype = float_dtype(*(dtypes[name] for name in names))
    features = _features(names, parts)
    read = _types(files, schema, features, selection)

    def stream(rows: int) -> Iterator[Block]:
        for batch in files.batches(rows, read):
            X = np.empty((batch.num_rows, len(names)), dtype=dtype)
            for name, (positions, places) in features.items():
                numbers = _numbers(path, batch, name, len(parts[name]), dtype)
                X[:, positions] = numbers[:, places]
            beside: dict[Any, Any] = {n: _carried(batch, n, read) for n in selection.beside}
            yield Block(X, beside.get(selection.ids), {n: beside[n] for n in selection.labels})
        # Arrow would keep decoded buffers: hundreds of MiB for a table with many columns.
        pa.default_memory_pool().release_unused()

    n_rows, has_ids = files.n_rows(schema.names[0]), selection.ids is not None
    facts: dict[str, Any] = {"label_names": selection.labels, "files": files.names}
    return Table(path, names, n_rows, dtype, stream, has_ids=has_ids, **facts)


def _features(names: tuple[str, ...], parts: dict[str, list[str]]) -> dict[str, tuple[list, list]]:
    """Return for each column that is read its positions in X, and their places in its lists."""
    places = {part: (name, place) for name in parts for place, part in enumerate(parts[name])}
    features: dict[str, tuple[list, list]] = {}
    for position, part in enumerate(names):
        name, place = places[part]
        positions, inside = features.setdefault(name, ([], []))
        positions.append(position)
        inside.append(place)
    return features


def _numpy_dtype(kind: Any) -> Any:
    """Return the dtype for the numbers of a column, or in its lists; None if there are none."""
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind.to_pandas_dtype()
    # A column of text that begins with empty fields has the type null.
    return np.float64 if types.is_decimal(kind) or types.is_null(kind) else None


def _parts(files: _Files, field: Any, columns: Any) -> list[str]:
    """Return the names for a column: its own, or one for each number of its first list."""
    name = field.name
    is_used = columns is None or any(c == name or c.startswith(f"{name}_") for c in columns)
    if not is_used or not types.is_nested(field.type) or _numpy_dtype(field.type) is None:
        return [name]
    for batch in files.batches(1, {name: None}):
        first = batch.column(name)[0]
        if first.is_valid and len(first):
            return [f"{name}_{place}" for place in range(len(first))]
    raise FileFormatError(files.path, f"column {name!r} has only empty lists", "leave it out")


def _types(files: _Files, schema: Any, features: Any, selection: Selection) -> dict[str, Any]:
    """Return the types as which columns are read, which are the same in all blocks."""
    read = dict.fromkeys(features, pa.float64())
    for name in selection.beside:
        kind = schema.field(name).type
        is_whole = types.is_boolean(kind) or types.is_integer(kind)
        if files.is_text:
            read.setdefault(name, pa.string())
        elif not (is_whole or types.is_floating(kind)):
            read[name] = pa.string()
        elif is_whole and any(
            b.column(name).null_count for b in files.batches(2**16, {name: kind})
        ):
            read[name] = pa.float64()
        else:
            read[name] = kind
    return read


def _numbers(path: Any, batch: Any, name: str, width: int, dtype: np.dtype) -> np.ndarray:
    """Return the numbers of a column as a matrix, with NaN for missing values."""
    column = batch.column(name)
    if not types.is_nested(column.type):
        return _floats(column, dtype)[:, np.newaxis]
    lengths = pc.unique(pc.list_value_length(column).drop_null()).to_pylist()
    if lengths not in ([], [width]):
        cause = f"the lists of column {name!r} have {sorted({width, *lengths})} numbers"
        raise FileFormatError(path, cause, "use lists of one length")
    numbers = np.full((len(column), width), np.nan, dtype)
    numbers[column.is_valid().to_numpy(zero_copy_only=False)] = _floats(
        column.flatten(), dtype
    ).reshape(-1, width)
    return numbers


def _floats(column: Any, dtype: np.dtype) -> np.ndarray:
    return column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)


def _carried(batch: Any, name: str, types: dict[str, Any]) -> np.ndarray:
    return carried(batch.column(name).cast(types[name]).to_numpy(zero_copy_only=False))


# --- writing -----------------------------------------------------------------------------------


@contextmanager
def write_arrow(path: Path, columns: Columns, overwrite: bool) -> Iterator[Callable[[Block], None]]:
    """Write rows block by block: ids, numbers with full precision, labels."""
    extension = str(extension_of(path))
    writer: Any = None

    def write(block: Block) -> None:
        nonlocal writer
        if extension in TEXT and columns.dtype == np.float32:
            block = block._replace(X=block.X.astype(np.float64))  # otherwise text is rounded
        arrays = {  # a block of missing text would have the type null
            name: pa.array(values, pa.string() if values.dtype.kind == "O" else None)
            for name, values in columns.by_name(block).items()
        }
        table = pa.table(arrays)
        if writer is None:
            writer = stack.enter_context(_writer(extension, sink, table.schema))
        writer.write_table(table)

    with atomic_file(path, overwrite=overwrite) as file, ExitStack() as stack:
        sink: Any = file
        if extension.endswith(".gz"):
            # Without a name and a time, so that equal rows give equal bytes.
            sink = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        yield write


def _writer(extension: str, sink: Any, schema: Any) -> Any:
    if extension == ".parquet":
        # Dictionary encoding of numbers that do not repeat wastes time and space.
        texts = [field.name for field in schema if str(field.type) == "string"]
        options = {"write_page_checksum": True, "use_dictionary": texts}
        return parquet.ParquetWriter(sink, schema, **options)
    if extension in TEXT:
        options = text.WriteOptions(delimiter=_delimiter(extension))
        return text.CSVWriter(sink, schema, write_options=options)
    return ipc.new_file(sink, schema)
