"""Change the code of one module at a time, and count the changes that its tests notice.

    python tests/_support/mutants.py                    # every module, in hours
    python tests/_support/mutants.py compare smoothing  # these

mutmut makes the changes in a copy of the last commit, in build/mutated. ``heatsketch`` must be
installed beside it and not be editable, since the finder of an editable installation would hide
the changed code; ``make mutants`` has an environment of its own. docs/benchmarks/mutants.json has
the counts, and the names of the changes that no test noticed; ``mutmut show NAME`` in
build/mutated/MODULE shows one. docs/developer/mutants.md has a table of the counts, and judges the
changes.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import heatsketch

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "benchmarks" / "mutants.json"
PAGE = ROOT / "docs" / "developer" / "mutants.md"
MARKS = "<!-- made by tests/_support/mutants.py -->\n", "<!-- until here -->"
DIFFUSION = "src/heatsketch/diffusion"
# Each module against the tests that are about it alone.
MODULES = {
    "affinity": (f"{DIFFUSION}/_affinity.py", ["diffusion/test_affinity.py"]),
    "normalization": (f"{DIFFUSION}/_normalization.py", ["diffusion/test_normalization.py"]),
    "operator": (f"{DIFFUSION}/_operator.py", ["diffusion/test_operator.py"]),
    "random_matrix": (f"{DIFFUSION}/_random_matrix.py", ["diffusion/test_random_matrix.py"]),
    "sketch": (
        f"{DIFFUSION}/_sketch.py",
        ["diffusion/test_sketch.py", "diffusion/test_chebyshev.py"],
    ),
    "all_times": (f"{DIFFUSION}/_all_times.py", ["diffusion/test_all_times.py"]),
    "distances": (f"{DIFFUSION}/_distances.py", ["diffusion/test_distances.py"]),
    "compare": (f"{DIFFUSION}/_compare.py", ["diffusion/test_compare.py"]),
    "harmonic": (f"{DIFFUSION}/_harmonic.py", ["diffusion/test_harmonic.py"]),
    "labels": (f"{DIFFUSION}/_labels.py", ["diffusion/test_labels.py"]),
    "smoothing": (f"{DIFFUSION}/_smoothing.py", ["diffusion/test_smoothing.py"]),
    "clusters": (
        f"{DIFFUSION}/_clusters.py",
        ["diffusion/test_clusters.py", "estimators/test_heat_clustering.py"],
    ),
    "vectors": (f"{DIFFUSION}/_vectors.py", ["estimators/test_search.py"]),
    "neighbors": ("src/heatsketch/graph/_neighbors.py", ["graph/test_neighbors.py"]),
    "graph_affinity": ("src/heatsketch/graph/_graph_affinity.py", ["graph/test_graph_affinity.py"]),
    "container": (
        "src/heatsketch/persistence/_container.py",
        ["persistence/test_storage.py", "persistence/test_changed_files.py"],
    ),
    "save_load": (
        "src/heatsketch/persistence/_save_load.py",
        ["persistence/test_storage.py", "persistence/test_changed_files.py"],
    ),
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
pytest_add_cli_args = --timeout=120
pytest_add_cli_args_test_selection =
{tests}
"""


def mutated(name):
    """Return how many changes of a module there are, and what became of them."""
    module, tests = MODULES[name]
    tree = ROOT / "build" / "mutated" / name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    files = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=tree, input=files, check=True)
    kernels = Path(heatsketch.__file__).parent / "_core" / "kernels"
    for library in kernels.glob("*.so"):
        shutil.copy(library, tree / "src" / "heatsketch" / "_core" / "kernels")
    lines = "\n".join(f"    tests/{path}" for path in tests)
    (tree / "setup.cfg").write_text(SETTINGS.format(module=module, tests=lines))
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "run", "--max-children", "2"], cwd=tree, check=True)
    subprocess.run([mutmut, "export-cicd-stats"], cwd=tree, check=True, capture_output=True)
    counts = json.loads((tree / "mutants" / "mutmut-cicd-stats.json").read_text())
    shown = subprocess.run(
        [mutmut, "results"], cwd=tree, check=True, capture_output=True, text=True
    )
    alive = [line.split(":")[0].strip() for line in shown.stdout.splitlines() if "survived" in line]
    # A change that makes the tests run on for ever, or crash, is noticed too.
    n_run = counts["total"] - counts["skipped"] - counts["no_tests"]
    return {
        "mutants": n_run,
        "killed": n_run - counts["survived"],
        "without tests": counts["no_tests"],
        "alive": [line.rpartition(".")[2] for line in alive],
    }


def with_table(text, results):
    """Return the page with a table of all modules that were run."""
    rows = ["| module | tests | mutants | killed | |", "|---|---|---|---|---|"]
    for name, found in results.items():
        tests = ", ".join(f"`{path}`" for path in MODULES[name][1])
        share = found["killed"] / found["mutants"]
        rows.append(
            f"| `{name}` | {tests} | {found['mutants']} | {found['killed']} | {share:.0%} |"
        )
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1], 1)[1]
    return "".join([before, MARKS[0], "\n", "\n".join(rows), "\n\n", MARKS[1], after])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    for name in parser.parse_args().modules or MODULES:
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        found[name] = mutated(name)
        found = dict(sorted(found.items()))
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
        print(name, found[name]["killed"], "of", found[name]["mutants"])


if __name__ == "__main__":
    main()
