"""Tools for AnnData: which matrix of a graph they use, and masks of cells."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import heatsketch.scanpy as hs
from heatsketch import HeatLabels, HeatSketch
from heatsketch._core.row_names import row_numbers
from heatsketch.exceptions import HeatSketchError

anndata = pytest.importorskip("anndata")
sc = pytest.importorskip("scanpy", exc_type=ImportError)  # numba rejects nightly numpy


@pytest.fixture(scope="module")
def blood():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file in an old format
        return sc.datasets.pbmc68k_reduced()


def with_neighbors(adata, **options):
    adata = adata.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.neighbors(adata, 15, use_rep="X_pca", **options)
    return adata


def affinities_of(adata, key="connectivities", n_comps=8):
    model = HeatSketch(n_comps, affinity="precomputed")
    return model.fit(adata.obsp[key], row_ids=row_numbers(adata.obs_names.to_numpy(str)))


def test_distances_are_used_where_there_are_any_and_this_is_recorded(blood, monkeypatch):
    adata, lines = blood.copy(), []
    monkeypatch.setattr(sc.logging, "info", lines.append)
    hs.tl.heatsketch(adata, 8)
    params = adata.uns["heatsketch"]["params"]
    assert (params["obsp"], params["metric"]) == ("distances", "precomputed")
    assert "affinity" not in params
    assert len(lines) == 1
    assert re.search(r"distances.*connectivities.*'umap'", lines[0])


def test_connectivities_are_used_where_there_are_no_distances(blood, monkeypatch):
    adata, lines = blood.copy(), []
    monkeypatch.setattr(sc.logging, "info", lines.append)
    del adata.obsp["distances"]
    hs.tl.heatsketch(adata, 8)
    model = affinities_of(adata)
    np.testing.assert_array_equal(adata.obsm["X_heatsketch"], model.embedding_)
    params = adata.uns["heatsketch"]["params"]
    assert (params["obsp"], params["affinity"]) == ("connectivities", "precomputed")
    assert (params["normalization"], params["epsilon"]) == ("degree", "none")
    assert re.search(r"connectivities.*weights", lines[0])


@pytest.mark.parametrize("tool", ["heatsketch", "heat_pseudotime", "heat_clusters", "fate"])
def test_obsp_names_the_matrix_of_weights(blood, tool, tmp_path):
    """Two ways to weigh the same neighbours give two results, which a file keeps."""
    options = {"heatsketch": {"n_comps": 8}, "heat_pseudotime": {"root": 0, "n_comps": 8}}
    options |= {"heat_clusters": {"n_clusters": 5}, "fate": {"terminal": {"a": [0], "b": [600]}}}
    adata = with_neighbors(blood, method="gauss")
    adata.obsp["umap"] = with_neighbors(blood).obsp["connectivities"]
    for key in ("umap", "connectivities"):
        getattr(hs.tl, tool)(adata, obsp=key, key_added=key, **options[tool])
        assert adata.uns[key]["params"]["obsp"] == key
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert again.uns["umap"]["params"] == adata.uns["umap"]["params"]
    places = adata.obsm if tool in ("heatsketch", "fate") else adata.obs
    assert not np.array_equal(np.asarray(places["umap"]), np.asarray(places["connectivities"]))
    if tool == "heatsketch":
        np.testing.assert_array_equal(places["umap"], affinities_of(adata, "umap").embedding_)


def test_labels_and_smoothing_take_obsp(blood):
    adata = blood.copy()
    adata.obs["known"] = adata.obs["bulk_labels"].where(np.arange(adata.n_obs) % 10 == 0)
    hs.tl.heat_labels(adata, "known", obsp="connectivities")
    wanted = HeatLabels(affinities_of(adata)).fit(None, adata.obs["known"].cat.codes.to_numpy())
    np.testing.assert_array_equal(adata.obsm["heat_labels"], wanted.label_distributions_)
    hs.pp.heat_smooth(adata, ["CST3"], obsp="connectivities", time=2)
    wanted = affinities_of(adata).smooth(adata[:, ["CST3"]].X, time=2).values
    np.testing.assert_allclose(adata.obsm["heat_smooth"].to_numpy(), wanted, rtol=1e-12)
    params = adata.uns["heat_smooth"]["params"]
    assert params["obsp"] == "connectivities"
    assert not {"power", "n_comps", "seed"} & params.keys()  # they have no effect


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"obsp": "lost"}, r"obsp='lost' is not in adata.obsp; use one of "),
        ({"obsp": "distances"}, "obsp='distances' holds distances"),
        ({"obsp": "few_far"}, "obsp='few_far' holds distances"),
        ({"obsp": "connectivities", "use_rep": "X"}, "two sources"),
        ({"obsp": "connectivities", "neighbors_key": "neighbors"}, "two sources"),
    ],
)
def test_invalid_sources_of_weights_are_named(blood, options, message):
    adata = blood.copy()
    adata.uns["few"] = {"distances_key": "few_far"}
    adata.obsp["few_far"] = adata.obsp["distances"]
    with pytest.raises(HeatSketchError, match=message):
        hs.tl.heatsketch(adata, **options)


# --- masks of cells ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [list, tuple, np.asarray, pd.Series, pd.array])
def test_masks_of_cells_are_masks(blood, form):
    mask = (blood.obs["bulk_labels"] == "CD14+ Monocyte").to_numpy()
    found = hs.tl.fate(blood, {"Mono": form(mask.tolist()), "B": [600, 601]}, copy=True)
    wanted = hs.tl.fate(blood, {"Mono": np.flatnonzero(mask), "B": [600, 601]}, copy=True)
    np.testing.assert_array_equal(found.obsm["fate"], wanted.obsm["fate"])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([True, False], "a mask of 2 values for 700 cells"),
        ([True] + [False] * 700, "a mask of 701 values for 700 cells"),
        ([True, 5], "terminal=True is neither"),
        ([5, np.False_], "is neither"),
        (True, "terminal=True is neither"),
    ],
)
def test_masks_of_another_length_are_rejected(blood, cells, message):
    with pytest.raises(HeatSketchError, match=message):
        hs.tl.fate(blood, {"a": cells, "b": [600]}, copy=True)


@pytest.mark.parametrize("root", [True, np.True_])
def test_a_boolean_is_no_root(blood, root):
    adata = blood.copy()
    adata.uns["iroot"] = root
    for given in (root, None):
        with pytest.raises(HeatSketchError, match="True"):
            hs.tl.heat_pseudotime(adata, given)
