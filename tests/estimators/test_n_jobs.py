"""How many threads work takes: as many as asked for, and no more than this process may have."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from models import fitted, new_result
from registry import cloud
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from heatsketch import (
    DiffusionMap,
    HeatClustering,
    HeatLabels,
    HeatSketch,
    NearIsometry,
    compare,
    drift,
    harmonic,
    smooth,
)
from heatsketch._core.parallel import at_most, in_threads, n_threads

CORES = joblib.cpu_count()
X = cloud(3000, 5)
MODELS = {
    "neighbors": (HeatSketch(4, power=4, n_neighbors=8), X),
    "neighbors, float32": (HeatSketch(4, power=300, n_neighbors=8), X.astype(np.float32)),
    "epsilon": (
        HeatSketch(4, weights="gaussian", normalization="bistochastic", metric="l1"),
        X[:1500],
    ),
    "all pairs": (HeatSketch(4, power=3, n_neighbors=None), X[:1000]),
    "eigenvectors": (DiffusionMap(2, n_neighbors=8), X),
    "labels": (HeatLabels(n_neighbors=8), X),
    "clusters": (HeatClustering(3, n_neighbors=8), X),
    "isometry": (NearIsometry(2), X[:300]),
}


def answers(model, points):
    """Whatever takes time, one array after another."""
    yield new_result(fitted(model, points), points[:500] + points.dtype.type(0.01))
    if not isinstance(model, HeatSketch):
        return
    model = fitted(model, points)
    yield model.embedding_
    with parallel_config(n_jobs=model.n_jobs):
        made, group = model.sketch_, np.arange(len(points)) % 2
        yield from made.path([1, 2])
        yield from made.diffusion_map(1)
        yield made.grow(5).embedding
        yield made.pseudotime(7).distance
        yield drift(made, made).rows
        yield compare(made, group, n_permutations=19).p_values
        if model.n_neighbors is not None:
            yield smooth(made, points, time=3).values
            yield harmonic(made, np.eye(2), [3, 9], tolerance=1e-3)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
@pytest.mark.parametrize("name", MODELS)
def test_every_method_takes_as_many_threads_as_asked_for_and_gives_the_same_bits(name, monkeypatch):
    model, points = MODELS[name]
    submit, pools = ThreadPoolExecutor.submit, []

    def counted(pool, *args):
        pools.append(pool)
        return submit(pool, *args)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    for module in ("graph._neighbors", "near_isometry._pairs"):
        monkeypatch.setattr(f"heatsketch.{module}.TILE_ENTRIES", 50_000)  # several pieces
    one = list(answers(clone(model).set_params(n_jobs=1), points))
    assert not pools  # this thread does all the work
    three = list(answers(clone(model).set_params(n_jobs=3), points))
    assert 1 <= max(Counter(pools).values()) <= 2  # helpers at a time
    for first, second in zip(one, three, strict=True):
        np.testing.assert_array_equal(first, second, strict=True)


# --- how many ------------------------------------------------------------------------------


def test_numbers_of_jobs_are_those_of_joblib():
    with threadpool_limits(CORES):
        assert [n_threads(n) for n in (None, -1, 1, 5)] == [CORES, CORES, 1, 5]
        assert n_threads(-2) == max(1, CORES - 1)
        assert n_threads(-100) == 1
        with parallel_config(n_jobs=3):
            assert [n_threads(n) for n in (None, -1, 2)] == [3, CORES, 2]
        with parallel_config(n_jobs=-1):
            assert n_threads() == CORES
        with at_most(7):
            assert [n_threads(n) for n in (None, 2)] == [7, 2]


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_of_joblib_share_the_cores(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with parallel_config(backend=backend):
        each = Parallel(n_jobs=2)(delayed(n_threads)() for _ in range(2))
    assert sum(each) <= max(CORES, 2)


def test_work_inside_work_shares_its_threads():
    lock, active, most = threading.Lock(), [0], []

    def leaf(piece):
        with lock:
            active[0] += 1
            most.append(active[0])
        time.sleep(0.001)
        with lock:
            active[0] -= 1

    for outer in (1, 2, 8):
        with at_most(4):
            in_threads(lambda _: in_threads(leaf, range(8)), range(outer))
    assert 1 < max(most) <= 4
