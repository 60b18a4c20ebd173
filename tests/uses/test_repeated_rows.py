"""Equal rows in a comparison: repeated records are permuted together, independent rows are not."""

import warnings

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import NearestNeighbors

from heatsketch import HeatGraph, compare, compare_to
from heatsketch._core.parallel import at_most
from heatsketch.exceptions import HeatSketchWarning


@pytest.fixture
def one_thread():
    """Threads cost more than they save on a hundred rows."""
    with at_most(1):
        yield


def repeated(rng, n, share, times=2):
    """Return independent records in two groups, of which some are repeated in their group."""
    counts = np.where(rng.random(n) < share, times, 1)
    X, group = rng.normal(size=(n, 2)), rng.permutation(n) % 2
    return np.repeat(X, counts, axis=0), np.repeat(group, counts)


def rounded(rng, scale, shift=0.0):
    """Return independent points of whole numbers; the smaller the scale, the more are equal."""
    group = rng.permutation(120) % 3 == 0
    X = rng.normal(size=(120, 2)) + shift * group[:, np.newaxis]
    return np.rint(scale * X), group


def ten_values(rng):
    return 9.0 * np.eye(10)[rng.choice(10, 120)], rng.permutation(120) % 2


NULLS = {
    "a tenth repeated": lambda rng: repeated(rng, 120, 0.1),
    "many ties": lambda rng: rounded(rng, 1.5),
    "ten values": ten_values,
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
@pytest.mark.parametrize("null", NULLS)
def test_equal_rows_are_found_to_differ_at_the_level(null, one_thread):
    n_runs, n_found = 120, 0
    for run in range(n_runs):
        X, group = NULLS[null](np.random.default_rng(run))
        graph = HeatGraph.from_points(X)
        n_found += compare(graph, group, n_permutations=19).p_value <= 0.05
    assert n_found / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
def test_independent_equal_rows_keep_the_power(one_thread):
    """A unit of all rows with one value and group would find nothing."""
    n_found = 0
    for run in range(20):
        X, group = rounded(np.random.default_rng(run), 1.5, shift=1)
        graph = HeatGraph.from_points(X)
        n_found += compare(graph, group, n_permutations=19).p_value <= 0.05
    assert n_found >= 18


def test_repeated_rows_are_permuted_as_units():
    X, group = repeated(np.random.default_rng(0), 100, 0.5)
    record = np.unique(X, axis=0, return_inverse=True)[1]
    first = np.unique(X, axis=0, return_index=True)[1][record]
    graph = HeatGraph.from_points(X)
    wanted = compare(graph, group, units=first)
    with pytest.warns(HeatSketchWarning, match=r"rows repeat another row.* one record") as log:
        found = compare(graph, group)
    assert log[0].filename == __file__
    assert found.p_value == wanted.p_value
    np.testing.assert_array_equal(found.z, wanted.z)


def listed(X):
    distances, indices = NearestNeighbors(n_neighbors=15).fit(X).kneighbors(X)
    return HeatGraph.from_neighbors(indices, distances, X)


GRAPHS = {
    "points": HeatGraph.from_points,
    "sparse": lambda X: HeatGraph.from_points(sparse.csr_array(X)),
    "float32": lambda X: HeatGraph.from_points(X.astype(np.float32)),
    "all pairs": lambda X: HeatGraph.from_points(X, n_neighbors=None),
    "distances": lambda X: HeatGraph.from_points(squareform(pdist(X)), metric="precomputed"),
    "lists": listed,
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("form", GRAPHS)
@pytest.mark.parametrize("times", [2, 8])  # 8 copies share rows of the graph
def test_repeated_rows_are_seen_in_all_kinds_of_points(form, times):
    X, group = np.repeat(cloud(60), times, axis=0), np.repeat(np.arange(60) % 2, times)
    order = np.random.default_rng(0).permutation(len(X))
    graph = GRAPHS[form](X[order])
    with pytest.warns(HeatSketchWarning, match="repeat another row") as log:
        compare(graph, group[order])
    assert f"{60 * (times - 1)} of {60 * times} rows" in str(log[0].message)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("rows", "message"), [(np.arange(60), "share records"), (np.arange(60, 120), "repeat another")]
)
def test_a_new_sample_with_repeated_rows_is_a_warning(form, rows, message):
    X = cloud(180)
    new = form(np.concatenate([X[60:120], X[rows], X[150:]]))
    with pytest.warns(HeatSketchWarning, match=message):
        compare_to(HeatGraph.from_points(form(X[:60])), new)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X,
        lambda X: np.rint(2 * X),
        lambda X: np.concatenate([X[:295], X[:5]]),  # may be chance
    ],
)
def test_independent_rows_are_no_reason_to_warn(change):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(HeatGraph.from_points(change(cloud(300))), np.arange(300) % 2)
