"""Read files while an audit hook watches; what the process of ``test_hostile_files.py`` runs."""

import os
import pickle
import socket
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import fuzz_readers
from bad_files import BAD_FILES
from fuzz_readers import COUNTS, good_file

from heatsketch import load
from heatsketch.exceptions import HeatSketchError
from heatsketch.io import GRAPH_EXTENSIONS, open_table, read_graph

SEEN = []
FORBIDDEN = {
    "exec",
    "import",
    "marshal.loads",
    "pickle.find_class",
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.chmod",
    "subprocess.Popen",
    "socket.connect",
    "socket.bind",
    "socket.getaddrinfo",
    "ctypes.dlopen",
    "urllib.Request",
    "shutil.rmtree",
}


class ForbiddenError(BaseException):
    """Something was done that no reader does."""


def read(path, options):
    if path.suffix == ".heatsketch":
        return load(path)
    is_graph = options.pop("graph", path.name.endswith(GRAPH_EXTENSIONS))
    if is_graph:
        return read_graph(path, **options)
    return open_table(path, **options).read()


def warm_up(folder):
    """Read a good file of every kind, and bad ones, for what is imported with errors."""
    for extension in COUNTS:
        fuzz_readers.read(good_file(folder, extension))
    for place, (case, (name, write, options)) in enumerate(BAD_FILES.items()):
        if "pickle" not in case and Path(name).suffix in (".zarr", ".h5ad", ".parquet"):
            (folder / str(place)).mkdir()
            write(folder / str(place) / name)
            outcome(folder / str(place) / name, options)


def watch(event, arguments):
    if event in FORBIDDEN or (event == "open" and str(arguments[1] or "")[:1] in set("wxa+")):
        SEEN.append(event)
        raise ForbiddenError(f"{event} {arguments!r:.200}")


def forbid():
    """From now on; there is no way back."""
    sys.addaudithook(watch)


def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024


def outcome(path, options):
    """Return how reading a file ended, and what it took."""
    SEEN.clear()
    number = os.open("/proc/self/clear_refs", os.O_WRONLY)
    os.write(number, b"5")  # the peak is reset
    os.close(number)
    before, start = memory("VmRSS"), time.perf_counter()
    error, typed = "it was read", False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(Path(path), options)
    except BaseException as caught:
        error, typed = f"{type(caught).__name__}: {caught}", isinstance(caught, HeatSketchError)
    return {
        "error": error,
        "typed": typed,
        "forbidden": [*SEEN],
        "seconds": time.perf_counter() - start,
        "bytes": memory("VmHWM") - before,
    }


def misbehave():
    """Do what the guard must see."""
    for deed in (
        lambda: os.system("true"),
        lambda: subprocess.Popen(["true"]),
        lambda: exec("1"),
        lambda: __import__("this"),
        lambda: pickle.loads(b"cos\nsystem\n(S'true'\ntR."),
        lambda: socket.socket().connect(("127.0.0.1", 1)),
        lambda: Path(os.devnull).write_text(""),
    ):
        with suppress(ForbiddenError):
            deed()
