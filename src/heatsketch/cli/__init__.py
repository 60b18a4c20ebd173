"""The command line: one file for each command, and a few for what they share.

A command is a function that returns a :class:`~heatsketch.cli._console.Reply`; it prints nothing.
Whatever it raises becomes a line and an exit code in :mod:`heatsketch.cli._application`.
"""

from __future__ import annotations

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ImportError:
    sys.exit('The command line needs typer and rich: pip install "heatsketch[cli]".')

from heatsketch.cli._application import app
from heatsketch.cli._command import command
from heatsketch.cli._distances import distances
from heatsketch.cli._drift import drift
from heatsketch.cli._embed import embed
from heatsketch.cli._info import info
from heatsketch.cli._plan import plan
from heatsketch.cli._report import report
from heatsketch.cli._reproduce import reproduce
from heatsketch.cli._transform import transform

__all__ = ["app"]

command(app, embed, "heatsketch embed cells.parquet -o embedding.parquet --model cells.heatsketch")
command(
    app, transform, "heatsketch transform cells.heatsketch new.parquet -o new_embedding.parquet"
)
command(app, distances, "heatsketch distances cells.heatsketch 0 1 0 2 --confidence 0.99")
command(app, drift, "heatsketch drift monday.heatsketch tuesday.heatsketch --json")
command(app, info, "heatsketch info cells.heatsketch")
command(app, plan, "heatsketch plan --n 1e7 --d 16 --k 32")
command(
    app,
    report,
    "heatsketch report cells.heatsketch --data cells.parquet --color type -o cells.html",
)
command(app, reproduce, "heatsketch reproduce torus klein --trials 10 --out figures")
