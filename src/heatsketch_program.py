"""The program ``heatsketch``, outside the package, whose import takes a second or two.

Who presses Ctrl-C meanwhile gets the line and the exit code of any later moment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

__all__ = ["main"]

INTERRUPTED = 130  # as in heatsketch.cli._exit_codes, which is not there yet


def main() -> None:
    """Load the command line and run it."""
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so under nohup
    if is_handled:
        signal.signal(signal.SIGINT, _leave)
    from heatsketch.cli import app

    if is_handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


def _leave(*_: Any) -> None:
    # At once: an exception might become another one in the import that it passes through.
    message = "interrupted; no output is left half written."
    if "--json" in sys.argv:
        result = {"error": message, "type": "KeyboardInterrupt", "exit_code": INTERRUPTED}
        os.write(1, f"{json.dumps(result)}\n".encode())
    else:
        os.write(2, f"error: {message}\n".encode())
    os._exit(INTERRUPTED)
