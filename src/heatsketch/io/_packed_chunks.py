"""Packed chunks of a zarr folder, which say how large they will be before they are unpacked.

zarr unpacks a chunk, however much that is, and only then looks whether it has the size of a chunk.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import IO, Any

from heatsketch.exceptions import FileFormatError

__all__ = ["refuse_bombs"]

LARGEST_RATIO, HARMLESS = 200, 2**26  # of chunks of text, whose size nobody knows
MARGIN = 2**16
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SIZES = (0, 2, 4, 8)  # bytes that hold the size of what a zstd frame holds
AT_A_TIME = 2**20


def refuse_bombs(path: Path, array: Any, files: Iterable[Path]) -> None:
    """Refuse chunks that would unpack into more than a chunk is.

    Those of zstd, blosc and lz4 tell; those of gzip are unpacked once, without being kept. A frame
    of zstd that was written as a stream does not tell, and is let through.

    Parameters
    ----------
    path : Path
        Of the folder, for the message.
    array : zarr.Array
    files : iterable of Path
        The chunks.
    """
    measure = MEASURES.get(_packed_by(array))
    if measure is None:
        return
    chunk = prod(array.chunks) * array.dtype.itemsize
    for file in files:
        packed = file.stat().st_size
        variable = array.dtype.kind in "TO"
        # Filters and checksums may make a chunk somewhat larger before it is packed.
        most = max(HARMLESS, LARGEST_RATIO * packed) if variable else 2 * chunk + MARGIN
        with file.open("rb") as opened:
            claimed = measure(opened, most)
        if claimed > most:
            raise FileFormatError(
                path,
                f"chunk {file.relative_to(path).as_posix()!r} of {packed} bytes unpacks into "
                f"{claimed} or more, where {most} is the most",
                "distrust it",
            )


def _packed_by(array: Any) -> str:
    """Return the name of the last codec but checksums; nothing if there is none that packs."""
    if array.shards:
        return ""
    about = array.metadata.to_dict()
    if "codecs" in about:
        names = [codec["name"].removeprefix("numcodecs.") for codec in about["codecs"]]
        return next((name for name in reversed(names) if name != "crc32c"), "")
    return (about.get("compressor") or {}).get("id", "")


def _zstd_size(file: IO[bytes], most: float) -> int:
    head = file.read(18)
    if not head.startswith(ZSTD_MAGIC) or len(head) < 6:
        return 0  # zarr will say so
    flags, one_segment = head[4], head[4] >> 5 & 1
    n_bytes = SIZES[flags >> 6] or one_segment
    start = 5 + (1 - one_segment) + (0, 1, 2, 4)[flags & 3]
    return int.from_bytes(head[start : start + n_bytes], "little") + 256 * (n_bytes == 2)


def _blosc_size(file: IO[bytes], most: float) -> int:
    return int.from_bytes(file.read(8)[4:], "little")


def _lz4_size(file: IO[bytes], most: float) -> int:
    return int.from_bytes(file.read(4), "little")


def _gzip_size(file: IO[bytes], most: float) -> int:
    """Unpack, and count until it is too much."""
    unpack, size = zlib.decompressobj(wbits=47), 0  # zlib or gzip, as the header says
    data = file.read(AT_A_TIME)
    while data and size <= most and not unpack.eof:
        try:
            size += len(unpack.decompress(data, AT_A_TIME))
        except zlib.error:
            return size  # zarr will say so
        data = unpack.unconsumed_tail or file.read(AT_A_TIME)
    return size


MEASURES = {
    "zstd": _zstd_size,
    "blosc": _blosc_size,
    "lz4": _lz4_size,
    "gzip": _gzip_size,
    "zlib": _gzip_size,
}
