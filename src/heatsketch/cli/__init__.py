"""The command line: one module for each command, and shared ones.

A command is a function that returns a :class:`~heatsketch.cli._console.Reply`; it prints nothing.
:mod:`heatsketch.cli._application` converts its exceptions to a line and an exit code. The module of
a command is imported when it runs, so that help and version are fast.
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
