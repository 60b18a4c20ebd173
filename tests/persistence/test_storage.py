"""Models go to files and come back bit-identical."""

import json
import os
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
from fitted_models import CASES, NEW, SHAPES, X, assert_same, fitted
from registry import cloud
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import heatsketch
from heatsketch import DiffusionMap, HeatSketch, LocalEngine, NearIsometry, load, model_info
from heatsketch.diffusion._random_matrix import STREAM_VERSION
from heatsketch.exceptions import NotStorableError, TrainingDataError
from heatsketch.persistence._container import FORMAT_VERSION, read_model_file, write_model_file

GOLDEN = Path(__file__).parent / "golden"


def numbers(model, new):
    """Whatever numbers a model can give."""
    yield model.transform(new)
    if isinstance(model, NearIsometry):
        return
    yield model.embedding_
    yield model.epsilon_
    yield getattr(model, "epsilon_estimate_", ())
    yield getattr(model, "heat_trace_", ())
    yield tuple(vars(model.scaling_).values())
    if isinstance(model, DiffusionMap):
        return
    pairs = [[0, 1], [5, 9]]
    yield tuple(model.diffusion_distances(pairs))
    yield model.path([1, 3])
    yield tuple(model.diffusion_map(1))
    yield model.grow(12).embedding_


@pytest.mark.parametrize("name", CASES)
def test_a_model_comes_back_bit_for_bit(name, tmp_path):
    model, new = fitted(name)
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    assert type(again) is type(model)
    assert again.parameters_ == model.parameters_
    assert vars(again).keys() == vars(model).keys()
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for one, two in zip(numbers(again, new), numbers(model, new), strict=True):
        assert_same(one, two)


def test_drift_is_the_same_between_models_from_files(tmp_path):
    one, two = (
        HeatSketch(8, power=6).fit(X + shift, row_ids=np.arange(150)[::-1])
        for shift in (0, 0.1 * cloud(150, seed=2))
    )
    wanted = one.drift(two)
    for training_data in (True, False):
        for model, name in ((one, "one"), (two, "two")):
            model.save(tmp_path / name, training_data=training_data, overwrite=True)
        assert_same(tuple(load(tmp_path / "one").drift(load(tmp_path / "two"))), tuple(wanted))


def test_feature_names_come_back(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "ü", "x"])
    HeatSketch(4).fit(frame).save(tmp_path / "a")
    again = load(tmp_path / "a")
    assert list(again.feature_names_in_) == ["a", "ü", "x"]
    assert again.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["x", "a", "ü"]])
    assert list(again.get_feature_names_out()) == [f"heatsketch{i}" for i in range(4)]


def test_pages_of_memory_are_not_shared_with_the_file(tmp_path):
    model = HeatSketch(4).fit(X)
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"")
    assert_same(again.embedding_, model.embedding_)
    assert all(array.flags.writeable for array in (again.embedding_, again.neighbors_.points))


# --- without the training data ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "neighbors", "affinities", "map", "near isometry"])
def test_without_training_data_there_are_distances_but_nothing_diffuses(name, tmp_path):
    model, new = fitted(name)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "a", training_data=False)
    again = load(tmp_path / "a")
    if isinstance(model, NearIsometry):
        assert_same(again.transform(new), model.transform(new))
        return
    assert (tmp_path / "a").stat().st_size < 0.7 * (tmp_path / "whole").stat().st_size
    assert_same(again.embedding_, model.embedding_)
    # Nothing else has a number for every point: no distance to a neighbour, and no density.
    arrays = model_info(tmp_path / "a")["arrays"]
    of_points = {name for name, array in arrays.items() if len(X) in array["shape"]}
    assert of_points <= {"embedding_", "order_", "row_ids_"}
    assert np.ndim(again.epsilon_) == 0 and not hasattr(again, "scaling_")
    calls = [lambda: again.transform(new)]
    if isinstance(model, HeatSketch):
        assert_same(again.diffusion_distances([[0, 1]]), model.diffusion_distances([[0, 1]]))
        assert_same(
            again.diffusion_neighbors([3], n_neighbors=2),
            model.diffusion_neighbors([3], n_neighbors=2),
        )
        calls += [
            lambda: again.path([1]),
            lambda: again.grow(9),
            again.diffusion_map,
        ]
        if model.power != "all":  # else it is in the embedding
            calls.append(lambda: again.pseudotime(0))
    for call in calls:
        with pytest.raises(TrainingDataError, match="saved with training_data=True, or fit again"):
            call()
    with pytest.raises(TrainingDataError, match="pass training_data=False"):
        again.save(tmp_path / "b")
    again.save(tmp_path / "b", training_data=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert_same(clone(again).fit(SHAPES[CASES[name][1]](X)).embedding_, model.embedding_)


@pytest.mark.parametrize("name", ["plain", "neighbors", "affinities", "map"])
def test_a_bare_file_that_tells_more_loads_as_if_it_did_not(name, tmp_path):
    """Earlier ones held the scales of epsilon="local", and the normalization."""
    model, _ = fitted(name)
    model.save(tmp_path / "old")
    about, arrays = read_model_file(tmp_path / "old")
    gone = ("before_last_", "neighbors_", "heat_operator_")
    about["training_data"] = False
    about["attributes"] = [part for part in about["attributes"] if part not in gone]
    del about["sha256"]
    write_model_file(tmp_path / "old", about, arrays, overwrite=True)
    model.save(tmp_path / "new", training_data=False)
    old, new = load(tmp_path / "old"), load(tmp_path / "new")
    assert vars(old).keys() == vars(new).keys()
    old.save(tmp_path / "again", training_data=False)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "new").read_bytes()


# --- what cannot be stored ---------------------------------------------------------------------


def own_metric(x, y):
    return float(abs(x - y).sum())


class OwnSketch(HeatSketch):
    pass


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (HeatSketch(2, metric=own_metric), "metric="),
        (HeatSketch(2, random_state=np.random.RandomState(0)), "random_state="),
        (OwnSketch(2), "OwnSketch is none of"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_code_of_the_user_is_rejected_by_name(model, named, tmp_path):
    model.fit(X[:30])
    with pytest.raises(NotStorableError, match=named) as got:
        model.save(tmp_path / "a")
    assert "pickle" in str(got.value)
    assert os.listdir(tmp_path) == []
    assert_same(pickle.loads(pickle.dumps(model)).transform(NEW), model.transform(NEW))


def test_the_engine_is_no_part_of_a_file(tmp_path):
    """It says where to work, and not what comes out."""
    model = HeatSketch(2, engine=LocalEngine(graph_tolerance=0)).fit(X[:30])
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    assert again.engine is None
    assert_same(again.transform(NEW), model.transform(NEW))


def test_what_an_engine_keeps_elsewhere_is_rejected(tmp_path):
    model = HeatSketch(2, n_neighbors=5).fit(X[:30])
    model.before_last_ = memoryview(model.before_last_)
    with pytest.raises(NotStorableError, match="before_last_ is a memoryview"):
        model.save(tmp_path / "a")
    model = HeatSketch(2, n_neighbors=5).fit(X[:30])
    model.neighbors_ = heatsketch.graph._neighbors.Neighbors(None, model.order_, "euclidean")
    with pytest.raises(NotStorableError, match=r"neighbors_.points is a NoneType"):
        model.save(tmp_path / "a")
    model = HeatSketch(2, n_neighbors=5).fit(X[:30])
    model.embedding_ = model.embedding_.astype(complex)
    with pytest.raises(NotStorableError, match="complex128"):
        model.save(tmp_path / "a")


def test_too_many_names_are_rejected(tmp_path):
    model = HeatSketch(2).fit(X[:30])
    model.feature_names_in_ = np.array(["x" * 10**7] * 2, dtype=object)
    with pytest.raises(NotStorableError, match="shorter feature names"):
        model.save(tmp_path / "a")


def test_a_model_that_is_not_fitted_is_rejected(tmp_path):
    for model in (HeatSketch(), DiffusionMap(), NearIsometry()):
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "a")


# --- pickle, joblib and skops -----------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_pickles_hold_no_pairs(name, tmp_path):
    model, new = fitted(name)
    text = pickle.dumps(model)
    given = CASES[name][1].endswith(("distances", "affinities"))
    if not given and model.get_params().get("n_neighbors") is None:
        assert len(text) < 100_000  # all pairs would be 180,000, or half of it
    assert_same(pickle.loads(text).transform(new), model.transform(new))
    if isinstance(model, HeatSketch):
        assert_same(pickle.loads(text).path([3]), model.path([3]))


def test_joblib_keeps_working(tmp_path):
    model = HeatSketch(8).fit(X)
    joblib.dump(model, tmp_path / "a")
    assert_same(joblib.load(tmp_path / "a").transform(NEW), model.transform(NEW))


@pytest.mark.parametrize("name", [*list(CASES)[::3], "tiles", "lists", "near isometry"])
def test_skops_trusts_all_but_our_own_types(name):
    from skops import io

    model, new = fitted(name)
    text = io.dumps(model)
    types = io.get_untrusted_types(data=text)
    assert all(kind.startswith("heatsketch.") for kind in types), types
    again = io.loads(text, trusted=types)
    assert_same(again.transform(new), model.transform(new))
    if isinstance(model, HeatSketch):
        assert_same(again.path([3]), model.path([3]))


# --- files of other versions, and for other programs ------------------------------------------


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.heatsketch")), ids=lambda path: path.stem)
def test_old_files_load_for_ever(path):
    model = load(path)
    wanted = json.loads(path.with_suffix(".json").read_text())
    new = np.array(wanted["new"])
    for name, found in [("transform", model.transform(new)), ("embedding", model.embedding_[:5])]:
        expected = np.array(wanted[name])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * abs(expected).max())
    assert_same(model.transform(model.neighbors_.points), model.embedding_[model.order_])


def test_there_is_a_golden_file_of_this_format():
    found = {model_info(path)["format_version"] for path in GOLDEN.glob("*.heatsketch")}
    assert found == set(range(1, heatsketch.persistence._container.FORMAT_VERSION + 1))


def test_safetensors_reads_our_files(tmp_path):
    from safetensors import safe_open

    model, _ = fitted("neighbors")
    model.save(tmp_path / "a")
    with safe_open(tmp_path / "a", framework="numpy") as file:
        assert_same(file.get_tensor("embedding_"), model.embedding_)
        about = json.loads(file.metadata()["heatsketch"])
    assert about["class"] == "HeatSketch" and about["stream_version"] == 1


def test_the_header_tells_what_is_inside(tmp_path):
    model, _ = fitted("map")
    model.save(tmp_path / "a", training_data=False)
    info = model_info(tmp_path / "a")
    assert json.loads(json.dumps(info)) == info
    versions, arrays = info.pop("versions"), info.pop("arrays")
    assert versions["heatsketch"] == heatsketch.__version__
    assert arrays["embedding_"] == {"dtype": "float64", "shape": list(model.embedding_.shape)}
    assert info == {
        "class": "DiffusionMap",
        "parameters": model.parameters_,
        "n_points": 150,
        "n_features": 3,
        "n_components": model.n_components,
        "seed": None,
        "power": None,
        "first_power": None,
        "training_data": False,
        "bytes": (tmp_path / "a").stat().st_size,
        "format_version": FORMAT_VERSION,
        "min_reader": 1,
        "stream_version": STREAM_VERSION,
    }
    sketch, _ = fitted("plain")
    sketch.save(tmp_path / "c")
    info = model_info(tmp_path / "c")
    assert (info["seed"], info["power"], info["first_power"]) == (0, "all", sketch.power_)
    sketch.set_params(power=3).fit(cloud(40)).save(tmp_path / "d")
    info = model_info(tmp_path / "d")
    assert (info["power"], info["first_power"]) == (3, None)
    model, _ = fitted("near isometry")
    model.save(tmp_path / "b")
    assert model_info(tmp_path / "b")["n_points"] is None
