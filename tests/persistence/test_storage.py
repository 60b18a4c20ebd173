"""Values that are saved, loaded, pickled and described."""

import copy
import json
import os
import pickle

import joblib
import numpy as np
import pytest
from fitted_models import CASES, GRAPHS, NEW, X, assert_same, fitted, results
from make_golden import GOLDEN, golden_models, numbers_of
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import heatsketch
from heatsketch import HeatGraph, HeatLabels, HeatSketch, NearIsometry, load, model_info, sketch
from heatsketch.exceptions import NotStorableError, OutputExistsError, TrainingDataError
from heatsketch.persistence._file import FORMAT


@pytest.fixture(autouse=True)
def _without_sync(monkeypatch):
    """Do not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


def saved(value, path, **options):
    value.save(path, **options)
    return load(path)


# --- the same bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_load_gives_the_same_bits(name, tmp_path):
    value, new = fitted(name)
    again = saved(value, tmp_path / "a")
    assert_same(results(again, new), results(value, new))
    value.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_pickle_joblib_and_deepcopy_give_the_same_bits(name, tmp_path):
    value, new = fitted(name)
    joblib.dump(value, tmp_path / "a")
    copies = pickle.loads(pickle.dumps(value)), joblib.load(tmp_path / "a"), copy.deepcopy(value)
    for again in copies:
        assert_same(results(again, new), results(value, new))
    if hasattr(value, "get_params"):
        assert "graph_" not in vars(clone(value))


@pytest.mark.parametrize("name", ["all pairs", "all pairs, bandwidth", "distances"])
def test_affinities_of_all_pairs_are_not_stored(name, tmp_path):
    graph, _ = fitted(name)
    n, points = graph.n_samples, graph.rule.neighbors.points
    graph.save(tmp_path / "a")
    most = points.nbytes + 20_000
    assert os.path.getsize(tmp_path / "a") < most and len(pickle.dumps(graph)) < most
    assert load(tmp_path / "a").operator.shape == (n, n)


def test_parameters_of_estimators_are_restored(tmp_path):
    model, _ = fitted("HeatSketch")
    again = saved(model, tmp_path / "a")
    assert again.get_params() == model.get_params() | {"n_jobs": None}
    assert again.sketch_.graph is again.graph_ and again.sketch_.embedding is again.embedding_
    assert_same(saved(fitted("HeatLabels")[0], tmp_path / "b").priors, np.array([0.2, 0.3, 0.5]))


# --- sketches without their graph ---------------------------------------------------------------


def test_sketch_without_its_graph_has_no_training_data(tmp_path):
    for name in ("Sketch", "Sketch, components", "Sketch, names", "Sketch, one power"):
        made, new = fitted(name)
        alone = saved(made, tmp_path / name, graph=False)
        stored = {key for key in load_file(tmp_path / name) if not key.startswith("times")}
        assert stored <= {"embedding", "names", "given_numbers"}
        assert_same(alone.distances([[0, 1]]), made.distances([[0, 1]]))
        assert_same(alone.neighbors([3], 5), made.neighbors([3], 5))
        assert_same([alone.ids, alone.how(), alone.times], [made.ids, made.how(), made.times])
        assert_same(saved(alone, tmp_path / f"{name} again").embedding, made.embedding)
        with pytest.raises(TrainingDataError):
            alone.extend(made.graph.rows(new))
        with pytest.raises(TrainingDataError):
            alone.grow(9)


def test_drift_of_sketches_without_their_graphs(tmp_path):
    one, two = (sketch(HeatGraph.from_points(points), 8, power=3) for points in (X, X + NEW[0]))
    files = [saved(made, tmp_path / f"{i}", graph=False) for i, made in enumerate((one, two))]
    assert_same(heatsketch.drift(*files), heatsketch.drift(one, two))


# --- what cannot be stored ----------------------------------------------------------------------


def distance(x, y):
    return float(abs(x - y).sum())


class Mine(HeatSketch):
    """A class of a user."""


NOT_STORABLE = {
    "metric": lambda: HeatSketch(2, metric=distance).fit(X[:20]),
    "metric of a graph": lambda: HeatGraph.from_points(X[:20], metric=distance),
    "random_state": lambda: NearIsometry(2, random_state=np.random.RandomState(0)).fit(X[:20]),
    "Mine": lambda: Mine(2).fit(X[:20]),
    "nodes": lambda: HeatGraph.from_affinity(graph_of_tuples()),
}


def graph_of_tuples():
    import networkx as nx

    return nx.grid_2d_graph(3, 4)


@pytest.mark.parametrize("name", NOT_STORABLE)
def test_code_and_other_objects_are_not_stored(name, tmp_path):
    value = NOT_STORABLE[name]()
    with pytest.raises(NotStorableError, match=name.split()[0]):
        value.save(tmp_path / "a")
    assert not os.listdir(tmp_path)


def test_save_needs_a_fit_and_does_not_overwrite(tmp_path):
    for model in (HeatSketch(), HeatLabels(), NearIsometry()):
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "a")
    graph, _ = fitted("plain")
    graph.save(tmp_path / "a")
    with pytest.raises(OutputExistsError):
        graph.save(tmp_path / "a")
    saved(fitted("Sketch")[0], tmp_path / "a", overwrite=True, graph=False)


# --- descriptions -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "weights", *list(CASES)[len(GRAPHS) :]])
def test_model_info_describes_a_file(name, tmp_path):
    value, _ = fitted(name)
    value.save(tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # arrays are not read
    info = model_info(tmp_path / "a")
    assert json.loads(json.dumps(info)) == info
    assert info["class"] == type(value).__name__ and info["format"] == FORMAT
    assert info["version"] == heatsketch.__version__
    assert info["bytes"] == os.path.getsize(tmp_path / "a")
    assert info.get("n_samples", len(X)) == len(X)
    for key in ("n_components", "n_clusters"):
        assert key not in info or info[key] == getattr(value, key)
    if isinstance(value, heatsketch.Sketch):
        assert info["seed"] == value.settings.seed and info["has_graph"]
        assert info["first_power"] == (value.first_power if value.times else None)


# --- files of earlier versions ------------------------------------------------------------------


def test_golden_files_load():
    expected = json.loads((GOLDEN / "numbers.json").read_text())
    assert {name for name, _ in golden_models()} == expected.keys()
    for name, numbers in expected.items():
        value = load(GOLDEN / f"{name}.heatsketch")
        assert type(value).__name__ == name
        for found, wanted in zip(numbers_of(value), numbers, strict=True):
            atol = 1e-12 * np.abs(wanted).max()
            np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)
