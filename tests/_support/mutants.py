"""Change the code of one module at a time, and count the changes that its tests notice.

    python tests/_support/mutants.py                    # every module, in hours
    python tests/_support/mutants.py compare smoothing  # these
    python tests/_support/mutants.py --part 2/6         # the second sixth of them

mutmut makes the changes in a copy of the last commit, in build/mutated. It runs in an environment
of its own, build/mutants, since an editable installation would hide the changed code. The tests run
in copies of a process that has only imported them: copies of one that has run them inherit locks
of its threads, wait for ever, and the change would count as noticed. They do not collect garbage at
the end, as pytest does for the sake of unraisable exceptions, which took most of the time. Tests
that take long and reach no line that others do not are left out, as under coverage, and one that
looks where a warning points: mutmut calls functions through a function of its own.
docs/benchmarks/mutants.json has the counts, and the names of the changes that no test noticed;
``mutmut show NAME`` in build/mutated/MODULE shows one. docs/developer/mutants.md has a table of the
counts, and judges the changes.
"""

import argparse
import json
import os
import shutil
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "benchmarks" / "mutants.json"
PAGE = ROOT / "docs" / "developer" / "mutants.md"
MARKS = "<!-- made by tests/_support/mutants.py -->\n", "<!-- until here -->"
# Each module against the tests of the same name, or those below.
MODULES = {
    "diffusion": "adapted_matrix affinity all_pairs all_times bandwidth chebyshev clusters compare "
    "confidence distances distortion drift duplicates harmonic heat_trace labels links "
    "normalization operator pair_search random_matrix sketch smoothing spectral vectors",
    "graph": "graph_affinity ivf joined metrics neighbors pairwise transformer_neighbors",
    "persistence": "container save_load schema",
}
FOLDERS = {name: folder for folder, names in MODULES.items() for name in names.split()}
TESTS = {
    "affinity": ["diffusion/test_affinity.py", "engines/test_dask_blocks.py"],
    "chebyshev": ["diffusion/test_chebyshev.py", "diffusion/test_sketch.py"],
    "clusters": ["diffusion/test_clusters.py", "estimators/test_heat_clustering.py"],
    "joined": ["diffusion/test_compare.py"],
    "labels": ["diffusion/test_labels.py", "estimators/test_heat_labels.py"],
    "links": ["diffusion/test_labels.py", "diffusion/test_harmonic.py"],
    "metrics": ["graph/test_metrics.py", "graph/test_neighbors.py", "graph/test_pairwise.py"],
    "operator": [
        "diffusion/test_operator.py",
        "diffusion/test_duplicates.py",
        "engines/test_dask_blocks.py",
    ],
    "save_load": ["persistence/test_save_load.py", "persistence/test_storage.py"],
    "schema": ["persistence/test_changed_files.py", "persistence/test_storage.py"],
    "sketch": ["diffusion/test_sketch.py", "diffusion/test_chebyshev.py"],
    "vectors": ["estimators/test_search.py"],
}
SETTINGS = """[mutmut]
source_paths = src
only_mutate = {module}
also_copy =
    README.md
    docs
    benchmarks
    examples
    pyproject.toml
process_isolation = forkserver
timeout_multiplier = 5
pytest_add_cli_args =
    --timeout=30
    -pno:unraisableexception
    -mnot untraced
    -knot points_at_the_caller
pytest_add_cli_args_test_selection =
{tests}
"""


def environment():
    """Return a folder with an environment for mutmut, and heatsketch in it."""
    folder = ROOT / "build" / "mutants"
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    subprocess.run([*pip, "--group", "mutants", "."], cwd=ROOT, check=True)
    return folder


def tests_of(name):
    return TESTS.get(name, [f"{FOLDERS[name]}/test_{name}.py"])


def mutated(name, folder):
    """Return how many changes of a module there are, and what became of them."""
    tree = ROOT / "build" / "mutated" / name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    files = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=tree, input=files, check=True)
    for library in folder.glob("lib/python*/site-packages/heatsketch/_core/kernels/*.so"):
        shutil.copy(library, tree / "src" / "heatsketch" / "_core" / "kernels")
    module = f"src/heatsketch/{FOLDERS[name]}/_{name}.py"
    lines = "\n".join(f"    tests/{path}" for path in tests_of(name))
    (tree / "setup.cfg").write_text(SETTINGS.format(module=module, tests=lines))
    mutmut = folder / "bin" / "mutmut"
    subprocess.run([mutmut, "run", "--max-children", str(os.cpu_count())], cwd=tree, check=True)
    subprocess.run([mutmut, "export-cicd-stats"], cwd=tree, check=True, capture_output=True)
    counts = json.loads((tree / "mutants" / "mutmut-cicd-stats.json").read_text())
    shown = subprocess.run(
        [mutmut, "results"], cwd=tree, check=True, capture_output=True, text=True
    )
    alive = [line.split(":")[0].strip() for line in shown.stdout.splitlines() if "survived" in line]
    # A change that makes the tests run for ever, or crash, is noticed too.
    n_run = counts["total"] - counts["skipped"] - counts["no_tests"]
    return {
        "mutants": n_run,
        "killed": n_run - counts["survived"],
        "timed out": counts["timeout"],
        "without tests": counts["no_tests"],
        "alive": [line.rpartition(".")[2] for line in alive],
    }


def with_table(text, results):
    """Return the page with a table of all modules that were run."""
    names = "module", "tests", "mutants", "killed", "", "timed out", "not run"
    rows = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, found in results.items():
        tests = ", ".join(f"`{path}`" for path in tests_of(name))
        share = found["killed"] / found["mutants"]
        rest = found.get("timed out", "?"), found.get("without tests", "?")
        cells = f"`{name}`", tests, found["mutants"], found["killed"], f"{share:.0%}", *rest
        rows.append(f"| {' | '.join(map(str, cells))} |")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1], 1)[1]
    return "".join([before, MARKS[0], "\n", "\n".join(rows), "\n\n", MARKS[1], after])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(FOLDERS))
    parser.add_argument("--part", default="1/1", help="which part of them, such as 2/6")
    options = parser.parse_args()
    part, n_parts = map(int, options.part.split("/"))
    folder = environment()
    for name in [*(options.modules or FOLDERS)][part - 1 :: n_parts]:
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        found[name] = mutated(name, folder)
        found = dict(sorted(found.items()))
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
        print(name, found[name]["killed"], "of", found[name]["mutants"])


if __name__ == "__main__":
    main()
