"""The tests of the cluster, fifty times in a row: what fails once in fifty is not sound yet.

Ends at the first repeat in which a test fails, with what pytest says. Takes over two hours on two
cores that do nothing else.
"""

import argparse
import re
import subprocess
import sys
from time import perf_counter

from timing import RESULTS, write

ROOT = RESULTS.parent.parent


def repeat():
    """Run all tests of the cluster once; return how many passed, or 0 if one did not."""
    tests = sorted(map(str, ROOT.glob("tests/test_dask_*.py")))
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr)
        return 0
    return int(re.findall(r"(\d+) passed", done.stdout)[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    wanted, rounds = parser.parse_args().times, []
    while len(rounds) < wanted:
        start = perf_counter()
        if not (passed := repeat()):
            sys.exit(f"repeat {len(rounds) + 1} of {wanted} failed")
        rounds.append({"passed": passed, "seconds": round(perf_counter() - start, 1)})
        print(len(rounds), rounds[-1], flush=True)
        write("repeats", rounds, quiet=True)
