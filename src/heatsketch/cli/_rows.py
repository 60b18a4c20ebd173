"""Input and output of rows; outputs are checked before the work starts."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.checks import check_finite
from heatsketch._core.progress import steps
from heatsketch.cli._exit_codes import CommandError, ExitCode, as_exit_code, exit_code, in_options
from heatsketch.exceptions import HeatSketchError
from heatsketch.io import (
    GRAPH_EXTENSIONS,
    Block,
    Table,
    check_readable,
    graph_in_table,
    open_table,
    read_graph,
    table_writer,
)
from heatsketch.io._columns import FEW

NUMBERS_ONLY = ".npy"  # stores neither ids nor labels
BLOCK_ENTRIES = 2**22  # numbers written at a time
PLACE = re.compile(r"\b(row|column) (\d+)\b(?! \()")


class Wanted(NamedTuple):
    """Request for an input: the arguments of :func:`heatsketch.io.open_table`."""

    columns: list[str] | None
    labels: list[str] | None
    ids: str | None
    key: str | None
    header: bool | None


class Rows(NamedTuple):
    """Properties of an input that are known before it is read.

    Attributes
    ----------
    path : pathlib.Path
    shape : (int, int) or None
        None for a graph, whose size is unknown until it is read.
    dtype : dtype
    columns : tuple of str
        Names of the columns, which are x0, x1, ... in arrays; none for a graph.
    ids : str or None
        Name of the column of ids in an output.
    labels : tuple of str
    must_keep_ids : bool
        Whether ids were requested, so that the output must have them.
    is_dense : bool
    read : callable
        Returns a Block of all rows.
    """

    path: Path
    shape: tuple[int, int] | None
    dtype: Any
    columns: tuple[str, ...]
    ids: str | None
    labels: tuple[str, ...]
    must_keep_ids: bool
    is_dense: bool
    read: Callable[[], Block]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None unless the file has them."""
        return self.columns if _are_named(self.columns) else None


def is_graph(path: Path, wanted: Wanted, said: bool | None, *, is_matrix: bool) -> bool:
    """Return True if an input is a graph: as given, or by its extension.

    For a table that looks like a graph an error asks for the option: rows of node numbers would
    otherwise be embedded as points, silently. A matrix of distances or affinities is a table.
    """
    if said is not None:
        return said
    if path.name.lower().endswith(GRAPH_EXTENSIONS):
        return True
    if wanted.columns is None and not is_matrix:
        carried = [*(wanted.labels or ()), *([] if wanted.ids is None else [wanted.ids])]
        why = graph_in_table(path, carried=carried, header=wanted.header)
        if why is not None:
            raise CommandError(
                f"{path}: {why}; use --graph to embed the nodes of a graph, or --no-graph to embed "
                "its rows as points.",
                ExitCode.ARGUMENTS,
            )
    return False


def open_rows(path: Path, wanted: Wanted, *, as_graph: bool | None = None) -> Rows:
    """Open a graph or a table, by its extension if ``as_graph`` is None."""
    if path.name.lower().endswith(GRAPH_EXTENSIONS) if as_graph is None else as_graph:
        return _graph_rows(path, wanted)
    table = open_wanted(path, wanted)
    if not table.n_rows:
        raise CommandError(f"{path} has no rows; check that it was written.", ExitCode.DATA)
    return Rows(
        path=path,
        shape=(table.n_rows, len(table.names)),
        dtype=table.dtype,
        columns=table.names,
        ids=wanted.ids or ("id" if table.has_ids else None),
        labels=tuple(wanted.labels or ()),
        must_keep_ids=wanted.ids is not None,
        is_dense=not table.is_sparse,
        read=lambda: _read(table),
    )


def open_wanted(path: Path, wanted: Wanted) -> Table:
    """Open a table with the requested columns, labels and ids."""
    return open_table(path, **{**wanted._asdict(), "labels": wanted.labels or ()})


def columns_text(names: Sequence[str]) -> str:
    """Return a line that names the columns, or some of them if they are many.

    Examples
    --------
    >>> from heatsketch.cli._rows import columns_text
    >>> columns_text(["x", "y"])
    'Columns: x, y'
    """
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"Columns: {', '.join(names[:FEW])}{more}"


def _are_named(names: tuple[str, ...]) -> bool:
    return names != tuple(f"x{column}" for column in range(len(names)))


def _read(table: Table) -> Block:
    """Read all rows, and report progress."""
    done = steps("reading", 1)
    block = table.read()
    check_block(table, block)
    done()
    return block


def check_block(table: Table, block: Block, first_row: int = 0) -> None:
    """Raise for NaN and infinity, with their position in the file."""
    names = table.names if _are_named(table.names) else None
    check_finite(block.X, names, str(table.path), ids=block.ids, first_row=first_row)


@contextmanager
def named_in_file(
    path: Path, block: Block, names: Any = None, *, first_row: int = 0, is_graph: bool = False
) -> Iterator[None]:
    """Make errors and warnings name the file, and its rows and columns.

    Parameters
    ----------
    path : pathlib.Path
    block : Block
        The rows that are embedded, optionally with ids.
    names : tuple of str or None
        Names of the columns, if they have any.
    first_row : int, default=0
        Position of the block in the file.
    is_graph : bool, default=False
        Whether the affinities are those of a graph, which were not requested by an option.
    """

    def place(found: re.Match[str]) -> str:
        number, known, first = int(found[2]), names, 0
        if found[1] == "row":
            known, first = block.ids, first_row
        called = "" if known is None or number >= len(known) else f" ({str(known[number])!r})"
        return f"{found[1]} {first + number}{called}"

    def in_file(error: Any) -> str:
        message = re.sub(r"\bX\b", lambda _: str(path), in_options(error))
        message = message.replace("--affinity precomputed", "the graph") if is_graph else message
        return PLACE.sub(place, message)

    with warnings.catch_warnings():
        show = warnings.showwarning
        warnings.showwarning = lambda message, *rest: show(type(message)(in_file(message)), *rest)
        try:
            yield
        except HeatSketchError as error:
            raise CommandError(in_file(error), exit_code(error), type(error).__name__) from error


def _graph_rows(path: Path, wanted: Wanted) -> Rows:
    in_table = not path.name.lower().endswith((*GRAPH_EXTENSIONS, ".npz"))
    for name, value in wanted._asdict().items():
        if value is not None and not (in_table and name in ("columns", "header")):
            message = f"--{name} is for tables, and {path} is a graph; leave it out."
            raise CommandError(message, ExitCode.ARGUMENTS)
    check_readable(path)
    # Nodes of a matrix have no names but their positions.
    has_names = path.suffix.lower() not in (".mtx", ".npz")
    return Rows(
        path=path,
        shape=None,
        dtype=np.dtype(np.float64),
        columns=(),
        ids="id" if has_names else None,
        labels=(),
        must_keep_ids=has_names,
        is_dense=False,
        read=lambda: _graph_block(path, wanted, has_names),
    )


def _graph_block(path: Path, wanted: Wanted, has_names: bool) -> Block:
    affinity, ids = read_graph(path, columns=wanted.columns, header=wanted.header)
    check_finite(affinity, ids, str(path), ids=ids)
    return Block(affinity, ids if has_names else None)


def component_names(n_components: int) -> list[str]:
    """Return the names of the columns of an embedding, in scikit-learn's style."""
    return [f"heatsketch{column}" for column in range(n_components)]


@contextmanager
def rows_output(
    path: Path, rows: Rows, *, names: list[str], dtype: Any, overwrite: bool
) -> Iterator[Callable[[np.ndarray, Block], None]]:
    """Open an output before the work starts, so that errors are raised early.

    Ids that were not requested are left out of a format that stores numbers only.

    Yields
    ------
    callable
        Writes the numbers of some rows, with their ids and labels.
    """
    keeps_ids = rows.must_keep_ids or path.suffix.lower() != NUMBERS_ONLY
    ids = rows.ids if keeps_ids else None
    options = {"dtype": dtype, "ids": ids, "labels": rows.labels, "overwrite": overwrite}
    with ExitStack() as stack:
        with as_exit_code(ExitCode.OUTPUT, HeatSketchError, ImportError):
            writer = stack.enter_context(table_writer(path, names, **options))

        def write(Y: np.ndarray, block: Block) -> None:
            step = max(1, BLOCK_ENTRIES // len(names))
            for start in range(0, len(Y), step):
                some = slice(start, start + step)
                labels = {name: values[some] for name, values in block.labels.items()}
                writer.append(Block(Y[some], None if ids is None else block.ids[some], labels))

        yield write
