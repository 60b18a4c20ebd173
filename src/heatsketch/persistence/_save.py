"""Saving values and estimators, and the header of what was saved."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from heatsketch.persistence._file import invalid_file, read_file, read_header, write_file
from heatsketch.persistence._parts import Part, Writer


class Saved:
    """Mixin of classes that can be saved to a file.

    A class has ``_stored_parts``, the parts that a file holds, unless these are the fields of a
    dataclass, and ``_summary``, plain values for :func:`heatsketch.model_info`.
    """

    _summary: Callable[[], dict[str, Any]]

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Save to a file that :func:`heatsketch.load` reads, with bit-identical results.

        The file is complete or absent, whatever happens while it is written. Every bit of it is
        covered by a digest, and loading executes no code. Saving takes memory for a second copy.

        Parameters
        ----------
        path : str or path-like
            Path of the file, by convention with the extension ``.heatsketch``.
        overwrite : bool, default=False
            Whether an existing file may be replaced.

        Raises
        ------
        NotStorableError
            If a part is code, such as a metric that is a function, or is kept on a cluster.
        OutputExistsError, OutputError
            If the file exists already, or cannot be written.
        """
        writer = Writer()
        summary = Writer().tree(self._summary())
        del summary["type"]
        header = {
            "class": type(self).__name__,
            "version": sys.modules["heatsketch"].__version__,  # avoids a circular import
            "summary": summary,
            "model": writer.tree(self),
        }
        write_file(path, header, writer.arrays, overwrite=overwrite)


def restored(path: Any, readers: dict[str, Callable[[Part], Any]]) -> Any:
    """Return the value in a file, from the reader of its class."""
    header, arrays = read_file(path)
    with invalid_file(path):
        return readers[header["class"]](Part(header, arrays)["model"])


def saved_header(path: Any) -> dict[str, Any]:
    """Return the summary of a file from its header alone."""
    header = read_header(path)
    with invalid_file(path):
        about = {name: header[name] for name in ("class", "version", "format")}
        return {**about, "bytes": os.path.getsize(path), **header["summary"]}
