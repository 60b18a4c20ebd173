"""The options that every command has, added in one place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from heatsketch.cli._console import Reply, showing_progress
from heatsketch.cli._exit_codes import CommandError, ExitCode

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
            typer.Option(help="Show progress, on the standard error; on a terminal if left out."),
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


def command(app: typer.Typer, function: Callable[..., Reply], example: str) -> None:
    """Make a function a command of the program.

    Parameters
    ----------
    app : typer.Typer
    function : callable
        Its parameters are the options of the command, and its docstring the help.
    example : str
        Shown under the help.
    """

    @wraps(function)
    def with_progress(*, as_json: bool, progress: bool | None, debug: bool, **given: Any) -> Reply:
        # The application has looked at as_json and debug before any command was found.
        try:
            with showing_progress(progress):
                return function(**given)
        except KeyboardInterrupt:
            # Which typer would make an exit without a message.
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
    app.command(name=function.__name__, epilog=f"Example: {example}")(with_progress)
