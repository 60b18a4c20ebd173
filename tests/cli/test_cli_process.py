"""The command line in processes of its own: signals, pipes, full disks, terminals, shells."""

import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from registry import circle

from heatsketch import __version__
from heatsketch.cli._exit_codes import EXIT_CODES

HEATSKETCH = [sys.executable, "-m", "heatsketch"]
ROOT = Path(__file__).parents[2]


def start(arguments, folder, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([*HEATSKETCH, *arguments.split()], cwd=folder, **options)


@pytest.fixture(scope="module")
def long_work(tmp_path_factory):
    """Points that heat of a long time keeps two cores busy with for many seconds."""
    folder = tmp_path_factory.mktemp("long")
    np.save(folder / "points.npy", np.random.default_rng(0).normal(size=(40_000, 4)).astype("f4"))
    return folder


LONG = "embed points.npy -o out.npy --model m.heatsketch --power 20000 --progress"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_in_the_middle_leaves_nothing_behind(long_work, number, code):
    process = start(f"{LONG} --json", long_work)
    for line in process.stderr:
        if "s left" in line:
            break
    assert list(long_work.glob(".out.npy.*.part"))  # the output has begun
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in stderr
    if number == signal.SIGINT:
        result = json.loads(stdout)
        assert (result["type"], result["exit_code"]) == ("KeyboardInterrupt", 130)
    assert [path.name for path in long_work.iterdir()] == ["points.npy"]


# Presses Ctrl-C when a module is looked for.
INTERRUPT = """
import os, signal, sys
wanted = sys.argv.pop(1)

class Finger:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finger())
from heatsketch_program import main
main()
"""


@pytest.mark.parametrize("module", ["numpy", "scipy.stats", "heatsketch.cli", "typer"])
def test_an_interrupt_while_loading_is_one_line(module):
    words = [sys.executable, "-c", INTERRUPT, module, "transform", "a", "b", "-o", "c"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "error: interrupted; no output is left half written.\n"
    done = subprocess.run([*words, "--json"], capture_output=True, text=True)
    assert json.loads(done.stdout)["exit_code"] == done.returncode == 130
    assert done.stderr == ""


def test_the_program_runs_and_listens_again():
    code = (
        "import signal, sys; sys.argv[1:] = ['--version']\n"
        "from heatsketch_program import main\n"
        "try: main()\n"
        "finally: assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


# What a system counts for a process includes what started it; what Linux tells of itself does not.
PEAK = """
import atexit, sys
from heatsketch.cli import app

def say():
    with open("/proc/self/status") as file:
        print(next(line.split()[1] for line in file if line.startswith("VmHWM")), file=sys.stderr)

atexit.register(say)
app()
"""


@pytest.mark.untraced
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("neighbors", ["15", pytest.param("all", marks=pytest.mark.nightly)])
def test_all_forecasts_of_a_small_job_are_one_and_it_keeps_to_its_limit(tmp_path, neighbors):
    np.savetxt(tmp_path / "a.csv", circle(1200), delimiter=",", header="x,y", comments="")

    def answer(arguments):
        words = f"{arguments} --neighbors {neighbors} --json".split()
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *words], cwd=tmp_path, capture_output=True, text=True
        )
        return json.loads(done.stdout), int(done.stderr) * 1024

    bytes_of_dry_run = answer("embed a.csv -o out.npy --dry-run")[0]["bytes"]
    plan, _ = answer("plan --n 1200 --d 2 --dtype float64")
    assert plan["bytes"] == pytest.approx(bytes_of_dry_run, rel=0.05)
    low, enough = int(0.95 * bytes_of_dry_run), int(1.02 * bytes_of_dry_run)
    error, _ = answer(f"embed a.csv -o out.npy --memory-limit {low}")
    quoted = float(re.search(r"about (\d+) MiB", error["error"])[1]) * 2**20
    assert quoted == pytest.approx(bytes_of_dry_run, rel=0.02)
    done, peak = answer(f"embed a.csv -o out.npy --memory-limit {enough}")
    assert done["output"] == "out.npy"
    assert 0.75 * done["estimated_bytes"] < peak < 1.1 * enough


@pytest.fixture
def workspace(tmp_path):
    np.save(tmp_path / "points.npy", circle(3000).astype(np.float32))
    return tmp_path


def test_a_terminal_sees_bars(long_work):
    ours, theirs = pty.openpty()
    process = start(LONG.replace(" --progress", ""), long_work, stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"neighbours" not in seen and b"diffusion" not in seen:
        ready, _, _ = select.select([ours], [], [], 60)
        assert ready, seen
        seen += os.read(ours, 10_000)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 130
    assert b"of memory." in seen
    assert b"%" in seen


def on_terminal(arguments, folder, **environment):
    """Run a command whose standard error is a terminal, and return what that shows."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "90", **environment}
    process = start(arguments, folder, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 10_000)
        except OSError:  # it has ended
            break
    process.communicate(timeout=60)
    os.close(ours)
    return seen.decode()


def test_one_bar_ends_at_100_percent(workspace):
    shown = on_terminal("embed points.npy -o out.npy -k 4", workspace)
    parts = [int(part) for part in re.findall(r"(\d+)%", shown)]
    assert parts == sorted(parts)
    assert parts[-1] == 100
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).strip().split("\r")[-1]
    assert re.fullmatch(r"embed: done +━+ 100% 0:00:\d\d", last.splitlines()[-1])


def test_colours_are_for_terminals(workspace):
    wrong = "embed nowhere.npy -o out.npy"
    assert on_terminal(wrong, workspace).startswith("\x1b[31m\x1b[1merror:\x1b[0m cannot read ")
    assert on_terminal(wrong, workspace, NO_COLOR="1").startswith("error: cannot read ")
    _, stderr = start(wrong, workspace).communicate(timeout=60)
    assert stderr.startswith("error: cannot read ")


def test_the_version_needs_no_numbers():
    """Which take longer to import than all else."""
    code = (
        "import sys; from heatsketch.cli import app\n"
        "try: app(['--version'])\n"
        "finally: print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == f"{__version__}\n[]\n"


def test_a_limit_of_the_file_size_is_a_full_disk(workspace):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = start("embed points.npy -o out.npy --json", workspace, preexec_fn=small_files)
    stdout, _ = process.communicate(timeout=100)
    result = json.loads(stdout)
    assert process.returncode == result["exit_code"] == 5
    assert result["error"].startswith("cannot write out.npy: File too large")
    assert [path.name for path in workspace.iterdir()] == ["points.npy"]


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_full_disk(workspace):
    """The system says so when the embedding is forced to the disk."""
    inject = ["strace", "-f", "-o", os.devnull, "-e", "inject=fsync:error=ENOSPC:when=1"]
    command = [*inject, *HEATSKETCH, "embed", "points.npy", "-o", "out.npy", "--k", "4"]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=200)
    if "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    assert done.returncode == 5
    assert done.stderr == (
        "error: cannot write out.npy: No space left on device; "
        "free some space, or use another disk.\n"
    )
    assert [path.name for path in workspace.iterdir()] == ["points.npy"]


def test_results_to_a_full_disk_and_into_a_closed_pipe(workspace):
    from heatsketch import HeatSketch

    HeatSketch(4, power=2, n_neighbors=5).fit(circle(50)).save(workspace / "m.heatsketch")
    with open("/dev/full", "w") as full:
        process = start("distances m.heatsketch 0 1", workspace, stdout=full)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 5
    assert stderr == (
        "error: cannot write the standard output: No space left on device; use another disk.\n"
    )
    process = start("distances m.heatsketch 0 1", workspace)
    process.stdout.close()  # as head does, once it has its lines
    with process.stderr:
        assert (process.wait(timeout=60), process.stderr.read()) == (141, "")


def test_without_typer_the_remedy_is_printed():
    code = "import sys; sys.modules['typer'] = None; import heatsketch.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == 'The command line needs typer and rich: pip install "heatsketch[cli]".\n'


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("heatsketch em", "embed"), ("embed a --dr", "--dry-run"), ("embed a --metric co", "cosine")],
)
def test_the_shell_completes(typed, offered):
    words = typed if typed.startswith("heatsketch") else f"heatsketch {typed}"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    environment = {**os.environ, **asked, "_HEATSKETCH_COMPLETE": "complete_bash"}
    code = "from heatsketch.cli import app; app(prog_name='heatsketch')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert offered in done.stdout.split()


@pytest.mark.untraced
def test_many_rows_show_progress_keep_to_their_memory_and_are_those_of_the_api():
    """The million of benchmarks/command_line.py, a thirtieth of it."""
    script = ROOT / "benchmarks" / "command_line.py"
    done = subprocess.run(
        [sys.executable, script, "--points", "30000"], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_says_what_is_so(tmp_path):
    """Its examples run, in one shell, and its exit codes are those of the program."""
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
    assert "Memory: about" in done.stdout
    assert "p0\tp2\t" in done.stdout
    assert set(re.findall(r"^\| (\d+) \|", page, re.M)) == {str(int(code)) for code in EXIT_CODES}
