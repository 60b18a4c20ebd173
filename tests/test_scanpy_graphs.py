"""Tools for AnnData: which matrix of a graph they use, and masks of cells."""

import warnings

import numpy as np
import pytest

import heatsketch.scanpy as hs
from heatsketch import HeatGraph, HeatLabels, compare, sketch, smooth

anndata = pytest.importorskip("anndata")
sc = pytest.importorskip("scanpy", exc_type=ImportError)  # numba rejects nightly numpy


@pytest.fixture(scope="module")
def blood():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file in an old format
        return sc.datasets.pbmc68k_reduced()


def weights_of(adata, key="connectivities"):
    return HeatGraph.from_affinity(adata.obsp[key], ids=adata.obs_names.to_numpy(str))


def test_connectivities_are_used_where_there_are_no_distances(blood, monkeypatch):
    adata, lines = blood.copy(), []
    monkeypatch.setattr(sc.logging, "info", lines.append)
    hs.tl.heatsketch(adata, 8, key_added="of_distances")
    del adata.obsp["distances"]
    hs.tl.heatsketch(adata, 8, key_added="of_weights")
    np.testing.assert_array_equal(adata.obsm["of_weights"], sketch(weights_of(adata), 8).embedding)
    first, second = (adata.uns[f"of_{name}"]["params"] for name in ("distances", "weights"))
    assert (first["obsp"], first["metric"]) == ("distances", "precomputed")
    assert (second["obsp"], second["normalization"]) == ("connectivities", "degree")
    assert ["'distances'" in line for line in lines] == [True, False]


@pytest.mark.parametrize("tool", ["heatsketch", "heat_pseudotime", "heat_clusters", "fate"])
def test_obsp_names_the_matrix_of_weights(blood, tool, tmp_path):
    """Two ways to weigh the same neighbours give two results, which a file keeps."""
    options = {"heatsketch": {"n_comps": 8}, "heat_pseudotime": {"root": 0, "n_comps": 8}}
    options |= {"heat_clusters": {"n_clusters": 5}, "fate": {"terminal": {"a": [0], "b": [600]}}}
    adata = blood.copy()
    adata.obsp["roots"] = adata.obsp["connectivities"].sqrt()
    for key in ("roots", "connectivities"):
        getattr(hs.tl, tool)(adata, obsp=key, key_added=key, **options[tool])
        assert adata.uns[key]["params"]["obsp"] == key
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert again.uns["roots"]["params"] == adata.uns["roots"]["params"]
    places = adata.obsm if tool in ("heatsketch", "fate") else adata.obs
    assert not np.array_equal(np.asarray(places["roots"]), np.asarray(places["connectivities"]))
    if tool == "heatsketch":
        made = sketch(weights_of(adata, "roots"), 8)
        np.testing.assert_array_equal(places["roots"], made.embedding)


def test_labels_smoothing_and_comparisons_take_obsp(blood):
    adata = blood.copy()
    adata.obs["known"] = adata.obs["bulk_labels"].where(np.arange(adata.n_obs) % 10 == 0)
    hs.tl.heat_labels(adata, "known", obsp="connectivities")
    wanted = HeatLabels().fit(weights_of(adata), adata.obs["known"].cat.codes.to_numpy())
    np.testing.assert_array_equal(adata.obsm["heat_labels"], wanted.label_distributions_)
    hs.pp.heat_smooth(adata, ["CST3"], obsp="connectivities", time=2)
    wanted = smooth(weights_of(adata), adata[:, ["CST3"]].X, time=2).values
    np.testing.assert_allclose(adata.obsm["heat_smooth"].to_numpy(), wanted, rtol=1e-12)
    hs.tl.compare(adata, "phase", obsp="connectivities", n_permutations=19)
    wanted = compare(weights_of(adata), adata.obs["phase"], n_permutations=19)
    np.testing.assert_array_equal(adata.obs["compare_z"], wanted.z)
    params = adata.uns["heat_smooth"]["params"]
    assert params["obsp"] == "connectivities"
    assert not {"power", "n_comps", "seed"} & params.keys()  # they have no effect
