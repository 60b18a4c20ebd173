"""Change a module, one expression at a time, and count the changes that tests notice.

    python tests/_support/mutants.py uses/_compare tests/uses/test_compare.py [MORE TESTS]

mutmut makes the changes in a copy of the last commit, in build/mutated. It runs in an environment
of its own, build/mutants, since an editable installation would hide the changed code. Tests that
take long and reach no line that others do not are left out.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = """[mutmut]
source_paths = src
only_mutate = src/heatsketch/{module}.py
also_copy =
    README.md
    docs
    benchmarks
    examples
    paper
    pyproject.toml
process_isolation = forkserver
timeout_multiplier = 5
pytest_add_cli_args =
    --timeout=30
    -pno:unraisableexception
    -mnot untraced
pytest_add_cli_args_test_selection =
{tests}
"""


def main(module, *tests):
    folder, tree = ROOT / "build" / "mutants", ROOT / "build" / "mutated"
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    subprocess.run([*pip, "--group", "mutants", "."], cwd=ROOT, check=True)
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    for library in folder.glob("lib/python*/site-packages/heatsketch/_core/kernels/*.so"):
        shutil.copy(library, tree / "src" / "heatsketch" / "_core" / "kernels")
    lines = "\n".join(f"    {path}" for path in tests)
    (tree / "setup.cfg").write_text(SETTINGS.format(module=module, tests=lines))
    mutmut = folder / "bin" / "mutmut"
    subprocess.run([mutmut, "run", "--max-children", str(os.cpu_count())], cwd=tree, check=True)
    subprocess.run([mutmut, "results"], cwd=tree, check=True)  # names of those that live


if __name__ == "__main__":
    main(*sys.argv[1:])
