"""Blocks and a journal of results, in a folder that all workers can access.

A block is a file ``blocks/<name>/<number>.npy``. The name identifies the content: it is derived
from the names of all inputs of the computation. If a block is computed twice, the file is the same.
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

# Names of checkpoints and intermediate files, which are deleted at the end of a fit.
TEMPORARY = re.compile(
    "^(heat-step|of-rows|sorted|vector)-|-(sample|dealt|branch|near|squares|sorted|found|back)"
)
LARGEST_RESULT = 2**25  # bytes of the largest result that is stored in the journal
# Part of all names. It is increased whenever the result of a task changes, so that files of an
# earlier version are not reused.
TASKS_VERSION = 1
# numpy parses the header of a file. Some versions of CPython 3.11 and 3.12 raise "AST constructor
# recursion depth mismatch" if two threads parse at the same time (python/cpython#106905).
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
    """Return a memory-mapped block; only the parts that are used are read.

    Writing to it changes a private copy. So the array is writable, as compiled loops require.
    """
    with file_errors(path, doing="read"), HEADER_LOCK:
        return np.load(path, mmap_mode="c", allow_pickle=False).view(np.ndarray)


@dataclass(frozen=True)
class Storage:
    """Files on storage, by the names of arrays.

    The tag is part of all names, so that fits of the same points in two folders on one cluster do
    not share tasks.
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
            is_array = isinstance(part, np.ndarray)
            digest.update(np.ascontiguousarray(part).data if is_array else repr(part).encode())
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
        for folder in (self.folder / "blocks").glob("*"):  # there may be none
            if TEMPORARY.search(folder.name) and folder.name not in needed:
                rmtree(folder, ignore_errors=True)  # another process may still read them


class Journal:
    """Log of completed work, from which a fit continues after its process was killed.

    Answers are small results, which need not be computed again. Steps before a checkpoint or before
    the end of a fit need not be computed again either, since the result is on storage.

    At its end, a fit deletes its intermediate files and those of fits that were killed. So the
    answers of fits that were killed are discarded, since they may depend on deleted files.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers: dict[str, Any] = {}
        self._steps: list[str] = []  # used by this fit
        self._used: dict[str, None] = {}  # names of answers used by this fit, in order
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
                with suppress(ValueError):  # incomplete last line of a process that was killed
                    yield json.loads(line)

    def has_passed(self, step: str) -> bool:
        """Return True if a step need not be computed; record that this fit uses it."""
        self._steps.append(step)
        return step in self._passed

    def was_checkpoint(self, step: str) -> bool:
        """Return True if a step was a checkpoint of a fit that has ended."""
        return step in self._former_checkpoints

    def note_end(self, needed: Set[str]) -> None:
        """Add a line for the end of a fit with its steps and answers, and reset."""
        end = {"finished": self._steps, "answers": list(self._used), "needed": sorted(needed)}
        if self._last != end:  # an earlier process may have logged the same end
            self.note(**end)
        self.needed |= needed
        self._steps, self._used, self._passed, self._checkpoints = [], {}, set(), set()

    def note_checkpoint(self, name: str) -> None:
        """Add a line for a checkpoint, unless it is already logged."""
        if name not in self._checkpoints:
            self._checkpoints.add(name)
            self.note(checkpoint=name)

    def note(self, **entry: Any) -> None:
        """Add a line."""
        self._last = entry
        with file_errors(self._path), self._path.open("a") as file:
            file.write("\n" + json.dumps(entry))  # the line before may be incomplete

    def answer(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the logged answer of this name, or compute and log it."""
        self._used[name] = None
        if name not in self._answers:
            result = compute()
            if _size(result) > LARGEST_RESULT:
                return result
            self._answers[name] = _encoded(result)
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
    """Encode a result for JSON, without loss."""
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


def _decoded(entry: dict[str, Any]) -> Any:
    if "scalar" in entry:
        return _decoded(entry["scalar"])[()]
    if "objects" in entry:
        array = np.empty(len(entry["objects"]), object)
        array[:] = [_decoded(part) for part in entry["objects"]]
        return array.reshape(entry["shape"])
    if "array" in entry:
        array = np.frombuffer(b64decode(entry["array"]), entry["dtype"])
        return array.reshape(entry["shape"]).copy()
    if "tuple" in entry:
        return tuple(_decoded(part) for part in entry["tuple"])
    if "list" in entry:
        return [_decoded(part) for part in entry["list"]]
    return entry["value"]
