"""The footer and the pages of a Parquet file, looked at before Arrow unpacks them.

Arrow takes as much memory as the header of a page claims it will need, up to two gibibytes, and
believes it. No checksum covers that header. So all headers of the columns to be read are walked
through first: pages must lie one after another in their place in the file, and none may claim to be
more than its column, nor hundreds of times what it is.

The footer is read here as well: asking pyarrow for a column chunk of some damaged files ends the
process (an exception of C++ that nobody catches), where reading rows from them is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from heatsketch.exceptions import FileFormatError
from heatsketch.io._thrift import CompactReader, EndOfDataError

__all__ = ["check_pages", "column_chunks"]

HEADER_BYTES = 2**12  # enough for a header without long statistics
LONGEST_HEADER = 2**24  # as in Arrow
# Zstandard packs zeros many thousand times, which harms nobody while a page stays small.
LARGEST_RATIO, HARMLESS = 200, 2**26
UNPACKED, PACKED = 2, 3  # fields of a header
# Fields of the footer, of its row groups, of their columns, of what is said of each.
ROW_GROUPS, COLUMNS, ABOUT = 4, 1, 3
PATH, VALUES, ALL_UNPACKED, ALL_PACKED, DATA, DICTIONARY, STATISTICS = 3, 5, 6, 7, 9, 11, 12
NULLS = 3
WANTED: Any = {field: {} for field in (PATH, VALUES, ALL_UNPACKED, ALL_PACKED, DATA, DICTIONARY)}
FOOTER = {ROW_GROUPS: {COLUMNS: {ABOUT: {**WANTED, STATISTICS: {NULLS: {}}}}}}


class ColumnChunk(NamedTuple):
    """What the footer says of a column in a row group.

    Attributes
    ----------
    name : str
    start, stop : int
        Where its pages lie.
    unpacked : int
        Bytes of all of them once unpacked.
    n_nulls : int or None
        None if it does not say.
    n_values : int
        As many as rows, but for lists.
    """

    name: str
    start: int
    stop: int
    unpacked: int
    n_nulls: int | None
    n_values: int


def column_chunks(path: Path, columns: Collection[str]) -> Iterator[ColumnChunk]:
    """Give what the footer says of some columns."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        n_bytes = int.from_bytes(file.read(4), "little")
        if not 0 < n_bytes <= size - 12:
            raise _lies(path, f"a footer of {n_bytes} bytes")
        file.seek(size - 8 - n_bytes)
        footer = CompactReader(file.read(n_bytes)).struct(FOOTER)
    for group in footer.get(ROW_GROUPS, []):
        for column in group.get(COLUMNS, []):
            about = column[ABOUT]
            name = about[PATH][0].decode()
            if name in columns:
                yield _chunk(path, name, about, size)


def _chunk(path: Path, name: str, about: dict[int, Any], size: int) -> ColumnChunk:
    # Of a column without rows, the place of its data is 0.
    start = min((about[place] for place in (DATA, DICTIONARY) if about.get(place)), default=0)
    stop = start + about[ALL_PACKED]
    if not 0 < start <= stop <= size:
        raise _lies(path, f"column {name!r} from {start} to {stop} of {size} bytes")
    nulls = about.get(STATISTICS, {}).get(NULLS)
    return ColumnChunk(name, start, stop, about[ALL_UNPACKED], nulls, about.get(VALUES, 0))


def check_pages(path: Path, columns: Collection[str]) -> None:
    """Refuse a file whose pages are not where they should be, or claim more than they can be.

    Parameters
    ----------
    path : Path
    columns : collection of str
        Those that will be read.
    """
    with path.open("rb") as file:
        for chunk in column_chunks(path, columns):
            place = chunk.start
            while place < chunk.stop:
                n_bytes, unpacked, packed = _header(path, file, place, chunk.stop)
                place += n_bytes + packed
                if packed < 0 or not 0 <= unpacked <= chunk.unpacked or place > chunk.stop:
                    raise _lies(path, f"a page of {packed} bytes and of {unpacked} once unpacked")
                if unpacked > HARMLESS and unpacked > LARGEST_RATIO * packed:
                    raise _lies(path, f"a page that unpacks {packed} bytes into {unpacked}")


def _lies(path: Path, claim: str) -> FileFormatError:
    return FileFormatError(
        path, f"it claims {claim}", "check that the file is whole, and distrust it otherwise"
    )


def _header(path: Path, file: IO[bytes], start: int, stop: int) -> tuple[int, int, int]:
    """Return the length of the header of a page, and the sizes that it claims."""
    n_bytes = HEADER_BYTES
    while True:
        file.seek(start)
        data = file.read(min(n_bytes, stop - start))
        reader = CompactReader(data)
        try:
            header = reader.struct({UNPACKED: {}, PACKED: {}})
            return reader.place, header[UNPACKED], header[PACKED]
        except EndOfDataError:
            n_bytes *= 8
            if len(data) == stop - start or n_bytes > LONGEST_HEADER:
                raise _lies(path, f"a page at {start}, where none is") from None
        except (KeyError, ValueError):
            raise _lies(path, f"a page at {start}, where none is") from None
