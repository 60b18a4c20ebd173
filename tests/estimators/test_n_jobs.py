"""How many threads work takes: as many as asked for, and no more than this process may have."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from registry import cloud
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

from heatsketch import DiffusionMap, HeatSketch, load
from heatsketch._core.parallel import at_most, in_threads, n_threads
from heatsketch.estimators.near_isometry import NearIsometry

CORES = joblib.cpu_count()
X = cloud(3000, 5)
MODELS = {
    "neighbors": (HeatSketch(4, power=4, n_neighbors=8), X),
    "neighbors, float32": (HeatSketch(4, power=300, n_neighbors=8), X.astype(np.float32)),
    "epsilon": (HeatSketch(4, epsilon="auto", normalization="bistochastic", metric="l1"), X[:1500]),
    "all pairs": (HeatSketch(4, power=3, n_neighbors=None), X[:1000]),
    "eigenvectors": (DiffusionMap(2, n_neighbors=8), X),
    "isometry": (NearIsometry(2), X[:300]),
}


def answers(model, points):
    """Whatever takes time, one array after another."""
    yield model.fit(points).transform(points[:500] + points.dtype.type(0.01))
    yield getattr(model, "embedding_", getattr(model, "components_", None))
    if isinstance(model, HeatSketch):
        yield from model.path([1, 2])
        yield from model.diffusion_map(1)
        yield model.grow(5).embedding_
        yield from model.pseudotime(7)
        yield from model.drift(model).rows


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
@pytest.mark.parametrize("name", MODELS)
def test_every_method_takes_as_many_threads_as_asked_for_and_gives_the_same_bits(name, monkeypatch):
    model, points = MODELS[name]
    submit, pools = ThreadPoolExecutor.submit, []

    def counted(pool, *args):
        pools.append(pool)
        return submit(pool, *args)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    for module in ("graph._neighbors", "diffusion._pair_search"):
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


def test_limits_of_threadpoolctl_hold_for_our_threads():
    with threadpool_limits(1):
        assert [n_threads(n) for n in (None, -1, 2)] == [1, 1, 2]


def test_cores_that_loky_may_not_have_are_left_alone(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert n_threads() == 1


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_of_joblib_share_the_cores(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with parallel_config(backend=backend):
        each = Parallel(n_jobs=2)(delayed(n_threads)() for _ in range(2))
    assert sum(each) <= max(CORES, 2)


def test_an_inner_limit_of_joblib_holds():
    with parallel_config("loky", inner_max_num_threads=1):
        assert Parallel(n_jobs=2)(delayed(n_threads)() for _ in range(2)) == [1, 1]


def tell(rows):
    """Put into the features how many threads there are for a fit."""
    return np.full((len(rows), 1), n_threads())


def mean_of(model, rows, y=None):
    return model.transform(rows).mean()


def test_a_search_in_two_processes_takes_no_more_threads_than_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    models = make_pipeline(HeatSketch(2, power=2), FunctionTransformer(tell))
    grid = {"heatsketch__power": [2, 3]}
    search = GridSearchCV(models, grid, scoring=mean_of, n_jobs=2, cv=2, refit=False)
    found = search.fit(X[:100]).cv_results_["mean_test_score"]
    assert len(found) == len(ParameterGrid(grid))
    assert (2 * found <= max(CORES, 2)).all()


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


# --- of the machine, not of the model --------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_no_number_of_jobs(n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        HeatSketch(2, n_jobs=n_jobs).fit(X[:50])


@pytest.mark.parametrize("model", [HeatSketch(2, power=2), DiffusionMap(2), NearIsometry(2)])
def test_files_say_nothing_of_the_machine(model, tmp_path):
    changed = type(model)(**model.get_params() | {"n_jobs": 2, "verbose": 0})
    for place, each in enumerate((model, changed)):
        each.fit(X[:60]).save(tmp_path / str(place))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    assert not {"n_jobs", "verbose"} & changed.parameters_.keys()
    again = load(tmp_path / "1")
    assert (again.n_jobs, again.verbose) == (None, None)


def test_a_pickle_from_before_there_were_jobs_works():
    model = HeatSketch(2, power=2).fit(X[:60])
    del model.n_jobs, model.verbose
    np.testing.assert_array_equal(model.transform(X[:60]), model.embedding_)
