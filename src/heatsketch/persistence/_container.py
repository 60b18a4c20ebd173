"""Model files: named arrays and a few words about them, in which no bit can change unnoticed.

The file is a `safetensors <https://github.com/huggingface/safetensors>`_ file, which many
programs can read: eight bytes that tell the length of a header, the header in JSON, and the arrays
one after another. Ours says more. Its ``__metadata__`` begins with the SHA-256 of the header
itself, taken over its length and all its bytes, with zeros in place of the digest; then comes a
text, JSON again, with the SHA-256 of every array, the version of the format, and whatever the
writer has to say. So every bit of the file is under a digest.

Nothing in a file is executed, and nothing is believed before it is checked: a header is bounded,
its arrays must fill the file exactly, and memory is taken for no more than the file holds.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import atomic_file, file_errors
from heatsketch.exceptions import FileFormatError, ModelVersionError, NotStorableError

__all__ = ["FORMAT_VERSION", "ModelFile", "read_header", "read_model_file", "write_model_file"]

# Raise it with every change; and OLDEST_READER with those that an older reader must not ignore.
FORMAT_VERSION = 1
OLDEST_READER = 1

DTYPES: dict[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("bool"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

LARGEST_HEADER = 16 * 2**20
AT_A_TIME = 2**24  # bytes that are written, or read, and hashed
BEGINNING = b'{"__metadata__":{"sha256":"'
DIGEST = slice(8 + len(BEGINNING), 8 + len(BEGINNING) + 64)
ZEROS = "0" * 64
REMEDY = "restore it from a copy, or fit the model and save it again"


class ModelFile(NamedTuple):
    """What a file holds: words and arrays."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


class _Place(NamedTuple):
    """Where an array lies, counted from the end of the header."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int
    digest: str


# --- writing ----------------------------------------------------------------------------------


def write_model_file(
    path: Any, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, overwrite: bool
) -> None:
    """Write words and arrays to a file, which appears when it is complete.

    Parameters
    ----------
    path : str or path-like
    about : mapping
        What JSON can hold.
    arrays : mapping of str to array
        Numbers, of any shape; written one by one, without a copy if they are in C order.
    overwrite : bool
        Whether a file of that name may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from heatsketch.persistence._container import read_model_file, write_model_file
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.heatsketch")
    ...     write_model_file(path, {"word": "hello"}, {"x": np.arange(3)}, overwrite=False)
    ...     about, arrays = read_model_file(path)
    >>> about["word"], arrays["x"]
    ('hello', array([0, 1, 2]))
    """
    about = {**about, "format_version": FORMAT_VERSION, "min_reader": OLDEST_READER}
    # The widest first, so that all are aligned for those who map the file into memory.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    digests = dict.fromkeys(names, ZEROS)
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(_header(about, arrays, digests))  # of the same length as the final one
        for name in names:
            digests[name] = _write_array(file, arrays[name])
        header = bytearray(_header(about, arrays, digests))
        header[DIGEST] = _digest(header).encode()
        file.seek(0)
        file.write(header)


def _header(
    about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], digests: Mapping[str, str]
) -> bytes:
    text = json.dumps({**about, "sha256": digests}, separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {"sha256": ZEROS, "heatsketch": text}}
    start = 0
    for name in digests:
        array = arrays[name]
        place = {"dtype": _dtype_name(name, array), "shape": list(array.shape)}
        header[name] = {**place, "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    body = json.dumps(header, separators=(",", ":")).encode("ascii")
    body += b" " * (-len(body) % 8)
    if len(body) > LARGEST_HEADER:
        raise NotStorableError(
            f"the names and numbers beside the arrays take {len(body)} bytes, more than the "
            f"{LARGEST_HEADER} that a model file allows; fit to an X with shorter feature names."
        )
    return len(body).to_bytes(8, "little") + body


def _dtype_name(name: str, array: np.ndarray) -> str:
    if array.dtype.newbyteorder("<") not in NAMES:
        raise NotStorableError(
            f"{name} is an array of {array.dtype}, which model files do not hold; "
            f"use one of {sorted(str(dtype) for dtype in NAMES)}."
        )
    return NAMES[array.dtype.newbyteorder("<")]


def _write_array(file: IO[bytes], array: np.ndarray) -> str:
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    digest, values = hashlib.sha256(), array.reshape(-1).view(np.uint8)
    for start in range(0, values.size, AT_A_TIME):
        some: Any = values[start : start + AT_A_TIME]
        digest.update(some)
        file.write(some)
    return digest.hexdigest()


def _digest(header: bytes | bytearray) -> str:
    """Return the digest of a header and its length, with zeros in place of the digest."""
    blank = bytearray(header)
    blank[DIGEST] = ZEROS.encode()
    return hashlib.sha256(blank).hexdigest()


# --- reading ----------------------------------------------------------------------------------


def read_model_file(path: Any) -> ModelFile:
    """Read and check a whole file.

    Raises
    ------
    FileFormatError
        If it is no model file, or any bit of it has changed.
    ModelVersionError
        If only a later version can read it.
    FileError
        If the system does not let us read it.
    """
    with file_errors(path, doing="read"), _opened(path) as file:
        about, places = _read_header(file, path)
        arrays = {name: _read_array(file, path, name, place) for name, place in places.items()}
    return ModelFile(about, arrays)


def read_header(path: Any) -> dict[str, Any]:
    """Read and check the words of a file, and the places of its arrays but not the arrays.

    Raises what :func:`read_model_file` does.
    """
    with file_errors(path, doing="read"), _opened(path) as file:
        about, places = _read_header(file, path)
    shapes = {name: {"dtype": p.dtype.name, "shape": list(p.shape)} for name, p in places.items()}
    return {**about, "arrays": shapes}


def _opened(path: Any) -> IO[bytes]:
    if stat.S_ISFIFO(os.stat(path).st_mode):  # opening it would wait for its writer
        raise FileFormatError(path, "is not a regular file", "give the path of a model file")
    return open(path, "rb")


def _read_header(file: IO[bytes], path: Any) -> tuple[dict[str, Any], dict[str, _Place]]:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(path, "is not a regular file", "give the path of a model file")
    beginning = file.read(8 + len(BEGINNING))
    length = int.from_bytes(beginning[:8], "little")
    if beginning[8:] != BEGINNING:
        raise FileFormatError(path, "is not a model file of heatsketch", "check the path")
    if not DIGEST.stop <= 8 + length <= min(8 + LARGEST_HEADER, status.st_size):
        raise FileFormatError(path, f"has no room for its header of {length} bytes", REMEDY)
    header = beginning + _exactly(file, path, 8 + length - len(beginning))
    if _digest(header).encode() != header[DIGEST]:
        raise FileFormatError(path, "the header has changed since it was written", REMEDY)
    try:
        words = json.loads(header[8:], object_pairs_hook=_without_repetitions)
        about = _about(path, words.pop("__metadata__"))
        return about, _places(words, about["sha256"], status.st_size - len(header))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(path, f"the header makes no sense ({error!r})", REMEDY) from error


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name appears twice")
    return dict(pairs)


def _about(path: Any, metadata: dict[str, str]) -> dict[str, Any]:
    about = json.loads(metadata["heatsketch"], object_pairs_hook=_without_repetitions)
    version, reader = about["format_version"], about["min_reader"]
    if type(version) is not int or type(reader) is not int or not 1 <= reader <= version:
        raise ValueError(f"format_version={version!r}, min_reader={reader!r}")
    if reader > FORMAT_VERSION:
        raise ModelVersionError(
            path,
            f"has format {version}, for which a reader of format {reader} is needed, and this is "
            f"one of format {FORMAT_VERSION}",
            "upgrade with: pip install --upgrade heatsketch",
        )
    return about


def _places(words: dict[str, Any], digests: dict[str, str], n_bytes: int) -> dict[str, _Place]:
    """Return where the arrays lie, which must be one after another until the end."""
    if words.keys() != digests.keys():
        raise ValueError("not every array has a digest")
    places = {name: _place(entry, digests[name]) for name, entry in words.items()}
    ordered = sorted(places.items(), key=lambda item: (item[1].start, item[1].stop))
    end = 0
    for _, place in ordered:
        if place.start != end:
            raise ValueError("the arrays overlap, or leave room between them")
        end = place.stop
    if end != n_bytes:
        raise ValueError(f"the arrays have {end} bytes, and the file has {n_bytes} for them")
    return dict(ordered)


def _place(entry: dict[str, Any], digest: str) -> _Place:
    dtype: np.dtype = DTYPES[entry["dtype"]]
    shape, (start, stop) = entry["shape"], entry["data_offsets"]
    numbers = [*shape, start, stop]
    if len(entry) != 3 or len(shape) > 2 or any(type(n) is not int or n < 0 for n in numbers):
        raise ValueError(f"an array is described as {entry}")
    if stop - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of {shape} has {stop - start} bytes")
    return _Place(dtype, tuple(shape), start, stop, digest)


def _read_array(file: IO[bytes], path: Any, name: str, place: _Place) -> np.ndarray:
    array = np.empty(place.shape, place.dtype)
    digest, values = hashlib.sha256(), array.reshape(-1).view(np.uint8)
    for start in range(0, values.size, AT_A_TIME):
        some: Any = values[start : start + AT_A_TIME]
        some[:] = np.frombuffer(_exactly(file, path, some.size), np.uint8)
        digest.update(some)
    if digest.hexdigest() != place.digest:
        raise FileFormatError(path, f"the array {name} has changed since it was written", REMEDY)
    return array.astype(place.dtype.newbyteorder("="), copy=False)


def _exactly(file: IO[bytes], path: Any, n_bytes: int) -> bytes:
    found = file.read(n_bytes)
    if len(found) != n_bytes:
        raise FileFormatError(path, "ends too early", REMEDY)
    return found
