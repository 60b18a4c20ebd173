"""The command line: one module for each command, and shared ones.

A command is a function that returns what it prints: a dict of names and values. ``_program.py``
prints it as text or JSON, and turns exceptions into a line and an exit code. The module of a
command is imported when it runs, so that help and completion are fast.
"""

from __future__ import annotations

import sys

try:
    import typer  # noqa: F401
except ImportError:
    sys.exit('The command line needs typer: pip install "heatsketch[cli]".')

from heatsketch.cli._program import app

__all__ = ["app"]
