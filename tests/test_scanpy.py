"""Tools for AnnData: where they read and write, what they reject, and scanpy's own data sets."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.neighbors import kneighbors_graph

import heatsketch
import heatsketch.scanpy as hs
from heatsketch import HeatClustering, HeatGraph, compare, harmonic, sketch, smooth
from heatsketch.exceptions import HeatSketchError

anndata = pytest.importorskip("anndata")
sc = pytest.importorskip("scanpy", exc_type=ImportError)  # numba rejects nightly numpy

SEEDS = 0, 1, 2
N_CLOCK = 160  # steps of each of the four runs of krumsiek11


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


def neighbors(adata, n_neighbors=15, *, use_rep, key_added=None):
    """Add a graph as scanpy.pp.neighbors does, which first compiles for a minute."""
    points = adata.X if use_rep == "X" else adata.obsm[use_rep]
    key = "distances" if key_added is None else f"{key_added}_distances"
    adata.obsp[key] = kneighbors_graph(points, n_neighbors - 1, mode="distance")
    adata.uns[key_added or "neighbors"] = {"distances_key": key}
    return adata


def graph_of(adata, key="distances"):
    return HeatGraph.from_points(adata.obsp[key], metric="precomputed", ids=names(adata))


def names(adata):
    return adata.obs_names.to_numpy(str)


def sketched(adata, **options):
    return hs.tl.heatsketch(adata, copy=True, **options)


# --- the sketch ----------------------------------------------------------------------------


def test_the_graph_of_scanpy_is_used_as_it_is(blood):
    adata = sketched(blood)
    made = sketch(graph_of(blood))
    np.testing.assert_array_equal(adata.obsm["X_heatsketch"], made.embedding)
    params = adata.uns["heatsketch"]["params"]
    assert (params["power"], params["first_power"]) == ("all", made.first_power)
    assert (params["seed"], params["version"]) == (0, heatsketch.__version__)
    assert params["neighbors_key"] == "neighbors"


def test_a_diffusion_map_is_written_for_pictures(blood):
    """The leading eigenvectors of the dense operator, of which a random projection is none."""
    adata = sketched(blood, key_added="X_mine")
    graph = graph_of(blood)
    A = graph.operator
    vectors = np.linalg.eigh(A @ np.eye(A.shape[0]))[1][:, [-2, -3]]
    found = graph.inner(adata.obsm["X_mine_map"]) * A.stationary[:, np.newaxis]
    found = found / np.linalg.norm(found, axis=0)
    np.testing.assert_allclose(np.abs(vectors.T @ found), np.eye(2), atol=1e-3)
    assert sketched(blood, n_comps=1).obsm["X_heatsketch_map"].shape == (700, 2)


@pytest.mark.parametrize("use_rep", ["X", "X_pca"])
def test_points_may_come_from_any_representation(blood, use_rep):
    found = sketched(blood, n_comps=8, use_rep=use_rep).obsm["X_heatsketch"]
    points = blood.X if use_rep == "X" else blood.obsm[use_rep]
    made = sketch(HeatGraph.from_points(points, ids=names(blood)), 8)
    np.testing.assert_array_equal(found, made.embedding)


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
    plain = sketch(HeatGraph.from_points(dense, ids=names(blood)), 8).embedding
    scale = np.abs(plain).max()
    np.testing.assert_allclose(here.obsm["X_heatsketch"], plain, atol=1e-3 * scale)


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
    # The same from a column, and the same as the function.
    adata.obs["state"] = None
    for name, cells in terminal.items():
        adata.obs.iloc[list(cells), adata.obs.columns.get_loc("state")] = name
    again = hs.tl.fate(adata, "state", key_added="again", copy=True)
    np.testing.assert_array_equal(again.obsm["again"], found)
    rows = np.concatenate(list(terminal.values()))
    values = np.repeat(np.eye(4), 10, axis=0)
    np.testing.assert_array_equal(harmonic(graph_of(adata), values, rows), found)


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


def test_results_survive_a_file(blood, tmp_path):
    options = {"power": 2, "n_leading": 0}
    before = sketched(blood, **options)
    adata = hs.tl.heat_pseudotime(sketched(blood[50:].copy(), **options), 0, copy=True)
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
    found = compare(graph_of(adata), adata.obs["condition"], units=adata.obs["donor"])
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


# --- drift ---------------------------------------------------------------------------------


def test_drift_names_the_cells_that_moved(blood):
    options = {"use_rep": "X_pca", "power": 2, "n_leading": 0}
    before = sketched(blood, **options)
    later = blood[20:].copy()
    later.obsm["X_pca"][3] = later.obsm["X_pca"][500]
    after = sketched(later, **options)
    found = hs.tl.drift(after, before, copy=True)
    assert "drift" not in after.obs
    assert found.obs["drift_moved"].iloc[3]
    assert found.obs["drift_moved"].mean() < 0.1
    assert sorted(found.uns["drift"]["went"]) == sorted(blood.obs_names[:20])
    back = hs.tl.drift(before, after, copy=True)
    assert np.isnan(back.obs["drift"].iloc[:20]).all()
    assert np.isfinite(back.obs["drift"].iloc[20:]).all()


# --- errors --------------------------------------------------------------------------------


def broken(adata):
    """Add graphs that are torn, columns with gaps, and distances by another name."""
    adata = adata.copy()
    adata.uns["torn"] = {"distances_key": "gone"}
    adata.uns["few"] = {"distances_key": "few_far"}
    adata.obsp["few_far"] = adata.obsp["distances"]
    adata.obs["half"] = [None, "a"] * 350
    return adata


NEIGHBORS, WEIGHTS = {"neighbors_key": "neighbors"}, {"obsp": "connectivities"}
INVALID = [
    (hs.tl.heatsketch, {"neighbors_key": "lost"}, "neighbors_key"),
    (hs.tl.heatsketch, {"neighbors_key": "torn"}, "gone"),
    (hs.tl.heatsketch, {"use_rep": "X_ray"}, "use_rep"),
    (hs.tl.heatsketch, {"use_rep": "X"} | NEIGHBORS, "sources"),
    *[(hs.tl.heatsketch, {"obsp": obsp}, "obsp") for obsp in ("lost", "distances", "few_far")],
    *[(hs.tl.heatsketch, other | WEIGHTS, "sources") for other in ({"use_rep": "X"}, NEIGHBORS)],
    *[
        (hs.tl.heat_pseudotime, {"root": root}, "root")
        for root in (None, "nobody", 700, -1, 2.5, True)
    ],
    *[
        (hs.tl.fate, {"terminal": terminal}, "terminal")
        for terminal in (
            *["sort", 7, {"a": [7000]}, {"a": ["nobody"]}, {"a": [1], "b": [1]}, {}],
            *[{"a": [True, False]}, {"a": [True, 5]}, {"a": True}],
        )
    ],
    (hs.tl.compare, {"groupby": "donor"}, "groupby"),
    (hs.tl.compare, {"groupby": "bulk_labels", "units": "half"}, "units"),
]


@pytest.mark.parametrize(("tool", "options", "name"), INVALID)
def test_an_invalid_argument_is_named(blood, tool, options, name):
    with pytest.raises(HeatSketchError, match=name):
        tool(broken(blood), **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_pseudotime_orders_the_cells_of_known_runs(runs, seed):
    adata = neighbors(runs.copy(), 15, use_rep="X")
    hs.tl.heat_pseudotime(adata, random_state=seed)  # from uns["iroot"]
    times = adata.obs["heat_pseudotime"].to_numpy().reshape(4, N_CLOCK)
    assert np.mean([spearmanr(run, np.arange(N_CLOCK)).statistic for run in times]) > 0.97


def test_sketches_that_differ_by_an_option_are_not_compared(blood):
    one, two = sketched(blood, n_comps=8, power=2), sketched(blood, n_comps=8, power=3)
    with pytest.raises(HeatSketchError, match="power=3 in adata, but 2 in before"):
        hs.tl.drift(two, one)
    with pytest.raises(HeatSketchError, match="power='all'"):
        hs.tl.drift(sketched(blood, n_comps=16), sketched(blood, n_comps=16))
    with pytest.raises(HeatSketchError, match=r"n_leading=8 in adata and 8 in before"):
        hs.tl.drift(*(sketched(blood, n_comps=16, power=2) for _ in range(2)))
    with pytest.raises(HeatSketchError, match=r"seed=5.*same arguments for both"):
        hs.tl.drift(sketched(blood, n_comps=8, power=2, random_state=5), one)
    with pytest.raises(HeatSketchError, match="before"):
        hs.tl.drift(one, blood)


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
    wanted = HeatClustering(6).fit(graph_of(blood)).labels_
    np.testing.assert_array_equal(found.obs["heat_clusters"].cat.codes, wanted)
    assert found.uns["heat_clusters"]["params"]["n_clusters"] == 6


def test_genes_are_smoothed_as_columns_of_the_graph(blood):
    adata = anndata.AnnData(blood.raw.X, obs=blood.obs, var=blood.raw.var, obsm=blood.obsm)
    graph = HeatGraph.from_points(blood.obsm["X_pca"], ids=names(blood))
    hs.pp.heat_smooth(adata, ["CST3", "CD79A"], use_rep="X_pca", time=3)
    places = adata.var_names.get_indexer(["CST3", "CD79A"])
    wanted = smooth(graph, adata.X[:, places], time=3).values
    np.testing.assert_array_equal(adata.obsm["heat_smooth"].to_numpy(), wanted)
    assert list(adata.obsm["heat_smooth"].columns) == ["CST3", "CD79A"]
    every = hs.pp.heat_smooth(adata, use_rep="X_pca", copy=True)
    assert every.layers["heat_smooth"].shape == adata.shape
    assert every.uns["heat_smooth"]["time"] in every.uns["heat_smooth"]["times"]
    counts = np.random.default_rng(0).poisson(1.0, adata.shape)
    adata.layers["counted"] = counts
    hs.pp.heat_smooth(adata, ["CST3"], layer="counted", use_rep="X_pca", time=3)
    wanted = smooth(graph, counts[:, places[:1]], time=3, sizes=counts.sum(axis=1)).values
    np.testing.assert_array_equal(adata.obsm["heat_smooth"].to_numpy(), wanted)
    for options, message in (
        ({"genes": ["CST3", "XYZ"]}, "genes"),
        ({"genes": []}, "genes"),
        ({"layer": "counts"}, "layer"),
    ):
        with pytest.raises(HeatSketchError, match=message):
            hs.pp.heat_smooth(adata, use_rep="X_pca", **options)
