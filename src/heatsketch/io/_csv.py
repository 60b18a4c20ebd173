"""Text with separators: ``.csv`` with commas, ``.tsv`` with tabs, and either of them ``.gz``.

Numbers are float64. Ids and labels are text, as they stand there: ``007`` stays ``007``. An empty
field among the numbers is NaN, which whoever fits will refuse by its place.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from heatsketch.atomic_file import atomic_file
from heatsketch.exceptions import FileFormatError
from heatsketch.io._columns import Wanted, choose_columns, numbered_names
from heatsketch.io._output import Columns
from heatsketch.io._table import Block, Table

__all__ = ["csv_names", "open_csv", "plain", "text_lines", "write_csv"]

# As float() takes them, but for what :func:`plain` refuses.
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
NO_NUMBER = {"", "nan", "inf", "infinity", "na", "null"}
LONGEST_LINE = 2**24  # characters; a packed file may hold one that fills memory
LOOKED_AT = 100  # rows that tell which columns hold numbers
# Text of numbers packs three to twenty times; what packs 200 times and then fills memory is none.
LARGEST_RATIO, HARMLESS = 200, 2**28


def open_csv(path: Path, wanted: Wanted) -> Table:
    """Look at the first rows for names and numbers, and at all rows for their number."""
    if path.suffix.lower() == ".gz":
        _refuse_bomb(path)
    with _records(path) as records:
        first = next(records, None)
        if first is None:
            raise FileFormatError(path, "it is empty", "check that it was written")
        has_header = _has_header(path, first, wanted.header)
        names = tuple(first) if has_header else numbered_names(len(first))
        looked_at = [*([] if has_header else [first]), *islice(records, LOOKED_AT)]
        n_rows = len(looked_at)
        for row in looked_at:
            _check_length(path, row, names, records.line_num)
        for row in records:
            _check_length(path, row, names, records.line_num)
            n_rows += 1
    columns = zip(*looked_at, strict=True) if looked_at else [()] * len(names)
    numeric = {
        name
        for name, values in zip(names, columns, strict=True)
        if all(map(_may_be_number, values))
    }
    if len(names) == 1 and not numeric and wanted.columns is None:
        _refuse_other_separator(path, names[0])
    return CsvTable(
        path=path,
        names=choose_columns(path, names, numeric, wanted),
        n_rows=n_rows,
        dtype=np.dtype(np.float64),
        has_header=has_header,
        all_names=names,
        wanted=wanted,
    )


def csv_names(path: Path, header: bool | None) -> tuple[str, ...]:
    """Return the names of all columns, whatever they hold."""
    with _records(path) as records:
        first = next(records, [])
    return tuple(first) if _has_header(path, first, header) else numbered_names(len(first))


def _refuse_bomb(path: Path) -> None:
    """Unpack once, without looking at a line, which takes far longer."""
    most, size = max(HARMLESS, LARGEST_RATIO * path.stat().st_size), 0
    with gzip.open(path) as file:
        while piece := file.read(2**20):
            size += len(piece)
            if size > most:
                raise FileFormatError(
                    path,
                    f"it unpacks into more than {LARGEST_RATIO} times its size",
                    "unpack it if it is yours, and distrust it if it is not",
                )


def _has_header(path: Path, first: list[str], said: bool | None) -> bool:
    if said is None and all(NUMBER.fullmatch(field) for field in first):
        raise FileFormatError(
            path,
            f"its first line, {','.join(first)[:60]!r}, may be names or numbers",
            "say which with header=True or header=False",
        )
    return said is not False


def _refuse_other_separator(path: Path, name: str) -> None:
    """Refuse a line that is one field here, and was meant to be several."""
    ours = _delimiter(path)
    other = next((mark for mark in "\t;,|" if mark != ours and mark in name), None)
    if other is not None:
        raise FileFormatError(
            path,
            f"its first line, {name[:60]!r}, has {other!r} where columns have {ours!r}",
            f"write it anew; pandas.read_csv reads it with sep={other!r}",
        )


def _may_be_number(field: str) -> bool:
    return bool(NUMBER.fullmatch(field)) or field.strip().lstrip("+-").lower() in NO_NUMBER


def plain(text: str) -> str:
    """Return text of numbers, unless ``float`` and ``int`` take more for a number than we do.

    They take the underscores of Python's sources, and digits of all scripts: ``1_2`` is an id, and
    not twelve.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text[:60]!r} is no number")
    return text


def _check_length(path: Path, row: list[str], names: tuple[str, ...], line: int) -> None:
    if len(row) != len(names):
        raise FileFormatError(
            path,
            f"around line {line} is a row with {len(row)} fields, where the first has {len(names)}",
            "put text that has a separator in it in quotes",
        )


class _Records:
    """The rows of a file, without blank lines."""

    def __init__(self, lines: Iterator[str], delimiter: str) -> None:
        self._reader = csv.reader(lines, delimiter=delimiter, strict=True)

    @property
    def line_num(self) -> int:
        return self._reader.line_num

    def __iter__(self) -> _Records:
        return self

    def __next__(self) -> list[str]:
        while not (row := next(self._reader)):
            pass
        return row


@contextmanager
def _records(path: Path) -> Iterator[_Records]:
    with text_lines(path) as lines:
        yield _Records(lines, _delimiter(path))


def _delimiter(path: Path) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]] else ","


@contextmanager
def text_lines(path: Path) -> Iterator[Iterator[str]]:
    """Give the lines of a text, packed or not, none of which fills memory."""

    def lines(file: IO[str]) -> Iterator[str]:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise FileFormatError(
                    path, f"it has a line of over {LONGEST_LINE} characters", "check what it is"
                )
            yield line

    with ExitStack() as stack:
        raw: Any = stack.enter_context(path.open("rb"))
        if path.suffix.lower() == ".gz":
            raw = stack.enter_context(gzip.GzipFile(fileobj=raw))
        file = stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""))
        yield lines(file)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CsvTable(Table):
    """Rows of text."""

    has_header: bool
    all_names: tuple[str, ...]
    wanted: Wanted

    @property
    def _carries(self) -> tuple[bool, tuple[str, ...]]:
        return self.wanted.ids is not None, self.wanted.labels

    def _blocks(self, rows: int) -> Iterator[Block]:
        place = {name: position for position, name in enumerate(self.all_names)}
        features = [place[name] for name in self.names]
        with _records(self.path) as records:
            if self.has_header:
                next(records)
            start = 0
            while some := list(islice(records, rows)):
                for row in some:
                    _check_length(self.path, row, self.all_names, records.line_num)

                def text(name: str, some: list[list[str]] = some) -> np.ndarray:
                    return np.array([row[place[name]] for row in some], dtype=object)

                yield Block(
                    self._numbers(some, features, start),
                    None if self.wanted.ids is None else text(self.wanted.ids),
                    {name: text(name) for name in self.wanted.labels},
                )
                start += len(some)

    def _numbers(self, some: list[list[str]], features: list[int], start: int) -> np.ndarray:
        if features != list(range(len(self.all_names))):
            some = [[row[position] for position in features] for row in some]
        try:
            for row in some:
                plain("".join(row))  # all fields at once, which takes no time beside what follows
            return np.array(some, dtype=np.float64)
        except ValueError:
            # One by one, with a place for whatever is no number.
            return np.array([self._row(row, start + i) for i, row in enumerate(some)])

    def _row(self, row: list[str], number: int) -> list[float]:
        return [
            self._number(field, name, number) for field, name in zip(row, self.names, strict=True)
        ]

    def _number(self, field: str, name: str, row: int) -> float:
        if field.strip().lower() in ("", "na", "null"):
            return float("nan")
        try:
            return float(plain(field))
        except ValueError as error:
            raise FileFormatError(
                self.path,
                f"row {row} of column {name!r} is {field[:60]!r}, which is no number",
                f"correct it, or carry the column along with labels=[{name!r}]",
            ) from error


@contextmanager
def write_csv(
    path: Path, columns: Columns, overwrite: bool
) -> Iterator[Callable[[Any, Any, Any], None]]:
    """Write rows as they come: ids, numbers that read back as they were, labels."""
    ids = [] if columns.ids is None else [columns.ids]

    def write(X: np.ndarray, ids: Any, labels: Any) -> None:
        carried = [*([] if ids is None else [ids]), *(labels[name] for name in columns.labels)]
        values = [array.tolist() for array in carried]
        n_before = 0 if ids is None else 1
        rows = zip(*values[:n_before], *X.T.tolist(), *values[n_before:], strict=True)
        texts = [value for array in carried if array.dtype.kind == "O" for value in array]
        writer_of(texts).writerows(rows)

    with ExitStack() as stack:
        file: Any = stack.enter_context(atomic_file(path, overwrite=overwrite))
        if path.suffix.lower() == ".gz":
            # Neither a name nor a time, so that the same rows are the same bytes.
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
            file = stack.enter_context(packed)
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")

        def writer_of(texts: Iterable[str | None]) -> Any:
            # Python leaves these without quotes, where they would end a line or begin a file.
            odd = any("\r" in value or "\ufeff" in value for value in texts if value is not None)
            quoting: Any = csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL
            return csv.writer(
                text, delimiter=_delimiter(path), lineterminator="\n", quoting=quoting
            )

        header = [*ids, *columns.names, *columns.labels]
        writer_of(header).writerow(header)
        yield write
        text.flush()
        text.detach()
