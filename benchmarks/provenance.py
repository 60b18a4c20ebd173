"""Which code a result comes from: the commit, and the versions of the libraries."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("heatsketch", "numpy", "scipy", "scikit-learn", "faiss-cpu", "umap-learn")


def commit():
    """Return the commit, with "-dirty" if code of the library or of benchmarks differs from it."""
    changed = _git("status", "--porcelain", "--", ".", "../src")
    return _git("rev-parse", "--short", "HEAD") + "-dirty" * bool(changed)


def _git(*words):
    here = Path(__file__).parent
    done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True)
    return done.stdout.strip()


def provenance(*more):
    """Return commit and versions, to be written beside results."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in (*LIBRARIES, *more) if _version(name)},
    }


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
