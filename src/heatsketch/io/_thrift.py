"""Thrift's compact protocol, as far as Parquet files speak it.

A struct is a byte for each field, with its type and how far its number is from the one before,
then its value; a zero ends it. Integers are in bytes of seven bits, zigzag. Only the fields that
somebody wants are kept, so that a file costs no more memory than what is looked for in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["CompactReader", "EndOfDataError"]

DEEPEST = 32  # structs in structs
(STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT) = range(13)
# What is wanted of a struct: its fields by number, each with what is wanted of it.
Wanted = Mapping[int, Any]
NOTHING: Wanted = {}


class EndOfDataError(ValueError):
    """The bytes end before the struct does."""


class CompactReader:
    """Reads structs from bytes, one after another.

    Parameters
    ----------
    data : bytes

    Examples
    --------
    >>> from heatsketch.io._thrift import CompactReader
    >>> CompactReader(bytes([0x15, 6, 0x18, 2, 104, 105, 0])).struct({1: {}, 2: {}})
    {1: 3, 2: b'hi'}
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, wanted: Wanted, *, depth: int = 0) -> dict[int, Any]:
        """Return the fields that are wanted and there; what is wanted of lists is of their items.

        Raises ValueError for whatever is no struct.
        """
        found: dict[int, Any] = {}
        field = 0
        while (head := self._byte()) != STOP:
            kind, step = head & 15, head >> 4
            field = field + step if step else self._integer()
            # The type of a truth is its value.
            value = (
                kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, wanted, field, depth)
            )
            if field in wanted:
                found[field] = value
        return found

    def _value(self, kind: int, wanted: Wanted, field: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("structs in structs without end")
        if kind in (I16, I32, I64):
            return self._integer()
        if kind == BINARY:
            return self._bytes(self._unsigned(), keep=field in wanted)
        if kind in (TRUE, FALSE, BYTE, DOUBLE):
            return self._bytes(8 if kind == DOUBLE else 1, keep=field in wanted)
        inner = wanted.get(field, NOTHING)
        if kind == STRUCT:
            return self.struct(inner, depth=depth + 1)
        if kind in (LIST, SET):
            return self._list(inner, field in wanted, depth + 1)
        raise ValueError(f"a value of type {kind}")  # Parquet has no maps

    def _list(self, wanted: Wanted, keep: bool, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        size = self._unsigned() if size == 15 else size
        items = []
        for _ in range(size):  # each takes a byte at least, so that this ends with the data
            item = self._value(kind, {0: wanted} if keep else NOTHING, 0, depth)
            if keep:
                items.append(item)
        return items

    def _byte(self) -> int:
        if self.place >= len(self._data):
            raise EndOfDataError("the end of the data")
        self.place += 1
        return self._data[self.place - 1]

    def _bytes(self, n_bytes: int, *, keep: bool) -> bytes:
        start, self.place = self.place, self.place + n_bytes
        if self.place > len(self._data):
            raise EndOfDataError("the end of the data")
        return self._data[start : self.place] if keep else b""

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("an integer without end")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
