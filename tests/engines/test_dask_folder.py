"""The folder of a cluster, in which many fits leave what they know: none is misled by another."""

import ast
import gc
import sys
import threading
from concurrent import futures

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from registry import cloud

from heatsketch import DaskEngine, HeatSketch, drift
from heatsketch.engines._dask._cluster import Cluster, delayed
from heatsketch.engines._dask._storage import Journal, Storage, map_block, read_block, write_block
from heatsketch.exceptions import HeatSketchError

pytestmark = pytest.mark.filterwarnings("default:::distributed", "default:::asyncio")
OPTIONS = {"n_components": 4, "power": 2, "n_neighbors": 6, "weights": 1.0}


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(
        1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    )
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


def fit(X, engine=None, **options):
    return HeatSketch(**{**OPTIONS, **options}, engine=engine).fit(X)


def test_points_that_changed_under_their_name_are_read_again(client, tmp_path):
    engine = DaskEngine(client, storage=tmp_path / "run")
    for seed, n_points in ((0, 300), (1, 200), (2, 400)):
        points = cloud(n_points, seed=seed)
        points[50:100, 0] = -1  # so that one chunk is empty
        zarr.save_array(tmp_path / "points.zarr", points, overwrite=True)
        lazy = da.from_zarr(tmp_path / "points.zarr").rechunk((50, 3))
        found = fit(lazy[lazy[:, 0] > 0], engine)
        wanted = fit(points[points[:, 0] > 0])
        np.testing.assert_array_equal(found.embedding_.compute(), wanted.embedding_)


def test_a_model_keeps_what_it_needs_when_another_is_fitted(client, tmp_path):
    engine, new = DaskEngine(client, storage=tmp_path), cloud(9, seed=5)
    given = [(cloud(200), {}), (cloud(200, seed=1), {}), (cloud(200), {"weights": 0.5})]
    models = [fit(X, engine, **options) for X, options in given]
    for model, (X, options) in zip(models, given, strict=True):
        np.testing.assert_array_equal(model.transform(new), fit(X, **options).transform(new))


def test_answers_of_a_fit_that_was_killed_are_forgotten_where_another_came_to_its_end(tmp_path):
    path = tmp_path / "journal.jsonl"
    killed = Journal(path)
    assert killed.answer("files are there", lambda: 1) == 1
    other = Journal(path)
    assert other.answer("size", lambda: 2) == 2
    other.note_end({"weights"})
    again = Journal(path)
    assert again.needed == {"weights"}
    assert again.answer("files are there", lambda: 3) == 3
    assert again.answer("size", lambda: 4) == 2


def test_a_task_that_failed_is_tried_again(client, tmp_path):
    """At once, and while its error is still held, as in a notebook."""
    cluster = Cluster(client, Storage.at(tmp_path), Journal(tmp_path / "journal.jsonl"), 8)
    for number in range(20):
        name, flag = f"fragile-{number}", tmp_path / str(number)

        def work(name=name, flag=flag):
            return cluster.run(delayed(name, {(name, 0): (_fragile, flag)}), stage="x")

        with pytest.raises(OSError, match="away") as held:
            work()
        flag.touch()
        assert work() == ["well"]
        assert "away" in str(held.value)


def _fragile(flag):
    if not flag.exists():
        raise OSError("storage is away")
    return "well"


def test_one_fit_of_a_process_works_at_a_time(client, tmp_path):
    """The settings of dask, by which it works, are those of all threads."""
    before, first, second = dask.config.get("scheduler", None), threading.Event(), []

    def another():
        with DaskEngine(client, storage=tmp_path / "b").working():
            second.append(first.is_set())

    thread = threading.Thread(target=another)
    with DaskEngine(client, storage=tmp_path / "a").working():
        thread.start()
        thread.join(0.5)
        assert not second
        first.set()
    thread.join(60)
    assert second == [True]
    assert dask.config.get("scheduler", None) is before


def test_sketches_of_a_cluster_drift_and_need_it(client, tmp_path):
    X, engine = cloud(300), DaskEngine(client, storage=tmp_path / "run")
    before, after = (fit(da.from_array(Z, chunks=(100, 3)), engine) for Z in (X, X + 0.1))
    assert 0 <= drift(before, after).relative < 0.1
    address = DaskEngine(client.scheduler.address, storage=tmp_path / "elsewhere")
    closed = fit(X, address)
    with pytest.raises(HeatSketchError, match="leave it open"):
        closed.sketch_.grow(8)


@pytest.mark.parametrize("read", [read_block, map_block])
def test_blocks_are_read_in_several_threads_at_once(tmp_path, read):
    """Another thread parses a header while this one does: see python/cpython#106905.

    Python 3.11 collects garbage within the parsing, which gives another thread its turn. Later
    versions do not, and there the test shows only that blocks are read.
    """
    block = np.arange(12.0).reshape(4, 3)
    write_block(block, tmp_path / "0.npy")
    this_thread = threading.get_ident()

    def read_in_another_thread(phase, info):
        in_header = sys._getframe(1).f_code is ast.parse.__code__
        if phase == "start" and in_header and threading.get_ident() == this_thread:
            futures.wait([pool.submit(read, tmp_path / "0.npy")], timeout=0.02)

    threshold = gc.get_threshold()
    with futures.ThreadPoolExecutor(1) as pool:
        gc.callbacks.append(read_in_another_thread)
        gc.set_threshold(1)
        try:
            found = read(tmp_path / "0.npy")
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(read_in_another_thread)
    np.testing.assert_array_equal(found, block)
