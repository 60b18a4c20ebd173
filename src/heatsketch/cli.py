"""The command line.

Exit codes: 0 done, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

try:
    import typer
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
except ImportError:  # pragma: no cover - the message is all there is
    sys.exit('The command line needs typer and rich: pip install "heatsketch[cli]".')

from heatsketch import __version__
from heatsketch.exceptions import HeatSketchError

__all__ = ["app"]

app = typer.Typer(
    help="Diffusion distances for points and graphs, by sketching the heat kernel.",
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
        bool, typer.Option("--version", callback=_show_version, help="Say the version.")
    ] = False,
) -> None:
    """Diffusion distances for points and graphs, by sketching the heat kernel."""


@app.command(
    epilog="Example: heatsketch reproduce torus klein --trials 10 --out figures",
)
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments to run; all if left out.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=2, help="Trials of each; as many as the paper if left out.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for reproduction.md and what belongs to it.")
    ] = Path(),
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything.")] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, help="As many as cores if left out.")
    ] = None,
) -> None:
    """Run the paper's experiments, draw its figures and judge its claims.

    Each trial is written as soon as it is done: interrupt it at any time, and call it again to
    go on.
    """
    # Only this command needs matplotlib and the like.
    from heatsketch.experiments import CATALOGUE, Run, run_experiments
    from heatsketch.experiments.report import write_report

    for name in names or []:
        if name not in CATALOGUE:
            known = ", ".join(CATALOGUE)
            raise typer.BadParameter(f"NAME={name!r} is unknown; use some of: {known}.")
    console = Console(stderr=True)
    run = Run(tuple(names or CATALOGUE), out / "reproduction", trials, seed)
    columns = (TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn())
    try:
        with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
            bars = {name: progress.add_task(name, total=run.n_trials(name)) for name in run.names}
            results = run_experiments(
                run, processes=processes, on_trial=lambda name: progress.advance(bars[name])
            )
    except (HeatSketchError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    except KeyboardInterrupt:
        console.print("Interrupted. What is done is kept: the same call goes on from here.")
        raise typer.Exit(130) from None
    page = write_report(run, results)
    console.print(f"Written: {page}")
