"""The compiled loops: the same bits on every instruction set, and arrays that they do not take."""

import os
import subprocess
import sys

import numpy as np
import pytest

from heatsketch._core import kernels

PROGRAM = """
import hashlib
import numpy as np
from scipy import sparse
from heatsketch import HeatSketch
from heatsketch.diffusion import gaussian_matrix, rademacher_matrix
from heatsketch._core import kernels
from heatsketch.near_isometry._pairs import squared_lengths
from heatsketch.graph._metrics import squared_distances_to
from heatsketch.diffusion._operator import HeatOperator
from heatsketch.graph._ivf import NeighborLists, grow_tree

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    for k in (1, 2, 3, 8, 16, 32, 33, 64, 100, 128, 200):
        A = sparse.random_array((1500, 1500), density=0.01, rng=rng, dtype=dtype, format="csr")
        x, y = rng.normal(size=(2, 1500, k)).astype(dtype)
        v, w = rng.normal(size=1500).astype(dtype), rng.normal(size=k).astype(dtype)
        totals = [np.zeros((1, 1500, k), dtype), [0.7]]
        factors = {"factors": (1.5, 0.3, -0.7), "out": y, "totals": totals[0], "terms": totals[1]}
        for found in (*HeatOperator(A, None, v).step_of_rows(x, w, **factors), totals[0]):
            digest.update(found)
    for kind in (gaussian_matrix, rademacher_matrix):
        digest.update(kind(300, 77, first_column=5, seed=3, dtype=dtype))
    for d in (1, 3, 8, 17, 100):
        for scale in (100, 1):  # few ties, many ties
            X = np.round(rng.normal(size=(3000, d)) * scale).astype(dtype)
            graph, radii, ties = NeighborLists.arrange(X, grow_tree(X), 4).graph(10)
            for found in (graph.indptr, graph.indices, graph.data, radii, ties):
                digest.update(found)
            digest.update(squared_distances_to(X, "euclidean")(X[:70]))
            digest.update(squared_lengths(X, np.arange(999), np.arange(1, 1000)))
    X = rng.normal(size=(2000, 5)).astype(dtype)
    model = HeatSketch(16, n_neighbors=10, power=20, normalization="bistochastic").fit(X)
    digest.update(model.embedding_)
    digest.update(model.transform(X[:200] + dtype(0.01)))
print(kernels.CPU, digest.hexdigest())
"""


def run(cpu, program=PROGRAM):
    environment = os.environ | {"HEATSKETCH_CPU": cpu}
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_instruction_set_gives_the_same_bits():
    usable = [cpu for cpu in kernels.CPUS if kernels._baseline.supports(cpu)]
    assert "baseline" in usable
    found = [run(cpu).stdout.split() for cpu in usable]
    assert [cpu for cpu, _ in found] == usable
    assert len({digest for _, digest in found}) == 1


def test_an_unknown_instruction_set_is_rejected_by_name():
    done = run("sse9", "import heatsketch.diffusion")
    assert done.returncode != 0
    assert "HEATSKETCH_CPU" in done.stderr and "baseline" in done.stderr


def test_outputs_are_never_copies():
    out = np.empty((3, 8))[:, ::2]
    with pytest.raises(TypeError, match="all_squares"):
        kernels.all_squares(np.ones((3, 2)), np.ones((4, 2)), out)
    locked = np.empty((3, 4))
    locked.flags.writeable = False
    with pytest.raises(TypeError, match="all_squares"):
        kernels.all_squares(np.ones((3, 2)), np.ones((4, 2)), locked)


def test_inputs_may_have_any_strides_and_be_read_only():
    points = np.arange(24.0).reshape(4, 6)[:, ::3]
    points.flags.writeable = False
    out = np.empty((4, 4))
    kernels.all_squares(points, points, out)
    np.testing.assert_array_equal(out, ((points[:, np.newaxis] - points) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("all_squares", (np.ones((3, 2)), np.ones((4, 3)), np.empty((3, 4)))),
        ("all_squares", (np.ones((3, 2)), np.ones((4, 2)), np.empty((3, 3)))),
        (
            "second_distances",
            (np.ones((3, 2)), np.arange(3), np.ones((4, 2)), np.arange(2), np.empty(3)),
        ),
        ("pair_squares", (np.ones((3, 2)), np.arange(3), np.arange(2), np.empty(3))),
        (
            "row_products",
            (np.arange(3), np.zeros(2, int), np.ones(2), np.ones(1), np.empty(3), 0, 1),
        ),
        (
            "row_products",
            (np.arange(4), np.zeros(3, int), np.ones(3), np.ones(1), np.empty(3), -1, 1),
        ),
        ("segment_sums", (np.ones((3, 2)), np.arange(4), np.empty((3, 3)), 0, 1)),
        ("sort_rows", (np.arange(4), np.arange(3), np.ones(3), 0, 4)),
    ],
)
def test_lengths_that_do_not_fit_are_rejected(name, arguments):
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        getattr(kernels, name)(*arguments)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affinities_are_exponentials_to_the_last_digit_but_one(dtype):
    squares = np.concatenate([np.geomspace(1e-320, 700, 5000), np.linspace(0, 700, 5000)])
    squares = squares.astype(dtype)
    found, wanted = np.empty_like(squares), np.exp(-squares.astype(np.longdouble))
    kernels.gaussian_affinities(squares, 1.0, found)
    assert (abs(found - wanted) <= np.finfo(dtype).eps * wanted + np.finfo(dtype).tiny).all()


def test_affinities_of_nothing_and_of_infinity():
    squares = np.array([0.0, 708.0, 745.0, 746.0, 1e308, np.inf])
    kernels.gaussian_affinities(squares, 1.0, squares)  # in place
    assert squares[0] == 1 and squares[1] > np.finfo(float).tiny > squares[2] > 0
    assert (squares[3:] == 0).all()
