"""List of all commands, and the options that they share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode
from heatsketch.cli._progress import showing_progress
from heatsketch_program import leaving_at_once

ONE_END_OF_LINE = re.compile(r"(?<!\n)\n(?!\n)")

# Name, summary and example. A command is the function of that name in the module of that name.
COMMANDS = {
    "embed": (
        "Embed the rows of a table, or the nodes of a graph.",
        "heatsketch embed cells.parquet -o embedding.parquet --model cells.heatsketch",
    ),
    "transform": (
        "Embed new rows by the rule that embedded those of the model.",
        "heatsketch transform cells.heatsketch new.parquet -o new_embedding.parquet",
    ),
    "distances": (
        "Print how far rows of a model are from each other, with intervals.",
        "heatsketch distances cells.heatsketch 0 1 0 2 --confidence 0.99",
    ),
    "cluster": (
        "Write the clusters of the rows of a model, and of new rows.",
        "heatsketch cluster cells.heatsketch cells.parquet -n 10 -o clusters.parquet",
    ),
    "smooth": (
        "Smooth columns of numbers over the graph of a model, to reduce their noise.",
        "heatsketch smooth cells.heatsketch counts.parquet -o smoothed.zarr",
    ),
    "drift": (
        "Print how far the geometry moved between two models, and which rows moved more.",
        "heatsketch drift monday.heatsketch tuesday.heatsketch --json",
    ),
    "compare": (
        "Test whether two tables differ, and write around which rows they do.",
        "heatsketch compare monday.parquet tuesday.parquet -o rows.parquet --page where.html",
    ),
    "label": (
        "Label all rows of a table from labels of a few.",
        "heatsketch label cells.parquet --column type -o labelled.parquet",
    ),
    "info": (
        "Print what a model holds: its options, its size, and what wrote it.",
        "heatsketch info cells.heatsketch",
    ),
    "plan": (
        "Print how much memory an embedding takes here, or memory and time on a cluster.",
        "heatsketch plan --n 1e7 --d 16 --k 32",
    ),
    "report": (
        "Write a model as one page, which opens in a browser without a network.",
        "heatsketch report cells.heatsketch --data cells.parquet --color type -o cells.html",
    ),
    "reproduce": (
        "Run the paper's experiments, draw its figures and judge its claims.",
        "heatsketch reproduce torus klein --trials 10 --out figures",
    ),
}

SHARED = {
    "as_json": (
        Annotated[
            bool, typer.Option("--json", help="Print one JSON object, also if something is wrong.")
        ],
        False,
    ),
    "progress": (
        Annotated[
            bool | None,
            typer.Option(
                help="Show progress on the standard error; by default on a terminal only."
            ),
        ],
        None,
    ),
    "debug": (
        Annotated[
            bool, typer.Option("--debug", help="Show the traceback of an error. [HEATSKETCH_DEBUG]")
        ],
        False,
    ),
}


def without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return the options, without the type of flags in the help."""
    for parameter in parameters:
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command of the program."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, including --help."""
        return without_types_of_flags(super().get_params(ctx))


def load_command(name: str) -> Any:
    """Load a command, with its parameters as options and its docstring as help."""
    with leaving_at_once():
        function: Callable[..., Reply] = getattr(import_module(f"heatsketch.cli._{name}"), name)

    @wraps(function)
    def with_progress(*, as_json: bool, progress: bool | None, debug: bool, **given: Any) -> Reply:
        # The application has read as_json and debug before the command was resolved.
        try:
            with showing_progress(name, progress):
                return function(**given)
        except KeyboardInterrupt:
            # Otherwise typer would exit without a message.
            message = "interrupted; no output is left half written."
            raise CommandError(message, ExitCode.INTERRUPTED, "KeyboardInterrupt") from None

    signature = inspect.signature(function, eval_str=True)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in SHARED.items()
    ]
    parameters = [*signature.parameters.values(), *shared]
    with_progress.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_progress.__annotations__ = {p.name: p.annotation for p in parameters}
    # Line breaks of a docstring do not fit the width of a terminal.
    with_progress.__doc__ = ONE_END_OF_LINE.sub(" ", inspect.getdoc(function) or "")
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=Command, epilog=f"Example: {COMMANDS[name][1]}")(with_progress)
    return get_command(alone)
