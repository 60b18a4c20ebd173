"""Laws of compare: the definition, its level, its flags, and who may be exchanged for whom."""

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from registry import SEEDS, affinity, cloud
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsTransformer

from heatsketch import HeatSketch
from heatsketch._core.parallel import at_most
from heatsketch.diffusion import _compare, compare_groups, heat_operator, symmetric_scaling
from heatsketch.diffusion._random_matrix import Kind, gaussians_apart
from heatsketch.exceptions import (
    DtypeError,
    HeatSketchError,
    HeatSketchWarning,
    MissingValueError,
    TrainingDataError,
)
from heatsketch.graph import neighbor_graph
from heatsketch.graph._joined import joined_graph
from heatsketch.graph._neighbors import find_neighbors
from heatsketch.testing import tolerance

FIELDS = ("p_values", "z", "effect", "group", "flagged")


def operator(X, epsilon=0.5, n_neighbors=10, dtype=np.float64):
    K = affinity(X.astype(dtype), epsilon, n_neighbors)
    return heat_operator(K, symmetric_scaling(K))


def dense(A):
    return A @ np.eye(A.shape[0], dtype=A.dtype)


def by_definition(A, group, units, powers, n_permutations, seed):
    """Return z and effect of all rows, powers and groups, and the maxima, from dense matrices."""
    groups, codes = np.unique(group, return_inverse=True)
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    ranked = np.sort(codes[first])
    columns = [codes]
    for b in range(1, n_permutations + 1):
        keys = gaussians_apart(Kind.PERMUTATION, len(first), 1, seed=seed, first_column=b)[:, 0]
        columns.append(ranked[np.argsort(np.argsort(keys))][unit])
    labels = np.stack(columns, axis=1)
    counted = range(len(groups))[-1:] if len(groups) == 2 else range(len(groups))
    z, effect = [], []
    for power in powers:
        M = np.linalg.matrix_power(dense(A), power)
        for a in counted:
            y = M @ ((labels == a) - np.mean(ranked == a))
            z.append(y / np.sqrt(np.mean(y**2, axis=1, keepdims=True)))
            effect.append(y[:, 0] / M.sum(axis=1))
    return np.stack(z)[:, :, 0], np.stack(effect), np.abs(z).max(axis=(0, 1))


DESIGNS = {
    "two groups": (np.arange(60) % 2, None),
    "one to five": (np.arange(60) % 6 == 0, None),
    "three groups": (np.array(["b", "a", "c"])[np.arange(60) % 3], None),
    "units": (np.arange(60) // 5 % 2, np.arange(60) // 5),
    "units of other sizes, three groups": (np.arange(60) // 4 % 14 % 3, np.arange(60) // 4 % 14),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("design", DESIGNS)
def test_it_is_what_it_is_defined_to_be(design, seed):
    group, units = DESIGNS[design]
    A, powers = operator(cloud(60, 2, seed)), (1, 3)
    found = compare_groups(A, group, units=units, powers=powers, n_permutations=39, seed=seed)
    units = np.arange(60) if units is None else units
    z, effect, maxima = by_definition(A, group, units, powers, 39, seed)
    counted, rows = len(z) // 2, np.arange(60)
    # At the shortest power at which a row is flagged, or that of the largest z.
    p_values = np.mean(maxima * (1 + 1e-9) >= np.abs(z)[:, :, np.newaxis], axis=2)
    of_power = np.repeat([0, 1], counted)
    first = [place for place in (0, 1) if p_values[of_power == place].min() <= found.level]
    place = first[0] if first else of_power[np.abs(z).max(axis=1).argmax()]
    assert found.power == powers[place]
    best = np.where(of_power[:, np.newaxis] == place, np.abs(z), -1).argmax(axis=0)
    np.testing.assert_allclose(
        found.z, z[best, rows], rtol=0, atol=tolerance(A.dtype, terms=A.shape[0])
    )
    np.testing.assert_allclose(
        found.effect, effect[best, rows], rtol=0, atol=tolerance(A.dtype, terms=A.shape[0])
    )
    np.testing.assert_array_equal(found.group, np.unique(group)[-counted:][best % counted])
    np.testing.assert_allclose(found.p_values, p_values[best, rows])
    np.testing.assert_allclose(found.p_value, p_values.min())
    assert found.flagged.any() == (found.p_value <= found.level)


@pytest.fixture
def one_thread():
    """Threads cost more than they save on sixty rows."""
    with at_most(1):
        yield


NULLS = {
    "balanced": (np.arange(40) % 2, None),
    "one to ten": (np.arange(44) < 4, None),
    "three groups": (np.arange(42) % 3, None),
    "units": (np.arange(60) // 3 % 2, np.arange(60) // 3),
}


@pytest.mark.parametrize("null", NULLS)
def test_groups_that_do_not_differ_are_found_at_the_level(null, one_thread):
    """Units are clusters, which differ from each other; rows alone would be found too often."""
    group, units = NULLS[null]
    n_runs, n_found, rng = 160, 0, np.random.default_rng(1)
    unit = np.arange(len(group)) if units is None else units
    group_of_unit = group[np.unique(unit, return_index=True)[1]]
    for run in range(n_runs):
        if run % 8 == 0:
            A = operator(rng.standard_normal((len(group), 2)) + clusters(rng, units), 1.0, 6)
        drawn = rng.permutation(group_of_unit)[unit]
        options = {"units": units, "powers": (1, 4), "n_permutations": 19, "seed": run}
        n_found += compare_groups(A, drawn, **options).flagged.any()
    assert abs(n_found / n_runs - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n_runs)


def clusters(rng, units):
    return 0 if units is None else 3 * rng.standard_normal((units.max() + 1, 2))[units]


def test_rows_of_a_unit_are_not_independent(one_thread):
    """What the test for units would find wrong if rows were permuted instead."""
    group, units = NULLS["units"]
    n_found, rng = 0, np.random.default_rng(1)
    for run in range(60):
        A = operator(rng.standard_normal((60, 2)) + 2 * clusters(rng, units), 1.0, 6)
        n_found += compare_groups(A, group, n_permutations=19, seed=run).p_value < 0.1
    assert n_found > 0.1 * 60 + 4 * np.sqrt(0.1 * 0.9 * 60)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_flags_lie_where_the_change_is_and_nowhere_else(one_thread):
    """Five clusters, of which the second sample has one elsewhere."""
    n_runs, rows, wrong, right = 20, np.arange(500), 0, []
    cluster, group = rows % 5, rows // 250
    for run in range(n_runs):
        X = (
            cloud(500, 3, seed=run)
            + 20 * np.eye(5, 3, k=-1)[cluster]
            + 20 * (cluster == 4)[:, np.newaxis]
        )
        X[(cluster == 2) & (group == 1), 2] += 1.5
        found = HeatSketch(4, power=1, random_state=run, n_jobs=1).fit(X).compare(group)
        right.append(found.flagged[cluster == 2].mean())
        wrong += found.flagged[cluster != 2].any()
    assert wrong <= 0.05 * n_runs + 3 * np.sqrt(0.05 * 0.95 * n_runs)
    assert np.mean(right) > 0.1


def test_another_order_of_rows_gives_the_same_in_that_order():
    X, rng = cloud(300), np.random.default_rng(0)
    group, order = X[:, 0] + rng.standard_normal(300) > 0, rng.permutation(300)
    wanted = HeatSketch(4).fit(X, row_ids=np.arange(300)).compare(group)
    found = HeatSketch(4).fit(X[order], row_ids=order).compare(group[order])
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field)[order])


def test_a_model_passes_units_and_options_on_in_the_order_of_its_rows():
    X, rng = cloud(300), np.random.default_rng(0)
    ids, units = rng.permutation(300), rng.integers(0, 40, 300)
    group = np.arange(40)[units] % 2
    model = HeatSketch(4).fit(X, row_ids=ids)
    options = {"n_permutations": 30, "level": 0.3}
    found = model.compare(group, units=units, **options)
    order = model.order_
    wanted = compare_groups(model.heat_operator_, group[order], units=units[order], **options)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(found, field)[order], getattr(wanted, field))
    assert (found.p_value, found.level, found.n_permutations) == (wanted.p_value, 0.3, 30)
    assert not np.array_equal(found.p_values, model.compare(group, **options).p_values)
    new = model.compare_to(X[:50] + 0.1, **options)
    assert new.level == 0.3
    assert new.p_value * 31 == pytest.approx(round(new.p_value * 31))


def test_labels_of_another_length_are_named_by_a_model():
    model = HeatSketch(4, power=1).fit(cloud(60))
    with pytest.raises(HeatSketchError, match=r"^group of shape \(9,\) must be 60 labels"):
        model.compare(ROWS[:9])
    with pytest.raises(HeatSketchError, match=r"^units of shape \(9,\) must be 60 labels"):
        model.compare(ROWS % 2, units=ROWS[:9])


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_page_counts_the_flagged_rows_of_each_group(n_groups):
    X = cloud(90)
    group = np.arange(90) % n_groups
    X[group == 1] += 100
    found = HeatSketch(4, power=1).fit(X).compare(group)
    page = found._repr_html_()
    head = "<tr><th>around</th><th>rows</th><th>median effect</th></tr>"
    assert page.startswith(f"<p>{found.summary}</p><table>{head}<tr><td>")
    cells = re.findall(r"<tr><td>(\w+) (\d)</td><td>(\d+)</td><td>([-+.\d]+)</td></tr>", page)
    shown = {(more, int(label)): (int(n), effect) for more, label, n, effect in cells}
    wanted = {}
    for label, more in itertools.product(range(n_groups), ("more", "less")):
        sign = found.z > 0 if more == "more" else found.z < 0
        rows = found.flagged & (found.group == label) & sign
        if rows.any():
            wanted[more, label] = (rows.sum(), f"{np.median(found.effect[rows]):+.2f}")
    assert shown == wanted
    assert ("more", 1) in shown
    assert {label for _, label in shown} <= ({1} if n_groups == 2 else {0, 1, 2})
    assert page.count("<tr>") == 1 + len(shown)


def test_names_of_groups_do_not_matter():
    A, group = operator(cloud(100)), np.arange(100) // 50
    one = compare_groups(A, group)
    other = compare_groups(A, np.array(["z", "a"])[group])
    np.testing.assert_allclose(other.z, -one.z, rtol=0, atol=tolerance(A.dtype, terms=A.shape[0]))
    np.testing.assert_allclose(
        other.effect, -one.effect, rtol=0, atol=tolerance(A.dtype, terms=A.shape[0])
    )
    assert other.p_value == one.p_value


CATEGORIES = ["untreated", "no cells", "A treated", "0"]
ORDERED = {
    "pandas": lambda labels: pd.Categorical(labels, CATEGORIES),
    "pandas, ordered": lambda labels: pd.Categorical(labels, CATEGORIES, ordered=True),
    "series": lambda labels: pd.Series(pd.Categorical(labels, CATEGORIES), index=labels),
    "polars": lambda labels: pl.Series(labels, dtype=pl.Enum(CATEGORIES)),
}


@pytest.mark.parametrize("form", ORDERED)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_groups_are_in_the_order_of_their_categories(form, n_groups):
    X, code = cloud(90), np.arange(90) % n_groups
    used = np.array([CATEGORIES[0], *CATEGORIES[2:]])[:n_groups]
    model = HeatSketch(4, power=1).fit(X[::-1])
    found, wanted = model.compare(ORDERED[form](used[code])), model.compare(code)
    np.testing.assert_array_equal(found.effect, wanted.effect)
    np.testing.assert_array_equal(found.group, used[wanted.group])
    assert found.groups.tolist() == used.tolist()
    assert compare_groups(operator(X), ORDERED[form](used[code])).groups.tolist() == used.tolist()


def test_categories_without_an_order_of_their_own_are_sorted():
    labels = pl.Series(["b", "a"] * 30, dtype=pl.Categorical)
    assert compare_groups(operator(cloud(60)), labels).groups.tolist() == ["a", "b"]


def test_numbers_are_compared_in_intervals():
    X = cloud(90)
    found = compare_groups(operator(X), pd.cut(X[:, 0], [-9, -1, 0, 9]))
    assert [str(group) for group in found.groups] == ["(-9, -1]", "(-1, 0]", "(0, 9]"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_tiles_of_permutations_change_nothing_but_memory(monkeypatch, n_groups, dtype):
    A = operator(cloud(4200, 2), dtype=dtype)
    group = np.arange(4200) % n_groups
    wanted = compare_groups(A, group, n_permutations=25)
    monkeypatch.setattr(_compare, "TILE_BYTES", 1)
    found = compare_groups(A, group, n_permutations=25)
    np.testing.assert_allclose(found.z, wanted.z, rtol=0, atol=tolerance(A.dtype, terms=A.shape[0]))
    np.testing.assert_array_equal(found.p_values, wanted.p_values)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_effects_are_shares():
    """Two clusters that never mix: around each row there is one group only."""
    X = cloud(100)
    X[:30] += 100
    found = HeatSketch(4, power=1).fit(X).compare(np.arange(100) < 30)
    np.testing.assert_allclose(found.effect, np.where(np.arange(100) < 30, 0.7, -0.3))
    n_less = found.flagged[30:].sum()
    assert found.flagged[:30].all()
    assert n_less > 60  # all but the least connected, in three steps
    assert (
        str(found) == f"Comparison(p_value=0.005, {30 + n_less} of 100 rows flagged at level 0.05)"
    )
    page = found._repr_html_()
    assert "<td>more True</td><td>30</td><td>+0.70</td>" in page
    assert f"<td>less True</td><td>{n_less}</td><td>-0.30</td>" in page


def test_a_label_is_no_part_of_a_page():
    X = cloud(60)
    found = HeatSketch(4, power=1).fit(X).compare(np.where(X[:, 0] > 0, "<b>", "0"))
    assert "&lt;b&gt;" in found._repr_html_()


ROWS = np.arange(60)
INVALID = {
    "group of other length": ({"group": ROWS[:9] % 2}, HeatSketchError, r"group of shape \(9,\)"),
    "one group": ({"group": 0 * ROWS}, HeatSketchError, r"group=\[0\] is one group; give labels"),
    "no label": (
        {"group": np.where(ROWS == 7, np.nan, ROWS % 2)},
        MissingValueError,
        "group has no label in row 7",
    ),
    "None": (
        {"group": np.array([None, *"ab" * 29, "a"], object)},
        MissingValueError,
        "group has no label in row 0",
    ),
    "two types": (
        {"group": np.array([1, "a"] * 30, object)},
        DtypeError,
        "group has labels of the types int, str, which cannot be sorted; use one type.$",
    ),
    "no category": (
        {"group": pd.Categorical([None, *"ab" * 29, "a"])},
        MissingValueError,
        "group has no label in row 0",
    ),
    "numbers": (
        {"group": ROWS / 7},
        HeatSketchError,
        r"group has 60 distinct labels, .* cut numbers into intervals, .* pandas\.cut",
    ),
    "unit of two groups": (
        {"units": ROWS // 7},
        HeatSketchError,
        r"units: .*0.* has rows of several groups",
    ),
    "one unit of two groups": (
        {"units": np.array(list("abcd")).repeat(15), "group": ROWS // 40},
        HeatSketchError,
        r"units: .*c.* has rows of several groups, of which a permutation can keep none; give each "
        r"of its samples a unit of its own, or leave it out\.$",
    ),
    "units of other length": ({"units": [1]}, HeatSketchError, r"units of shape \(1,\)"),
    "no powers": ({"powers": []}, HeatSketchError, r"powers=\[\] is empty; use powers="),
    "power zero": ({"powers": [0]}, HeatSketchError, "powers=0"),
    "no permutations": ({"n_permutations": 0}, HeatSketchError, "n_permutations=0"),
    "few permutations": (
        {"n_permutations": 9},
        HeatSketchError,
        "n_permutations=9 allows no p-value below 0.1; use 19 or more for level=0.05",
    ),
    "level": ({"level": 1.5}, HeatSketchError, "level=1.5 must be between 0 and 1"),
    "level 0": ({"level": 0}, HeatSketchError, "level=0 must be between 0 and 1"),
    "level 1": ({"level": 1}, HeatSketchError, "level=1 must be between 0 and 1"),
}


@pytest.mark.parametrize("case", INVALID)
def test_what_cannot_be_compared_is_refused(case):
    options, error, message = INVALID[case]
    with pytest.raises(error, match=message):
        compare_groups(operator(cloud(60)), **({"group": ROWS % 2} | options))


def test_few_units_are_warned_of():
    A = operator(cloud(60))
    with pytest.warns(HeatSketchWarning, match=r"3 and 3 units .* below 0.1, and level=0.05"):
        compare_groups(A, ROWS // 30, units=ROWS // 10)
    compare_groups(A, ROWS // 30, units=ROWS // 10, level=0.1)
    compare_groups(A, ROWS // 30, units=ROWS // 6)  # 5 and 5 have 126 permutations


def test_a_warning_points_at_the_caller():
    with pytest.warns(HeatSketchWarning, match="3 and 3 units") as log:
        compare_groups(operator(cloud(60)), ROWS // 30, units=ROWS // 10)
    assert log[0].filename == __file__


def test_a_model_without_its_training_data_cannot_compare(tmp_path):
    from heatsketch import load

    HeatSketch(4, power=1).fit(cloud(60)).save(tmp_path / "model", training_data=False)
    with pytest.raises(TrainingDataError, match="compare needs the training data"):
        load(tmp_path / "model").compare(ROWS % 2)


# --- a new sample ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("normal", {}),
        ("normal", {"metric": "cosine", "normalization": "bistochastic"}),
        ("normal", {"metric": "manhattan", "epsilon": 0.5, "n_neighbors": 5}),
        ("digits", {}),  # with many ties
        ("sparse digits", {"normalization": "degree"}),
    ],
)
def test_a_new_sample_is_compared_as_in_a_fit_to_both(data, options):
    X = cloud(400) if data == "normal" else load_digits().data[:400]
    X = sparse.csr_array(X) if data.startswith("sparse") else X
    X_new = X[300:] * 1.1
    wanted = (
        HeatSketch(4, power=1, **options)
        .fit(stacked(X[:300], X_new))
        .compare(np.arange(400) >= 300)
    )
    found = HeatSketch(4, power=1, **options).fit(X[:300]).compare_to(X_new)
    assert found.p_value == wanted.p_value
    np.testing.assert_allclose(found.z, wanted.z, rtol=0, atol=tolerance(np.float64, terms=400))
    np.testing.assert_allclose(
        found.effect, wanted.effect, rtol=0, atol=tolerance(np.float64, terms=400)
    )
    assert (found.groups.tolist(), set(found.group)) == (["reference", "new"], {"new"})


def stacked(X, X_new):
    return sparse.vstack([X, X_new]) if sparse.issparse(X) else np.concatenate([X, X_new])


@pytest.mark.parametrize("n_new", [1, 5])
def test_a_new_sample_may_have_fewer_points_than_neighbors(n_new):
    X, X_new = cloud(100), cloud(n_new, seed=1)
    found = HeatSketch(4, power=1).fit(X).compare_to(X_new)
    assert len(found.z) == 100 + n_new


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_ties_with_new_points_are_broken_as_in_a_search_over_all(metric):
    X = np.random.default_rng(0).integers(3, size=(400, 3)).astype(float)
    X[:, 0] += 1
    neighbors, d2 = find_neighbors(X[:300], n_neighbors=9, metric=metric)
    joined = joined_graph(neighbors, d2, X[300:])
    assert (joined != neighbor_graph(X, n_neighbors=9, metric=metric)).nnz == 0


def test_new_points_are_joined_to_lists():
    """The graph of all points in the lists of some, which misses few neighbours of anybody."""
    X = cloud(6000, 3)
    neighbors, d2 = find_neighbors(X[:5000], n_neighbors=10, n_probes=3)
    joined = joined_graph(neighbors, d2, X[5000:])
    order = np.concatenate([neighbors.order, np.arange(5000, 6000)])
    wanted = neighbor_graph(X, n_neighbors=10)[order][:, order]
    assert abs(joined - joined.T).max() == 0
    joined.data[:] = wanted.data[:] = 1
    common = joined * wanted
    for rows, columns in itertools.product((order < 5000, order >= 5000), repeat=2):
        assert common[rows][:, columns].nnz > 0.95 * wanted[rows][:, columns].nnz


@pytest.mark.parametrize(
    ("options", "X"),
    [
        ({"n_neighbors": None}, cloud(60)),
        ({"neighbors": KNeighborsTransformer(n_neighbors=5)}, cloud(60)),
        ({"metric": "precomputed"}, squareform(pdist(cloud(60)))),
        ({"affinity": "precomputed"}, affinity(cloud(60), 1.0)),
        ({}, np.repeat(cloud(10), 6, axis=0)),
    ],
)
def test_points_that_cannot_be_joined_are_refused(options, X):
    model = HeatSketch(4, power=1, **options).fit(X)
    with pytest.raises(HeatSketchError, match="fit a model to both samples, and use its compare"):
        model.compare_to(X)
