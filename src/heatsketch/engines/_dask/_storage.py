"""Blocks, answers and a journal in a folder that all workers see.

A block is a file ``blocks/<name>/<number>.npy``, where the name says what is in it: it is made from
the names of all that it was computed from. Whoever computes it twice writes the same file twice.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heatsketch.atomic_file import atomic_file, file_errors

__all__ = ["Journal", "Storage", "read_block", "write_block"]

LARGEST_ANSWER = 2**25  # bytes that are worth a line in the journal


def write_block(block: np.ndarray, path: Path) -> None:
    """Write a block, unless somebody has: all who write it write the same."""
    if path.exists():
        return
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, overwrite=True) as file:
        np.save(file, np.ascontiguousarray(block), allow_pickle=False)


def read_block(path: Path) -> np.ndarray:
    """Read a block."""
    with file_errors(path, doing="read"):
        return np.load(path, allow_pickle=False)


@dataclass(frozen=True)
class Storage:
    """What is on storage, under the names of arrays."""

    folder: Path

    def block(self, name: str, number: int) -> Path:
        """Return where a block is, or will be."""
        return self.folder / "blocks" / name / f"{number:06d}.npy"

    def file(self, name: str, part: str) -> Path:
        """Return where some other part of a name is, or will be."""
        return self.folder / "blocks" / name / part

    def is_complete(self, name: str, n_blocks: int) -> bool:
        """Say whether all blocks of a name are there."""
        return all(self.block(name, b).exists() for b in range(n_blocks))


class Journal:
    """What a driver has done, line by line, for one that begins again.

    Answers are small results, which need not be asked for again. Steps that an earlier driver took
    before its last checkpoint need not be redone, either.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers: dict[str, Any] = {}
        self.passed: set[str] = set()
        steps = set[str]()
        for entry in self._entries():
            if "answer" in entry:
                self._answers[entry["answer"]] = entry["value"]
            elif "step" in entry:
                steps.add(entry["step"])
            elif "checkpoint" in entry:
                self.passed, steps = self.passed | steps, set()

    def _entries(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with file_errors(self._path, doing="read"), self._path.open() as file:
            for line in file:
                with suppress(ValueError):  # the last line of a driver that was killed
                    yield json.loads(line)

    def note(self, **entry: Any) -> None:
        """Add a line."""
        with file_errors(self._path), self._path.open("a") as file:
            file.write("\n" + json.dumps(entry))  # after a line that may have been cut off

    def answer(self, name: str, ask: Callable[[], Any]) -> Any:
        """Return what was answered before under this name, or ask and remember."""
        if name not in self._answers:
            found = ask()
            if _size(found) > LARGEST_ANSWER:
                return found
            self._answers[name] = _encoded(found)
            self.note(answer=name, value=self._answers[name])
        return _decoded(self._answers[name])


def _size(value: Any) -> int:
    """Return the bytes of all arrays in a result."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.nbytes
    if isinstance(value, np.ndarray | tuple | list):
        return sum(map(_size, value))
    return 8


def _encoded(value: Any) -> Any:
    """Return a result as JSON, every bit of it."""
    if isinstance(value, np.generic):
        return {"scalar": _encoded(np.asarray(value))}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"objects": [_encoded(entry) for entry in value.ravel()], "shape": value.shape}
    if isinstance(value, np.ndarray):
        words = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": words, "dtype": value.dtype.str, "shape": value.shape}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_encoded(entry) for entry in value]}
    return {"value": value}  # Python writes floats so that they come back as they were


def _decoded(found: dict[str, Any]) -> Any:
    if "scalar" in found:
        return _decoded(found["scalar"])[()]
    if "objects" in found:
        array = np.empty(len(found["objects"]), object)
        array[:] = [_decoded(entry) for entry in found["objects"]]
        return array.reshape(found["shape"])
    if "array" in found:
        array = np.frombuffer(b64decode(found["array"]), found["dtype"])
        return array.reshape(found["shape"]).copy()
    if "tuple" in found:
        return tuple(_decoded(entry) for entry in found["tuple"])
    if "list" in found:
        return [_decoded(entry) for entry in found["list"]]
    return found["value"]
