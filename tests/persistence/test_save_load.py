"""Files whose parts do not belong together, though each bit is what a writer put there."""

from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsTransformer

import heatsketch
from heatsketch import DiffusionMap, HeatSketch, load
from heatsketch.exceptions import FileFormatError, NotStorableError, TrainingDataError
from heatsketch.persistence._container import REMEDY, read_model_file, write_model_file

X = np.random.default_rng(0).normal(size=(20, 3))
MODELS = {
    "local": lambda: HeatSketch(2, n_neighbors=4).fit(X),
    "one epsilon": lambda: HeatSketch(2, n_neighbors=4, epsilon=1.0).fit(X),
    "one feature": lambda: HeatSketch(2, n_neighbors=4).fit(X[:, :1]),
    "affinities": lambda: HeatSketch(2, affinity="precomputed").fit(np.exp(X @ X.T / 9)),
    "diffusion map": lambda: DiffusionMap(2).fit(X),
    "names": lambda: HeatSketch(2, n_neighbors=4).fit(pd.DataFrame(X, columns=list("abc"))),
}
NAMES = ["DiffusionMap", "HeatSketch", "NearIsometry"]
OF_MACHINE = "engine", "n_jobs", "verbose"  # which files do not hold
SIZES = "{'n': 20, 'k': 2, 'F': 'float64', 'u': 20, 'd': 3, 't': 1}"


@pytest.fixture
def changed(tmp_path):
    """A function that saves a model, changes what is said of it, and returns the path."""

    def save(model, part, **changes):
        MODELS[model]().save(tmp_path / "a")
        about, arrays = read_model_file(tmp_path / "a")
        (about[part] if part else about).update(changes)
        write_model_file(tmp_path / "a", about, arrays, overwrite=True)
        return tmp_path / "a"

    return save


@pytest.mark.parametrize("model", MODELS)
def test_what_is_not_changed_is_loaded(model, changed):
    loaded = load(changed(model, ""))
    np.testing.assert_array_equal(loaded.embedding_, MODELS[model]().embedding_)


WRONG = {
    "no class": ("local", "", {"class": 3}, "its class is 3"),
    "no values": ("local", "", {"values": [1]}, "its values is [1]"),
    "other class": (
        "local",
        "",
        {"class": "Other"},
        f"it holds a 'Other', which is none of {NAMES}",
    ),
    "unknown parameter": (
        "diffusion map",
        "parameters",
        {"extra": 1},
        f"its parameters are {sorted({*DiffusionMap().get_params(), 'extra'} - {*OF_MACHINE})}",
    ),
    "invalid parameter": (
        "local",
        "parameters",
        {"n_components": 0},
        "The 'n_components' parameter of HeatSketch must be an int in the range [1, inf). Got 0 "
        "instead.",
    ),
    "other components": (
        "local",
        "parameters",
        {"n_components": 3},
        f"n_components=3, with {SIZES}",
    ),
    "no attributes": ("local", "", {"attributes": ["n_features_in_"]}, "there is no order_"),
    "other features": (
        "local",
        "values",
        {"n_features_in_": 7},
        f"n_features_in_=7, with {SIZES}",
    ),
    "no features": (
        "affinities",
        "values",
        {"n_features_in_": 0},
        "n_features_in_=0, with {'n': 20, 'k': 2, 'F': 'float64', 't': 1, 'd': 0}",
    ),
    "other affinities": (
        "affinities",
        "values",
        {"n_features_in_": 7},
        "there are 20 points, with affinities to 7",
    ),
    "names that are numbers": (
        "names",
        "values",
        {"feature_names_in_": [1, 2, 3]},
        "feature_names_in_ holds no names",
    ),
    "names that are letters": (
        "names",
        "values",
        {"feature_names_in_": "abc"},
        "feature_names_in_ holds no names",
    ),
    "no epsilon": (
        "affinities",
        "parameters",
        {"affinity": "gaussian"},
        "epsilon='local', with epsilon_=None",
    ),
    "not its epsilon": (
        "one epsilon",
        "parameters",
        {"epsilon": "local"},
        "epsilon='local', with epsilon_=1.0",
    ),
    "epsilon of zero": (
        "one epsilon",
        "values",
        {"epsilon_": 0.0},
        "epsilon=1.0, with epsilon_=0.0",
    ),
    "power of zero": ("local", "values", {"power_": 0}, "power_=0"),
    "huge power": ("local", "values", {"power_": 2**53 + 1}, f"power_={2**53 + 1}"),
    "other metric": (
        "local",
        "parameters",
        {"metric": "cosine"},
        "metric='cosine', with 'euclidean'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_parts_that_cannot_be_of_one_fit_are_named(case, changed):
    model, part, changes, cause = WRONG[case]
    path = changed(model, part, **changes)
    with pytest.raises(FileFormatError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {cause}; {REMEDY}."


def test_neighbors_belong_to_points(changed):
    without = [name for name in vars(MODELS["local"]()) if name != "neighbors_"]
    path = changed("local", "", attributes=without)
    with pytest.raises(FileFormatError, match="affinity='gaussian', and neighbors_ do not fit"):
        load(path)


def test_the_largest_power_is_loaded(changed):
    assert load(changed("local", "values", power_=2**53)).power_ == 2**53


def test_a_later_file_may_have_parameters_that_we_do_not_know(changed, monkeypatch):
    from heatsketch.persistence import _container as container

    monkeypatch.setattr(container, "FORMAT_VERSION", 2)
    path = changed("local", "parameters", extra=1)
    assert load(path).get_params() == MODELS["local"]().get_params()


def test_a_file_names_the_versions_that_wrote_it(tmp_path):
    MODELS["local"]().save(tmp_path / "a")
    names = ("numpy", "scipy", "scikit-learn")
    expected = {"heatsketch": heatsketch.__version__} | {name: version(name) for name in names}
    assert read_model_file(tmp_path / "a").about["versions"] == expected


@pytest.mark.parametrize("name", ["Mine", "HeatSketch"])
def test_a_class_of_your_own_is_not_saved(name, tmp_path):
    model = type(name, (HeatSketch,), {})(2).fit(X)
    with pytest.raises(NotStorableError) as caught:
        model.save(tmp_path / "a")
    assert str(caught.value) == (
        f"a {name} is none of {NAMES}, which are what model files hold; use pickle, if all who "
        "load it trust you."
    )


def test_training_data_that_was_left_out_cannot_be_saved(tmp_path):
    MODELS["local"]().save(tmp_path / "a", training_data=False)
    with pytest.raises(TrainingDataError) as caught:
        load(tmp_path / "a").save(tmp_path / "b")
    assert str(caught.value) == (
        "training_data=True, but this model was itself saved without its training data; pass "
        "training_data=False."
    )


def test_a_file_is_not_replaced_unasked(tmp_path):
    model = MODELS["local"]()
    model.save(tmp_path / "a")
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "a")
    model.save(tmp_path / "a", overwrite=True)


def test_a_file_holds_the_parameters_of_the_fit_as_plain_numbers(tmp_path):
    model = HeatSketch(np.int32(2), n_neighbors=np.int64(4)).fit(X).set_params(epsilon=7.0)
    model.save(tmp_path / "a")
    loaded = load(tmp_path / "a").get_params()
    assert (loaded["n_components"], loaded["n_neighbors"], loaded["epsilon"]) == (2, 4, "local")
    assert type(loaded["n_components"]) is type(loaded["n_neighbors"]) is int


def distance(x, y):
    return np.abs(x - y).sum()


@pytest.mark.parametrize(
    ("parameter", "value", "remedy"),
    [
        ("metric", distance, "fit with a name or a number for it"),
        (
            "neighbors",
            KNeighborsTransformer(n_neighbors=4),
            "fit with neighbors=None and n_neighbors",
        ),
    ],
)
def test_code_of_your_own_is_not_saved(parameter, value, remedy, tmp_path):
    model = HeatSketch(2, **{parameter: value}).fit(X)
    with pytest.raises(NotStorableError) as caught:
        model.save(tmp_path / "a")
    assert str(caught.value) == (
        f"{parameter}={value!r} is code or state of your own, and a model file holds none; "
        f"{remedy}, or use pickle, if all who load it trust you."
    )
