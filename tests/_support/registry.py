"""What the laws are run over: add an entry, and every law runs on it."""

import numpy as np
import pytest
from scipy import sparse

from heatsketch import HeatGraph
from heatsketch.diffusion import gaussian_affinity
from heatsketch.graph import neighbor_graph

# One seed in every change, and all of them in make nightly.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))]


class RowBlocks:
    """An affinity of the user's own: blocks of rows, and nothing known of it but ``@``."""

    def __init__(self, K, n_blocks=3):
        self.blocks = np.array_split(np.asarray(K), n_blocks)
        self.shape = K.shape
        self.dtype = K.dtype

    def __matmul__(self, block):
        return np.concatenate([rows @ block for rows in self.blocks])


# The same matrix, held in different ways.
FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "coo_array": sparse.coo_array,
    "row blocks": RowBlocks,
}


def circle(n, seed=0):
    """Points on a circle, one in each of ``n`` equal arcs, so that no two are too close."""
    jitter = np.random.default_rng(seed).uniform(0.2, 0.8, n)
    angle = 2 * np.pi * (np.arange(n) + jitter) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def cloud(n, dimension=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dimension))


def two_blobs(n, gap, seed=0):
    X = cloud(n, 2, seed)
    X[: n // 2, 0] += gap
    return X


def affinity(X, epsilon, n_neighbors=None):
    return gaussian_affinity(neighbor_graph(X, n_neighbors=n_neighbors), epsilon=epsilon)


def helix(n, seed=0):
    """A curve that winds through eight dimensions."""
    angle = np.sort(np.random.default_rng(seed).uniform(0, 2 * np.pi, n))[:, np.newaxis]
    return np.hstack([np.cos(angle * [1, 2, 3, 5]), np.sin(angle * [1, 2, 3, 5])])


def graph_of(X, epsilon=0.5, n_neighbors=None, normalization="symmetric"):
    """The graph of Gaussian affinities, whose operator is in the order of ``X``."""
    K = affinity(X, epsilon, n_neighbors)
    return HeatGraph.from_affinity(K, self_loops=False, normalization=normalization)
