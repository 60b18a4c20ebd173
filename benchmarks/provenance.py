"""Which code a result comes from: the commit, and the versions of the libraries."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("heatsketch", "numpy", "scipy", "scikit-learn", "faiss-cpu", "umap-learn")


def provenance(*more):
    """Return commit and versions, to be written beside results."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return {
        "commit": found.stdout.strip(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in (*LIBRARIES, *more) if _version(name)},
    }


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
