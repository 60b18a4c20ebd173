"""Laws of compare: the definition, its level, its flags, and who may be exchanged for whom."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks import tolerance
from registry import SEEDS, cloud, graph_of
from scipy import sparse
from sklearn.datasets import load_digits

from heatsketch import HeatGraph, compare, compare_to
from heatsketch._core.parallel import at_most
from heatsketch.diffusion._random_matrix import Kind, random_block
from heatsketch.exceptions import HeatSketchWarning
from heatsketch.uses import _compare as module

FIELDS = ("p_values", "z", "effect", "group", "flagged")


def by_definition(graph, group, units, powers, n_permutations, seed):
    """Return z and effect of all rows, powers and groups, and the maxima, from dense matrices."""
    A = graph.operator @ np.eye(graph.n_samples, dtype=graph.dtype)
    groups, codes = np.unique(group, return_inverse=True)
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    ranked = np.sort(codes[first])
    columns = [codes]
    for b in range(1, n_permutations + 1):
        keys = random_block(Kind.PERMUTATION, len(first), 1, seed=seed, first_column=b)[:, 0]
        columns.append(ranked[np.argsort(np.argsort(keys))][unit])
    labels = np.stack(columns, axis=1)
    counted = range(len(groups))[-1:] if len(groups) == 2 else range(len(groups))
    z, effect = [], []
    for power in powers:
        M = np.linalg.matrix_power(A, power)
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
    graph, powers = graph_of(cloud(60, 2, seed), 0.5, 10), (1, 3)
    found = compare(graph, group, units=units, powers=powers, n_permutations=39, seed=seed)
    units = np.arange(60) if units is None else units
    z, effect, maxima = by_definition(graph, group, units, powers, 39, seed)
    counted, rows = len(z) // 2, np.arange(60)
    # At the shortest power at which a row is flagged, or that of the largest z.
    p_values = np.mean(maxima * (1 + 1e-9) >= np.abs(z)[:, :, np.newaxis], axis=2)
    of_power = np.repeat([0, 1], counted)
    first = [place for place in (0, 1) if p_values[of_power == place].min() <= found.level]
    place = first[0] if first else of_power[np.abs(z).max(axis=1).argmax()]
    assert found.power == powers[place]
    best = np.where(of_power[:, np.newaxis] == place, np.abs(z), -1).argmax(axis=0)
    rounding = {"rtol": 0, "atol": tolerance(graph.dtype, terms=60)}
    np.testing.assert_allclose(found.z, z[best, rows], **rounding)
    np.testing.assert_allclose(found.effect, effect[best, rows], **rounding)
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
            X = rng.standard_normal((len(group), 2)) + clusters(rng, units)
            graph = graph_of(X, 1.0, 6)
        drawn = rng.permutation(group_of_unit)[unit]
        options = {"units": units, "powers": (1, 4), "n_permutations": 19, "seed": run}
        n_found += compare(graph, drawn, **options).flagged.any()
    assert abs(n_found / n_runs - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n_runs)


def clusters(rng, units):
    return 0 if units is None else 3 * rng.standard_normal((units.max() + 1, 2))[units]


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
        found = compare(HeatGraph.from_points(X), group)
        right.append(found.flagged[cluster == 2].mean())
        wrong += found.flagged[cluster != 2].any()
    assert wrong <= 0.05 * n_runs + 3 * np.sqrt(0.05 * 0.95 * n_runs)
    assert np.mean(right) > 0.1


def test_few_units_are_warned_of():
    graph, rows = HeatGraph.from_points(cloud(60)), np.arange(60)
    with pytest.warns(HeatSketchWarning, match=r"3 and 3 units .* below 0.1, but level=0.05"):
        compare(graph, rows // 30, units=rows // 10)
    compare(graph, rows // 30, units=rows // 10, level=0.1)
    compare(graph, rows // 30, units=rows // 6)  # 5 and 5 have 126 permutations


def test_another_order_of_rows_gives_the_same_in_that_order():
    X, rng = cloud(300), np.random.default_rng(0)
    order, units = rng.permutation(300), rng.integers(0, 40, 300)
    one = HeatGraph.from_points(X, ids=np.arange(300))
    other = HeatGraph.from_points(X[order], ids=order)
    for group, unit in ((X[:, 0] + rng.standard_normal(300) > 0, None), (units % 2, units)):
        wanted = compare(one, group, units=unit)
        found = compare(other, group[order], units=None if unit is None else unit[order])
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field)[order])


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
    graph = HeatGraph.from_points(X[::-1])
    found, wanted = compare(graph, ORDERED[form](used[code])), compare(graph, code)
    np.testing.assert_array_equal(found.effect, wanted.effect)
    np.testing.assert_array_equal(found.group, used[wanted.group])
    assert found.groups.tolist() == used.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_tiles_of_permutations_change_nothing_but_memory(monkeypatch, n_groups, dtype):
    graph = graph_of(cloud(4200, 2).astype(dtype), 0.5, 10)
    group = np.arange(4200) % n_groups
    wanted = compare(graph, group, n_permutations=25)
    monkeypatch.setattr(module, "TILE_BYTES", 1)
    found = compare(graph, group, n_permutations=25)
    np.testing.assert_allclose(found.z, wanted.z, rtol=0, atol=tolerance(dtype, terms=4200))
    np.testing.assert_array_equal(found.p_values, wanted.p_values)


# --- a new sample ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("normal", {}),
        ("normal", {"metric": "cosine", "normalization": "bistochastic"}),
        ("normal", {"metric": "manhattan", "weights": "gaussian", "n_neighbors": None}),
        ("copies", {}),
        ("sparse digits", {"normalization": "degree"}),
    ],
)
def test_a_new_sample_is_compared_as_in_a_graph_of_both(data, options):
    X = load_digits().data[:400] if data == "sparse digits" else cloud(400)
    X = {"sparse digits": sparse.csr_array, "copies": np.rint, "normal": np.asarray}[data](X)
    X_new = X[300:] if data == "copies" else X[300:] * 1.1
    both = HeatGraph.from_points(stacked(X[:300], X_new), **options)
    wanted = compare(both, np.arange(400) >= 300)
    found = compare_to(HeatGraph.from_points(X[:300], **options), X_new)
    assert found.p_value == wanted.p_value
    np.testing.assert_array_equal(found.z, wanted.z)
    np.testing.assert_array_equal(found.effect, wanted.effect)
    assert (found.groups.tolist(), set(found.group)) == (["reference", "new"], {"new"})


def stacked(X, X_new):
    return sparse.vstack([X, X_new]) if sparse.issparse(X) else np.concatenate([X, X_new])
