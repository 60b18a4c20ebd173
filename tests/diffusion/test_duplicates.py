"""Points with many copies, whose copies share one row of the graph."""

import numpy as np
import pytest
from checks import check_extension, check_heat_operator
from registry import SEEDS
from scipy import sparse
from sklearn.base import clone

from heatsketch import DiffusionMap, HeatGraph, HeatSketch
from heatsketch import sketch as sketch_graph
from heatsketch.diffusion import (
    gaussian_affinity,
    gaussian_matrix,
    heat_operator,
    local_scales,
    sketch,
)
from heatsketch.diffusion._duplicates import (
    SharedRows,
    copies_of_points,
    distinct_points,
    share_rows,
)
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.graph import neighbor_graph
from heatsketch.graph._neighbors import find_neighbors

pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")


def whole_numbers(n=400, dimension=2, most=5, seed=0):
    """Points in cells, one of which has a quarter of them."""
    X = np.random.default_rng(seed).integers(0, most, (n, dimension)).astype(float)
    X[::4] = 0
    return X


def shared(X, n_neighbors, **options):
    distinct = distinct_points(X, n_neighbors)
    options |= {"n_neighbors": distinct.n_neighbors}
    return share_rows(distinct, *find_neighbors(distinct.points, **options))


def expanded(matrix, places):
    """The matrix over all points, from that over distinct ones, stored zeros included."""
    kept = matrix.copy()
    kept.data = np.ones_like(kept.data)
    return np.where(kept.toarray(), matrix.toarray(), np.inf)[places][:, places]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_those_that_numpy_finds(seed, dtype):
    X = whole_numbers(most=7, seed=seed).astype(dtype) - 3
    X[5] = -X[5] * 0  # zeros of either sign are equal
    _, first, wanted = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # in the order in which they come
    for form in (np.asarray, np.asfortranarray):
        places, n_distinct = copies_of_points(form(X))
        assert n_distinct == len(first)
        np.testing.assert_array_equal(places, rank[wanted.ravel()])
    positive = sparse.csr_array(np.abs(X) + 0.0)
    assert copies_of_points(positive)[1] == len(np.unique(np.abs(X) + 0.0, axis=0))


@pytest.mark.parametrize("n_probes", [None, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_graph_is_that_of_distinct_points(seed, n_probes):
    X = whole_numbers(2000, most=30, seed=seed)
    neighbors, d2 = shared(X, 6, n_probes=n_probes)
    np.testing.assert_array_equal(np.sort(neighbors.order), np.arange(len(X)))
    copies = np.repeat(neighbors.points, np.diff(neighbors.starts), axis=0)
    np.testing.assert_array_equal(copies, X[neighbors.order])
    assert len(np.unique(neighbors.points, axis=0)) == len(neighbors.points)
    if n_probes is None:
        wanted = neighbor_graph(neighbors.points, n_neighbors=6)
        assert abs(d2.matrix - wanted).max() == 0
        assert d2.matrix.nnz == wanted.nnz
    for same in np.split(neighbors.order, neighbors.starts[1:-1]):
        assert (np.diff(same) > 0).all()  # copies in the order of their rows


@pytest.mark.parametrize("normalization", SCALINGS)
@pytest.mark.parametrize("weights", [3.0, "local"])
def test_the_embedding_is_that_of_the_matrix_over_all_points(normalization, weights):
    """The oracle: the dense matrix over all points, in which copies have all that others have."""
    X = whole_numbers()
    graph = HeatGraph.from_points(X, n_neighbors=6, weights=weights, normalization=normalization)
    found = sketch_graph(graph, 8, power=3, random_state=2, weighting="symmetric").embedding
    places, _ = copies_of_points(X)
    distinct = X[np.unique(places, return_index=True)[1]]
    d2 = neighbor_graph(distinct, n_neighbors=6)
    if weights == "local":
        scales = local_scales(d2)
        d2.data = d2.data / np.repeat(scales, np.diff(d2.indptr)) / scales[d2.indices]
    K = gaussian_affinity(expanded(d2, places), epsilon=1.0 if weights == "local" else 3.0)
    A = heat_operator(K, SCALINGS[normalization](K))
    wanted = sketch(A, gaussian_matrix(len(X), 8, seed=2), power=3)
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max(), rtol=1e-9)
    check_heat_operator(graph.operator)


@pytest.mark.parametrize("factors", [(1.0, 0.0, 0.0), (2.0, -0.5, 1.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_is_its_formula(dtype, factors):
    X, rng = whole_numbers().astype(dtype), np.random.default_rng(0)
    A = HeatGraph.from_points(X, n_neighbors=6).operator
    assert isinstance(A.matrix, SharedRows)
    x, z, total = (rng.standard_normal((len(X), 5)).astype(dtype) for _ in range(3))
    w, (a, b, g) = A.stationary_coefficients(x), factors
    y = a * (A @ x - A.stationary_part(w)) + b * x - g * z
    totals = total[np.newaxis].copy()
    found, coefficients = A.step(x, w, factors=factors, out=z, totals=totals, terms=[0.25])
    tolerance = {"atol": 50 * np.finfo(dtype).eps, "rtol": 0}
    np.testing.assert_allclose(found, y, **tolerance)
    np.testing.assert_allclose(totals[0], total + 0.25 * y, **tolerance)
    np.testing.assert_allclose(coefficients, A.stationary_coefficients(y), **tolerance)
    assert found is z
    double = x.astype(np.float64)  # which a matrix in single precision takes, too
    found, _ = A.step(double, w.astype(np.float64))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, A @ x - A.stationary_part(w), **tolerance)


MODELS = {
    "all times": HeatSketch(6),
    "one power": HeatSketch(6, power=1, weights=2.0, weighting="symmetric"),
    "bistochastic": HeatSketch(6, power=4, normalization="bistochastic"),
    "gaussian": HeatSketch(6, power=3, weights="gaussian"),
    "map": DiffusionMap(3, power=2),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_training_points_keep_every_bit_and_copies_are_equal(name, dtype):
    X = whole_numbers().astype(dtype)
    distances = np.sqrt(neighbor_graph(X))
    for metric, given in (("euclidean", X), ("manhattan", X), ("precomputed", distances)):
        if metric == "precomputed" and MODELS[name].weights == "gaussian":
            continue
        model = clone(MODELS[name]).set_params(n_neighbors=7, metric=metric)
        check_extension(model, given, rtol=0, batch=90)
        Y = model.fit(given).embedding_
        assert isinstance(model.graph_.operator.matrix, SharedRows)
        places, _ = copies_of_points(X)
        np.testing.assert_array_equal(Y, Y[np.unique(places, return_index=True)[1]][places])


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_permuted_with_their_ids_permute_the_embedding(seed, monkeypatch):
    X = whole_numbers(3000, most=30, seed=seed)
    ids, shuffled = (np.random.default_rng(seed + i).permutation(3000) for i in range(2))
    for comparisons in (0, 5e10):  # in lists, and exactly
        monkeypatch.setattr("heatsketch.engines._local.EXACT_COMPARISONS", comparisons)
        model = HeatSketch(8, n_neighbors=7, weights=9.0, power=3)
        wanted = model.fit(X, ids=ids).embedding_[shuffled]
        found = model.fit(X[shuffled], ids=ids[shuffled]).embedding_
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("n_distinct", [1, 2, 3])
def test_fewer_distinct_points_than_neighbors_are_all_neighbors(n_distinct):
    X = np.arange(n_distinct, dtype=float).repeat(40)[:, np.newaxis]
    model = HeatSketch(4, n_neighbors=15, power=2, weights=1.0).fit(X)
    assert model.graph_.operator.matrix.matrix.nnz == n_distinct**2
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
