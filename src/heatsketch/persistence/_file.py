"""Container of model files: a header and named arrays, covered by digests.

The file is a `safetensors <https://github.com/huggingface/safetensors>`_ file, which many programs
can read. Its metadata has one entry, ``heatsketch``: a SHA-256, a space, and the header in JSON, of
which it is the digest. The header has a digest of every array, so that they cover everything that a
file holds. Nothing in a file is executed, and safetensors checks that the arrays fill the file
exactly before it allocates memory for one of them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heatsketch._core.atomic_file import atomic_file, file_errors
from heatsketch.exceptions import FileFormatError, ModelVersionError

FORMAT = 1  # increase it with every change; files of a later format are rejected
REMEDY = "check the path, restore the file from a copy, or make the model and save it again"
# Errors that contents with another structure may cause.
INVALID = (
    *(SafetensorError, ValueError, LookupError, TypeError, AttributeError),
    *(OverflowError, RecursionError),
)


def write_file(
    path: Any, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], *, overwrite: bool
) -> None:
    """Write a header and arrays to a file, atomically.

    Parameters
    ----------
    path : str or path-like
    header : mapping
        Serializable as JSON.
    arrays : mapping of str to array
        Of integers, floats or booleans; written in C order.
    overwrite : bool
        Whether an existing file may be replaced.
    """
    stored = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    digests = {name: _digest(array) for name, array in stored.items()}
    text = json.dumps({**header, "format": FORMAT, "sha256": digests}, separators=(",", ":"))
    # A single entry, since safetensors would write several in random order.
    metadata = {"heatsketch": f"{sha256(text.encode()).hexdigest()} {text}"}
    with atomic_file(path, overwrite=overwrite) as file:
        file.write(save(stored, metadata))


def read_file(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file, all of them as they were written.

    Raises
    ------
    FileFormatError
        If it is not a model file, or any bit of it has changed.
    ModelVersionError
        If only a later version can read it.
    FileError
        If it cannot be read.
    """
    with _opened(path) as (file, header):
        arrays = {name: _array(file, name, digest) for name, digest in header["sha256"].items()}
    return header, arrays


def read_header(path: Any) -> dict[str, Any]:
    """Return the header of a file, checked; raises the errors of :func:`read_file`."""
    with _opened(path) as (_, header):
        return header


@contextmanager
def invalid_file(path: Any) -> Iterator[None]:
    """Raise a FileFormatError for contents that are not those of a model."""
    try:
        yield
    except (FileFormatError, MemoryError):
        raise
    except INVALID as error:
        cause = f"it is not a valid model file ({type(error).__name__}: {error})"
        raise FileFormatError(path, cause, REMEDY) from error


@contextmanager
def _opened(path: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    with file_errors(path, doing="read"), invalid_file(path):
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
            raise FileFormatError(path, "it is not a regular file", "pass the path of a model file")
        with safe_open(os.fsdecode(path), framework="np") as file:
            yield file, _header(path, file)


def _header(path: Any, file: Any) -> dict[str, Any]:
    digest, _, text = (file.metadata() or {}).get("heatsketch", "").partition(" ")
    if not text:
        raise FileFormatError(path, "it is not a model file of heatsketch", REMEDY)
    if sha256(text.encode()).hexdigest() != digest:
        raise FileFormatError(path, "its header has changed since it was written", REMEDY)
    header = json.loads(text)
    if type(header["format"]) is not int or header["format"] > FORMAT:
        raise ModelVersionError(
            path,
            f"it has the format {header['format']}, and this version reads up to {FORMAT}",
            "upgrade with: pip install --upgrade heatsketch",
        )
    if set(file.keys()) != header["sha256"].keys():
        raise FileFormatError(path, "its arrays are not those that were written", REMEDY)
    return header


def _array(file: Any, name: str, digest: str) -> np.ndarray:
    array = file.get_tensor(name)
    if _digest(array) != digest:
        raise ValueError(f"the array {name} has changed since it was written")
    return array


def _digest(array: np.ndarray) -> str:
    """Return the SHA-256 of the dtype, the shape and the values of an array in C order."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    digest = sha256(f"{little.dtype.str}{little.shape}".encode())
    digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
