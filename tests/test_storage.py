"""Models go to files and come back, bit for bit; whatever is not right is refused."""

import json
import os
import pickle
from hashlib import sha256
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registry import cloud
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

import heatsketch
from heatsketch import DiffusionMap, HeatSketch, LocalEngine, NearIsometry, load, model_info
from heatsketch.engines import _local
from heatsketch.exceptions import (
    FileError,
    FileFormatError,
    ModelVersionError,
    NotStorableError,
    OutputExistsError,
    TrainingDataError,
)
from heatsketch.graph import METRICS

GOLDEN = Path(__file__).parent / "golden"
N_FLIPS = int(os.environ.get("HEATSKETCH_BIT_FLIPS", "500"))  # make nightly says 10000

X = cloud(300)
NEW = cloud(40, seed=1)


def distances(X_new, X=X):
    return pairwise_distances(X_new, X)


def near_distances(X_new, X=X):
    d = distances(X_new, X)
    return sparse.csr_array(np.where(d <= np.partition(d, 20, axis=1)[:, 20:21], d, 0))


def affinities(X_new, X=X):
    return np.exp(-(distances(X_new, X) ** 2))


def same(X_new):
    return X_new


# What a model is fitted to: training points, new points, and a way to make X of them.
SHAPES = {
    "points": same,
    "float32": lambda X_new: X_new.astype("float32"),
    "sparse points": lambda X_new: sparse.csr_matrix(np.where(X_new > -0.5, X_new, 0)),
    "positive": lambda X_new: np.round(abs(X_new), 1),
    "distances": distances,
    "sparse distances": near_distances,
    "affinities": affinities,
    "sparse affinities": lambda X_new: sparse.csr_array(np.round(affinities(X_new), 1)),
}
S, D = HeatSketch, DiffusionMap
CASES = {
    "plain": (S(8), "points"),
    "float32": (S(8), "float32"),
    "neighbors": (S(8, n_neighbors=10), "points"),
    "neighbors, float32": (S(8, n_neighbors=10), "float32"),
    "lists": (S(8, n_neighbors=10, engine=LocalEngine(graph_tolerance=0.3)), "points"),
    "lists, float32": (S(8, n_neighbors=10, engine=LocalEngine(graph_tolerance=0.2)), "float32"),
    "lists, cosine": (S(8, n_neighbors=10, metric="cosine", power=6), "points"),
    "tiles": (
        S(8, power=4, n_neighbors=None, engine=LocalEngine(memory_limit=3 * 10**8)),
        "points",
    ),
    "tiles, local": (S(4, n_neighbors=None, engine=LocalEngine(memory_limit=3 * 10**8)), "float32"),
    "bistochastic": (S(8, normalization="bistochastic", n_neighbors=12), "points"),
    "bistochastic, all pairs": (S(8, normalization="bistochastic", epsilon=2.0), "points"),
    "epsilon": (S(8, epsilon=1.5), "points"),
    "epsilon, numpy": (S(np.int64(8), epsilon=np.float32(1.5), power=np.int64(4)), "points"),
    "epsilon auto": (S(8, epsilon="auto"), "points"),
    "epsilon auto, neighbors": (S(8, epsilon="auto", n_neighbors=12), "float32"),
    "one column": (S(1), "points"),
    "rademacher": (S(8, random_matrix="rademacher"), "points"),
    "rademacher, neighbors": (S(8, random_matrix="rademacher", n_neighbors=9), "points"),
    "power": (S(8, power=5), "points"),
    "large power": (S(8, power=300, n_neighbors=12), "points"),
    "fraction": (S(8, power=2.5, epsilon=2.0, n_neighbors=None), "points"),
    "kept": (S(8, stationary="keep"), "points"),
    "kept, neighbors": (S(8, stationary="keep", n_neighbors=12), "float32"),
    "random walk": (S(8, weighting="random_walk"), "points"),
    "random walk, neighbors": (S(8, weighting="random_walk", n_neighbors=12), "points"),
    "any seed": (S(8, random_state=None), "points"),
    "large seed": (S(8, random_state=2**100), "points"),
    "sparse points": (S(8), "sparse points"),
    "sparse points, neighbors": (S(8, n_neighbors=12), "sparse points"),
    "distances": (S(8, metric="precomputed"), "distances"),
    "distances, neighbors": (S(8, metric="precomputed", n_neighbors=12), "distances"),
    "sparse distances": (S(8, metric="precomputed"), "sparse distances"),
    "affinities": (S(8, affinity="precomputed"), "affinities"),
    "sparse affinities": (S(8, affinity="precomputed"), "sparse affinities"),
    "map": (D(3), "points"),
    "map, neighbors": (D(3, n_neighbors=12, power=2.5), "points"),
    "map, float32": (D(3, n_neighbors=12, normalization="bistochastic"), "float32"),
    "map, affinities": (D(3, affinity="precomputed", weighting="random_walk"), "affinities"),
    "near isometry": (NearIsometry(2), "points"),
    "near isometry, float32": (NearIsometry(2, random_state=3), "float32"),
} | {
    f"{metric}, {n_neighbors}": (S(4, metric=metric, n_neighbors=n_neighbors), "positive")
    for metric in METRICS
    for n_neighbors in (None, 30)
}


def fitted(name, monkeypatch=None):
    model, shape = CASES[name]
    if "lists" in name:
        monkeypatch.setattr(_local, "EXACT_COMPARISONS", 0)
    model = clone(model).fit(SHAPES[shape](X))
    assert ("lists" in name) == (
        getattr(model, "neighbors_", None) is not None
        and model.neighbors_.lists is not None
        and model.neighbors_.lists.tree.n_lists > 1
    )
    return model, SHAPES[shape](NEW)


def assert_same(one, two):
    """Type, dtype, shape and bits."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape
        assert one.tobytes() == two.tobytes() or one.dtype == object and (one == two).all()
    elif isinstance(one, tuple | list):
        for left, right in zip(one, two, strict=True):
            assert_same(left, right)
    else:
        np.testing.assert_equal(one, two)


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
    model = pickle.loads(pickle.dumps(model)) if model.random_matrix == "rademacher" else model
    yield model.grow(12).embedding_


@pytest.mark.parametrize("name", CASES)
def test_a_model_comes_back_bit_for_bit(name, tmp_path, monkeypatch):
    model, new = fitted(name, monkeypatch)
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params() and repr(again) == repr(model)
    assert vars(again).keys() == vars(model).keys()
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for one, two in zip(numbers(again, new), numbers(model, new), strict=True):
        assert_same(one, two)


def test_drift_is_the_same_between_models_from_files(tmp_path):
    one, two = (
        HeatSketch(8, power=6).fit(X + shift, row_ids=np.arange(300)[::-1])
        for shift in (0, 0.1 * cloud(300, seed=2))
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
            again.multiscale,
            again.diffusion_map,
            lambda: again.pseudotime(0),
        ]
    for call in calls:
        with pytest.raises(TrainingDataError, match="saved with training_data=True, or fit again"):
            call()
    with pytest.raises(TrainingDataError, match="pass training_data=False"):
        again.save(tmp_path / "b")
    again.save(tmp_path / "b", training_data=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert_same(clone(again).fit(SHAPES[CASES[name][1]](X)).embedding_, model.embedding_)


# --- what cannot be stored ---------------------------------------------------------------------


def own_metric(x, y):
    return float(abs(x - y).sum())


class OwnEngine(LocalEngine):
    pass


class OwnSketch(HeatSketch):
    pass


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (HeatSketch(2, metric=own_metric), "metric="),
        (HeatSketch(2, engine=OwnEngine()), "engine="),
        (HeatSketch(2, random_state=np.random.RandomState(0)), "random_state="),
        (OwnSketch(2), "OwnSketch is none of"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_code_of_the_user_is_refused_by_name(model, named, tmp_path):
    model.fit(X[:30])
    with pytest.raises(NotStorableError, match=named) as got:
        model.save(tmp_path / "a")
    assert "pickle" in str(got.value)
    assert os.listdir(tmp_path) == []
    assert_same(pickle.loads(pickle.dumps(model)).transform(NEW), model.transform(NEW))


def test_what_an_engine_keeps_elsewhere_is_refused(tmp_path):
    model = HeatSketch(2, n_neighbors=5).fit(X[:30])
    model.before_last_ = memoryview(model.before_last_)
    with pytest.raises(NotStorableError, match="before_last_ is a memoryview"):
        model.save(tmp_path / "a")
    model = HeatSketch(2, n_neighbors=5).fit(X[:30])
    model.neighbors_ = heatsketch.graph.Neighbors(None, model.order_, "euclidean")
    with pytest.raises(NotStorableError, match=r"neighbors_.points is a NoneType"):
        model.save(tmp_path / "a")
    model = HeatSketch(2, n_neighbors=5).fit(X[:30])
    model.embedding_ = model.embedding_.astype(complex)
    with pytest.raises(NotStorableError, match="complex128"):
        model.save(tmp_path / "a")


def test_too_many_names_are_refused(tmp_path):
    model = HeatSketch(2).fit(X[:30])
    model.feature_names_in_ = np.array(["x" * 10**7] * 2, dtype=object)
    with pytest.raises(NotStorableError, match="shorter feature names"):
        model.save(tmp_path / "a")


def test_a_model_that_is_not_fitted_is_refused(tmp_path):
    for model in (HeatSketch(), DiffusionMap(), NearIsometry()):
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "a")


# --- pickle, joblib and skops -----------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_pickles_hold_no_pairs(name, tmp_path, monkeypatch):
    model, new = fitted(name, monkeypatch)
    text = pickle.dumps(model)
    if not CASES[name][1].endswith(("distances", "affinities")):
        assert len(text) < 150_000  # all pairs would be 720,000 or 360,000
    assert_same(pickle.loads(text).transform(new), model.transform(new))
    if isinstance(model, HeatSketch):
        assert_same(pickle.loads(text).path([3]), model.path([3]))


def test_joblib_keeps_working(tmp_path):
    model = HeatSketch(8).fit(X)
    joblib.dump(model, tmp_path / "a")
    assert_same(joblib.load(tmp_path / "a").transform(NEW), model.transform(NEW))


@pytest.mark.parametrize("name", CASES)
def test_skops_trusts_all_but_our_own_types(name, monkeypatch):
    from skops import io

    model, new = fitted(name, monkeypatch)
    text = io.dumps(model)
    types = io.get_untrusted_types(data=text)
    assert all(kind.startswith("heatsketch.") for kind in types), types
    again = io.loads(text, trusted=types)
    assert_same(again.transform(new), model.transform(new))
    if isinstance(model, HeatSketch):
        assert_same(again.path([3]), model.path([3]))
