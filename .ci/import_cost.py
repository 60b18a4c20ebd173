"""Check what ``from heatsketch import HeatSketch`` costs on top of ``import sklearn``.

Prints what it measures, and exits with 1 if a limit is broken.
"""

import json
import statistics
import subprocess
import sys

LIMIT = 0.3  # seconds
UNWANTED = {"dask", "faiss", "matplotlib", "numba", "pandas", "polars"}

# Notes what is asked for, not only what is found: a package that is not
# installed here must not be tried either. What scikit-learn loaded itself does not count.
PROBE = """
import json, sys, time
import sklearn

class Finder:
    asked = set()
    def find_spec(self, name, path=None, target=None):
        self.asked.add(name.partition(".")[0])

sys.meta_path.insert(0, Finder())
start = time.perf_counter()
from heatsketch import HeatSketch
print(json.dumps([time.perf_counter() - start, sorted(Finder.asked)]))
"""


def probe():
    """Return the seconds and the packages that the import took in a process of its own."""
    done = subprocess.run([sys.executable, "-c", PROBE], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main():
    """Print the measurements and return whether a limit is broken."""
    probe()  # the first one reads the disk
    seconds, packages = zip(*(probe() for _ in range(5)), strict=True)
    added = statistics.median(seconds)
    print(f"our import adds {added:.3f} s to import sklearn; the limit is {LIMIT} s")
    found = sorted(UNWANTED.intersection(packages[0]))
    print(f"of {', '.join(sorted(UNWANTED))} it imports: {', '.join(found) or 'none'}")
    return added >= LIMIT or bool(found)


if __name__ == "__main__":
    sys.exit(main())
