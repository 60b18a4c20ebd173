"""Graphs of neighbours that other libraries found."""

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from heatsketch import HeatGraph, sketch
from heatsketch.exceptions import AffinityError, HeatSketchError, MissingValueError

ABSOLUTE = {"euclidean": 1e-12, "cosine": 1e-9, "manhattan": 1e-12}


def listed(X, n_neighbors=10, metric="euclidean"):
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, algorithm="brute").fit(X)
    distances, indices = search.kneighbors(X)
    return indices, distances


def dense(graph):
    """The operator in the order of the given rows."""
    A = np.empty((graph.n_samples, graph.n_samples))
    A[np.ix_(graph.order, graph.order)] = graph.operator @ np.eye(graph.n_samples)
    return A


@pytest.mark.parametrize("options", [{}, {"weights": 5.0, "normalization": "bistochastic"}])
@pytest.mark.parametrize("metric", ABSOLUTE)
@pytest.mark.parametrize("seed", SEEDS)
def test_an_exact_search_gives_the_graph_of_the_points(seed, metric, options):
    X = 3 + cloud(400, 5, seed)
    indices, distances = listed(X, metric=metric)
    found = HeatGraph.from_neighbors(indices, distances, **options)
    wanted = HeatGraph.from_points(X, n_neighbors=10, metric=metric, **options)
    np.testing.assert_allclose(dense(found), dense(wanted), atol=ABSOLUTE[metric])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("n_new", [1, 50])
def test_points_make_new_points_possible(metric, n_new):
    X, new = 3 + cloud(300), 3 + cloud(n_new, seed=1)
    indices, distances = listed(X, metric=metric)
    graph = HeatGraph.from_neighbors(indices, distances, X, metric=metric)
    made = sketch(graph, 8)
    np.testing.assert_allclose(made.extend(graph.rows(X)), made.embedding, atol=1e-8)
    wanted = sketch(HeatGraph.from_points(X, n_neighbors=10, metric=metric), 8)
    np.testing.assert_allclose(
        made.extend(graph.rows(new)), wanted.extend(wanted.graph.rows(new)), atol=1e-6
    )


def test_a_point_need_not_be_listed_for_itself():
    indices, distances = listed(circle(200))
    with_itself = HeatGraph.from_neighbors(indices, distances)
    without = HeatGraph.from_neighbors(indices[:, 1:], distances[:, 1:])
    np.testing.assert_allclose(dense(without), dense(with_itself), atol=1e-12)


def test_minus_one_is_no_neighbour():
    """As faiss and cuVS fill lists; what is left is a sparse matrix of distances."""
    indices, distances = listed(cloud(200))
    missing = np.random.default_rng(0).random(indices.shape) < 0.3
    missing[:, :3] = False
    rows = np.nonzero(~missing)[0]
    D = sparse.csr_array((distances[~missing], (rows, indices[~missing])), shape=(200, 200))
    found = HeatGraph.from_neighbors(
        np.where(missing, -1, indices), np.where(missing, np.inf, distances)
    )
    wanted = HeatGraph.from_points(D, metric="precomputed")
    np.testing.assert_array_equal(dense(found), dense(wanted))


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


X = cloud(60)
INDICES, DISTANCES = listed(X)
ALL_MISSING = changed(INDICES, 4, -1)


@pytest.mark.parametrize(
    ("indices", "distances", "options", "error", "name"),
    [
        (INDICES, DISTANCES**2, {"X": X}, HeatSketchError, "distances"),
        (INDICES, DISTANCES, {"X": X, "metric": "manhattan"}, HeatSketchError, "metric"),
        (INDICES, DISTANCES, {"X": X[::-1]}, HeatSketchError, "distances"),
        (INDICES, DISTANCES, {"X": X[:50]}, HeatSketchError, "X"),
        (INDICES.astype(float), DISTANCES, {}, HeatSketchError, "indices"),
        (INDICES, DISTANCES[:, :5], {}, HeatSketchError, "distances"),
        (INDICES[0], DISTANCES[0], {}, HeatSketchError, "indices"),
        (changed(INDICES, (3, 2), 60), DISTANCES, {}, HeatSketchError, "indices"),
        (changed(INDICES, (3, 2), -2), DISTANCES, {}, HeatSketchError, "indices"),
        (ALL_MISSING, DISTANCES, {}, HeatSketchError, "row 4"),
        (INDICES, -DISTANCES, {}, AffinityError, "distances"),
        (INDICES, 1 - DISTANCES / 9, {}, AffinityError, "distances"),
        (INDICES, changed(DISTANCES, (3, 2), np.nan), {}, MissingValueError, "NaN"),
        (changed(INDICES, (3, 2), INDICES[3, 1]), DISTANCES, {}, HeatSketchError, "indices"),
        (INDICES, DISTANCES, {"ids": [1, 2]}, HeatSketchError, "ids"),
    ],
)
def test_an_invalid_argument_is_named(indices, distances, options, error, name):
    with pytest.raises(error, match=name):
        HeatGraph.from_neighbors(indices, distances, **options)


def faiss_lists(X, factory):
    faiss = pytest.importorskip("faiss")
    index = faiss.index_factory(X.shape[1], factory)
    index.add(X)
    squares, indices = index.search(X, 10)
    return indices, np.sqrt(np.maximum(squares, 0))


def pynndescent_lists(X):
    library = pytest.importorskip("pynndescent", exc_type=ImportError)
    return library.NNDescent(X, n_neighbors=10, random_state=0).neighbor_graph


@pytest.mark.parametrize(
    "search",
    [
        pytest.param(lambda X: faiss_lists(X, "Flat"), id="faiss"),
        pytest.param(lambda X: faiss_lists(X, "HNSW16"), id="faiss, HNSW"),
        # It compiles for a minute.
        pytest.param(pynndescent_lists, id="pynndescent", marks=pytest.mark.nightly),
    ],
)
def test_lists_of_other_libraries_give_nearly_the_same_embedding(search):
    X = (3 + cloud(500)).astype(np.float32)
    indices, distances = search(X)
    Y = sketch(HeatGraph.from_neighbors(indices, distances, X), 32, power=8).embedding
    wanted = sketch(HeatGraph.from_points(X, n_neighbors=10), 32, power=8).embedding
    apart, exact = (np.linalg.norm(rows[1:] - rows[:-1], axis=1) for rows in (Y, wanted))
    assert np.median(np.abs(apart / exact - 1)) < 0.02
