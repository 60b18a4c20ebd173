"""Threads of BLAS and of our own, in fresh processes.

They change no bit on a graph of neighbours, and on all pairs no more than rounding does.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from checks import tolerance

# A graph of neighbours: products of dense matrices are BLAS's own, which promises nothing.
PROGRAM = """
import hashlib, json, sys
import numpy as np
from threadpoolctl import threadpool_info
from heatsketch import HeatSketch

n_threads = int(sys.argv[1])
X = np.random.default_rng(0).normal(size=(3000, 5))
digests = {}

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array)).hexdigest()

for dtype in ("float32", "float64"):
    for options in (
        {},
        {"normalization": "bistochastic", "weighting": "symmetric"},
        {"power": 300, "weights": "gaussian"},
    ):
        model = HeatSketch(16, n_neighbors=10, n_jobs=n_threads, **{"power": 4, **options})
        model.fit(X.astype(dtype))
        new = model.transform(X[:500].astype(dtype) + 0.01)
        digests[f"{dtype} {options}"] = [digest(model.embedding_), digest(new)]
blas = max([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
print(json.dumps([blas, digests]))
"""


ALL_PAIRS = """
import sys
import numpy as np
from heatsketch import HeatSketch

n_threads, path = int(sys.argv[1]), sys.argv[2]
X = np.random.default_rng(0).normal(size=(1500, 5))
found = {}
for dtype in ("float32", "float64"):
    model = HeatSketch(16, n_neighbors=None, n_jobs=n_threads).fit(X.astype(dtype))
    found[dtype] = model.embedding_
    found[f"{dtype}, new points"] = model.transform(X[:300].astype(dtype) + 0.01)
np.savez(path, **found)
"""


def python(program, *words, blas):
    variables = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(blas))
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def run(blas, own):
    found, digests = json.loads(python(PROGRAM, own, blas=blas))
    assert found == min(blas, os.cpu_count())
    return digests


@pytest.mark.timeout(600)
@pytest.mark.untraced
def test_threads_change_no_bit():
    plain = run(1, 1)
    assert len({tuple(digest) for digest in plain.values()}) == 6
    assert run(2, 3) == plain


@pytest.mark.untraced
def test_on_all_pairs_threads_change_no_more_than_rounding_does(tmp_path):
    for n_threads in (1, 2):
        path = tmp_path / f"{n_threads}.npz"
        python(ALL_PAIRS, n_threads, path, blas=n_threads)
    with np.load(tmp_path / "1.npz") as one, np.load(tmp_path / "2.npz") as two:
        assert len(one) == 4
        for name in one:
            allowed = tolerance(one[name].dtype, terms=1500)
            assert allowed < 1e-12 or name.startswith("float32")
            lengths = np.linalg.norm(one[name], axis=1)
            assert (np.linalg.norm(one[name] - two[name], axis=1) <= allowed * lengths).all()
