"""The first minute: a wheel in a new environment, a first fit, and the command line.

Builds the wheel, installs it into an empty environment, and measures there what a new user waits
for: import, first fit of the digits and first transform, in one process; ``heatsketch --version``
and ``--help``; ``heatsketch embed`` of the digits as CSV. Medians of five processes after one that
reads the disk. Also the size of what is installed.
"""

import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits
from timing import write

ROOT = Path(__file__).parent.parent
FIRST_FIT = """
from time import perf_counter
start = perf_counter()
from heatsketch import HeatSketch
imported = perf_counter()
import numpy as np
X = np.load("digits.npy")
begun = perf_counter()
model = HeatSketch().fit(X)
fitted = perf_counter()
model.transform(X[:10])
print(imported - start, fitted - begun, perf_counter() - fitted)
"""


def took(call, folder):
    start = perf_counter()
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        call, cwd=folder, env=variables, check=True, capture_output=True, text=True
    )
    return perf_counter() - start, done.stdout


def medians(call, folder, *, inside=False):
    """Return the median seconds of a call, or of each of the seconds that it prints."""
    rows = []
    for _ in range(6):
        seconds, printed = took(call, folder)
        rows.append([float(word) for word in printed.split()] if inside else [seconds])
    return [round(statistics.median(column), 3) for column in zip(*rows[1:], strict=True)]


def size_of(folder):
    return round(sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 2**20)


def main():
    with TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--quiet"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, ROOT], check=True)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "env", with_pip=True)
        python, program = (folder / "env" / "bin" / name for name in ("python", "heatsketch"))
        bare = size_of(folder / "env")
        installing, _ = took([python, "-m", "pip", "install", "--quiet", wheel], folder)
        core = size_of(folder / "env")
        X = load_digits().data
        np.save(folder / "digits.npy", X)
        names = ",".join(f"pixel{place}" for place in range(X.shape[1]))
        np.savetxt(folder / "digits.csv", X, delimiter=",", fmt="%g", header=names, comments="")
        bare_import = [python, "-c", "import sklearn.base"]
        first = medians([python, "-c", FIRST_FIT], folder, inside=True)
        before = medians(bare_import, folder)[0]
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", f"{wheel}[cli,files]"], check=True
        )
        embed = [program, "embed", "digits.csv", "-o", "out.csv", "--overwrite"]
        results = {
            "wheel MiB": round(wheel.stat().st_size / 2**20, 2),
            "installed MiB, with dependencies": core - bare,
            "installation, seconds": round(installing, 1),
            "import, first fit of digits, first transform: seconds": first,
            "all three": round(sum(first), 3),
            "import sklearn.base alone": before,
            "heatsketch --version": medians([program, "--version"], folder)[0],
            "heatsketch --help": medians([program, "--help"], folder)[0],
            "heatsketch embed digits.csv": medians(embed, folder)[0],
            "import sklearn.base alone, with pandas installed": medians(bare_import, folder)[0],
        }
    write("first_minute", results)


if __name__ == "__main__":
    main()
