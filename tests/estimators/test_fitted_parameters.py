"""A fitted model goes by what it was fitted with, whatever is set later."""

import pickle

import numpy as np
import pytest
from registry import cloud
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer

from heatsketch import DiffusionMap, HeatSketch, LocalEngine, load, plot
from heatsketch.estimators.near_isometry import NearIsometry
from heatsketch.report import write_report

X, NEW = cloud(60), cloud(5, seed=1)
OTHERS = {
    "n_components": [3, 16, "many"],
    "power": [9, "all", None],
    "epsilon": [1.0, "local", "auto", "wide"],
    "n_neighbors": [None, 7, "many"],
    "neighbors": [KNeighborsTransformer(), "faiss"],
    "metric": ["cosine", "precomputed", "far"],
    "affinity": ["precomputed", "none"],
    "self_loops": [False],
    "normalization": ["bistochastic", "none"],
    "weighting": ["random_walk", "symmetric", "density"],
    "stationary": ["keep", "drop"],
    "random_matrix": ["rademacher", "uniform"],
    "random_state": [1, None, "seed"],
    "engine": [LocalEngine(graph_tolerance=0)],
    "n_jobs": [1, 3, -1],
    "verbose": [False, 0],
}
MODELS = {
    "neighbors": HeatSketch(8, power=3, n_neighbors=9),
    "all pairs": HeatSketch(8, power=3, epsilon=2.0, n_neighbors=None),
    "chosen": HeatSketch(8, epsilon="auto", weighting="random_walk"),
    "signs": HeatSketch(8, power=3, n_neighbors=9, random_matrix="rademacher"),
    "eigenvectors": DiffusionMap(3, power=2, n_neighbors=9),
}
KEPT = ["as it is", "pickled", "saved"]
ROUNDS = range(max(map(len, OTHERS.values())))


def answers(model):
    """All that a model tells, one array after another."""
    yield model.transform(NEW)
    yield model.transform(X)
    if isinstance(model, DiffusionMap):
        return
    yield from model.path([1, 4])
    yield from model.pseudotime(7)
    yield from model.diffusion_distances([[0, 1], [2, 3]])
    yield from model.diffusion_neighbors([0, 1], n_neighbors=3)
    yield from model.diffusion_map(2)
    yield from model.drift(model).rows
    grown = model.grow(12)
    yield grown.embedding_
    yield grown.transform(NEW)


def kept(model, how, path):
    if how == "pickled":
        return pickle.loads(pickle.dumps(model))
    if how == "saved":
        model.save(path)
        return load(path)
    return model


@pytest.mark.parametrize("how", KEPT)
@pytest.mark.parametrize("name", MODELS)
def test_parameters_set_since_change_no_answer(name, how, tmp_path):
    wanted = list(answers(clone(MODELS[name]).fit(X)))
    for turn in ROUNDS:
        model = kept(clone(MODELS[name]).fit(X), how, tmp_path / str(turn))
        for parameter in model.get_params():
            values = OTHERS[parameter]
            model.set_params(**{parameter: values[turn % len(values)]})
        for found, right in zip(answers(model), wanted, strict=True):
            np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("how", KEPT[1:])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_kept_with_what_it_was_fitted_with(name, how, tmp_path):
    fitted = clone(MODELS[name]).fit(X)
    wanted = list(answers(clone(MODELS[name]).fit(X)))
    model = kept(
        fitted.set_params(n_components=5, epsilon=7.0, metric="cosine"), how, tmp_path / "m"
    )
    for found, right in zip(answers(model), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def test_what_was_set_is_for_the_next_fit():
    model = HeatSketch(8, power=3).fit(X).set_params(epsilon=1.0)
    assert model.epsilon == clone(model).epsilon == 1.0
    assert model.grow(9).get_params() == HeatSketch(9, power=3).get_params()
    wanted = HeatSketch(8, power=3, epsilon=1.0).fit(X)
    np.testing.assert_array_equal(model.fit(X).embedding_, wanted.embedding_)
    assert model.parameters_ == wanted.parameters_


def test_sketches_are_compared_by_what_they_were_fitted_with():
    model, other = (HeatSketch(8, power=3, stationary=part).fit(X) for part in ("drop", "keep"))
    with pytest.raises(ValueError, match="stationary='drop' here, but 'keep'"):
        model.drift(other.set_params(stationary="drop"))


def test_an_isometry_is_saved_with_the_columns_it_has(tmp_path):
    model = NearIsometry(2).fit(X).set_params(n_components=3)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(X), model.transform(X))


def test_pictures_and_pages_show_what_was_fitted(tmp_path):
    wanted = HeatSketch(8, power=3, n_neighbors=9).fit(X)
    changed = (
        clone(wanted)
        .fit(X)
        .set_params(
            n_components=3, stationary="keep", weighting="random_walk", random_matrix="uniform"
        )
    )
    for place, model in enumerate((wanted, changed)):
        write_report(model, tmp_path / str(place), powers=[1, 3])
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    first, second = (
        plot.distances(model).get_lines()[0].get_xydata() for model in (wanted, changed)
    )
    np.testing.assert_array_equal(first, second)


# --- kinds of numbers ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64])
@pytest.mark.parametrize("model", [HeatSketch, DiffusionMap])
def test_numpy_integers_are_integers(model, kind, tmp_path):
    wanted = model(4, power=3, n_neighbors=9).fit(X)
    found = model(kind(4), power=kind(3), n_neighbors=kind(9)).fit(X)
    found.save(tmp_path / "model")
    for same in (found, load(tmp_path / "model")):
        np.testing.assert_array_equal(same.embedding_, wanted.embedding_)
        assert type(getattr(same, "power_", 3)) is int


def test_a_power_of_zero_has_one_before_it():
    found, wanted = (DiffusionMap(2, power=zero).fit(X) for zero in (np.uint8(0), 0))
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


@pytest.mark.parametrize("power", [True, 2.0, np.float32(2), np.float64(8.5)])
def test_any_power_that_can_be_fitted_can_be_loaded(power, tmp_path):
    model = HeatSketch(4, power=power, epsilon=2.0, n_neighbors=None).fit(X)
    assert type(model.power_) in (int, float)
    assert model.power_ == power
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert repr(again.power_) == repr(model.power_)


def test_whole_numbers_may_come_as_floats():
    model = HeatSketch(8, power=3).fit(X)
    np.testing.assert_array_equal(model.path([2.0])[0], model.path([2])[0])
    wanted = HeatSketch(16, power=3).fit(X)
    grown = model.grow(16.0)
    np.testing.assert_array_equal(grown.embedding_, wanted.embedding_)
    assert grown.get_params() == wanted.get_params()
