"""The program: runs a command, prints its reply, sets the exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from heatsketch import __version__
from heatsketch.cli._command import COMMANDS, load_command, without_types_of_flags
from heatsketch.cli._console import Reply, as_json, plain_warnings, say, visible
from heatsketch.cli._exit_codes import (
    EXIT_CODES,
    ClickException,
    CommandError,
    ExitCode,
    UsageError,
    exit_code,
    in_options,
)


class Application(TyperGroup):
    """Group of all commands, with common output and error handling."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, including --help."""
        return without_types_of_flags(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """Return a stub for the list of commands, without importing the command."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][0]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command to run."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            close = get_close_matches(args[0], COMMANDS, n=1)
            remedy = f"perhaps {close[0]!r} is meant" if close else f"use {', '.join(COMMANDS)}"
            raise UsageError(f"No such command {args[0]!r}; {remedy}.", ctx)
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(args[0]), rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit the program with its exit code."""
        args = list(sys.argv[1:] if args is None else args)
        options = args[: args.index("--")] if "--" in args else args

        def run() -> Any:
            return super(Application, self).main(
                args, prog_name, complete_var, standalone_mode=False, **extra
            )

        if not standalone_mode:
            return run()
        debug = "--debug" in options or bool(os.environ.get("HEATSKETCH_DEBUG"))
        with _ending_on_terminate():
            code = _ended(run, in_json="--json" in options, debug=debug)
        sys.exit(code)


@contextmanager
def _ending_on_terminate() -> Iterator[None]:
    """Make SIGTERM unwind the stack, so that hidden outputs are removed."""

    def end(*_: Any) -> None:
        sys.exit(int(ExitCode.TERMINATED))

    old = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def _ended(run: Callable[[], Any], *, in_json: bool, debug: bool) -> int:
    """Run a command, print its result or error, and return the exit code."""
    try:
        with plain_warnings() as warnings:
            found = run()
        if not isinstance(found, Reply):  # an exit code of typer, for instance after --help
            return int(found or 0)
        reply = as_json({**found.result, "warnings": warnings}) if in_json else found.text
        return _printed(reply)
    except SystemExit:
        raise
    except BaseException as error:
        if debug and not isinstance(error, UsageError):
            traceback.print_exc()
        code = exit_code(error)
        return _failed(error, code, in_json=in_json)


def _failed(error: BaseException, code: ExitCode, *, in_json: bool) -> int:
    message = _words(error, code)
    if in_json:
        kind = error.kind if isinstance(error, CommandError) else type(error).__name__
        printed = _printed(as_json({"error": message, "type": kind, "exit_code": int(code)}))
        return int(code) if printed == ExitCode.DONE else printed
    if message:  # without arguments, the program has printed its help
        say(f"error: {message}")
    return int(code)


def _words(error: BaseException, code: ExitCode) -> str:
    if isinstance(error, ClickException):
        message = error.format_message()  # type: ignore[attr-defined]
        context: Any = getattr(error, "ctx", None)
        return (
            message
            if context is None or not message
            else f"{message} (See: {context.command_path} --help)"
        )
    if code == ExitCode.BUG:
        return (
            f"{type(error).__name__}: {error}. This is a bug of heatsketch {__version__}: please "
            "report it, with what the same command prints after --debug."
        )
    if code == ExitCode.MEMORY and not str(error):
        return "memory is used up; use --memory-limit, fewer --components or fewer --neighbors."
    return in_options(error)


def _printed(text: str) -> int:
    """Print a result; the output pipe may be closed, and a disk may be full."""
    try:
        print(visible(text), flush=True)
        return int(ExitCode.DONE)
    except OSError as error:
        # Python must not flush the rest of the buffer when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return int(ExitCode.BROKEN_PIPE)
        say(f"error: cannot write the standard output: {error.strerror}; use another disk.")
        return int(ExitCode.OUTPUT)


app = typer.Typer(
    cls=Application,
    help="Diffusion distances for points and graphs, by sketching the heat kernel.",
    epilog="Exit codes: " + "; ".join(f"{code:d} {words}" for code, words in EXIT_CODES.items()),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Diffusion distances for points and graphs, by sketching the heat kernel."""
