"""Who is near whom."""

import re
import tracemalloc
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from registry import SEEDS, circle, cloud, two_blobs
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from heatsketch import DiffusionMap, HeatSketch, LocalEngine, load
from heatsketch._core.checks import plain_floats
from heatsketch._core.memory import physical_memory
from heatsketch.diffusion import estimate_epsilon, gaussian_affinity
from heatsketch.exceptions import (
    AffinityError,
    DtypeError,
    HeatSketchError,
    MemoryBudgetError,
    MissingValueError,
    ScaleError,
)
from heatsketch.graph import _metrics as metrics
from heatsketch.graph import _neighbors as neighbors_module
from heatsketch.graph import neighbor_graph
from heatsketch.graph._ivf import grow_tree, index_dtype
from heatsketch.graph._metrics import ALIASES, METRICS
from heatsketch.graph._neighbors import (
    Neighbors,
    _stack,
    find_neighbors,
    label_components,
    squared_distances,
)
from heatsketch.graph._pairwise import DistanceTiles
from heatsketch.testing import check_engine


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_local_engine_keeps_the_laws_of_an_engine(metric, seed):
    check_engine(LocalEngine(), seed=seed, metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_are_scikit_learns(metric):
    X = cloud(50) > 0 if metric == "jaccard" else cloud(50)
    wanted = pairwise_distances(X, metric=metric) ** 2
    np.testing.assert_allclose(neighbor_graph(X.astype(float), metric=metric), wanted, atol=1e-12)


def test_small_distances_far_from_the_origin_are_exact():
    """Where the squares of the coordinates are 1e16 and the distances 1e-6 (reliability F8)."""
    offset = cloud(50, 4).round(2)
    X = 1e4 + 2.0**-10 * offset  # all exact in float32, too
    wanted = cdist(2.0**-10 * offset, 2.0**-10 * offset, "sqeuclidean")
    rounded = X.astype(np.float32).astype(float) - 1e4
    np.testing.assert_allclose(
        neighbor_graph(X.astype(np.float32)), cdist(rounded, rounded, "sqeuclidean"), rtol=1e-6
    )
    np.testing.assert_allclose(neighbor_graph(X), wanted, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_neighbors", [1, 6, 150])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_radii_are_the_distances_to_the_last_neighbor(metric, n_neighbors, seed):
    X = cloud(400, seed=seed)
    X[350:] = X[:50]
    neighbors, _ = find_neighbors(X, n_neighbors=n_neighbors, metric=metric)
    wanted = np.sort(neighbor_graph(X, metric=metric), axis=1)[:, n_neighbors - 1]
    np.testing.assert_array_equal(neighbors.radii, wanted)


def test_a_point_with_many_duplicates_keeps_them_all():
    X = np.vstack([np.zeros((10, 2)), cloud(20, 2)])
    graph = neighbor_graph(X, n_neighbors=4)
    assert (np.diff(graph.indptr)[:10] >= 10).all()
    assert graph.nnz == len(graph.data)
    assert (graph.data == 0).sum() == 100 + 20


def test_tiles_do_not_matter(monkeypatch):
    X = cloud(100)
    whole, cut = neighbor_graph(X), neighbor_graph(X, n_neighbors=5)
    monkeypatch.setattr("heatsketch.graph._neighbors.TILE_ENTRIES", 700)
    np.testing.assert_array_equal(neighbor_graph(X), whole)
    tiled = neighbor_graph(X, n_neighbors=5)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(tiled, name), getattr(cut, name))


NARROW = [np.float16, np.float32, np.int8, np.uint8, np.int16, np.uint16, bool]
WIDE = [np.float64, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("dtype", [*NARROW, *WIDE])
def test_points_are_in_the_narrowest_float_that_holds_them(dtype):
    """All integers of 16 bits are exact in float32, which holds those up to 2**24."""
    wanted = np.float32 if dtype in NARROW else np.float64
    X = np.array([[0, 1], [20, 1], [0, 99]]).astype(dtype) + dtype(1)
    for metric in ("euclidean", "cosine"):
        found = neighbor_graph(X, metric=metric)
        assert found.dtype == wanted
        np.testing.assert_array_equal(found, neighbor_graph(X.astype(wanted), metric=metric))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_every_value_of_a_narrow_integer_is_exact(dtype):
    values = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    kept = plain_floats(values[:, np.newaxis])
    assert kept.dtype == np.float32
    np.testing.assert_array_equal(kept[:, 0].astype(np.int64), values)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("dtype", [*NARROW[1:], *WIDE])  # polars has no float16
def test_an_estimator_takes_points_in_the_same_precision(form, dtype):
    X = np.random.default_rng(0).integers(0, 2, (60, 8)).astype(dtype)
    wanted = np.float32 if dtype in NARROW else np.float64
    found = HeatSketch(4, power=2, epsilon=4.0).fit_transform(form(X))
    assert found.dtype == wanted
    plain = sparse.csr_array(X.astype(wanted)) if form is sparse.csr_array else X.astype(wanted)
    np.testing.assert_array_equal(found, HeatSketch(4, power=2, epsilon=4.0).fit_transform(plain))


def second_distances(X_new, X):
    """Weights 1/2 + (c golden mod 1), written out."""
    weights = 0.5 + np.arange(1, X.shape[1] + 1) * (np.sqrt(5) - 1) / 2 % 1
    return (weights * np.abs(X_new[:, np.newaxis] - X)).sum(axis=2)


def without_copies(X, seed):
    return np.random.default_rng(seed).permutation(np.unique(X, axis=0)).astype(float)


GRIDS = {
    "truth values": lambda seed: (np.arange(256)[:, np.newaxis] >> np.arange(8)) & 1,
    "a lattice": lambda seed: np.stack(np.meshgrid(*[np.arange(6)] * 3), -1).reshape(-1, 3),
    "one of many": lambda seed: np.eye(120),
    "integers": lambda seed: np.random.default_rng(seed).integers(0, 4, (250, 5)),
}


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "hamming", "chebyshev"])
@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_second_distance_decides_among_ties(name, metric, seed):
    """The oracle: all points sorted by both distances."""
    X, k = without_copies(GRIDS[name](seed), seed), 12
    d2, second = neighbor_graph(X, metric=metric), second_distances(X, X)
    order = np.lexsort((second.round(9), d2))[:, k - 1]  # whose signs are mirrored have one second
    last = np.arange(len(X)), order
    radii, ties = d2[last][:, np.newaxis], second[last][:, np.newaxis]
    finds = (d2 < radii) | ((d2 == radii) & (second <= ties + 1e-9))
    neighbors, graph = find_neighbors(X, n_neighbors=k, metric=metric)
    stored = np.zeros(d2.shape, bool)
    stored[np.repeat(np.arange(len(X)), np.diff(graph.indptr)), graph.indices] = True
    np.testing.assert_array_equal(stored, finds | finds.T)
    again = neighbors.distances_to(X[::-1])
    np.testing.assert_array_equal(again.toarray(), graph.toarray()[::-1])
    assert again.nnz == graph.nnz


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_all_at_one_distance_have_no_more_neighbors_than_asked_for(form):
    """Before, ties were all kept: the square of the number of points."""
    graph = neighbor_graph(form(np.eye(400)), n_neighbors=10)
    assert graph.nnz <= 2 * 10 * 400
    dense = neighbor_graph(np.eye(400), n_neighbors=10)
    assert abs(graph - dense).max() < 1e-12
    assert graph.nnz == dense.nnz


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_points_are_made_ready_once_for_all_tiles(monkeypatch, metric):
    """Once as points, and once as rows that look for neighbours."""
    monkeypatch.setattr("heatsketch.graph._neighbors.TILE_ENTRIES", 1000)
    n_rows, normed = [], metrics._squared_norms
    monkeypatch.setattr(
        metrics, "_squared_norms", lambda X: n_rows.append(len(X.indptr) - 1) or normed(X)
    )
    X = sparse.random_array((200, 50), density=0.3, rng=np.random.default_rng(0), format="csr")
    found = neighbor_graph(X, n_neighbors=5, metric=metric)
    assert len(n_rows) > 10
    assert sum(n_rows) == 2 * 200
    wanted = neighbor_graph(X.toarray(), n_neighbors=5, metric=metric)
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), atol=1e-12)
    assert abs(found - found.T).max() == 0


@pytest.mark.parametrize("options", [{"n_neighbors": 0}, {"n_neighbors": -3}, {"metric": "euclid"}])
def test_options_that_mean_nothing_are_rejected(options):
    ((name, value),) = options.items()
    with pytest.raises(
        HeatSketchError,
        match=rf"{name}={value!r} (must be an integer from 1 to 10|is unknown; use)",
    ):
        neighbor_graph(cloud(10), **options)


def test_a_graph_of_neighbors_takes_no_quadratic_memory(monkeypatch):
    monkeypatch.setattr("heatsketch.graph._neighbors.TILE_ENTRIES", 100_000)
    X = cloud(3000)
    tracemalloc.start()
    neighbor_graph(X, n_neighbors=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 4


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_components_are_counted(form):
    for X, components in ((circle(40), 1), (two_blobs(40, 1000.0), 2), (1e3 * cloud(30), 30)):
        K = gaussian_affinity(neighbor_graph(X), epsilon=1.0)
        n_components, labels = label_components(form(K))
        assert n_components == components
        expected = connected_components(sparse.csr_array(np.where(K > 1e-12, K, 0)))[1]
        assert (labels == expected).all()  # numbered by their first rows, too


def test_links_are_compared_within_their_row():
    small = np.kron(np.diag([1, 1e-20]), np.ones((5, 5)))
    assert label_components(small)[0] == label_components(sparse.csr_array(small))[0] == 2


def test_links_below_rounding_do_not_count():
    K = np.array([[1.0, 1e-20], [1e-20, 1.0]])
    assert label_components(K)[0] == 2
    assert label_components(K.astype(np.float32) + np.float32(1e-3))[0] == 1
    K[0, 1] = K[1, 0] = 1e-10  # between the roundings of float32 and of float64
    assert label_components(K)[0] == 1
    assert label_components(K.astype(np.float32))[0] == 2
    assert label_components(np.eye(3, dtype=int))[0] == 3


def test_a_link_as_weak_as_rounding_does_not_count():
    eps = np.finfo(np.float64).eps
    for weight, n_components in ((eps, 2), (np.nextafter(eps, 1), 1)):
        assert label_components(np.array([[1, weight], [weight, 1]]))[0] == n_components


def test_components_of_all_pairs_in_tiles_are_those_of_the_matrix():
    X = two_blobs(40, 1000.0)
    K = gaussian_affinity(neighbor_graph(X), epsilon=1.0)
    tiles = gaussian_affinity(DistanceTiles(X, "euclidean"), epsilon=1.0)
    (n_components, labels), (wanted, expected) = label_components(tiles), label_components(K)
    assert n_components == wanted == 2
    assert (labels == expected).all()
    assert labels.dtype == expected.dtype == np.int32


def test_places_outside_the_matrix_are_rejected():
    K = sparse.csr_array(np.eye(3))
    K.indices[1] = 7
    with pytest.raises(HeatSketchError, match="K"):
        label_components(K)


@pytest.mark.parametrize(
    ("columns", "stored", "dtype"),
    [
        (10, 100, np.int32),
        (2**31 - 1, 2**31 - 1, np.int32),
        (2**31, 1, np.int64),
        (144_000_000, 15 * 144_000_000, np.int64),
    ],
)
def test_indices_widen_before_they_overflow(columns, stored, dtype):
    assert index_dtype(columns, stored) is dtype


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shapes", [((2, 2), (3, 4)), ((5, 64), (600, 4))])
def test_points_of_another_space_are_rejected(metric, form, shapes):
    X_new, X = (form(np.ones(shape)) for shape in shapes)
    with pytest.raises(HeatSketchError, match=r"X_new of shape \(.*X of shape \(.*; pass"):
        squared_distances(X_new, X, metric=metric)


def test_distances_that_exceed_the_memory_are_rejected_before_they_are_computed():
    X_new, X = np.zeros((1 << 21, 1), np.float32), np.zeros((1 << 22, 1), np.float32)
    with pytest.raises(MemoryBudgetError) as caught:
        squared_distances(X_new, X)
    assert str(caught.value) == (
        "n_neighbors=None keeps all 2097152 x 4194304 distances, which need 32768.0 GiB of the "
        f"{physical_memory() / 2**30:.1f} GiB here; use 15 neighbours or so."
    )
    assert caught.value.parameters == {"n_neighbors": None}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("options", [{}, {"n_neighbors": 19}, {"n_neighbors": 19, "n_probes": 1}])
def test_distances_beyond_the_dtype_name_their_points(monkeypatch, options, metric, dtype):
    monkeypatch.setattr(neighbors_module, "TILE_ENTRIES", 1800)  # three rows
    X = cloud(600).astype(dtype)
    X[[4, 17]] = np.finfo(dtype).max ** 0.75, 0, 0
    with pytest.raises(ScaleError) as caught:
        find_neighbors(X, metric=metric, **options)
    said = re.fullmatch(
        f"metric='{metric}' gives inf as the squared distance of row (.*) of X to training point "
        f"(.*) in {X.dtype}; rescale X, or correct the metric if it is your own.",
        str(caught.value),
    )
    row, point = (int(place) for place in said.groups())
    assert (row in {4, 17}) != (point in {4, 17})
    assert caught.value.parameters == {"metric": metric}


def test_new_points_too_far_away_are_named(monkeypatch):
    monkeypatch.setattr(neighbors_module, "TILE_ENTRIES", 60)  # three rows
    X_new = cloud(20)
    X_new[10:] = 1e200
    with pytest.raises(ScaleError, match="distance of row 10 of X to training point 0 in float64"):
        squared_distances(X_new, cloud(20))


@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_a_metric_of_ones_own_is_tried_on_a_few_points(n_neighbors):
    X = cloud(20)
    with pytest.raises(AffinityError, match=r"is not symmetric: row .* average the two directions"):
        find_neighbors(X, metric=lambda x, y: abs(x[0]), n_neighbors=n_neighbors)
    wanted, found = (
        find_neighbors(X, metric=metric, n_neighbors=n_neighbors)[1]
        for metric in ("manhattan", lambda x, y: abs(x - y).sum())
    )
    np.testing.assert_allclose(dense(found), dense(wanted))


@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_directions_of_zero_rows_are_rejected(n_neighbors):
    X, zero = cloud(20), np.zeros((1, 3))
    neighbors = find_neighbors(X, metric="cosine", n_neighbors=n_neighbors)[0]
    with pytest.raises(HeatSketchError, match="cosine"):
        find_neighbors(np.vstack([X, zero]), metric="cosine", n_neighbors=n_neighbors)
    with pytest.raises(HeatSketchError, match="cosine"):
        neighbors.distances_to(zero)
    with pytest.raises(HeatSketchError, match="cosine"):
        squared_distances(zero, X, metric="cosine")


def test_probes_can_be_chosen_by_the_points_and_their_tree():
    X, seen = cloud(600), []

    def choose(points, tree):
        seen.append((points, tree))
        return 2

    chosen, fixed = (find_neighbors(X, n_neighbors=5, n_probes=n)[1].toarray() for n in (choose, 2))
    np.testing.assert_array_equal(chosen, fixed)
    ((points, tree),) = seen
    np.testing.assert_array_equal(points, X)
    assert [len(level.centroids) for level in tree.levels] == [
        len(level.centroids) for level in grow_tree(X).levels
    ]


def test_new_points_of_another_space_are_rejected():
    neighbors, _ = find_neighbors(cloud(50, 4), n_neighbors=5)
    with pytest.raises(HeatSketchError, match=r"\(3, 2\) and X of shape \(.*, 4\).*; pass"):
        neighbors.distances_to(cloud(3, 2))


def test_pieces_of_a_matrix_that_is_not_square_are_rejected():
    with pytest.raises(HeatSketchError, match=r"K of shape \(2, 5\) must be square; pass"):
        label_components(sparse.csr_array(np.ones((2, 5))))


def test_stacked_blocks_may_hold_more_than_int32_counts(monkeypatch):
    """What is stored is pretended; the sums of its numbers are not."""
    one = SimpleNamespace(
        nnz=2**31 - 1,
        shape=(1, 4),
        indptr=np.array([0, 2**31 - 1], np.int32),
        indices=np.zeros(0, np.int32),
        data=np.zeros(0),
    )
    monkeypatch.setattr(sparse, "csr_array", lambda arrays, shape: arrays)
    indptr = _stack([one, one, one])[2]
    np.testing.assert_array_equal(indptr, (2**31 - 1) * np.arange(4))


# --- validation -------------------------------------------------------------------------------


def of_another_machine(X):
    return X.astype(X.dtype.newbyteorder())


DENSE_POINTS = {
    "list": np.ndarray.tolist,
    "frame": pd.DataFrame,
    "frame of polars": pl.DataFrame,
    "objects": lambda X: X.astype(object),
    "big-endian": of_another_machine,
    "long double": lambda X: X.astype(np.longdouble),
    "nothing masked": np.ma.masked_array,
}
SPARSE_POINTS = {
    form: getattr(sparse, form)
    for kind in ("array", "matrix")
    for form in (f"{name}_{kind}" for name in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"))
}


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 5}, {"metric": "cosine"}])
@pytest.mark.parametrize("form", DENSE_POINTS)
def test_points_may_come_in_any_dense_form(form, options):
    X = cloud(20).astype(np.float16).astype(np.float64)
    found, wanted = neighbor_graph(DENSE_POINTS[form](X), **options), neighbor_graph(X, **options)
    assert found.dtype == np.float64
    assert abs(found - wanted).max() == 0
    halves = neighbor_graph(X.astype(np.float16), **options)
    singles = neighbor_graph(X.astype(np.float32), **options)
    assert halves.dtype == singles.dtype == np.float32
    assert abs(halves - singles).max() == 0


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 5}, {"metric": "cosine"}])
@pytest.mark.parametrize("form", SPARSE_POINTS)
def test_points_may_come_in_any_sparse_form(form, options):
    X = cloud(20).round(1)
    X[::3, 1] = 0
    found = neighbor_graph(SPARSE_POINTS[form](X), **options)
    wanted = neighbor_graph(sparse.csr_array(X), **options)
    assert type(found) is type(wanted)
    assert abs(found - wanted).max() == 0


def test_distances_may_come_in_any_form():
    wanted = neighbor_graph(cloud(20), n_neighbors=5)
    distances = wanted.sqrt()
    for form in ("csc", "coo", "lil", "dok"):
        given = distances.asformat(form)
        found = neighbor_graph(given, metric="precomputed")
        assert found.nnz == wanted.nnz
        np.testing.assert_allclose(found.toarray(), wanted.toarray())
    for form in ("bsr", "dia"):
        with pytest.raises(AffinityError, match=rf"X is in {form.upper()} format.*; give the CSR"):
            neighbor_graph(distances.asformat(form), metric="precomputed")


def changed(value, row=3, column=1):
    X = cloud(20).astype(type(value) if isinstance(value, complex) else float)
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("X", "error", "says"),
    [
        (changed(np.nan), MissingValueError, "X contains NaN in row 3, column 1, .*; fill"),
        (changed(np.inf), MissingValueError, "X contains infinity .* in row 3, column 1, .*; fill"),
        (changed(1j), DtypeError, "X has dtype complex128; pass"),
        (cloud(20).astype(str), DtypeError, "X has dtype <U.*; encode"),
        (np.ma.masked_equal(changed(0.5), 0.5), MissingValueError, "X is a masked .* 1 masked"),
        (cloud(20)[:, 0], HeatSketchError, r"X of shape \(20,\) .*; use X.reshape"),
        (cloud(20)[:0], HeatSketchError, r"X of shape \(0, 3\) is empty; give"),
        (cloud(20)[:, :0], HeatSketchError, r"X of shape \(20, 0\) is empty; give"),
        (None, MissingValueError, "X is None"),
    ],
)
@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_what_is_no_point_is_rejected(X, error, says, n_neighbors):
    with pytest.raises(error, match=says):
        neighbor_graph(X, n_neighbors=n_neighbors)
    if error is MissingValueError and type(X) is np.ndarray:
        for form in (sparse.csr_array, sparse.coo_array):
            with pytest.raises(error, match=says):
                neighbor_graph(form(X), n_neighbors=n_neighbors)


@pytest.mark.parametrize(
    ("place", "value", "error", "says"),
    [
        ((3, 1), np.nan, MissingValueError, r"X\[3, 1\] is NaN.*correct"),
        ((3, 1), np.inf, MissingValueError, r"infinity .* in row 3, column 1"),
        ((3, 1), -1.0, AffinityError, r"X\[3, 1\] is -1, but distances are at least 0; correct"),
        ((4, 4), 1.0, AffinityError, r"X\[4, 4\] is 1, .* set the diagonal of X to 0"),
        ((3, 1), 9.0, AffinityError, r"needs a symmetric X.*; use \(X \+ X.T\) / 2"),
    ],
)
def test_what_is_no_distance_is_rejected(place, value, error, says):
    distances = np.sqrt(neighbor_graph(cloud(20)))
    distances[place] = value
    with pytest.raises(error, match=says):
        neighbor_graph(distances, metric="precomputed")
    if value != 9.0:  # a sparse graph of neighbours need not be symmetric
        with pytest.raises(error, match=says):
            neighbor_graph(sparse.csr_array(distances), metric="precomputed")
    with pytest.raises(AffinityError, match=r"X has shape \(5, 20\); give one row and one column"):
        neighbor_graph(distances[5:10], metric="precomputed")


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_neighbors_are_counted_in_whole_numbers(metric):
    for value in (5.5, "auto", True, [5], np.nan):
        with pytest.raises(DtypeError, match=r"n_neighbors=.* must be an integer from 1 to 20"):
            neighbor_graph(cloud(20), n_neighbors=value, metric=metric)
    wanted = neighbor_graph(cloud(20), n_neighbors=5, metric=metric)
    for value in (np.array(5), np.uint8(5), 5.0):
        found = neighbor_graph(cloud(20), n_neighbors=value, metric=metric)
        np.testing.assert_array_equal(found.toarray(), wanted.toarray())


def test_asymmetry_is_looked_for_in_strips(monkeypatch):
    monkeypatch.setattr("heatsketch._core.checks._STRIP_ENTRIES", 50)
    distances = np.sqrt(neighbor_graph(cloud(20)))
    neighbor_graph(distances, metric="precomputed")
    distances[19, 7] += 0.25
    with pytest.raises(AffinityError, match=r"differ by up to 0.25; use"):
        neighbor_graph(distances, metric="precomputed")


# --- names of metrics ----------------------------------------------------------------------


@pytest.mark.parametrize("alias", ALIASES)
def test_other_names_of_a_metric_are_the_same_bits(alias, tmp_path):
    X, ours = cloud(60, 3), ALIASES[alias]
    for function in (neighbor_graph, partial(neighbor_graph, n_neighbors=5)):
        one, two = (function(X, metric=name) for name in (alias, ours))
        assert abs(one - two).max() == 0
    np.testing.assert_array_equal(
        squared_distances(X[:5], X, metric=alias), squared_distances(X[:5], X, metric=ours)
    )
    # As scikit-learn measures it.
    np.testing.assert_allclose(
        np.sqrt(neighbor_graph(X, metric=alias)), pairwise_distances(X, metric=alias), atol=1e-12
    )
    assert estimate_epsilon(X, metric=alias).epsilon == estimate_epsilon(X, metric=ours).epsilon
    for kind in (HeatSketch, DiffusionMap):
        one, two = (kind(2, metric=name, epsilon="auto").fit(X) for name in (alias, ours))
        np.testing.assert_array_equal(one.transform(X), two.embedding_)
        assert one.metric == alias  # as it was given
        for place, model in enumerate((one, two)):
            model.save(tmp_path / f"{kind.__name__}{place}")
        files = [(tmp_path / f"{kind.__name__}{place}").read_bytes() for place in (0, 1)]
        assert files[0] == files[1]
        again = load(tmp_path / f"{kind.__name__}0")
        np.testing.assert_array_equal(again.transform(X), two.embedding_)


def test_points_of_the_same_metric_can_be_sparse():
    X = sparse.csr_array(np.round(abs(cloud(60, 3))))
    one, two = (neighbor_graph(X, metric=name) for name in ("l2", "euclidean"))
    np.testing.assert_array_equal(one, two)


def test_affinities_have_no_metric_but_the_default_by_any_name():
    K = neighbor_graph(cloud(40, 2))
    K = np.exp(-K)
    HeatSketch(2, affinity="precomputed", metric="l2").fit(K)
    with pytest.raises(HeatSketchError, match="metric='manhattan' has no use"):
        HeatSketch(2, affinity="precomputed", metric="l1").fit(K)


def dense(d2):
    """Return distances as an array, infinite where there are none."""
    if not sparse.issparse(d2):
        return d2
    found = np.full(d2.shape, np.inf)
    i, j = d2.tocoo().coords
    found[i, j] = d2.data
    return found


@pytest.mark.parametrize("metric", [*METRICS, "precomputed"])
@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_points_given_again_have_their_old_rows(metric, n_neighbors):
    X = (cloud(40) > 0).astype(float) if metric == "jaccard" else cloud(40) + 3
    X = cdist(X, X) if metric == "precomputed" else X
    neighbors, d2 = find_neighbors(X, n_neighbors=n_neighbors, metric=metric)
    again = neighbors.distances_to(X[neighbors.order])
    np.testing.assert_allclose(dense(again), dense(d2), atol=1e-12)


def test_all_at_the_distance_of_the_last_neighbor_are_near_if_only_distances_are_known():
    D = np.ones((6, 6)) - np.eye(6)
    neighbors, d2 = find_neighbors(D, n_neighbors=3, metric="precomputed")
    assert (dense(d2) == D).all()
    new = np.array([[1.0, 1, 1, 1, 1, 1], [0.5, 2, 2, 2, 3, 3]])
    expected = [[1, 1, 1, 1, 1, 1], [0.25, 4, 4, 4, np.inf, np.inf]]
    assert dense(neighbors.distances_to(new)).tolist() == expected


def test_copies_that_share_a_row_are_one_column_of_given_distances():
    X = np.array([[0.0], [3.0], [0.0], [5.0]])
    folded = Neighbors(cdist(X[[0, 1, 3]], X[[0, 1, 3]]), np.array([0, 2, 1, 3]), "precomputed")
    folded = replace(folded, starts=np.array([0, 2, 3, 4]))
    assert folded.distances_to(cdist([[1.0]], X)).tolist() == [[1, 4, 16]]


def test_a_graph_of_distances_is_not_changed():
    D = sparse.csr_array(cdist(cloud(20), cloud(20)))
    before = D.copy()
    neighbor_graph(D, metric="precomputed")
    find_neighbors(D, n_neighbors=3, metric="precomputed")[0].distances_to(D)
    assert (before != D).nnz == 0
