"""Container of model files: named arrays and metadata, covered by digests.

The file is a `safetensors <https://github.com/huggingface/safetensors>`_ file, which many
programs can read: eight bytes with the length of a header, the header in JSON, and the arrays one
after another. Its ``__metadata__`` begins with the SHA-256 of the header, computed over its length
and all its bytes, with zeros in place of the digest. It also contains a JSON string with the
SHA-256 of every array, the version of the format, and the metadata of the model ("description").

Nothing in a file is executed, and nothing is used before it is validated: the size of the header is
limited, its arrays must fill the file exactly, and no more memory is allocated than the size of the
file.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from typing import IO, Any, NamedTuple

import numpy as np

from heatsketch._core.atomic_file import atomic_file, file_errors
from heatsketch.exceptions import FileFormatError, ModelVersionError, NotStorableError

# Increase it with every change; also OLDEST_READER if older readers must not ignore the change.
FORMAT_VERSION = 1
OLDEST_READER = 1

DTYPES: dict[str, np.dtype] = {
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (4, 8)},
    **{f"I{8 * n}": np.dtype(f"<i{n}") for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": np.dtype(f"<u{n}") for n in (1, 2, 4, 8)},
    "BOOL": np.dtype(bool),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

LARGEST_HEADER = 16 * 2**20
BEGINNING = b'{"__metadata__":{"sha256":"'
DIGEST = slice(8 + len(BEGINNING), 8 + len(BEGINNING) + 64)
ZEROS = "0" * 64
REMEDY = "restore it from a copy, or fit the model and save it again"


class ModelFile(NamedTuple):
    """Contents of a model file."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


# --- writing ----------------------------------------------------------------------------------


def write_model_file(
    path: Any, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, overwrite: bool
) -> None:
    """Write a description and arrays to a file, atomically.

    Parameters
    ----------
    path : str or path-like
    about : mapping
        The description; must be serializable as JSON.
    arrays : mapping of str to array
        Numeric arrays of any shape; written without a copy if they are in C order.
    overwrite : bool
        Whether an existing file may be replaced.

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
    # The largest itemsize first, so that all arrays are aligned if the file is mapped into memory.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    stored = {name: _as_stored(name, arrays[name]) for name in names}
    header = _header(about, stored)
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(header)
        for array in stored.values():
            file.write(_bytes(array))


def _as_stored(name: str, array: np.ndarray) -> np.ndarray:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        raise NotStorableError(
            f"{name} is an array of {dtype}, which model files do not hold; "
            f"use one of {sorted(map(str, NAMES))}."
        )
    return np.asarray(array, dtype, order="C")


def _bytes(array: np.ndarray) -> Any:
    return array.reshape(-1).view(np.uint8)


def _header(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    digests = {name: sha256(_bytes(array)).hexdigest() for name, array in arrays.items()}
    versions = {"format_version": FORMAT_VERSION, "min_reader": OLDEST_READER}
    text = json.dumps({**about, **versions, "sha256": digests}, separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {"sha256": ZEROS, "heatsketch": text}}
    stop = 0
    for name, array in arrays.items():
        entry = {"dtype": NAMES[array.dtype], "shape": array.shape}
        header[name] = {**entry, "data_offsets": [stop, stop := stop + array.nbytes]}
    body = json.dumps(header, separators=(",", ":")).encode("ascii")
    body += b" " * (-len(body) % 8)
    if len(body) > LARGEST_HEADER:
        raise NotStorableError(
            f"the names and numbers beside the arrays take {len(body)} bytes, more than the "
            f"{LARGEST_HEADER} that a model file allows; fit to an X with shorter feature names."
        )
    whole = bytearray(len(body).to_bytes(8, "little") + body)
    whole[DIGEST] = _digest(whole)
    return bytes(whole)


def _digest(header: bytes | bytearray) -> bytes:
    """Return the digest of a header and its length, with the digest zeroed."""
    blank = bytearray(header)
    blank[DIGEST] = ZEROS.encode()
    return sha256(blank).hexdigest().encode()


# --- reading ----------------------------------------------------------------------------------


def read_model_file(path: Any) -> ModelFile:
    """Read and validate a whole file.

    Raises
    ------
    FileFormatError
        If it is not a model file, or any bit of it has changed.
    ModelVersionError
        If only a later version can read it.
    FileError
        If it cannot be read.
    """
    with file_errors(path, doing="read"), _opened(path) as file:
        about, layout = _read_header(file, path)
        arrays = {name: np.empty(shape, dtype) for name, (dtype, shape) in layout.items()}
        for name, array in arrays.items():
            n_read = file.readinto(_bytes(array))  # type: ignore[attr-defined]
            if n_read < array.nbytes or sha256(_bytes(array)).hexdigest() != about["sha256"][name]:
                cause = f"the array {name} has changed since it was written"
                raise FileFormatError(path, cause, REMEDY)
    native = {name: a.astype(a.dtype.newbyteorder("="), copy=False) for name, a in arrays.items()}
    return ModelFile(about, native)


def read_header(path: Any) -> dict[str, Any]:
    """Read and validate the description, with dtypes and shapes of the arrays.

    The arrays are not read. Raises the same errors as :func:`read_model_file`.
    """
    with file_errors(path, doing="read"), _opened(path) as file:
        about, layout = _read_header(file, path)
    arrays = {name: {"dtype": d.name, "shape": list(shape)} for name, (d, shape) in layout.items()}
    return {**about, "arrays": arrays}


def _opened(path: Any) -> IO[bytes]:
    mode = os.stat(path).st_mode
    # Opening a pipe would wait for its writer. Folders pass, since opening one raises an OSError.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FileFormatError(path, "it is not a regular file", "give the path of a model file")
    return open(path, "rb")


def _read_header(file: IO[bytes], path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the description, and dtype and shape of each array in file order."""
    size = os.fstat(file.fileno()).st_size
    beginning = file.read(8 + len(BEGINNING))
    length = int.from_bytes(beginning[:8], "little")
    if beginning[8:] != BEGINNING:
        raise FileFormatError(path, "it is not a model file of heatsketch", "check the path")
    if not DIGEST.stop <= 8 + length <= min(8 + LARGEST_HEADER, size):
        raise FileFormatError(path, f"it is too short for its header of {length} bytes", REMEDY)
    header = beginning + file.read(8 + length - len(beginning))
    if _digest(header) != header[DIGEST]:
        raise FileFormatError(path, "the header has changed since it was written", REMEDY)
    try:
        entries = json.loads(header[8:], object_pairs_hook=_without_repetitions)
        text = entries.pop("__metadata__")["heatsketch"]
        about = json.loads(text, object_pairs_hook=_without_repetitions)
        _check_version(path, about["format_version"], about["min_reader"])
        return about, _layout(entries, about["sha256"], size - len(header))
    except FileFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(path, f"the header is invalid ({error!r})", REMEDY) from error


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name appears twice")
    return dict(pairs)


def _check_version(path: Any, version: Any, reader: Any) -> None:
    if type(version) is not int or type(reader) is not int or not 1 <= reader <= version:
        raise ValueError(f"format_version={version!r}, min_reader={reader!r}")
    if reader > FORMAT_VERSION:
        raise ModelVersionError(
            path,
            f"has format {version}, for which a reader of format {reader} is needed, and this is "
            f"one of format {FORMAT_VERSION}",
            "upgrade with: pip install --upgrade heatsketch",
        )


def _layout(entries: dict[str, Any], digests: dict[str, str], n_bytes: int) -> dict[str, Any]:
    """Return dtype and shape of each array; arrays must fill the file exactly."""
    if entries.keys() != digests.keys():
        raise ValueError("not every array has a digest")
    layout, stop = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
        if len(entry) != 3 or len(shape) > 2 or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"an array is described as {entry}")
        start, stop = stop, stop + math.prod(shape) * dtype.itemsize
        if entry["data_offsets"] != [start, stop]:
            raise ValueError(f"the array {name} does not begin where the one before it ends")
        layout[name] = dtype, shape
    if stop != n_bytes:
        raise ValueError(f"the arrays have {stop} bytes, and the file has {n_bytes} for them")
    return layout
