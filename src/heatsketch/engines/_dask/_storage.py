"""Blocks and a journal of results, in a folder that all workers can access.

A block is a file ``blocks/<name>/<number>.npy``. The name identifies the content: it is derived
from the names of all inputs of the computation. Computed twice, a block is the same file.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from threading import Lock
from typing import Any

import numpy as np
from numpy.lib import format as npy

from heatsketch._core.atomic_file import atomic_file, file_errors

# Names of checkpoints and of intermediate files between stages.
PASSING = re.compile(
    "^(heat-step|of-rows|sorted)-|-(sample|dealt|branch|near|squares|sorted|found|back)"
)
LARGEST_ANSWER = 2**25  # bytes of the largest result that is stored in the journal
# Part of all names, and increased whenever a task computes something different, so that files of an
# earlier version in a folder are not reused.
TASKS_VERSION = 1
# Some CPython 3.11 and 3.12 may fail with "AST constructor recursion depth mismatch" where
# two threads parse at once, as numpy does for the header of a file (python/cpython#106905).
HEADER_LOCK = Lock()


def write_block(block: np.ndarray, path: Path) -> None:
    """Write a block unless the file exists: its name determines its content."""
    if path.exists():
        return
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, overwrite=True) as file:
        np.save(file, np.ascontiguousarray(block), allow_pickle=False)


def read_block(path: Path) -> np.ndarray:
    """Read a block."""
    with file_errors(path, doing="read"), open(path, "rb") as file:
        with HEADER_LOCK:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
        return np.fromfile(file, dtype, prod(shape)).reshape(shape)


def map_block(path: Path) -> np.ndarray:
    """Return a memory-mapped block, of which only the parts used are read.

    All threads share what was read. Writing modifies a private copy, so that compiled loops accept
    it like any other array.
    """
    with file_errors(path, doing="read"), HEADER_LOCK:
        return np.load(path, mmap_mode="c", allow_pickle=False).view(np.ndarray)


@dataclass(frozen=True)
class Storage:
    """Files on storage, by the names of arrays.

    The tag is part of all names, so that two fits of the same points on one cluster, each in its
    own folder, do not share tasks.
    """

    folder: Path
    tag: str

    @classmethod
    def at(cls, folder: Path) -> Storage:
        """Return the storage in a folder, with the folder's permanent tag."""
        path = folder / "tag.npy"
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_block(np.array(token_hex(8)), path)
        return cls(folder, f"{read_block(path)}-{TASKS_VERSION}")

    def name(self, kind: str, *content: Any) -> str:
        """Return a name for external data, derived from its content."""
        digest = sha256(repr((self.tag, kind)).encode())
        for part in content:
            plain = isinstance(part, np.ndarray)
            digest.update(np.ascontiguousarray(part).data if plain else repr(part).encode())
        return f"{kind}-{digest.hexdigest()[:32]}"

    def block(self, name: str, number: int) -> Path:
        """Return the path of a block, which need not exist."""
        return self.folder / "blocks" / name / f"{number:06d}.npy"

    def file(self, name: str, part: str) -> Path:
        """Return the path of another file of a name, which need not exist."""
        return self.folder / "blocks" / name / part

    def is_complete(self, name: str, n_blocks: int) -> bool:
        """Return True if all blocks of a name exist."""
        return all(self.block(name, b).exists() for b in range(n_blocks))

    def tidy(self, needed: Set[str]) -> None:
        """Delete intermediate files of the stages of fits."""
        for folder in (self.folder / "blocks").iterdir():
            if PASSING.search(folder.name) and folder.name not in needed:
                rmtree(folder, ignore_errors=True)  # another process may still read them


class Journal:
    """Log of completed work, from which a restarted driver resumes.

    A driver is the client process that runs a fit.
    Answers are small results, which need not be computed again. Steps that led an earlier driver to
    a checkpoint or to the end of a fit need not be repeated either, since the result is on storage.

    The end of a fit deletes its intermediate files and those of other fits that were killed. So
    answers of the latter are discarded: they may depend on the deleted files.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers: dict[str, Any] = {}
        self._taken: list[str] = []
        self._heard: dict[str, None] = {}  # names of answers used by this fit, in order
        self.needed = set[str]()  # by models of earlier fits
        self._checkpoints, self._former_checkpoints = set[str](), set[str]()
        self._last: dict[str, Any] = {}
        finished, passed, steps, lasting = set[str](), set[str](), set[str](), set[str]()
        for entry in self._entries():
            self._last = entry
            if "answer" in entry:
                self._answers[entry["answer"]] = entry["value"]
            elif "step" in entry:
                steps.add(entry["step"])
            elif "checkpoint" in entry:
                passed, steps = passed | steps, set()
                self._checkpoints.add(entry["checkpoint"])
            elif "finished" in entry:  # all checkpoints were deleted then
                finished |= set(entry["finished"])
                lasting |= set(entry.get("answers", ()))  # not logged by earlier versions
                self.needed |= set(entry.get("needed", ()))
                self._answers = {k: v for k, v in self._answers.items() if k in lasting}
                self._former_checkpoints |= self._checkpoints
                passed, steps, self._checkpoints = set(), set(), set()
        self._passed = finished | passed

    def _entries(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with file_errors(self._path, doing="read"), self._path.open() as file:
            for line in file:
                with suppress(ValueError):  # incomplete last line of a driver that was killed
                    yield json.loads(line)

    def has_passed(self, step: str) -> bool:
        """Return True if a step need not be computed; record that this fit uses it."""
        self._taken.append(step)
        return step in self._passed

    def was_checkpoint(self, step: str) -> bool:
        """Return True if a step was a checkpoint of a fit that has ended."""
        return step in self._former_checkpoints

    def note_end(self, needed: Set[str]) -> None:
        """Add a line for the end of a fit with its steps and answers, and reset."""
        end = {"finished": self._taken, "answers": list(self._heard), "needed": sorted(needed)}
        if self._last != end:  # unless an earlier driver logged the same end
            self.note(**end)
        self.needed |= needed
        self._taken, self._heard, self._passed, self._checkpoints = [], {}, set(), set()

    def note_checkpoint(self, name: str) -> None:
        """Add a line for a checkpoint, unless it is already logged."""
        if name not in self._checkpoints:
            self._checkpoints.add(name)
            self.note(checkpoint=name)

    def note(self, **entry: Any) -> None:
        """Add a line."""
        self._last = entry
        with file_errors(self._path), self._path.open("a") as file:
            file.write("\n" + json.dumps(entry))  # after a line that may have been cut off

    def answer(self, name: str, ask: Callable[[], Any]) -> Any:
        """Return the logged answer of this name, or call ``ask`` and log the result."""
        self._heard[name] = None
        if name not in self._answers:
            found = ask()
            if _size(found) > LARGEST_ANSWER:
                return found
            self._answers[name] = _encoded(found)
            self.note(answer=name, value=self._answers[name])
        return _decoded(self._answers[name])


def _size(value: Any) -> int:
    """Return the number of bytes of all arrays in a result."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.nbytes
    if isinstance(value, np.ndarray | tuple | list):
        return sum(map(_size, value))
    return 8


def _encoded(value: Any) -> Any:
    """Encode a result for JSON, without loss of a bit."""
    if isinstance(value, np.generic):
        return {"scalar": _encoded(np.asarray(value))}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"objects": [_encoded(entry) for entry in value.ravel()], "shape": value.shape}
    if isinstance(value, np.ndarray):
        words = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": words, "dtype": value.dtype.str, "shape": value.shape}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_encoded(entry) for entry in value]}
    return {"value": value}  # Python's JSON represents floats exactly


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
