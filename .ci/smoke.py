"""Check an installed heatsketch: the first example of the README, then a short part of the tests.

Needs the package and the dependency group "smoke" only, and takes about a minute.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = [
    "core/test_kernels.py",
    "diffusion/test_all_times.py",
    "diffusion/test_oracle.py",
    "diffusion/test_random_matrix.py",
    "diffusion/test_sketch.py",
    "persistence/test_storage.py",
]
# They compare speeds, need other packages (pandas, networkx), or need the command line.
LEFT_OUT = "costs or table or nodes or pickle or feature_names"


def main():
    """Run both from the root of the repository, and return whether one failed."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    paths = [f"tests/{name}" for name in FILES]
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"not ({LEFT_OUT})", *paths]
    where = "import heatsketch, sys; print(sys.version.split()[0], heatsketch.__file__)"
    commands = ["-c", where], ["-c", example], pytest
    return any(
        subprocess.run([sys.executable, *command], cwd=ROOT).returncode for command in commands
    )


if __name__ == "__main__":
    sys.exit(main())
