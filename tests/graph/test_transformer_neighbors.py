"""Neighbours that another library's transformer finds, as a parameter."""

import pickle
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from registry import SEEDS, circle, cloud
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer

from heatsketch import DaskEngine, DiffusionMap, HeatSketch, LocalEngine
from heatsketch.exceptions import AffinityError, HeatSketchError, NotStorableError, ScaleError
from heatsketch.graph._transformer_neighbors import Measure, neighbors_by_transformer

RECIPE = Path(__file__).parents[2] / "examples" / "faiss_neighbors.py"


class Careless(TransformerMixin, BaseEstimator):
    """Finds about two of three neighbours, and sometimes not the point itself: by coordinates."""

    def __init__(self, n_neighbors=12):
        self.n_neighbors = n_neighbors

    def fit(self, X, y=None):
        self.X_ = X
        return self

    def transform(self, X):
        d = cdist(X, self.X_)
        listed = np.argsort(d, axis=1, kind="stable")[:, : self.n_neighbors]
        seen = (np.abs(X[:, :1] * 1e6).astype(np.int64) + np.arange(self.n_neighbors)) % 3 > 0
        counts = seen.sum(axis=1)
        rows = np.repeat(np.arange(len(X)), counts)
        ids = listed[seen]
        return sparse.csr_array((d[rows, ids], ids, np.r_[0, np.cumsum(counts)]), shape=d.shape)


def faiss_transformer(factory):
    pytest.importorskip("faiss")
    return runpy.run_path(str(RECIPE))["FaissTransformer"](9, factory=factory)


def pynndescent_transformer():
    found = pytest.importorskip("pynndescent", exc_type=ImportError)  # numba rejects nightly numpy
    return found.PyNNDescentTransformer(n_neighbors=10, random_state=0)


TRANSFORMERS = [
    pytest.param(lambda: KNeighborsTransformer(n_neighbors=9), id="scikit-learn"),
    pytest.param(lambda: KNeighborsTransformer(n_neighbors=9, algorithm="brute"), id="brute"),
    pytest.param(lambda: RadiusNeighborsTransformer(radius=1.5), id="by radius"),
    pytest.param(lambda: faiss_transformer("Flat"), id="faiss"),
    pytest.param(lambda: faiss_transformer("HNSW16"), id="faiss, HNSW"),
    # It compiles for a minute.
    pytest.param(pynndescent_transformer, id="pynndescent", marks=pytest.mark.nightly),
    pytest.param(Careless, id="careless"),
]
MODELS = {
    "all times": HeatSketch(8),
    "one time": HeatSketch(8, power=4, epsilon=0.5, weighting="random_walk"),
    "auto, bistochastic": HeatSketch(8, power=2, epsilon="auto", normalization="bistochastic"),
    "map": DiffusionMap(3, power=2),
}


def points(seed=0):
    X = 3 + cloud(300, seed=seed)
    X[280:] = X[:20]  # duplicates
    return X


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transformer", TRANSFORMERS)
def test_training_points_keep_every_bit(transformer, dtype):
    X, transformer = points().astype(dtype), transformer()
    for name, model in MODELS.items():
        model = clone(model).set_params(neighbors=transformer).fit(X)
        np.testing.assert_array_equal(model.transform(X), model.embedding_, name)
        np.testing.assert_array_equal(model.transform(X[40:60]), model.embedding_[40:60], name)
        assert model.embedding_.dtype == dtype


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_exact_search_gives_our_own_embedding(metric, seed):
    X = 3 + cloud(400, 5, seed)
    exact = KNeighborsTransformer(n_neighbors=9, metric=metric)
    theirs = HeatSketch(8, neighbors=exact, metric=metric).fit(X)
    ours = HeatSketch(8, n_neighbors=10, metric=metric).fit(X)
    np.testing.assert_array_equal(theirs.embedding_, ours.embedding_)


@pytest.mark.parametrize("seed", SEEDS)
def test_new_points_are_embedded_as_by_our_own_search(seed):
    """On a curve: a point near another shares a neighbour with it."""
    X, new = circle(400, seed), circle(150, seed + 100)
    theirs = HeatSketch(8, neighbors=KNeighborsTransformer(n_neighbors=9)).fit(X)
    ours = HeatSketch(8, n_neighbors=10).fit(X)
    # Of a new point scikit-learn lists ten as well, since none of them is itself.
    np.testing.assert_array_equal(theirs.transform(new), ours.transform(new))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("transformer", [Careless(), RadiusNeighborsTransformer(radius=1.0)])
def test_neighbors_share_a_listed_point_and_are_within_a_radius(transformer, seed):
    X = points(seed)
    transformer = clone(transformer).fit(X)
    listed = np.zeros((300, 300), bool)
    listed[transformer.transform(X).nonzero()] = True
    graph = sparse.coo_array(transformer.transform(X))
    listed[graph.row, graph.col] = True  # stored zeros, too
    d = cdist(X, X)
    radii = np.where(listed, d, 0).max(axis=1)
    shared = (listed.astype(int) @ listed.T) > 0
    wanted = shared & (d <= (1 + 1e-12) * np.maximum.outer(radii, radii))
    _, d2 = neighbors_by_transformer(X, clone(transformer))
    found = np.zeros((300, 300), bool)
    rows = np.repeat(np.arange(300), np.diff(d2.indptr))
    found[rows, d2.indices] = True
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(np.sqrt(d2.data), d[rows, d2.indices], atol=1e-12)
    np.testing.assert_array_equal(d2.toarray(), d2.T.toarray())


def absolute(x, y):
    return np.abs(x - y).sum()


@pytest.mark.parametrize(
    ("metric", "theirs", "form"),
    [
        ("euclidean", "euclidean", sparse.csr_array),
        ("cosine", "cosine", sparse.csr_matrix),
        ("chebyshev", "chebyshev", np.asarray),
        (absolute, "manhattan", np.asarray),
    ],
)
def test_training_points_keep_every_bit_in_other_metrics(metric, theirs, form):
    X = form(np.round(points(), 1))
    search = KNeighborsTransformer(n_neighbors=9, metric=theirs)
    model = HeatSketch(8, neighbors=search, metric=metric).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    np.testing.assert_array_equal(model.transform(X[40:50]), model.embedding_[40:50])


def test_the_order_of_rows_does_not_matter():
    X, order = points()[:280], np.random.default_rng(0).permutation(280)
    model = HeatSketch(8, neighbors=KNeighborsTransformer(n_neighbors=9))
    Y = model.fit_transform(X)
    np.testing.assert_array_equal(model.fit_transform(X[order], row_ids=order), Y[order])
    np.testing.assert_array_equal(model.transform(X), Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 20}, "n_neighbors=20 has no use with neighbors=KNeighborsTransformer"),
        ({"n_neighbors": None}, "n_neighbors=None has no use"),
        ({"engine": LocalEngine(memory_limit=2**30)}, "engine=LocalEngine.* has no use"),
        ({"engine": DaskEngine(storage="nowhere")}, "engine=DaskEngine.* has no use"),
        ({"metric": "precomputed"}, "is not for metric='precomputed'"),
        ({"affinity": "precomputed"}, "neighbors=.* has no use with affinity='precomputed'"),
        ({"metric": "cosine"}, "finds row 16 of X 1.10154 from row 45, and metric='cosine' 0.125"),
        (
            {"neighbors": KNeighborsTransformer(metric="cosine")},
            "metric='euclidean' .* pass metric='cosine'",
        ),
        ({"neighbors": KNeighborsTransformer(mode="connectivity")}, "mode='connectivity'"),
        (
            {"neighbors": PCA(2)},
            r"^neighbors=PCA\(n_components=2\) returns a ndarray of shape \(60, 2\), and not a "
            r"sparse matrix of distances from the 60 rows of X to the 60 training points; use a "
            r"transformer such as sklearn\.neighbors\.KNeighborsTransformer\(mode='distance'\)\.$",
        ),
        ({"neighbors": "faiss"}, "'neighbors' parameter of HeatSketch must be"),
    ],
)
def test_contradictions_are_rejected_by_name(parameters, message):
    model = HeatSketch(8, neighbors=KNeighborsTransformer()).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(cloud(60) if "affinity" not in parameters else np.ones((60, 60)))


def test_a_point_without_neighbors_is_rejected_by_its_row():
    model = HeatSketch(8, neighbors=RadiusNeighborsTransformer(radius=0.5)).fit(circle(60))
    with pytest.raises(HeatSketchError, match="finds no neighbour of row 2 of X; let it search"):
        model.transform([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])


@pytest.mark.parametrize(
    ("metric", "remedy"),
    [("cosine", "metric='cosine'"), ("braycurtis", "the metric of the transformer")],
)
def test_other_distances_are_rejected_with_what_to_pass(metric, remedy):
    transformer = KNeighborsTransformer(n_neighbors=5, metric=metric, algorithm="brute")
    X = np.abs(cloud(60)) + 0.1
    message = (
        rf"^neighbors=KNeighborsTransformer\(.*\) finds row (\d+) of X (\S+) from row (\d+), and "
        rf"metric='euclidean' (\S+); pass {remedy} to the estimator, and let the transformer "
        r"return distances: neither their squares, nor connections \(mode='connectivity'\)\.$"
    )
    with pytest.raises(HeatSketchError, match=message) as raised:
        HeatSketch(8, neighbors=transformer).fit(X)
    row, theirs, other, ours = re.search(message, str(raised.value)).groups()
    pair = X[[int(row)]], X[[int(other)]]
    assert float(theirs) == pytest.approx(cdist(*pair, metric)[0, 0], rel=1e-4)
    assert float(ours) == pytest.approx(cdist(*pair)[0, 0], rel=1e-4)


def test_distances_that_overflow_are_rejected_by_their_rows():
    X = np.float32([[0], [1], [3e19], [3.1e19]])
    message = (
        r"^metric='euclidean' gives inf as the squared distance of row 0 of X to training point 2 "
        r"in float32; rescale X, or correct the metric if it is your own\.$"
    )
    with pytest.raises(ScaleError, match=message), np.errstate(over="ignore"):
        Measure(X, X, "euclidean")(np.array([0, 0, 0]), np.array([1, 2, 3]))


@pytest.mark.parametrize(
    ("metric", "form"),
    [
        ("euclidean", np.asarray),
        ("euclidean", sparse.csr_array),
        ("cosine", np.asarray),
        ("cosine", sparse.csr_array),
        ("manhattan", np.asarray),
    ],
)
def test_distances_of_pairs_are_those_of_their_rows(metric, form):
    X, new = cloud(30), cloud(20, seed=1)
    first = np.sort(np.random.default_rng(0).integers(20, size=50))
    second = np.random.default_rng(1).integers(30, size=50)
    found = Measure(form(new), form(X), metric)(first, second)
    named = {"manhattan": "cityblock"}.get(metric, metric)
    wanted = cdist(new, X, named)[first, second]
    np.testing.assert_allclose(np.sqrt(found), wanted, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_chunks_of_pairs_change_nothing(form, monkeypatch):
    X, new = form(points()), form(cloud(50, seed=1) + 3)
    search = KNeighborsTransformer(n_neighbors=9)
    neighbors, d2 = neighbors_by_transformer(X, clone(search))
    monkeypatch.setattr("heatsketch.graph._transformer_neighbors.PAIRS", 700)
    in_chunks, again = neighbors_by_transformer(X, clone(search))
    for one, other in (d2, again), (neighbors.distances_to(new), in_chunks.distances_to(new)):
        np.testing.assert_array_equal(one.indptr, other.indptr)
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.data, other.data)


def lopsided(x, y):
    return abs(x[0] - y[0]) * (2 if x[0] < y[0] else 1)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("cosine", "metric='cosine' has no angle for row 7 of X, which is all zeros"),
        (lopsided, "metric=.*lopsided.* is not symmetric: row "),
    ],
)
def test_what_our_own_search_rejects_is_rejected(metric, message):
    X = cloud(60)
    X[7] = 0
    with pytest.raises(AffinityError, match=message):
        neighbors_by_transformer(X, KNeighborsTransformer(metric="manhattan"), metric=metric)


def test_the_parameter_is_cloned_and_its_own_parameters_can_be_set():
    X, search = circle(80), KNeighborsTransformer(n_neighbors=5)
    model = HeatSketch(8, neighbors=search).fit(X)
    assert not hasattr(search, "n_samples_fit_")
    assert clone(model).neighbors.n_neighbors == 5
    before = model.transform(X)
    model.set_params(neighbors__n_neighbors=9)
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.parameters_["neighbors"].n_neighbors == 5
    assert model.neighbors_.transformer.n_neighbors == 5
    wider = HeatSketch(8, neighbors=KNeighborsTransformer(n_neighbors=9)).fit_transform(X)
    np.testing.assert_array_equal(model.fit_transform(X), wider)


@pytest.mark.parametrize("training_data", [True, False])
def test_such_a_model_is_pickled_and_not_saved(tmp_path, training_data):
    X = circle(80)
    model = HeatSketch(8, neighbors=KNeighborsTransformer(n_neighbors=5)).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.embedding_)
    with pytest.raises(NotStorableError, match=r"neighbors=KNeighborsTransformer.*use pickle"):
        model.save(tmp_path / "a.heatsketch", training_data=training_data)


def test_the_recipe_for_faiss_works(capsys):
    pytest.importorskip("faiss")
    recipe = runpy.run_path(str(RECIPE))
    recipe["main"]()
    same, difference = capsys.readouterr().out.splitlines()
    assert same.endswith("True")
    assert float(difference.split()[-1]) < 0.05


def test_the_index_of_faiss_survives_a_pickle():
    X = points().astype(np.float32)
    search = faiss_transformer("HNSW16").fit(X)
    state = search.__getstate__()
    again = type(search).__new__(type(search))
    again.__setstate__(pickle.loads(pickle.dumps(state)))
    assert (again.transform(X) != search.transform(X)).nnz == 0
