"""``heatsketch reproduce``: the paper's experiments in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatsketch._core.atomic_file import file_errors
from heatsketch._core.progress import steps
from heatsketch.cli._console import Reply
from heatsketch.cli._exit_codes import CommandError, ExitCode


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Experiments; by default all of the paper."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="Trials of each; by default those of the catalogue."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for reproduction.md and its figures.")
    ] = Path(),
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of all experiments.")
    ] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; by default one a core.")
    ] = None,
) -> Reply:
    """Run the paper's experiments, draw its figures and judge its claims.

    Each trial is written as soon as it is done: interrupt it at any time, and call it again to
    go on.
    """
    # Only this command needs matplotlib and other optional packages.
    from heatsketch.reproduction import CATALOGUE, PAPER, Run, run_experiments
    from heatsketch.reproduction.report import write_report

    for name in names or []:
        if name not in CATALOGUE:
            known = ", ".join(CATALOGUE)
            raise typer.BadParameter(f"NAME={name!r} is unknown; use some of: {known}.")
    run = Run(tuple(names or PAPER), out / "reproduction", trials, seed)
    done = steps("trials", sum(run.n_trials(name) for name in run.names))
    try:
        with file_errors(out):
            results = run_experiments(run, processes=processes, on_trial=lambda name: done())
            page = write_report(run, results)
    except KeyboardInterrupt:
        message = "interrupted; what is done is kept: the same call goes on from here."
        raise CommandError(message, ExitCode.INTERRUPTED, "KeyboardInterrupt") from None
    return Reply({"page": page, "experiments": list(run.names)}, f"Written: {page}")
