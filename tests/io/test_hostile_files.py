"""Hostile files, read in a process that forbids what they might do.

An audit hook sees every call to the system that Python makes: nothing may be executed, started,
connected, unpickled, imported or written while a file is read. Memory is bounded by the system.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bad_files import BAD_FILES, BAD_GRAPHS
from hostile_files import HOSTILE

HERE = Path(__file__).parents[1] / "_support"  # where the helpers are
RUN = Path("/tmp/heatsketch-was-run")
MIB = 2**20
BOUNDED = (".npy", ".csv", ".tsv", ".edges", ".mtx", ".heatsketch")  # not packed, see SECURITY.md
GUARDED = [*HOSTILE, *BAD_FILES, *BAD_GRAPHS]

# Every kind of file has been read once before the hook is there, so that what is imported lazily
# is there, too.
READER = """
import json, os, resource, sys, time
from pathlib import Path
import guarded_reading

folder = Path(sys.argv[1])
guarded_reading.warm_up(folder / "good")
guarded_reading.forbid()
for line in sys.stdin:
    print(json.dumps(guarded_reading.outcome(*json.loads(line))), flush=True)
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A process that reads what it is given, under guard."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "good").mkdir()
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=HERE,
        env=environment,
    )
    yield process
    process.stdin.close()
    process.stdout.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize("case", GUARDED)
def test_hostile_file_runs_nothing(case, reader, tmp_path):
    name, write, options = (HOSTILE | BAD_FILES | BAD_GRAPHS)[case]
    path = tmp_path / name
    write(path)
    options = options | ({"graph": True} if case in BAD_GRAPHS else {})
    size = path.stat().st_size if path.is_file() else 0
    reader.stdin.write(json.dumps([str(path), options]) + "\n")
    reader.stdin.flush()
    found = json.loads(reader.stdout.readline())
    assert found["forbidden"] == []
    assert found["typed"], found["error"]
    assert str(path) in found["error"]
    assert found["seconds"] < 10
    if path.suffix in BOUNDED:
        assert found["bytes"] <= 2 * size + 64 * MIB
    assert not RUN.exists()


def test_guard_detects_what_it_forbids(tmp_path):
    """Each of these is caught, or the others prove nothing."""
    code = "import guarded_reading as g; g.forbid(); g.misbehave(); print(sorted(set(g.SEEN)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True
    )
    seen = set(done.stdout.replace("'", "").strip("[]\n").split(", "))
    wanted = {"exec", "import", "open", "os.system", "pickle.find_class", "socket.connect"}
    assert wanted | {"subprocess.Popen"} <= seen
