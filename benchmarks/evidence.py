"""Run every benchmark whose results are under docs/benchmarks, and record commit and versions.

::

    python benchmarks/evidence.py              # all that is out of date, in hours
    python benchmarks/evidence.py small chaos  # these, if out of date
    python benchmarks/evidence.py --list       # what is out of date

``docs/benchmarks/evidence.json`` has, for each script, the commit that it ran on, the versions of
the libraries, and the digests of the files that it wrote. A script is up to date if these files
are unchanged, and if neither ``src`` nor the script changed since that commit. Not counted are
changes of comments and docstrings, changes of what is only for Dask if the script does not use it,
and commits whose message ends with a line such as ``Results: unchanged, since ...``, with a reason.
An interrupted call continues where it stopped. Changes that are not committed are an error. Runs
that take hours each have to be named.
"""

import argparse
import ast
import json
import os
import platform
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HELPERS = ["benchmarks/timing.py", "benchmarks/data.py", "benchmarks/usefulness_data.py"]
LIBRARIES = [
    "numpy",
    "scipy",
    "scikit-learn",
    "dask",
    "faiss-cpu",
    "pynndescent",
    "scanpy",
    "umap-learn",
]


class Script(NamedTuple):
    """A call, the files in docs/benchmarks that it writes, and when and how it runs.

    One that ``continues`` keeps the rows that are in its files. One that runs ``only_by_name``
    takes hours, and is left out where no names are given.
    """

    call: str
    files: list[str]
    continues: bool = False
    only_by_name: bool = False


SCRIPTS = {
    "small": Script("benchmarks/small.py", ["small.json"]),
    "eigenpairs": Script("benchmarks/eigenpairs.py", ["eigenpairs.json"]),
    "products": Script("benchmarks/products.py", ["products.json"]),
    "powers": Script("benchmarks/powers.py", ["powers.json"]),
    "constants": Script("benchmarks/constants.py", ["constants.json"]),
    "first_minute": Script("benchmarks/first_minute.py", ["first_minute.json"]),
    "ties": Script("benchmarks/ties.py", ["ties.json"]),
    "limits": Script("benchmarks/limits.py", ["limits.json"]),
    "tiles": Script("benchmarks/tiles.py", ["tiles.json"]),
    "accessibility": Script("benchmarks/accessibility.py", ["accessibility.json"]),
    "compare": Script(
        "benchmarks/compare.py --level 1000 --power 200 --flags 400 --size 2000000",
        ["compare.json"],
    ),
    "labels": Script(
        "benchmarks/labels.py --accuracy --coverage --rare --suspects --scale --fates --fresh",
        ["labels.json"],
    ),
    "fates": Script("benchmarks/fates.py", ["fates.json"]),
    "search": Script("benchmarks/search.py", ["search.json"], True),
    "search_million": Script("benchmarks/search.py --million", ["search_million.json"]),
    "smooth": Script("benchmarks/smooth.py", ["smooth.json"]),
    "smooth_million": Script("benchmarks/smooth.py --million", ["smooth_million.json"]),
    "cluster_quality": Script("benchmarks/cluster_quality.py", ["cluster_quality.json"], True),
    "cluster_million": Script("benchmarks/cluster_quality.py --million", ["cluster_million.json"]),
    "report": Script("benchmarks/report.py", ["report.json"]),
    "epsilon": Script("benchmarks/epsilon.py", ["epsilon.json"], only_by_name=True),
    "all_times": Script("benchmarks/all_times.py", ["all_times.json"]),
    "selection": Script("benchmarks/selection.py", ["selection.json"]),
    "drift_level": Script("benchmarks/drift_level.py", ["drift_level.json"]),
    "pseudotime": Script("benchmarks/pseudotime.py", ["pseudotime.json"]),
    "pseudotime_time": Script("benchmarks/pseudotime.py --time", ["pseudotime_time.json"]),
    "graphs": Script("benchmarks/graphs.py", ["graphs.json"]),
    "million": Script("benchmarks/million.py", ["million.json"]),
    "scaling": Script("benchmarks/scaling.py", ["scaling.json", "scaling.png"]),
    "usefulness": Script("benchmarks/usefulness.py --ours", ["usefulness.json"]),
    "isometry": Script(
        "benchmarks/isometry.py", ["isometry.json", "isometry.md", "isometry"], True
    ),
    "cluster-calibration": Script(
        "benchmarks/scale_page.py --calibrate", ["cluster-calibration.json"]
    ),
    "cluster-grid": Script(
        "benchmarks/cluster_grid.py", ["cluster-grid.json"], True, only_by_name=True
    ),
    "cluster": Script("benchmarks/cluster.py", ["cluster.json"], True, only_by_name=True),
    "chaos": Script("benchmarks/chaos.py", ["chaos.json"], True, only_by_name=True),
    "fuzzing": Script("tests/_support/fuzz_readers.py", ["fuzzing.json"], True),
    "mutants": Script("tests/_support/mutants.py", ["mutants.json"], only_by_name=True),
}
PAGES = "benchmarks/page.py", "benchmarks/uses_page.py"


def results():
    return ROOT / "docs" / "benchmarks"


def git(*arguments):
    call = ["git", *arguments]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def recorded():
    path = results() / "evidence.json"
    return json.loads(path.read_text()) if path.exists() else {}


def record(name, entry):
    everything = dict(sorted((recorded() | {name: entry}).items()))
    (results() / "evidence.json").write_text(json.dumps(everything, indent=2) + "\n")


def digests(script):
    """Return the digest of each file, and of those in folders, that is there."""
    given = [results() / name for name in script.files]
    paths = [path for one in given for path in ([one] if one.is_file() else sorted(one.rglob("*")))]
    files = [path for path in paths if path.is_file()]
    return {
        str(path.relative_to(results())): sha256(path.read_bytes()).hexdigest() for path in files
    }


def is_current(script, entry):
    """Return True if nothing that a result depends on changed since it was written."""
    if "files" not in entry or entry["files"] != digests(script):
        return False
    path = script.call.split()[0]
    paths = ["src", path, *HELPERS]
    if "DaskEngine" not in (ROOT / path).read_text():
        paths.append(":(exclude)src/heatsketch/engines/_dask")
    since = entry["commit"]
    changed = git("diff", "--name-only", "--no-renames", since, "HEAD", "--", *paths).splitlines()
    return all(
        has_same_code(path, since, "HEAD")
        or all(
            keeps_results(commit, path)
            for commit in git("rev-list", f"{since}..HEAD", "--", path).split()
        )
        for path in changed
    )


def keeps_results(commit, path):
    """Return True if the message of a commit says so, or if it changes no code of a file."""
    reason = git("log", "-1", "--format=%(trailers:key=Results,valueonly)", commit)
    return reason.startswith("unchanged, ") or has_same_code(path, f"{commit}^", commit)


def has_same_code(path, old, new):
    there = [git("ls-tree", "--name-only", commit, "--", path) for commit in (old, new)]
    return path.endswith(".py") and all(there) and code(path, old) == code(path, new)


def code(path, commit):
    """Return what a Python file executes: its syntax tree without docstrings."""
    tree = ast.parse(git("show", f"{commit}:{path}"))
    for node in ast.walk(tree):
        described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, described) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)


def about():
    """Return what a result depends on."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    versions = {"python": platform.python_version()} | found
    return {
        "commit": git("rev-parse", "HEAD"),
        "versions": versions,
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }


def begin(name, script):
    """Delete rows of other commits that a script would keep, and record that it started."""
    entry = recorded().get(name, {})
    goes_on = "files" not in entry and entry.get("commit") == git("rev-parse", "HEAD")
    if script.continues and not goes_on:
        for path in (results() / file for file in script.files):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    record(name, about())


def run(name, script):
    """Return True if the script succeeded."""
    begin(name, script)
    start = perf_counter()
    failed = subprocess.run([sys.executable, *script.call.split()], cwd=ROOT).returncode
    if not failed:
        seconds = round(perf_counter() - start)
        record(name, about() | {"seconds": seconds, "files": digests(script)})
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SCRIPTS)}")
    parser.add_argument("--list", action="store_true", help="print what is out of date")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SCRIPTS):
        parser.error(f"no script is called {', '.join(sorted(unknown))}")
    if not options.list and git("status", "--porcelain", "--", "src", "benchmarks"):
        sys.exit("src or benchmarks has changes that are not committed: commit them first.")
    old = [
        name
        for name in options.names or [n for n in SCRIPTS if not SCRIPTS[n].only_by_name]
        if not is_current(SCRIPTS[name], recorded().get(name, {}))
    ]
    print(f"out of date: {', '.join(old) or 'nothing'}", flush=True)
    if options.list or not old:
        return 0
    failed = []
    for name in old:
        print(f"== {name}", flush=True)
        if not run(name, SCRIPTS[name]):
            failed.append(name)
    for page in [] if failed else PAGES:  # which need every result
        subprocess.run([sys.executable, page], cwd=ROOT, check=True)
    print(f"evidence: {len(old) - len(failed)} of {len(old)} done; failed: {failed or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
