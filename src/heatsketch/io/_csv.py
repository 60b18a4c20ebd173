"""Delimited text: ``.csv`` with commas, ``.tsv`` with tabs, also ``.gz``.

``pyarrow.csv`` parses the rows, a few hundred KiB at a time. Numbers are float64. Ids and labels
are unchanged text: ``007`` stays ``007``. An empty field in a numeric column is NaN.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import Wanted, check_unique, choose_columns, numbered_names
from heatsketch.io._failures import needed, shortened
from heatsketch.io._output import Columns
from heatsketch.io._table import Block, Table

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
NUMERIC = ("double", "int64", "null")  # numeric types that Arrow infers
MISSING = ["", "NA", "Na", "na", "NULL", "Null", "null"]
SAMPLE_BYTES = 2**14  # of the lines from which types are inferred
# Bytes parsed at a time, more if lines are long. Arrow reads up to 32 blocks ahead.
BLOCK_BYTES, MOST_BLOCK_BYTES = 2**18, 2**22
LONGEST_LINE = 2**24


class _Layout(NamedTuple):
    """Column names, offset of the first row, and bytes parsed at a time."""

    path: Path
    names: tuple[str, ...]
    start: int
    block_bytes: int
    is_empty: bool


def open_csv(path: Path, wanted: Wanted) -> Table:
    """Infer the numeric columns from the first lines, and count the rows."""
    with opened_binary(path) as file:
        names, start = _header(path, file, wanted.header)
        file.seek(start)
        sample = file.read(SAMPLE_BYTES) + file.readline(LONGEST_LINE)
    check_unique(path, names, "names of columns")
    numeric = _numeric_columns(path, names, sample)
    if len(names) == 1 and not numeric and wanted.columns is None:
        _check_separator(path, names[0])
    features = choose_columns(path, names, numeric, wanted)
    line = max(map(len, sample.splitlines()), default=0)
    block_bytes = max(BLOCK_BYTES, 2 * line, min(32 * line, MOST_BLOCK_BYTES))
    layout = _Layout(path, names, start, block_bytes, not sample)
    return Table(
        path=path,
        names=features,
        n_rows=sum(batch.num_rows for batch in _batches(layout, {names[0]: "string"})),
        dtype=np.dtype(np.float64),
        stream=partial(_stream, layout, features, wanted.ids, wanted.labels),
        has_ids=wanted.ids is not None,
        label_names=wanted.labels,
    )


def _stream(
    layout: _Layout, features: Any, ids: str | None, labels: tuple[str, ...], rows: int
) -> Iterator[Block]:
    texts = labels if ids is None else (ids, *labels)
    types = dict.fromkeys(texts, "string") | dict.fromkeys(features, "double")
    for batch in _batches(layout, types or {layout.names[0]: "string"}):
        for part in (batch.slice(i, rows) for i in range(0, batch.num_rows, rows)):
            arrays = {n: part[n].to_numpy(zero_copy_only=False) for n in (*features, *texts)}
            X = np.empty((part.num_rows, len(features)))
            for column, name in enumerate(features):
                X[:, column] = arrays[name]
            yield Block(X, None if ids is None else arrays[ids], {n: arrays[n] for n in labels})


def _batches(layout: _Layout, types: dict[str, str]) -> Iterator[Any]:
    if layout.is_empty:  # Arrow raises for empty input
        return
    path, names, start, block_bytes, _ = layout
    arrow = needed("pyarrow", path)
    # A stream of Arrow, not of Python: Arrow's threads read ahead, and a thread that calls Python
    # while the interpreter exits aborts the process.
    with arrow.input_stream(str(path), compression="gzip" if _is_packed(path) else None) as file:
        file.read(start)
        try:
            yield from _reader(path, file, names, block_bytes, types)
        except arrow.ArrowInvalid as error:
            raise FileFormatError(
                path,
                f"{shortened(error)} (columns are counted from 0, rows from 1)",
                "correct that row, or pass the column through as a label if it is text",
            ) from error


def _reader(path: Path, file: Any, names: Any, n_bytes: int, types: Any) -> Any:
    """Return Arrow's row reader, which infers ``types`` from valid rows if None."""
    arrow = needed("pyarrow.csv", path)
    encoding = "utf8" if types else "latin1"  # can decode any bytes
    on_invalid = None if types else lambda row: "skip"
    return arrow.open_csv(
        file,
        arrow.ReadOptions(
            use_threads=False, column_names=names, block_size=n_bytes, encoding=encoding
        ),
        arrow.ParseOptions(
            delimiter=_delimiter(path), newlines_in_values=True, invalid_row_handler=on_invalid
        ),
        arrow.ConvertOptions(
            column_types=types,
            include_columns=types and list(types),
            null_values=MISSING,
            true_values=[],
            false_values=[],
        ),
    )


def _numeric_columns(path: Path, names: tuple[str, ...], sample: bytes) -> set[str]:
    """Return the numeric columns of a sample, whose last row may be incomplete."""
    if not sample:
        return set(names)
    file = io.BytesIO(sample)
    schema = _reader(path, file, names, 2 * len(sample), None).schema
    return {name for name, kind in zip(names, schema.types, strict=True) if str(kind) in NUMERIC}


def csv_names(path: Path, header: bool | None) -> tuple[str, ...]:
    """Return the names of all columns, numeric or not."""
    with opened_binary(path) as file:
        return _header(path, file, header)[0]


def _header(path: Path, file: IO[bytes], header: bool | None) -> tuple[tuple[str, ...], int]:
    """Return the names of the columns, and the offset of the first row."""
    lines = iter(lambda: file.readline(LONGEST_LINE), b"")
    text = (line.decode("utf-8" if number else "utf-8-sig") for number, line in enumerate(lines))
    rows = csv.reader(text, delimiter=_delimiter(path), strict=True)
    first = next((row for row in rows if row), None)
    if first is None:
        raise FileFormatError(path, "it is empty", "check that it was written")
    if header is None and all(NUMBER.fullmatch(field) for field in first):
        raise FileFormatError(
            path,
            f"its first line, {','.join(first)[:60]!r}, may be names or numbers",
            "pass header=True or header=False",
            header=header,
        )
    return (numbered_names(len(first)), 0) if header is False else (tuple(first), file.tell())


def _check_separator(path: Path, name: str) -> None:
    """Raise if a line with a single field contains another separator."""
    ours = _delimiter(path)
    other = next((mark for mark in "\t;,|" if mark != ours and mark in name), None)
    if other is not None:
        raise FileFormatError(
            path,
            f"its first line, {name[:60]!r}, has {other!r} where columns have {ours!r}",
            f"save it with {ours!r} between columns; pandas.read_csv reads it with sep={other!r}",
        )


def _delimiter(path: Path) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]] else ","


def opened_binary(path: Path) -> Any:
    """Open a binary file, decompressed if its name ends in ``.gz``."""
    return gzip.open(path) if _is_packed(path) else path.open("rb")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


@contextmanager
def write_csv(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows block by block: ids, numbers with full precision, labels."""
    before = [] if columns.ids is None else [columns.ids]

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        given = [*([] if ids is None else [ids]), *(labels[name] for name in columns.labels)]
        values = [array.tolist() for array in given]
        n = len(before)
        texts = [value for array in given if array.dtype.kind == "O" for value in array]
        writer(texts).writerows(zip(*values[:n], *X.T.tolist(), *values[n:], strict=True))

    with ExitStack() as stack:
        file: Any = stack.enter_context(atomic_file(path, overwrite=overwrite))
        if _is_packed(path):
            # Without a name and a time, so that equal rows give equal bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")

        def writer(texts: Iterable[str | None]) -> Any:
            # Python does not quote these, although they may end a line or act as a BOM.
            odd = any("\r" in value or "\ufeff" in value for value in texts if value is not None)
            quoting: Any = csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL
            return csv.writer(
                text, delimiter=_delimiter(path), lineterminator="\n", quoting=quoting
            )

        header = [*before, *columns.names, *columns.labels]
        writer(header).writerow(header)
        yield write
        text.flush()
        text.detach()
