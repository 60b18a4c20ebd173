"""Print what heatsketch with all extras and some dependency groups need, heatsketch left out."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main():
    """Print a requirement on each line."""
    file = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = file["project"], file["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    lists += [groups[name] for name in sys.argv[1:]]
    wanted = {requirement for needed in lists for requirement in needed}
    print(*sorted(name for name in wanted if not name.startswith("heatsketch")), sep="\n")


if __name__ == "__main__":
    main()
