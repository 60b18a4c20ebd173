"""The command line in its own process: signals, pipes, full disks, terminals, memory."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from registry import circle

from heatsketch import HeatSketch, __version__
from heatsketch.cli._exit_codes import ExitCode

HEATSKETCH = [sys.executable, "-m", "heatsketch"]
ROOT = Path(__file__).parents[2]
LONG = "embed points.npy -o out.npy --model m.heatsketch --power 20000"


def start(arguments, folder, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([*HEATSKETCH, *arguments.split()], cwd=folder, **options)


@pytest.fixture(scope="module")
def long_work(tmp_path_factory):
    """Points on which the command of LONG keeps two cores busy for many seconds."""
    folder = tmp_path_factory.mktemp("long")
    np.save(folder / "points.npy", np.random.default_rng(0).normal(size=(40_000, 4)).astype("f4"))
    return folder


@pytest.fixture
def workspace(tmp_path):
    np.save(tmp_path / "points.npy", circle(3000).astype(np.float32))
    return tmp_path


# --- signals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_signals_leave_no_half_written_output(long_work, number, code):
    process = start(f"{LONG} --progress", long_work)
    for line in process.stderr:
        if "diffusion" in line:
            break
    assert list(long_work.glob(".out.npy.*.part"))  # the output is open
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in stderr
    assert [path.name for path in long_work.iterdir()] == ["points.npy"]


# --- outputs ----------------------------------------------------------------------------------


def limit_of_file_size(size):
    """Return a function that makes files of a new process as small as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_leaves_no_output(workspace):
    full = limit_of_file_size(100_000)
    process = start("embed points.npy -o out.npy --json", workspace, preexec_fn=full)
    stdout, _ = process.communicate(timeout=100)
    assert process.returncode == json.loads(stdout)["exit_code"] == 5
    assert [path.name for path in workspace.iterdir()] == ["points.npy"]


def test_results_to_a_full_disk_and_into_a_closed_pipe(workspace):
    HeatSketch(4, power=2, n_neighbors=5).fit(circle(50)).save(workspace / "m.heatsketch")
    with (workspace / "result.tsv").open("w") as file:
        full = limit_of_file_size(10)
        process = start("distances m.heatsketch 0 1", workspace, stdout=file, preexec_fn=full)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 5
    assert stderr.splitlines()[-1].startswith("error: ")
    process = start("distances m.heatsketch 0 1", workspace)
    process.stdout.close()  # as head does, once it has its lines
    with process.stderr:
        assert (process.wait(timeout=60), process.stderr.read()) == (141, "")


# --- memory -----------------------------------------------------------------------------------

# What a system counts for a process includes its parent; VmHWM of Linux does not.
PEAK = """
import atexit, sys
from heatsketch.cli import app

def show():
    with open("/proc/self/status") as file:
        print(next(line.split()[1] for line in file if line.startswith("VmHWM")), file=sys.stderr)

atexit.register(show)
app()
"""


def peak_of(arguments, folder):
    """Run a command, and return its JSON object and its peak memory."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments.split(), "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout), int(done.stderr.splitlines()[-1]) * 1024


@pytest.mark.untraced
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_transform_streams_a_table_larger_than_its_memory(tmp_path):
    X, n_rows = np.random.default_rng(0).normal(size=(100, 1000)).astype("f4"), 150_000
    HeatSketch(2, power=2).fit(X).save(tmp_path / "m.heatsketch")
    np.save(tmp_path / "few.npy", X)
    _, usual = peak_of("transform m.heatsketch few.npy -o few_out.npy", tmp_path)
    many = np.lib.format.open_memmap(tmp_path / "many.npy", "w+", "f4", (n_rows, 1000))
    for first in range(0, n_rows, len(X)):
        many[first : first + len(X)] = X
    del many
    printed, peak = peak_of("transform m.heatsketch many.npy -o out.npy", tmp_path)
    assert printed["rows"] == n_rows
    assert peak < (tmp_path / "many.npy").stat().st_size
    assert peak - usual < 2**28
    last = np.load(tmp_path / "out.npy", mmap_mode="r")[-len(X) :]
    np.testing.assert_allclose(last, np.load(tmp_path / "few_out.npy"), rtol=1e-5, atol=1e-5)


@pytest.mark.untraced
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("neighbors", ["15", pytest.param("all", marks=pytest.mark.nightly)])
def test_estimates_of_memory_agree_and_the_limit_holds(tmp_path, neighbors):
    np.savetxt(tmp_path / "a.csv", circle(1200), delimiter=",", header="x,y", comments="")
    options = f"--neighbors {neighbors}"
    estimate = peak_of(f"embed a.csv -o out.npy --dry-run {options}", tmp_path)[0][
        "estimated_bytes"
    ]
    plan, _ = peak_of(f"plan --n 1200 --d 2 --dtype float64 {options}", tmp_path)
    assert plan["memory_bytes"] == pytest.approx(estimate, rel=0.05)
    command = f"embed a.csv -o out.npy {options} --memory-limit"
    error, _ = peak_of(f"{command} {int(0.95 * estimate)}", tmp_path)
    assert error["exit_code"] == 6
    limit = int(1.02 * estimate)
    printed, peak = peak_of(f"{command} {limit}", tmp_path)
    assert 0.75 * printed["estimated_bytes"] < peak < 1.1 * limit


# --- start ------------------------------------------------------------------------------------


def test_the_version_is_printed_without_importing_numpy():
    code = (
        "import sys; from heatsketch.cli import app\n"
        "try: app(['--version'])\n"
        "finally: print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == f"{__version__}\n[]\n"


def test_examples_and_exit_codes_of_the_page_are_true(tmp_path):
    """All examples run, in one shell."""
    page = (ROOT / "docs" / "how_to" / "command_line.md").read_text()
    scripts = re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
    program = tmp_path / "bin" / "heatsketch"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m heatsketch "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", "\n".join(scripts)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "p0\tp2\t" in done.stdout
    assert set(re.findall(r"^\| (\d+) \|", page, re.M)) == {str(int(code)) for code in ExitCode}
