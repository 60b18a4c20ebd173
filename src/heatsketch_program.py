"""The program ``heatsketch``, outside the package, whose import takes a second or two.

Who presses Ctrl-C meanwhile gets the line and the exit code of any later moment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["leaving_at_once", "main"]

INTERRUPTED = 130  # as in heatsketch.cli._exit_codes, which is not there yet


def main() -> None:
    """Load the command line and run it."""
    with leaving_at_once():
        from heatsketch.cli import app
    app()


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Leave the program at Ctrl-C: an exception might become another one in an import."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not under nohup
    if is_default:
        signal.signal(signal.SIGINT, _leave)
    yield
    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: Any) -> None:
    message = "interrupted; no output is left half written."
    if "--json" in sys.argv:
        result = {"error": message, "type": "KeyboardInterrupt", "exit_code": INTERRUPTED}
        os.write(1, f"{json.dumps(result)}\n".encode())
    else:
        os.write(2, f"error: {message}\n".encode())
    os._exit(INTERRUPTED)
