"""Kill a writer at every call to the system that could matter, in real processes; or reject it.

Two ways, which see different things: a process that kills itself before and after each call of
Python's functions that write, rename or sync; and strace, where there is one, which kills at the
calls of whatever library.
"""

import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import types
from pathlib import Path

FUNCTIONS = (
    *("mkdir", "open", "fsync", "close", "chmod"),
    *("replace", "rename", "link", "unlink", "rmdir"),
)
CALLS = (
    *("mkdir", "write", "pwrite64", "ftruncate", "fsync", "flock"),
    *("chmod", "link", "rename", "unlinkat", "rmdir"),
)
RIGHTS = 0o700  # of what will be replaced; no umask says so
HERE = Path(__file__).parent


def light_module():
    """Import the atomic writer without the rest of the package, which takes a second."""
    package = types.ModuleType("heatsketch")
    package.__path__ = importlib.util.find_spec("heatsketch").submodule_search_locations
    sys.modules["heatsketch"] = package
    return importlib.import_module("heatsketch._core.atomic_file")


def write_file(module, path, data, overwrite):
    with module.atomic_file(path, overwrite=overwrite) as file:
        for _ in range(9):
            file.write(data)
            file.flush()


def write_folder(module, path, data, overwrite):
    with module.atomic_folder(path, overwrite=overwrite) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "0").write_bytes(9 * data)
        (folder / "meta").write_bytes(9 * data)


def write_model(module, path, data, overwrite):
    import numpy as np

    model_file = importlib.import_module("heatsketch.persistence._file")
    arrays = {name: np.frombuffer(1000 * data, np.uint8) for name in ("x", "y")}
    model_file.write_file(path, {"word": data.decode()}, arrays, overwrite=overwrite)


def write_table(module, path, data, overwrite):
    import numpy as np

    files = importlib.import_module("heatsketch.io")
    with files.table_writer(path, ["x", "y"], overwrite=overwrite) as writer:
        for _ in range(3):
            writer.append(files.Block(np.full((5, 2), NUMBERS[data])))


NUMBERS = {b"one": 1.0, b"two": 2.0, b"three": 3.0}
TABLES = (".npy", ".csv", ".csv.gz", ".parquet", ".zarr")
WRITERS = {"file": write_file, "folder": write_folder, "model": write_model}
WRITERS |= dict.fromkeys(TABLES, write_table)


LIBRARIES = {
    ".npy": ("heatsketch.io", "heatsketch.io._arrays"),
    **dict.fromkeys((".csv", ".csv.gz", ".parquet"), ("heatsketch.io", "heatsketch.io._arrow")),
    ".zarr": ("heatsketch.io", "heatsketch.io._zarr"),
}


def visible(folder):
    """Return the names in a folder but those that killed writers left."""
    return [name for name in os.listdir(folder) if not name.endswith((".part", ".old"))]


def replaced_folder(path):
    """Return a folder, or the old one if a writer was killed between its two renames."""
    (old,) = [path] if path.exists() else path.parent.glob(f".{path.name}.*.old")
    return old


def name_of(kind):
    return f"out{kind}" if kind in TABLES else "out"


def kill_self_at(module, point):
    """Die at the given one of all calls: even numbers before it, odd ones after it."""
    count = [0]

    def deadly(function):
        def call(*args, **options):
            for moment in (0, 1):
                if count[0] == point:
                    os.kill(os.getpid(), signal.SIGKILL)
                count[0] += 1
                if moment == 0:
                    result = function(*args, **options)
            return result

        return call

    for name in FUNCTIONS:
        setattr(os, name, deadly(getattr(os, name)))

    class Deadly(io.FileIO):
        write = deadly(io.FileIO.write)
        truncate = deadly(io.FileIO.truncate)

    module.open = lambda path, mode: io.BufferedRandom(Deadly(path, "r+"))


def fork_at_every_point(write, module, folder_of):
    """Run a writer in children that die at one point after the other, until one lives."""
    for point in range(1000):
        path = folder_of(point)
        if in_a_child(lambda point=point, path=path: (kill_self_at(module, point), write(path))):
            return
    raise AssertionError("a writer with a thousand points?")


def in_a_child(work):
    """Return True if it came to its end; threads of libraries that it starts die with it."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def prepared(folder, kind, overwrite, module, run=lambda work: work()):
    folder.mkdir()
    path = folder / name_of(kind)
    if overwrite:
        run(lambda: WRITERS[kind](module, path, b"one", False))
        path.chmod(RIGHTS)
    return path


def by_hooks(kind, overwrite, folder):
    """Return nothing; the folders ``hook 0``, ``hook 1``, ... are what the killed ones left."""
    code = "import kill_points; kill_points.hooks(*__import__('sys').argv[1:])"
    arguments = [kind, str(int(overwrite)), str(folder)]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, cwd=HERE)


def hooks(kind, overwrite, folder):
    module = light_module()
    importlib.import_module("heatsketch.persistence._file")  # before the calls are counted
    for library in LIBRARIES.get(kind, ()):
        importlib.import_module(library)
    fork_at_every_point(
        lambda path: WRITERS[kind](module, path, b"two", bool(int(overwrite))),
        module,
        lambda point: prepared(
            Path(folder, f"hook {point}"), kind, int(overwrite), module, run=in_a_child
        ),
    )


def by_strace(kind, overwrite, folder, *, deed="signal=KILL", calls=CALLS):
    """Kill at the first, second, ... of each call, as strace can, or let it fail.

    Return the exit code of each, by the name of its folder: 7 for an error of ours, 0 where there
    was no such call any more, or where a library did without what it asked for.
    """
    code = (
        f"sys=__import__('sys'); sys.path.insert(0, {str(HERE)!r}); import kill_points as k; "
        "k.write_or_tell(*sys.argv[1:])"
    )
    codes = {}
    for call in calls:
        for when in range(1, 100):
            place = Path(folder, f"{call} {when}")
            path = prepared(
                place, kind, overwrite, importlib.import_module("heatsketch._core.atomic_file")
            )
            inject = f"inject={call}:{deed}:when={when}"
            log = Path(folder, "log")
            command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={call}", "-e", inject]
            program = [sys.executable, "-IBc", code, kind, str(int(overwrite)), str(path)]
            codes[place.name] = subprocess.run([*command, *program], check=False).returncode
            seen = log.read_text(errors="replace")
            log.unlink()
            if codes[place.name] == 0 and "(INJECTED)" not in seen:
                break
    return codes


def write_or_tell(kind, overwrite, path):
    """Write, and end with 7 for an error that names the output."""
    module = light_module()
    try:
        WRITERS[kind](module, Path(path), b"two", bool(int(overwrite)))
    except module.FileError as error:
        sys.exit(7 if path in str(error) else 8)


def killed_at_every_point(kind, overwrite, folder, *, strace=True):
    """Give the folders in which writers were killed."""
    for way in [by_hooks] + [by_strace] * bool(strace and shutil.which("strace")):
        (folder / way.__name__).mkdir()
        way(kind, overwrite, folder / way.__name__)
        yield from sorted((folder / way.__name__).iterdir())


def fail_call(monkeypatch, when, number):
    """Let one of the calls that write fail; return a list that tells which one did."""
    from heatsketch._core import atomic_file as module

    rejected, count = [], [0]

    def failing(name, function):
        def call(*args, **options):
            count[0] += 1
            if count[0] == when + 1:
                rejected.append(name)
                raise OSError(number, os.strerror(number))
            return function(*args, **options)

        return call

    class Failing(io.FileIO):
        write = failing("write", io.FileIO.write)
        truncate = failing("truncate", io.FileIO.truncate)

    opener = lambda path, mode: io.BufferedRandom(Failing(path, "r+"))  # noqa: E731
    monkeypatch.setattr(module, "open", opener, raising=False)
    for name in ("fsync", "chmod", "replace", "rename", "link", "mkdir"):
        monkeypatch.setattr(module.os, name, failing(name, getattr(os, name)))
    plain_open, failing_open = Path.open, failing("open", Path.open)

    def opened(path, mode="r", *args, **options):
        writes = set(mode) & set("wxa+")
        return (failing_open if writes else plain_open)(path, mode, *args, **options)

    monkeypatch.setattr(Path, "open", opened)
    return rejected
