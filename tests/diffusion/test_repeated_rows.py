"""Equal rows in a comparison: repeated records are permuted together, independent rows are not."""

import warnings

import numpy as np
import pytest
from registry import cloud
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import KNeighborsTransformer

from heatsketch import HeatSketch
from heatsketch._core.parallel import at_most
from heatsketch.diffusion import _repeated_rows as module
from heatsketch.exceptions import HeatSketchWarning

SINGLE = {"power": 1, "n_jobs": 1}


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
    "all repeated": lambda rng: repeated(rng, 60, 1),
    "a tenth repeated": lambda rng: repeated(rng, 120, 0.1),
    "some thrice": lambda rng: repeated(rng, 90, 0.3, times=3),
    "many ties": lambda rng: rounded(rng, 1.5),
    "few ties": lambda rng: rounded(rng, 15),
    "ten values": ten_values,
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
@pytest.mark.parametrize("null", NULLS)
def test_equal_rows_are_found_to_differ_at_the_level(null, one_thread):
    n_runs, n_found = 120, 0
    for run in range(n_runs):
        X, group = NULLS[null](np.random.default_rng(run))
        model = HeatSketch(2, random_state=run, **SINGLE).fit(X)
        n_found += model.compare(group, n_permutations=19).p_value <= 0.05
    assert n_found / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.HeatSketchWarning")
def test_independent_equal_rows_keep_the_power(one_thread):
    """A unit of all rows with one value and group would find nothing."""
    n_found = 0
    for run in range(20):
        X, group = rounded(np.random.default_rng(run), 1.5, shift=1)
        model = HeatSketch(2, random_state=run, **SINGLE).fit(X)
        n_found += model.compare(group, n_permutations=19).p_value <= 0.05
    assert n_found >= 18


def test_repeated_rows_are_permuted_as_units():
    X, group = repeated(np.random.default_rng(0), 100, 0.5)
    record = np.unique(X, axis=0, return_inverse=True)[1]
    first = np.unique(X, axis=0, return_index=True)[1][record]
    model = HeatSketch(4, power=1).fit(X)
    wanted = model.compare(group, units=first)
    with pytest.warns(HeatSketchWarning, match=r"rows repeat another row.* one record") as log:
        found = model.compare(group)
    assert log[0].filename == __file__
    assert found.p_value == wanted.p_value
    np.testing.assert_array_equal(found.z, wanted.z)


def test_the_order_of_repeated_rows_does_not_matter():
    X, group = repeated(np.random.default_rng(0), 100, 0.05)
    order = np.random.default_rng(1).permutation(len(X))
    wanted = HeatSketch(4, power=1).fit(X, row_ids=np.arange(len(X))).compare(group)
    found = HeatSketch(4, power=1).fit(X[order], row_ids=order).compare(group[order])
    np.testing.assert_array_equal(found.p_values, wanted.p_values[order])


FITS = {
    "points": lambda X: HeatSketch(4, power=1).fit(X),
    "sparse": lambda X: HeatSketch(4, power=1).fit(sparse.csr_array(X)),
    "float32": lambda X: HeatSketch(4, power=1).fit(X.astype(np.float32)),
    "all pairs": lambda X: HeatSketch(4, power=1, n_neighbors=None).fit(X),
    "distances": lambda X: HeatSketch(4, power=1, metric="precomputed").fit(squareform(pdist(X))),
    "transformer": lambda X: HeatSketch(
        4, power=1, neighbors=KNeighborsTransformer(n_neighbors=15)
    ).fit(X),
}


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("times", [2, 8])  # 8 copies share rows of the graph
def test_repeated_rows_are_seen_in_all_kinds_of_points(fit, times):
    X, group = np.repeat(cloud(60), times, axis=0), np.repeat(np.arange(60) % 2, times)
    order = np.random.default_rng(0).permutation(len(X))
    model = FITS[fit](X[order])
    with pytest.warns(HeatSketchWarning, match="repeat another row") as log:
        model.compare(group[order])
    assert f"{60 * (times - 1)} of {60 * times} rows" in str(log[0].message)


def test_repeated_rows_with_equal_rows_in_other_groups_are_a_warning():
    rng = np.random.default_rng(0)
    X, group = (np.repeat(part, 2, axis=0) for part in rounded(rng, 3))
    with pytest.warns(HeatSketchWarning, match="If records are repeated, p-values are far too"):
        HeatSketch(4, power=1).fit(X).compare(group)


def test_groups_that_share_records_are_a_warning():
    X = cloud(60)
    model = HeatSketch(4, power=1).fit(np.concatenate([X, X]))
    with pytest.warns(HeatSketchWarning, match="groups seem to share records"):
        model.compare(np.arange(120) // 60)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("rows", "message"), [(np.arange(60), "share records"), (np.arange(60, 120), "repeat another")]
)
def test_a_new_sample_with_repeated_rows_is_a_warning(form, rows, message):
    X = cloud(180)
    new = form(np.concatenate([X[60:120], X[rows], X[150:]]))
    with pytest.warns(HeatSketchWarning, match=message):
        HeatSketch(4, power=1).fit(form(X[:60])).compare_to(new)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X: X,
        lambda X: np.rint(2 * X),
        lambda X: np.concatenate([X[:295], X[:5]]),  # may be chance
    ],
)
def test_independent_rows_are_no_reason_to_warn(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HeatSketch(4, power=1).fit(fit(cloud(300))).compare(np.arange(300) % 2)


@pytest.mark.parametrize("seed", range(3))
def test_random_pairs_are_disjoint_pairs_of_equal_rows(seed):
    points = np.random.default_rng(seed).integers(0, 9, 40)
    one, other = module._random_pairs(points)
    assert (points[one] == points[other]).all()
    assert len(np.unique([one, other])) == 2 * len(one) == 2 * (np.bincount(points) // 2).sum()
