"""The program: loads a command, runs it, prints its result, and sets the exit code."""

from __future__ import annotations

import errno
import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from heatsketch import __version__
from heatsketch._core.progress import show_progress
from heatsketch.cli._exit_codes import EXPECTED, ExitCode, exit_code
from heatsketch.cli._options import PANELS
from heatsketch.cli._text import as_json, as_text, visible
from heatsketch.exceptions import HeatSketchWarning

# A command is the function of this name in the module of this name; these are the summaries.
COMMANDS = {
    "embed": "Embed the rows of a table, or the nodes of a graph.",
    "transform": "Embed new rows with a fitted model.",
    "distances": "Print diffusion distances between rows of a model, with intervals.",
    "cluster": "Cluster the rows of a model, and new rows.",
    "smooth": "Smooth columns of numbers over the graph of a model, to reduce noise.",
    "drift": "Print how far the geometry moved between two models, and which rows moved more.",
    "compare": "Test whether two tables differ, and write around which rows they do.",
    "label": "Label all rows of a table from the labels of a few.",
    "info": "Print what a model file contains.",
    "plan": "Print how much memory an embedding takes on this machine.",
    "report": "Write a model as one HTML page, which needs no network.",
}
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, also for an error of the library.")
]
Progress = Annotated[
    bool | None, typer.Option(help="Show progress; by default on a terminal only.")
]


class Program(TyperGroup):
    """All commands, whose modules are imported when they are needed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command to run, with its options."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and load_command(name), rest


def load_command(name: str) -> Any:
    """Load a command; its parameters become options, and its docstring the help.

    A parameter whose type is a dataclass stands for one option for each of its fields.
    """
    function = getattr(import_module(f"heatsketch.cli._{name}"), name)
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters = []
    for parameter in signature.parameters.values():
        kind: Any = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            fields = inspect.signature(kind, eval_str=True).parameters
            groups[parameter.name] = kind, list(fields)
            for field in fields.values():
                field.annotation.__metadata__[0].rich_help_panel = PANELS[kind]
            parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in fields.values()]
        else:
            parameters.append(parameter)

    def command(*, as_json: Json = False, progress: Progress = None, **options: Any) -> None:
        for group, (kind, fields) in groups.items():
            options[group] = kind(**{field: options.pop(field) for field in fields})
        with show_progress(progress):
            _run(function, options, in_json=as_json)

    shared = inspect.signature(command, eval_str=True).parameters.values()
    parameters += [p for p in shared if p.kind is not inspect.Parameter.VAR_KEYWORD]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = function.__doc__
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    alone.command(name)(command)
    return get_command(alone)


def _run(function: Callable[..., dict], options: dict[str, Any], *, in_json: bool) -> None:
    """Run a command, and print its result, its warnings and its error."""
    failure: Exception | None = None
    with warnings.catch_warnings(record=True) as caught, _ended_by_sigterm():
        warnings.simplefilter("always", HeatSketchWarning)
        try:
            result = function(**options)
        except EXPECTED as error:
            if getattr(error, "name", None):  # a failed import inside heatsketch is a bug
                raise
            failure = error
    texts = list(dict.fromkeys(str(warning.message) for warning in caught))
    for text in texts:
        typer.echo(visible(f"warning: {text}"), err=True)
    if failure is None:
        _print(as_json({**result, "warnings": texts}) if in_json else as_text(result))
        return
    code, message = exit_code(failure), str(failure) or "Not enough memory."
    if in_json:
        _print(as_json({"error": message, "type": type(failure).__name__, "exit_code": int(code)}))
    else:
        typer.echo(visible(f"error: {message}"), err=True)
    raise typer.Exit(code)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Make SIGTERM raise SystemExit, so that unfinished outputs are removed."""
    old = signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def _print(text: str) -> None:
    """Print a result; the output pipe may be closed, and a disk may be full."""
    try:
        print(visible(text), flush=True)
    except OSError as error:
        # Python must not flush the rest of the buffer when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            raise typer.Exit(ExitCode.BROKEN_PIPE) from error
        typer.echo(f"error: cannot write the standard output: {error.strerror}.", err=True)
        raise typer.Exit(ExitCode.OUTPUT) from error


app = typer.Typer(
    cls=Program,
    help="Diffusion distances for points and graphs, by sketching the heat kernel.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)  # without options, for the list of commands


def _show_version(is_given: bool) -> None:
    if is_given:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Diffusion distances for points and graphs, by sketching the heat kernel."""
