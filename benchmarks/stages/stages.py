"""What each stage of a fit takes, of the processor and with one thread, so that results repeat.

A stage gets what the stages before it made, so that a stage that became slower is seen on its own.
"""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from heatsketch import HeatSketch, load
from heatsketch.diffusion import (
    gaussian_affinity,
    gaussian_matrix,
    heat_operator,
    sketch,
    sketch_all_times,
    symmetric_scaling,
)
from heatsketch.graph import neighbor_graph

N_POINTS, N_FEATURES, N_COMPONENTS, N_NEW, POWER = 10_000, 16, 32, 2000, 16
N_MANY = 40_000  # so many are searched by inverted lists


def points(n_points, seed):
    """Return a torus of dimension 4 in some features, with noise."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, (n_points, 4))
    flat = np.hstack([np.cos(angles), np.sin(angles)])
    mixing = np.random.default_rng(0).normal(size=(flat.shape[1], N_FEATURES))
    return (flat @ mixing + 0.05 * rng.normal(size=(n_points, N_FEATURES))).astype(np.float32)


class Stages:
    """One number for each stage."""

    timer = process_time
    timeout = 600
    warmup_time = 0.1
    processes = 2
    repeat = (5, 10, 3.0)  # least and most samples, and seconds for them
    rounds = 2

    def setup_cache(self):
        folder = Path(tempfile.mkdtemp(dir="."))
        model = HeatSketch(N_COMPONENTS, n_jobs=1).fit(points(N_POINTS, 0))
        model.save(folder / "model")
        return str(folder.resolve())

    setup_cache.timeout = 600

    def setup(self, folder):
        self.limits = threadpool_limits(1)
        self.folder, self.X, self.new = Path(folder), points(N_POINTS, 0), points(N_NEW, 1)
        self.many = points(N_MANY, 2)
        self.model = load(self.folder / "model")
        self.d2 = neighbor_graph(self.X[: N_POINTS // 2], n_neighbors=15)
        self.epsilon = float(np.median(self.d2.data))
        self.K = gaussian_affinity(self.d2, epsilon=self.epsilon)
        self.A = heat_operator(self.K, symmetric_scaling(self.K))
        self.G = gaussian_matrix(len(self.X) // 2, N_COMPONENTS, seed=0, dtype=np.float32)

    def teardown(self, folder):
        self.limits.restore_original_limits()

    def time_neighbor_graph(self, folder):
        neighbor_graph(self.X[: N_POINTS // 2], n_neighbors=15)

    def time_inverted_lists(self, folder):
        HeatSketch(2, power=1, n_jobs=1).fit(self.many)

    def time_affinity(self, folder):
        gaussian_affinity(self.d2, epsilon=self.epsilon)

    def time_normalization(self, folder):
        heat_operator(self.K, symmetric_scaling(self.K))

    def time_random_matrix(self, folder):
        gaussian_matrix(N_POINTS, N_COMPONENTS, seed=0, dtype=np.float32)

    def time_products(self, folder):
        sketch(self.A, self.G, power=POWER)

    def time_all_times(self, folder):
        sketch_all_times(self.A, self.G)

    def time_fit(self, folder):
        HeatSketch(N_COMPONENTS, n_jobs=1).fit(self.X)

    def time_transform(self, folder):
        self.model.transform(self.new)

    def time_save(self, folder):
        self.model.save(self.folder / "saved", overwrite=True)

    def time_load(self, folder):
        load(self.folder / "model")
