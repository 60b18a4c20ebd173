"""The command line: one file for each command, and a few for what they share.

A command is a function that returns a :class:`~heatsketch.cli._console.Reply`; it prints nothing.
Whatever it raises becomes a line and an exit code in :mod:`heatsketch.cli._application`. Its module
is imported when it runs, so that help and version are there at once.
"""

from __future__ import annotations

import sys

try:
    import rich  # noqa: F401
    import typer  # noqa: F401
except ImportError:
    sys.exit('The command line needs typer and rich: pip install "heatsketch[cli]".')

from heatsketch.cli._application import app

__all__ = ["app"]
