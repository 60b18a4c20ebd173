"""Tools for AnnData: where they read and write, what they reject, and scanpy's own data sets."""

import importlib
import re
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import heatsketch
import heatsketch.scanpy as hs
from heatsketch import HeatSketch
from heatsketch._core.row_names import row_numbers
from heatsketch.exceptions import HeatSketchError, HeatSketchWarning

anndata = pytest.importorskip("anndata")
sc = pytest.importorskip("scanpy", exc_type=ImportError)  # numba rejects nightly numpy

N_CLOCK = 160  # steps of each of the four runs of krumsiek11
N_NEIGHBORS = 10, 15, 20, 30
SEEDS = 0, 1, 2


@pytest.fixture(scope="module")
def blood():
    """Real cells, with the graph that scanpy ships with them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file in an old format
        return sc.datasets.pbmc68k_reduced()


@pytest.fixture(scope="module")
def runs():
    """Simulated cells: four runs from one progenitor to four fates, in the order of time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that repeat themselves
        adata = sc.datasets.krumsiek11()
    adata.obs_names_make_unique()
    return adata


def neighbors(adata, n_neighbors=15, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.neighbors(adata, n_neighbors, **options)
    return adata


def names(adata):
    return row_numbers(adata.obs_names.to_numpy(str))


def sketched(adata, **options):
    return hs.tl.heatsketch(adata, copy=True, **options)


# --- the sketch ----------------------------------------------------------------------------


def test_the_graph_of_scanpy_is_used_as_it_is(blood):
    adata = sketched(blood)
    model = HeatSketch(metric="precomputed")
    model.fit(blood.obsp["distances"], row_ids=names(blood))
    np.testing.assert_array_equal(adata.obsm["X_heatsketch"], model.embedding_)
    params = adata.uns["heatsketch"]["params"]
    assert (params["power"], params["first_power"]) == ("all", model.power_)
    assert (params["seed"], params["version"]) == (0, heatsketch.__version__)
    assert params["neighbors_key"] == "neighbors"


def test_a_diffusion_map_is_written_for_pictures(blood):
    """The leading eigenvectors of the dense operator, of which a random projection is none."""
    adata = sketched(blood, key_added="X_mine")
    model = HeatSketch(metric="precomputed").fit(blood.obsp["distances"], row_ids=names(blood))
    A = model.heat_operator_
    vectors = np.linalg.eigh(A @ np.eye(A.shape[0]))[1][:, [-2, -3]]
    found = adata.obsm["X_mine_map"][model.order_] * A.stationary[:, np.newaxis]
    found = found / np.linalg.norm(found, axis=0)
    np.testing.assert_allclose(np.abs(vectors.T @ found), np.eye(2), atol=1e-3)
    assert sketched(blood, n_comps=1).obsm["X_heatsketch_map"].shape == (700, 2)


def test_a_graph_with_a_key_of_its_own_is_found(blood):
    adata = neighbors(blood.copy(), 9, use_rep="X_pca", key_added="few")
    hs.tl.heatsketch(adata, 8, neighbors_key="few", key_added="sketch_of_few")
    expected = HeatSketch(8, metric="precomputed").fit(
        adata.obsp["few_distances"], row_ids=names(adata)
    )
    np.testing.assert_array_equal(adata.obsm["sketch_of_few"], expected.embedding_)
    assert adata.uns["sketch_of_few"]["params"]["neighbors_key"] == "few"


def test_a_dense_graph_is_used_too(runs):
    adata = neighbors(runs.copy(), 30, use_rep="X", method="gauss", knn=False)
    assert not sparse.issparse(adata.obsp["distances"])
    assert sketched(adata).obsm["X_heatsketch"].shape == (640, 64)


def test_without_copy_nothing_is_returned_and_with_it_nothing_is_changed(blood):
    adata = blood.copy()
    copied = hs.tl.heatsketch(adata, 8, copy=True)
    assert "X_heatsketch" not in adata.obsm
    assert "heatsketch" not in adata.uns
    assert hs.tl.heatsketch(adata, 8) is None
    np.testing.assert_array_equal(adata.obsm["X_heatsketch"], copied.obsm["X_heatsketch"])


@pytest.mark.parametrize("use_rep", ["X", "X_pca"])
def test_points_may_come_from_any_representation(blood, use_rep):
    found = sketched(blood, n_comps=8, use_rep=use_rep).obsm["X_heatsketch"]
    points = blood.X if use_rep == "X" else blood.obsm[use_rep]
    model = HeatSketch(8).fit(points, row_ids=names(blood))
    np.testing.assert_array_equal(found, model.embedding_)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_backed_and_sparse_cells_are_cells(blood, tmp_path, layout):
    """One embedding, wherever the numbers are kept, and only the sketch is written."""
    dense = blood.raw.to_adata()[:, :200].X.toarray()
    adata = anndata.AnnData(layout(dense), obs=blood.obs[[]])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    here, copied = (sketched(data, n_comps=8, use_rep="X") for data in (adata, backed))
    hs.tl.heatsketch(backed, 8, use_rep="X")
    assert backed.isbacked
    np.testing.assert_array_equal(here.obsm["X_heatsketch"], backed.obsm["X_heatsketch"])
    np.testing.assert_array_equal(here.obsm["X_heatsketch"], copied.obsm["X_heatsketch"])
    assert not copied.isbacked
    backed.file.close()
    plain = HeatSketch(8).fit(dense, row_ids=names(blood))
    scale = np.abs(plain.embedding_).max()
    np.testing.assert_allclose(here.obsm["X_heatsketch"], plain.embedding_, atol=1e-3 * scale)


def ends_of_runs(adata):
    """Return the last ten cells of each run, by the number of the run."""
    return {f"run {i}": range((i + 1) * N_CLOCK - 10, (i + 1) * N_CLOCK) for i in range(4)}


def test_fates_are_those_of_the_runs_and_sum_to_one(runs):
    adata = neighbors(runs.copy(), 15, use_rep="X")
    terminal = ends_of_runs(adata)
    hs.tl.fate(adata, terminal)
    found = adata.obsm["fate"]
    assert adata.uns["fate"]["names"].tolist() == list(terminal)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=4e-6)
    late = [i * N_CLOCK + step for i in range(4) for step in range(120, N_CLOCK)]
    own = np.repeat([f"run {i}" for i in range(4)], 40)
    assert np.mean(adata.obs["fate"].iloc[late] == own) > 0.9
    # The same from a column, and the same as the method.
    adata.obs["state"] = None
    for name, cells in terminal.items():
        adata.obs.iloc[list(cells), adata.obs.columns.get_loc("state")] = name
    again = hs.tl.fate(adata, "state", key_added="again", copy=True)
    np.testing.assert_array_equal(again.obsm["again"], found)
    model = HeatSketch(1, power=1, metric="precomputed")
    model.fit(adata.obsp["distances"], row_ids=names(adata))
    rows = np.concatenate(list(terminal.values()))
    values = np.repeat(np.eye(4), 10, axis=0)
    np.testing.assert_array_equal(model.harmonic(values, rows), found)


@pytest.mark.filterwarnings("ignore::heatsketch.exceptions.DisconnectedGraphWarning")
def test_cells_that_no_walk_can_leave_for_a_terminal_state_have_no_fate():
    points = np.random.default_rng(0).standard_normal((80, 2)) + np.repeat([[0], [90]], 40, axis=0)
    adata = anndata.AnnData(points)
    hs.tl.fate(adata, {"a": [0, "1"], "b": "2"}, use_rep="X")
    assert adata.obs["fate"].isna().to_numpy().tolist() == [False] * 40 + [True] * 40
    assert np.isnan(adata.obsm["fate"]).all(axis=1).sum() == 40


def test_cells_get_labels_from_a_few(blood, tmp_path):
    adata, rng = blood.copy(), np.random.default_rng(0)
    truth = adata.obs["bulk_labels"]
    known = rng.random(adata.n_obs) < 0.1
    adata.obs["known"] = truth.where(known)
    hs.tl.heat_labels(adata, "known")
    assert np.mean(adata.obs["heat_labels"] == truth) > 0.7
    np.testing.assert_allclose(adata.obsm["heat_labels"].sum(axis=1), 1, rtol=1e-12)
    adata.obs["text"] = np.where(known, truth.astype(str), "?")
    hs.tl.heat_labels(adata, "text", unknown="?", key_added="of_text")
    assert (adata.obs["of_text"].astype(str) == adata.obs["heat_labels"].astype(str)).all()
    adata.write_h5ad(tmp_path / "labels.h5ad")
    again = anndata.read_h5ad(tmp_path / "labels.h5ad")
    np.testing.assert_array_equal(again.obsm["heat_labels"], adata.obsm["heat_labels"])
    assert again.uns["heat_labels"]["params"] == adata.uns["heat_labels"]["params"]


@pytest.mark.parametrize(
    ("terminal", "message"),
    [
        ("sort", "terminal='sort' is not in adata.obs"),
        (7, "terminal=7 is not in adata.obs"),
        ({"a": [7000]}, "terminal=7000 is neither"),
        ({"a": ["nobody"]}, "terminal='nobody' is neither"),
        ({"a": [1], "b": [1]}, "under 'a' and under 'b'; list it once"),
        ({}, "has no value in any cell"),
    ],
)
def test_invalid_terminal_states_are_named(blood, terminal, message):
    with pytest.raises(HeatSketchError, match=message):
        hs.tl.fate(blood, terminal, copy=True)


def test_results_survive_a_file(blood, tmp_path):
    before = sketched(blood, power=2)
    adata = hs.tl.heat_pseudotime(sketched(blood[50:].copy(), power=2), 0, copy=True)
    hs.tl.drift(adata, before)
    adata.write_h5ad(tmp_path / "results.h5ad")
    again = anndata.read_h5ad(tmp_path / "results.h5ad")
    np.testing.assert_array_equal(again.obsm["X_heatsketch"], adata.obsm["X_heatsketch"])
    for column in ("heat_pseudotime", "heat_pseudotime_low", "heat_pseudotime_high", "drift"):
        np.testing.assert_array_equal(again.obs[column], adata.obs[column])
    np.testing.assert_array_equal(again.obs["drift_moved"], adata.obs["drift_moved"])
    for key in ("heatsketch", "heat_pseudotime"):
        assert again.uns[key]["params"] == adata.uns[key]["params"]
    assert set(again.uns["drift"]["went"]) == set(blood.obs_names[:50])
    hs.tl.drift(again, before, key_added="once_more")  # parameters from a file are comparable
    np.testing.assert_array_equal(again.obs["once_more"], adata.obs["drift"])


def test_seeds_are_numbers_or_generators(blood):
    first, second = (sketched(blood, n_comps=4, rng=seed) for seed in (0, 1))
    default = sketched(blood, n_comps=4)
    drawn = sketched(blood, n_comps=4, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(first.obsm["X_heatsketch"], default.obsm["X_heatsketch"])
    assert not np.allclose(first.obsm["X_heatsketch"], second.obsm["X_heatsketch"])
    expected = int(np.random.default_rng(0).integers(2**31))
    assert drawn.uns["heatsketch"]["params"]["seed"] == expected


@pytest.mark.parametrize("tool", ["heatsketch", "heat_pseudotime"])
def test_a_seed_may_have_its_older_name(blood, tool):
    call = partial(getattr(hs.tl, tool), n_comps=4, copy=True)
    call = partial(call, root=0) if tool == "heat_pseudotime" else call
    seeds = (
        call(blood, **options).uns[tool]["params"]["seed"]
        for options in (
            {"random_state": 7},
            {"rng": 7},
            {"random_state": np.random.RandomState(3)},
            {"random_state": None},
            {"random_state": np.int64(0), "rng": None},
        )
    )
    assert list(seeds) == [7, 7, np.random.RandomState(3).randint(2**31), 0, 0]
    with pytest.raises(HeatSketchError, match="rng=1 and random_state=0 are two seeds"):
        call(blood, rng=1, random_state=0)


def test_tools_are_a_module():
    tl = importlib.import_module("heatsketch.scanpy.tl")
    assert tl is hs.tl
    from heatsketch.scanpy.tl import heat_pseudotime

    assert heat_pseudotime is hs.heat_pseudotime
    assert {*hs.tl.__all__, *hs.pp.__all__, "tl", "pp"} == set(hs.__all__)


# --- pseudotime ----------------------------------------------------------------------------


def orders_found(pseudotime):
    """Rank correlation with the clock: the mean over the runs, and that of all cells together."""
    clock, times = np.tile(np.arange(N_CLOCK), 4), np.asarray(pseudotime)
    each = zip(times.reshape(4, -1), clock.reshape(4, -1), strict=True)
    within = np.mean([spearmanr(*run).statistic for run in each])
    return {"each run": within, "all runs": spearmanr(times, clock).statistic}


def dpt(adata, root):
    adata.uns["iroot"] = int(root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "X_diffmap" not in adata.obsm:
            sc.tl.diffmap(adata)
        sc.tl.dpt(adata)
    return adata.obs["dpt_pseudotime"].to_numpy()


def dpt_in_full(adata, root):
    """Its formula, with every eigenvector of its matrix and none but the first taken out."""
    walk = sc.Neighbors(adata)
    walk.compute_transitions()
    values, vectors = np.linalg.eigh(walk.transitions_sym.toarray())
    M = vectors[:, :-1] * (values[:-1] / (1 - values[:-1]))
    return np.linalg.norm(M - M[root], axis=1)


# Where scanpy's dpt is better; docs/how_to/scanpy.md says so, too. It takes eigenvalues from 0.9994
# on for stationary ones, and few neighbours have two of them.
DPT_IS_BETTER = {(10, "each run"), (10, "all runs"), (15, "all runs")}


@pytest.mark.parametrize("n_neighbors", N_NEIGHBORS)
def test_pseudotime_of_known_runs_against_dpt(runs, n_neighbors):
    """Both orders, every graph and every seed, and where it loses, it must lose."""
    adata = neighbors(runs.copy(), n_neighbors, use_rep="X")
    root = int(adata.uns["iroot"])
    theirs, in_full = (orders_found(method(adata, root)) for method in (dpt, dpt_in_full))
    for seed in SEEDS:
        hs.tl.heat_pseudotime(adata, rng=seed)  # from uns["iroot"]
        ours = orders_found(adata.obs["heat_pseudotime"])
        assert ours["each run"] > 0.97
        for order, found in ours.items():
            assert found > in_full[order]
            assert (found < theirs[order]) == ((n_neighbors, order) in DPT_IS_BETTER)


def middle_cells(adata):
    """Return the cell in the middle of each kind."""
    kinds, points = adata.obs["bulk_labels"].to_numpy(str), adata.obsm["X_pca"]
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        middle = np.median(points[rows], axis=0)
        yield rows[np.argmin(np.linalg.norm(points[rows] - middle, axis=1))], kinds != kind


@pytest.mark.parametrize("n_neighbors", N_NEIGHBORS)
def test_pseudotime_of_blood_puts_the_kind_of_the_root_first(blood, n_neighbors):
    """No time is known of these cells, only kinds: how often does kin come before others?"""
    adata = neighbors(blood.copy(), n_neighbors, use_rep="X_pca")
    roots = list(middle_cells(adata))
    theirs = np.mean([roc_auc_score(others, dpt(adata, root)) for root, others in roots])
    for seed in SEEDS:
        model = HeatSketch(128, metric="precomputed", random_state=seed)
        model.set_params(weighting="random_walk")
        Y = model.fit(adata.obsp["distances"], row_ids=names(adata)).embedding_
        times = [np.linalg.norm(Y - Y[root], axis=1) for root, _ in roots]
        pairs = zip(times, roots, strict=True)
        assert np.mean([roc_auc_score(others, time) for time, (_, others) in pairs]) >= theirs
    found = hs.tl.heat_pseudotime(adata, int(roots[0][0]), rng=SEEDS[-1], copy=True)
    expected = times[0] / times[0].max()
    np.testing.assert_allclose(found.obs["heat_pseudotime"], expected, rtol=1e-6)


def test_pseudotime_has_an_interval_and_a_unit(blood):
    adata = hs.tl.heat_pseudotime(blood, 5, copy=True)
    pseudotime = adata.obs["heat_pseudotime"]
    assert (pseudotime.iloc[5], pseudotime.max()) == (0, 1)
    apart = np.arange(adata.n_obs) != 5
    low, high = (adata.obs[f"heat_pseudotime_{end}"] for end in ("low", "high"))
    assert ((low < pseudotime) & (pseudotime < high))[apart].all()


def test_a_root_has_a_name_or_a_position(blood):
    name = blood.obs_names[5]
    first, second = (hs.tl.heat_pseudotime(blood, root, copy=True) for root in (name, 5))
    np.testing.assert_array_equal(first.obs["heat_pseudotime"], second.obs["heat_pseudotime"])
    assert first.uns["heat_pseudotime"]["params"]["root"] == name


def test_equal_cells_are_all_at_the_root():
    adata = anndata.AnnData(np.ones((5, 2)))
    with pytest.warns(HeatSketchWarning, match="unless all points of X are equal"):
        hs.tl.heat_pseudotime(adata, 0, n_comps=8, use_rep="X")
    assert (adata.obs["heat_pseudotime"] == 0).all()


@pytest.mark.parametrize("lost", ["params", "power", "obsm"])
@pytest.mark.parametrize("name", ["adata", "before"])
def test_half_a_sketch_is_no_sketch(name, lost):
    cells = np.random.default_rng(0).normal(size=(30, 2))
    both = {side: anndata.AnnData(cells.copy()) for side in ("adata", "before")}
    for adata in both.values():
        hs.tl.heatsketch(adata, 4, use_rep="X", power=2)
    made = both[name].uns["heatsketch"]
    place = {"params": made, "power": made["params"], "obsm": both[name].obsm}[lost]
    del place["X_heatsketch" if lost == "obsm" else lost]
    with pytest.raises(HeatSketchError, match=rf"{name}\.\w+\[.*call hs\.tl\.heatsketch"):
        hs.tl.drift(**both)


def test_cells_of_another_component_are_later_than_all_of_the_first():
    X = np.concatenate([np.arange(30.0), 1000 + np.arange(30.0)])[:, np.newaxis]
    adata = neighbors(anndata.AnnData(X), 5, use_rep="X")
    with pytest.warns(UserWarning, match="2 connected components"):
        hs.tl.heat_pseudotime(adata, 0)
    time = adata.obs["heat_pseudotime"].to_numpy()
    assert time[30:].min() > time[:30].max()


# --- compare -------------------------------------------------------------------------------


def test_cells_are_compared_as_rows_are(blood, tmp_path):
    """Twenty donors, of which those who were treated lack the dendritic cells."""
    dendritic = blood.obs["bulk_labels"] == "Dendritic"
    donor = np.random.default_rng(0).integers(20, size=blood.n_obs)
    adata = blood[~dendritic | (donor % 2 == 0)].copy()
    donor = donor[~dendritic | (donor % 2 == 0)]
    adata.obs["donor"] = np.char.add("donor ", donor.astype(str))
    adata.obs["condition"] = np.where(donor % 2, "treated", "control")
    hs.tl.compare(adata, "condition", units="donor")
    distances = sparse.csr_array(adata.obsp["distances"])
    model = HeatSketch(2, power=1, metric="precomputed").fit(distances, row_ids=names(adata))
    found = model.compare(adata.obs["condition"].to_numpy(), units=adata.obs["donor"].to_numpy())
    assert adata.uns["compare"]["p_value"] == found.p_value <= 0.05
    np.testing.assert_array_equal(adata.obs["compare_effect"], found.effect)
    np.testing.assert_array_equal(adata.obs["compare_flagged"], found.flagged)
    flagged = adata.obs.loc[found.flagged, "bulk_labels"]
    assert (flagged == "Dendritic").mean() > 0.8
    adata.write_h5ad(tmp_path / "compared.h5ad")
    again = anndata.read_h5ad(tmp_path / "compared.h5ad")
    np.testing.assert_array_equal(again.obs["compare_z"], adata.obs["compare_z"])
    assert again.uns["compare"]["params"] == adata.uns["compare"]["params"]
    assert list(again.uns["compare"]["groups"]) == ["control", "treated"]


def test_groups_of_cells_are_in_the_order_of_their_categories(blood):
    adata = blood.copy()
    labels = np.array(["untreated", "A treated"])[(blood.obs["bulk_labels"] == "Dendritic") * 1]
    adata.obs["condition"] = pd.Categorical(labels, ["untreated", "A treated"])
    hs.tl.compare(adata, "condition", n_permutations=19)
    assert adata.uns["compare"]["groups"].tolist() == ["untreated", "A treated"]
    assert set(adata.obs["compare_group"]) == {"A treated"}
    assert adata.obs.loc[labels == "A treated", "compare_effect"].mean() > 0


def test_columns_that_cannot_be_compared_are_named(blood):
    adata = blood[:30].copy()
    adata.obs["half"] = [None, "a"] * 15
    with pytest.raises(HeatSketchError, match=r"groupby='donor' is not in adata\.obs; use one of"):
        hs.tl.compare(adata, "donor")
    with pytest.raises(HeatSketchError, match=r"units='half' has no label for the cell .*notna"):
        hs.tl.compare(adata, "bulk_labels", units="half")


# --- drift ---------------------------------------------------------------------------------


def test_cells_are_paired_by_their_names(blood):
    before = sketched(blood, power=2)
    order = np.random.default_rng(0).permutation(blood.n_obs)
    shuffled = sketched(blood[order].copy(), power=2)
    hs.tl.drift(shuffled, before)
    assert shuffled.uns["drift"]["relative"] < 1e-12
    assert not shuffled.obs["drift_moved"].any()


def test_drift_names_the_cells_that_moved(blood):
    before = sketched(blood, use_rep="X_pca", power=2)
    later = blood[20:].copy()
    later.obsm["X_pca"][3] = later.obsm["X_pca"][500]
    after = sketched(later, use_rep="X_pca", power=2)
    found = hs.tl.drift(after, before, copy=True)
    assert "drift" not in after.obs
    assert found.obs["drift_moved"].iloc[3]
    assert found.obs["drift_moved"].mean() < 0.1
    assert sorted(found.uns["drift"]["went"]) == sorted(blood.obs_names[:20])
    back = hs.tl.drift(before, after, copy=True)
    assert np.isnan(back.obs["drift"].iloc[:20]).all()
    assert np.isfinite(back.obs["drift"].iloc[20:]).all()


# --- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"neighbors_key": "lost"}, "neighbors_key='lost' is not in adata.uns; run scanpy"),
        ({"neighbors_key": "torn"}, r"adata.obsp\['gone'\], which is not there"),
        ({"use_rep": "X_ray"}, r"use_rep='X_ray' is not in adata.obsm; use one of \['X', "),
        ({"use_rep": "X", "neighbors_key": "neighbors"}, "two sources"),
        ({"rng": "seven"}, "rng='seven' is no seed"),
        ({"random_state": "seven"}, "random_state='seven' is no seed.*RandomState"),
        ({"random_state": np.random.default_rng(0)}, "random_state=Generator.* is no seed"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_errors_give_a_remedy(blood, options, message):
    adata = blood.copy()
    adata.uns["torn"] = {"distances_key": "gone"}
    with pytest.raises(HeatSketchError, match=message):
        hs.tl.heatsketch(adata, **options)


@pytest.mark.parametrize("root", [None, "nobody", 700, -1, 2.5])
def test_a_root_that_is_none_is_rejected(blood, root):
    with pytest.raises(HeatSketchError, match=f"root={root!r}"):
        hs.tl.heat_pseudotime(blood, root)


def test_arrays_and_twins_are_rejected(blood):
    with pytest.raises(HeatSketchError, match="adata is of type ndarray, not AnnData"):
        hs.tl.heatsketch(np.eye(3))
    twins = blood.copy()
    twins.obs_names = ["twin", "twin", *blood.obs_names[2:]]
    with pytest.raises(HeatSketchError, match=r"'twin' more than once.*obs_names_make_unique"):
        hs.tl.heatsketch(twins)


def test_sketches_that_differ_by_an_option_are_not_compared(blood):
    one, two = sketched(blood, n_comps=8, power=2), sketched(blood, n_comps=8, power=3)
    with pytest.raises(HeatSketchError, match="power=3 in adata, but 2 in before"):
        hs.tl.drift(two, one)
    with pytest.raises(HeatSketchError, match="power='all'"):
        hs.tl.drift(sketched(blood, n_comps=16), sketched(blood, n_comps=16))
    with pytest.raises(HeatSketchError, match=r"seed=5.*same rng for both"):
        hs.tl.drift(sketched(blood, n_comps=8, power=2, rng=5), one)
    with pytest.raises(
        HeatSketchError, match=r"before\.uns\['heatsketch'\]\['params'\] is not that of a sketch"
    ):
        hs.tl.drift(one, blood)


def test_without_anndata_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r'pip install "heatsketch\[scanpy\]"'):
        hs.tl.heatsketch(None)


def test_the_page_runs():
    page = (Path(__file__).parent.parent / "docs" / "how_to" / "scanpy.md").read_text()
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scanpy's, of old files and names that repeat themselves
        for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
            exec(block, names)
    assert names["adata"].obsm["X_heatsketch"].shape == (700, 64)
    assert names["cells"].obs["heat_pseudotime"].max() == 1
    assert names["after"].obs["drift_moved"].iloc[3]


# --- clusters and smoothing -------------------------------------------------------------------


def test_clusters_are_categories_of_the_graph_that_is_there(blood):
    found = hs.tl.heat_clusters(blood, 6, copy=True)
    assert list(found.obs["heat_clusters"].cat.categories) == list("012345")
    model = HeatSketch(metric="precomputed").fit(blood.obsp["distances"], row_ids=names(blood))
    wanted = heatsketch.HeatClustering(6, model).fit(None).labels_
    np.testing.assert_array_equal(found.obs["heat_clusters"].cat.codes, wanted)
    assert found.uns["heat_clusters"]["params"]["n_clusters"] == 6


def test_genes_are_smoothed_as_the_model_smooths(blood):
    adata = anndata.AnnData(blood.raw.X, obs=blood.obs, var=blood.raw.var, obsm=blood.obsm)
    model = HeatSketch(1, power=1).fit(blood.obsm["X_pca"], row_ids=names(blood))
    hs.pp.heat_smooth(adata, ["CST3", "CD79A"], use_rep="X_pca", time=3)
    places = adata.var_names.get_indexer(["CST3", "CD79A"])
    wanted = model.smooth(adata.X[:, places], time=3).values
    np.testing.assert_array_equal(adata.obsm["heat_smooth"].to_numpy(), wanted)
    assert list(adata.obsm["heat_smooth"].columns) == ["CST3", "CD79A"]
    every = hs.pp.heat_smooth(adata, use_rep="X_pca", copy=True)
    assert every.layers["heat_smooth"].shape == adata.shape
    assert every.uns["heat_smooth"]["time"] in every.uns["heat_smooth"]["times"]
    counts = np.random.default_rng(0).poisson(1.0, adata.shape)
    adata.layers["counted"] = counts
    hs.pp.heat_smooth(adata, ["CST3"], layer="counted", use_rep="X_pca", time=3)
    wanted = model.smooth(counts[:, places[:1]], time=3, sizes=counts.sum(axis=1)).values
    np.testing.assert_array_equal(adata.obsm["heat_smooth"].to_numpy(), wanted)
    for options, message in (
        ({"genes": ["CST3", "XYZ"]}, "'XYZ' is none of them"),
        ({"layer": "counts"}, "layer='counts' is not in adata.layers"),
    ):
        with pytest.raises(HeatSketchError, match=message):
            hs.pp.heat_smooth(adata, use_rep="X_pca", **options)


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_counts_are_told_from_other_numbers(form):
    counts = np.full((250, 100), 3.0)
    counts[::2] = 1
    assert hs.pp._are_counts(form(counts))
    for place in [0, 99, 12_345, 24_999]:
        for value in [0.5, -1.0]:
            values = counts.copy()
            values.flat[place] = value
            assert not hs.pp._are_counts(form(values))
    assert hs.pp._are_counts(np.zeros((3, 2)))
    assert not hs.pp._are_counts(sparse.csc_array((3, 2)))  # of which nothing is known
