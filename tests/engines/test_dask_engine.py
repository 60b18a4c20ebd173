"""A cluster of real processes: the bits of one machine, whatever dies."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from registry import cloud
from scipy import sparse
from sklearn.datasets import make_moons

from heatsketch import (
    DaskEngine,
    DiffusionMap,
    HeatClustering,
    HeatGraph,
    HeatLabels,
    HeatSketch,
    compare,
    harmonic,
    sketch,
    smooth,
)
from heatsketch._core.partitioned import PIECE, ROW_BYTES
from heatsketch._core.progress import reporting_to
from heatsketch.diffusion import _all_times as all_times
from heatsketch.diffusion import with_self_loops
from heatsketch.engines._dask._cluster import within_threads
from heatsketch.engines._dask._connection import connected, processes
from heatsketch.exceptions import (
    HeatSketchError,
    NotStorableError,
)
from heatsketch.io import Block, table_writer

# dask's own threads may warn while a cluster that was shot at shuts down.
pytestmark = pytest.mark.filterwarnings("default:::distributed", "default:::asyncio")


@pytest.fixture(scope="module", autouse=True)
def workers_come_back():
    """However often they are killed; LocalCluster gives up on those that need 15 seconds."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        yield


@pytest.fixture(scope="module")
def client():
    with processes(2, silence_logs=50) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def graphs():
    """Distances along a closed thread, by dtype: seven blocks of the smallest size."""
    n_points = 6 * PIECE + 77
    ends = (np.arange(n_points)[:, np.newaxis] + [0, 1, 2, 700]) % n_points
    lengths = np.random.default_rng(0).uniform(0.5, 1.5, ends.shape)
    lengths[:, 0] = 0
    starts = np.arange(0, ends.size + 1, ends.shape[1])
    distances = sparse.csr_array((lengths.ravel(), ends.ravel(), starts))
    distances.sort_indices()
    return {dtype: distances.astype(dtype) for dtype in ("float32", "float64")}


def fit(distances, engine=None, *, power="all", **of_graph):
    """Return the sketch of given distances."""
    options = {name: of_graph.pop(name) for name in ("weighting", "stationary") & of_graph.keys()}
    graph = HeatGraph.from_points(distances, metric="precomputed", engine=engine, **of_graph)
    return sketch(graph, 4, power=power, **options)


NARROW = {"weights": 0.3, "normalization": "bistochastic"}  # few sweeps
# All of them, with 1, 2 and 4 workers and up to 16 blocks, are run by ``make grid``.
GRID = [
    (1, "float32", {"power": 8, **NARROW}),
    (3, "float32", {"power": 64}),
    (7, "float64", {"power": 3, "weighting": "random_walk", "stationary": "keep"}),
]
NIGHTLY_GRID = [
    (1, "float64", {"power": 1}),
    (7, "float32", {"power": 8}),
    (7, "float64", {"power": 1, **NARROW}),
]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("n_blocks", "dtype", "options"),
    [*GRID, *(pytest.param(*case, marks=pytest.mark.nightly) for case in NIGHTLY_GRID)],
)
def test_the_embedding_is_the_local_one_bit_for_bit(
    client, graphs, tmp_path, n_blocks, dtype, options
):
    distances = graphs[dtype]
    wanted = fit(distances, **options)
    engine = DaskEngine(client, storage=tmp_path, rows_per_block=-(-7 // n_blocks) * PIECE)
    made = fit(distances, engine, **options)
    assert isinstance(made.embedding, da.Array)
    assert made.embedding.numblocks == (n_blocks, 1)
    assert made.graph.n_connected_components == wanted.graph.n_connected_components
    np.testing.assert_array_equal(made.embedding.compute(), wanted.embedding)
    rows = [one.extend(one.graph.rows(distances[::1000])) for one in (made, wanted)]
    np.testing.assert_array_equal(*rows)


# --- uses -----------------------------------------------------------------------------------


MOONS, MOON = make_moons(5000, noise=0.1, random_state=0)
MOONS = MOONS.astype(np.float32)
LABELS = np.where(np.arange(5000) < 40, MOON, -1)


def labels(graph):
    model = HeatLabels().fit(graph, LABELS)
    found = model.transduction_, model.label_distributions_, model.predict_proba(MOONS[:50])
    return (*found, model.suspects().margin)


def clusters(graph):
    model = HeatClustering(2).fit(graph)
    return model.labels_, model.cluster_centers_, model.predict(MOONS[:50])


def diffusion_map(graph):
    model = DiffusionMap(2).fit(graph)
    return model.embedding_, model.transform(MOONS[:50]), sketch(graph, 8).diffusion_map(2)[0]


def compared(graph):
    units = np.arange(5000) // 50
    found = compare(graph, units % 3, units=units, n_permutations=19)
    return found.p_values, found.z, found.effect


def smoothed(graph):
    noisy = MOONS + 0.3 * np.random.default_rng(0).normal(size=MOONS.shape)
    found = smooth(graph, noisy)
    return found.values, found.scores


USES = {
    "labels": labels,
    "clusters": clusters,
    "diffusion maps": diffusion_map,
    "compare": compared,
    "smooth": smoothed,
    "harmonic": lambda graph: [
        harmonic(graph, np.arange(200.0), 25 * np.arange(200), tolerance=1e-2)
    ],
    "pseudotime": lambda graph: [sketch(graph, 8).pseudotime(3).distance],
}


LONG = ("diffusion maps", "pseudotime")


@pytest.fixture(scope="module")
def moons(client, tmp_path_factory):
    """The graph of 5,000 points on the cluster, in two blocks, and on this machine."""
    engine = DaskEngine(client, storage=tmp_path_factory.mktemp("moons"), rows_per_block=PIECE)
    graphs = [HeatGraph.from_points(MOONS, engine=one) for one in (engine, None)]
    assert graphs[0].operator.shape == graphs[1].operator.shape
    return graphs


@pytest.mark.untraced
@pytest.mark.parametrize(
    "use",
    [pytest.param(use, marks=pytest.mark.nightly) if use in LONG else use for use in USES],
)
def test_a_use_has_the_bits_of_one_machine(moons, use):
    found, wanted = map(USES[use], moons)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


# --- points ---------------------------------------------------------------------------------


def manifold(n_points):
    t = np.random.default_rng(0).uniform(0, 6, (n_points, 2))
    return np.column_stack([np.cos(t), np.sin(t), t[:, 0] * t[:, 1]]).astype(np.float32)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_graph_of_the_cluster_is_the_local_one(client, tmp_path, metric):
    X = manifold(50_000)  # enough for lists
    options = {"power": 2, "n_neighbors": 10, "metric": metric}
    wanted = HeatSketch(4, **options).fit(X)
    assert wanted.graph_.rule.neighbors.lists.tree.n_lists > 100
    engine = DaskEngine(client, storage=tmp_path, rows_per_block=25_000)
    model = HeatSketch(4, **options, engine=engine).fit(da.from_array(X, chunks=(17_000, 3)))
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
    new = X[::3000] + np.float32(0.01)
    np.testing.assert_array_equal(model.transform(new), wanted.transform(new))


def test_blocks_are_smaller_where_points_have_many_features(client, tmp_path, monkeypatch):
    workers = client.scheduler_info()["workers"].values()
    n_bytes = 2 * PIECE * ROW_BYTES  # for two row chunks of a graph
    share = n_bytes / min(worker["memory_limit"] for worker in workers)
    monkeypatch.setattr("heatsketch._core.partitioned.SHARE", share)
    X = manifold(4 * PIECE) @ np.random.default_rng(0).standard_normal((5, 200), np.float32)
    ids, options = np.arange(len(X))[::-1], {"power": 2, "n_neighbors": 10}
    model = HeatSketch(4, **options, engine=DaskEngine(client, storage=tmp_path)).fit(X, ids=ids)
    assert model.embedding_.numblocks == (4, 1)
    wanted = HeatSketch(4, **options).fit(X, ids=ids)
    np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)


def test_workers_may_be_threads_of_this_process(graphs, tmp_path, monkeypatch):
    """As in a notebook with ``Client(processes=False)``; lines of tasks are then traced, too."""
    warned = []
    monkeypatch.setattr("distributed.scheduler.logger.warning", lambda *words: warned.append(words))
    cluster = LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster, set_as_default=False) as client:
        X, options = manifold(50_000), {"power": 2, "n_neighbors": 10}
        engine = DaskEngine(client, storage=tmp_path / "points", rows_per_block=25_000)
        model = HeatSketch(4, **options, engine=engine).fit(X)
        wanted = HeatSketch(4, **options).fit(X)
        np.testing.assert_array_equal(model.embedding_.compute(), wanted.embedding_)
        np.testing.assert_array_equal(model.transform(X[:9]), wanted.transform(X[:9]))
        for number, options in enumerate(({"power": 4}, {"power": 1, **NARROW})):
            engine = DaskEngine(client, storage=tmp_path / str(number), rows_per_block=3 * PIECE)
            model = fit(graphs["float32"], engine, **options)
            wanted = fit(graphs["float32"], **options)
            np.testing.assert_array_equal(model.embedding.compute(), wanted.embedding)
    assert not [words for words in warned if "run_spec" in str(words)]  # two tasks of one name


def test_points_come_from_wherever_they_are(client, tmp_path):
    X = manifold(9000)
    wanted = HeatSketch(4, power=2, n_neighbors=6).fit(X).embedding_
    for name in ("points.zarr", "points.parquet", "points.npy"):
        with table_writer(tmp_path / name, list("abcde"), dtype=np.float32) as writer:
            writer.append(Block(X))
    given = [X, str(tmp_path / "points.zarr"), tmp_path / "points.parquet", tmp_path / "points.npy"]
    for points in given:
        engine = DaskEngine(client, storage=tmp_path / "run")
        found = HeatSketch(4, power=2, n_neighbors=6, engine=engine).fit(points).embedding_
        np.testing.assert_array_equal(found.compute(), wanted)


# --- what dies ------------------------------------------------------------------------------


def runs(client):
    """Count the tasks that came to an end so far, those that are done again included."""
    return client.run_on_scheduler(
        lambda dask_scheduler: sum(
            prefix.state_counts["memory"] for prefix in dask_scheduler.task_prefixes.values()
        )
    )


class Killer(threading.Thread):
    """Kills workers at random moments, when some work has been done since the last kill."""

    def __init__(self, client, n_kills, n_tasks, seed=0):
        super().__init__(daemon=True)
        self.client, self.n_kills, self.n_tasks = client, n_kills, n_tasks
        self.rng, self.kills, self.done = np.random.default_rng(seed), 0, threading.Event()

    def run(self):
        moments = np.sort(self.rng.uniform(0.05, 0.9, self.n_kills)) * self.n_tasks
        for moment in moments:
            while runs(self.client) < moment + self.n_tasks * 0.02 * self.kills:
                if self.done.wait(0.01):
                    return
            os.kill(self._victim(), signal.SIGKILL)
            self.kills += 1

    def _victim(self):
        """Return the process of a worker that works: one that is killed while it starts is lost."""
        while True:
            alive = set(self.client.nthreads())
            nannies = self.client.cluster.workers.values()
            pids = [n.process.pid for n in nannies if n.worker_address in alive]
            if pids:
                return int(self.rng.choice(pids))
            time.sleep(0.05)


@pytest.mark.nightly
def test_five_kills_change_no_bit_and_little_is_done_again(client, graphs, tmp_path):
    distances = graphs["float32"]
    options = {"power": 20, "weights": 0.3}
    blocks = {"rows_per_block": 2 * PIECE, "checkpoint_every": 1}
    before = runs(client)
    wanted = fit(distances, DaskEngine(client, storage=tmp_path / "calm", **blocks), **options)
    n_tasks = runs(client) - before
    with processes(2, silence_logs=50) as cluster, Client(cluster, set_as_default=False) as shot_at:
        killer = Killer(shot_at, 5, n_tasks)
        killer.start()
        engine = DaskEngine(shot_at, storage=tmp_path / "shot at", **blocks)
        embedding = fit(distances, engine, **options).embedding
        killer.done.set()
        killer.join()
        n_tasks_and_more = runs(shot_at)
    np.testing.assert_array_equal(embedding.compute(), wanted.embedding.compute())
    np.testing.assert_array_equal(embedding.compute(), fit(distances, **options).embedding)
    assert killer.kills == 5
    assert n_tasks_and_more <= n_tasks * (1 + 5 * 0.05)


RESUMED = """
import sys
import numpy as np
from scipy import sparse
from heatsketch import DaskEngine, HeatSketch
from distributed import Client, LocalCluster

if __name__ == "__main__":
    folder = sys.argv[1]
    parts = (np.load(f"{folder}/{part}.npy") for part in ("data", "indices", "indptr"))
    distances = sparse.csr_array(tuple(parts))
    with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1",
                      dashboard_address="127.0.0.1:0", silence_logs=50) as cluster:
        with Client(cluster) as client:
            engine = DaskEngine(client, storage=f"{folder}/run", checkpoint_every=2)
            model = HeatSketch(4, metric="precomputed", power=16, weights=0.3, engine=engine)
            np.save(f"{folder}/embedding.npy", model.fit(distances).embedding_.compute())
"""


@pytest.mark.untraced
def test_a_driver_that_was_killed_goes_on_from_its_last_checkpoint(graphs, tmp_path):
    distances = graphs["float64"]
    for part in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{part}.npy", getattr(distances, part))
    script = tmp_path / "driver.py"
    script.write_text(RESUMED)
    command = [sys.executable, script, tmp_path]
    driver = subprocess.Popen(command, start_new_session=True)
    journal = tmp_path / "run" / "journal.jsonl"
    deadline = time.monotonic() + 90
    while not journal.exists() or journal.read_text().count("checkpoint") < 2:
        assert driver.poll() is None, "the driver ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGKILL)  # and its workers with it
    driver.wait()
    before = journal.read_text()
    subprocess.run(command, check=True, timeout=120)
    embedding = fit(distances, power=16, weights=0.3, normalization="symmetric").embedding
    np.testing.assert_array_equal(np.load(tmp_path / "embedding.npy"), embedding)
    first = [line for line in before.splitlines() if '"step"' in line]
    again = [line for line in journal.read_text()[len(before) :].splitlines() if '"step"' in line]
    redone = set(first) & set(again)
    assert len(redone) <= 2  # at most what lies between two checkpoints
    assert len(first) - len(redone) >= 2
    lines = [line for line in journal.read_text().splitlines() if '"checkpoint"' in line]
    assert len(set(lines)) == len(lines) > 2


# --- afterwards -------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_fit_leaves_no_checkpoints_and_can_be_made_again(client, graphs, tmp_path):
    options = {"power": 4, **NARROW}
    engine = DaskEngine(client, storage=tmp_path, checkpoint_every=1)
    model = fit(graphs["float32"], engine, **options)
    names = [folder.name for folder in (tmp_path / "blocks").iterdir()]
    assert not any(name.startswith("heat-step") for name in names)
    assert sum(name.startswith("of-rows") for name in names) == 1  # of dozens of sweeps
    journal = tmp_path / "journal.jsonl"
    before = journal.read_text()
    assert before.count('"checkpoint"') == 3
    again = fit(graphs["float32"], engine, **options)
    np.testing.assert_array_equal(again.embedding.compute(), model.embedding.compute())
    assert journal.read_text() == before  # nothing is asked and no step is taken again
    options["power"] = 7
    further, wanted = (fit(graphs["float32"], e, **options) for e in (engine, None))
    np.testing.assert_array_equal(further.embedding.compute(), wanted.embedding)


@pytest.mark.parametrize(("power", "X"), [(2, manifold(50_000)), ("all", cloud(9000, 16))])
def test_a_fit_that_is_made_again_asks_nothing_again(client, tmp_path, power, X):
    """By names that last: those that dask gives to results are new each time."""
    asked = []
    for _ in range(2):
        engine = DaskEngine(client, storage=tmp_path, rows_per_block=len(X) // 2)
        HeatSketch(16, n_neighbors=10, power=power, engine=engine).fit(X)
        lines = (tmp_path / "journal.jsonl").read_text().splitlines()
        asked.append([line for line in lines if '"answer"' in line])
    assert len(asked[0]) > 10
    assert asked[1] == asked[0]


def test_a_model_outlives_its_cluster_but_goes_into_no_file(graphs, tmp_path):
    distances, reported = graphs["float32"], []

    def callback(name, n_steps):
        return lambda: reported.append(name)

    engine = DaskEngine(storage=tmp_path / "run")
    with reporting_to(callback), engine.working():  # else the cluster would end with the graph
        made = fit(distances, engine, power=2, **NARROW)
    wanted = fit(distances, power=2, **NARROW)
    rows = [one.extend(one.graph.rows(distances[::1000])) for one in (made, wanted)]
    np.testing.assert_array_equal(*rows)
    assert {"normalization", "products"} <= set(reported)
    with pytest.raises(NotStorableError, match="to_zarr"):
        made.save(tmp_path / "model.heatsketch")
    with pytest.raises(NotStorableError, match="to_zarr"):
        pickle.dumps(made)
    assert pickle.loads(pickle.dumps(engine)).storage == engine.storage


# --- conventions ----------------------------------------------------------------------------------


def test_a_scheduler_without_encryption_needs_a_word(tmp_path):
    with (
        LocalCluster(
            n_workers=0, host="0.0.0.0", dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        assert "127.0.0.1" not in client.scheduler_info()["address"]
        with pytest.raises(HeatSketchError, match="allow_unencrypted=True"):
            fit(np.eye(3), DaskEngine(client, storage=tmp_path))


def test_a_cluster_of_our_own_listens_to_this_machine_only(tmp_path):
    with connected(None, allow_unencrypted=False) as client:
        this = psutil.Process()
        sockets = [
            socket.laddr.ip
            for process in [this, *this.children(recursive=True)]
            for socket in process.net_connections("inet")
            if socket.status == psutil.CONN_LISTEN
        ]
        assert len(client.nthreads()) >= 1
        assert set(sockets) == {"127.0.0.1"}


def test_threads_inside_a_task_are_limited(client):
    def found():
        import numpy  # noqa: F401 - whose BLAS it is
        from threadpoolctl import threadpool_info

        return [library["num_threads"] for library in threadpool_info()]

    assert set(client.submit(within_threads, 1, found).result()) == {1}


def test_what_a_cluster_does_not_do_is_said(client, tmp_path):
    engine = DaskEngine(client, storage=tmp_path)
    with pytest.raises(HeatSketchError, match="n_neighbors=None and metric='euclidean'"):
        HeatSketch(2, n_neighbors=None, engine=engine).fit(cloud(100))
    with pytest.raises(HeatSketchError, match="dense matrix"):
        HeatGraph.from_affinity(np.ones((9, 9)), engine=engine)
    lazy = da.from_array(cloud(100), chunks=(50, 3))
    with pytest.raises(HeatSketchError, match="ids"):
        HeatSketch(2, n_neighbors=5, engine=engine).fit(lazy, ids=np.arange(100))
    with pytest.raises(HeatSketchError, match="has shape"):
        HeatSketch(2, n_neighbors=5, engine=engine).fit(lazy[0])


def test_without_dask_there_is_a_hint(tmp_path):
    code = (
        "import sys; sys.modules['distributed'] = None; sys.modules['dask'] = None\n"
        "import importlib.util; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n in ('dask', 'distributed') "
        "else real(n, *a)\n"
        "import heatsketch\n"
        "try:\n    heatsketch.DaskEngine()\n"
        "except ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "heatsketch[cluster]"' in found.stdout


def network(n_nodes, dtype, *, n_components=1):
    """Return a ring with some far links, in one or two connected components."""
    rng, half = np.random.default_rng(0), n_nodes // n_components
    starts, ends = np.divmod(np.arange(6 * n_nodes), 6)
    ends = np.where(ends < 5, starts + ends + 1, rng.integers(half, size=len(starts)))
    ends = starts // half * half + ends % half
    graph = sparse.coo_array((rng.uniform(0.5, 1.5, len(starts)), (starts, ends)), (n_nodes,) * 2)
    return sparse.csr_array(graph + graph.T).astype(dtype)


# Blocks, dtype, options of the graph and of the sketch, and connected components.
ALL_TIMES = [
    (1, "float32", {}, {}, 1),
    (2, "float64", {"normalization": "symmetric"}, {}, 1),
    (2, "float32", {}, {"random_matrix": "rademacher"}, 1),
    pytest.param(3, "float64", {}, {}, 2, marks=pytest.mark.nightly),
]


@pytest.mark.untraced
@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize(("n_blocks", "dtype", "of_graph", "options", "n_components"), ALL_TIMES)
def test_the_sum_over_all_times_is_the_local_one_bit_for_bit(
    client, tmp_path, n_blocks, dtype, of_graph, options, n_components
):
    W = network(2 * PIECE + 76, dtype, n_components=n_components)
    engine = DaskEngine(client, storage=tmp_path, rows_per_block=-(-3 // n_blocks) * PIECE)
    made, wanted = (
        sketch(HeatGraph.from_affinity(W, engine=one, **of_graph), 16, **options)
        for one in (engine, None)
    )
    assert made.embedding.numblocks == (n_blocks, 1)
    assert (made.first_power, made.times.n_products) == (
        wanted.first_power,
        wanted.times.n_products,
    )
    np.testing.assert_array_equal(made.embedding.compute(), wanted.embedding)
    for some in (W[::500], with_self_loops(W)[::500]):
        np.testing.assert_array_equal(made.extend(made.graph.rows(some)), wanted.embedding[::500])


@pytest.mark.untraced
@pytest.mark.parametrize("use", ["sketch", pytest.param("labels", marks=pytest.mark.nightly)])
def test_workers_that_die_during_the_solve_change_no_bit(tmp_path, monkeypatch, use):
    run = {"labels": labels, "sketch": lambda graph: [sketch(graph, 16).embedding]}[use]
    wanted, killed = run(HeatGraph.from_points(MOONS)), []
    with processes(2, silence_logs=50) as cluster, Client(cluster, set_as_default=False) as client:
        solve = all_times.Recurrence.advance

        def advance(vectors, degree):
            if degree == 3 and len(killed) < 2:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[-1], signal.SIGKILL)
            return solve(vectors, degree)

        monkeypatch.setattr(all_times.Recurrence, "advance", advance)
        engine = DaskEngine(client, storage=tmp_path, rows_per_block=PIECE)
        found = run(HeatGraph.from_points(MOONS, engine=engine))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert killed
