"""Models go to files and come back, bit for bit; whatever is not right is refused."""

import errno
import json
import os
import pickle
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_points import killed_at_every_point, refuse_call
from registry import cloud
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

import heatsketch
from heatsketch import DiffusionMap, HeatSketch, LocalEngine, NearIsometry, load, model_info
from heatsketch.distance_tiles import DistanceTiles
from heatsketch.engines import _local
from heatsketch.exceptions import (
    FileError,
    FileFormatError,
    HeatSketchError,
    HeatSketchWarning,
    ModelVersionError,
    NotStorableError,
    OutputExistsError,
    TrainingDataError,
)
from heatsketch.graph import METRICS
from heatsketch.model_file import DIGEST, LARGEST_HEADER, read_model_file, write_model_file

GOLDEN = Path(__file__).parent / "golden"
# What make nightly has more of.
N_FLIPS = int(os.environ.get("HEATSKETCH_BIT_FLIPS", "500"))
N_CHANGES = int(os.environ.get("HEATSKETCH_CHANGED_FILES", "1500"))

X = cloud(150)
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
    "sparse affinities": lambda X_new: sparse.csr_array(np.round(affinities(X_new), 2)),
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
        S(8, power=4, n_neighbors=None),
        "points",
    ),
    "tiles, local": (S(4, n_neighbors=None), "float32"),
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
    "fraction": (S(8, power=6.5, epsilon=2.0, n_neighbors=None), "points"),
    "kept": (S(8, stationary="keep"), "points"),
    "kept, neighbors": (S(8, stationary="keep", n_neighbors=12), "float32"),
    "random walk": (S(8, weighting="random_walk"), "points"),
    "random walk, neighbors": (S(8, weighting="random_walk", n_neighbors=12), "points"),
    "any seed": (S(8, random_state=None), "points"),
    "large seed": (S(8, random_state=2**31 - 1), "points"),
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


@cache
def fitted(name):
    """Fit a model once, for all laws; nobody changes it."""
    model, shape = CASES[name]
    with pytest.MonkeyPatch.context() as patch:
        if "lists" in name:
            patch.setattr(_local, "EXACT_COMPARISONS", 0)
        if "tiles" in name:
            patch.setattr(_local, "all_pairs_bytes", lambda *size: np.inf)
        model = clone(model).fit(SHAPES[shape](X))
    lists = getattr(getattr(model, "neighbors_", None), "lists", None)
    assert ("lists" in name) == (lists is not None and lists.tree.n_lists > 1)
    assert ("tiles" in name) == isinstance(
        getattr(getattr(getattr(model, "heat_operator_", None), "matrix", None), "K", None),
        DistanceTiles,
    )
    return model, SHAPES[shape](NEW)


def assert_same(one, two):
    """Type, dtype, shape and bits."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape
        assert one.tobytes() == two.tobytes() or (one.dtype == object and (one == two).all())
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
    yield deepcopy(model).grow(12).embedding_


@pytest.mark.parametrize("name", CASES)
def test_a_model_comes_back_bit_for_bit(name, tmp_path):
    model, new = fitted(name)
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
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
def test_pickles_hold_no_pairs(name, tmp_path):
    model, new = fitted(name)
    text = pickle.dumps(model)
    given = CASES[name][1].endswith(("distances", "affinities"))
    if not given and model.get_params().get("n_neighbors") in (None, "auto"):
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
    assert found == set(range(1, heatsketch.model_file.FORMAT_VERSION + 1))


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
    assert (info["class"], info["n_points"], info["n_features"]) == ("DiffusionMap", 150, 3)
    assert info["bytes"] == (tmp_path / "a").stat().st_size
    assert info["parameters"] == model.get_params() and not info["training_data"]
    assert info["versions"]["heatsketch"] == heatsketch.__version__
    assert json.loads(json.dumps(info)) == info
    model, _ = fitted("near isometry")
    model.save(tmp_path / "b")
    assert model_info(tmp_path / "b")["n_points"] is None


# --- bits that change --------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path):
    """A small file, with most of the kinds of parts that there are."""
    HeatSketch(2, n_neighbors=4, epsilon="auto").fit(X[:20]).save(tmp_path / "small")
    return tmp_path / "small"


def test_every_single_bit_counts(small):
    whole = small.read_bytes()
    rng = np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    # Half of them in the header, which is the smaller half, and all of its length and digest.
    places = [
        *range(8),
        *range(DIGEST.start, DIGEST.stop),
        *rng.integers(header, size=N_FLIPS // 2),
    ]
    places = [*places, *rng.integers(len(whole), size=max(0, N_FLIPS - len(places)))]
    assert len(places) >= N_FLIPS
    with open(small, "r+b") as file:
        for place in map(int, places):
            bit = 1 << int(rng.integers(8))
            os.pwrite(file.fileno(), bytes([whole[place] ^ bit]), place)
            with pytest.raises(FileFormatError, match="small"):
                load(small)
            os.pwrite(file.fileno(), whole[place : place + 1], place)
    load(small)


def test_every_length_counts(small):
    whole = small.read_bytes()
    for length in [*range(200), *range(200, len(whole), 97), len(whole) - 1]:
        small.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            load(small)
    small.write_bytes(whole + b"\0")
    with pytest.raises(FileFormatError):
        load(small)


# --- files that mean ill ------------------------------------------------------------------------


def forge(path, edit):
    """Change the words of a header, and make all digests right again."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    words = json.loads(whole[8 : 8 + length])
    about = json.loads(words["__metadata__"]["heatsketch"])
    edit(words, about)
    if "__metadata__" in words:
        words["__metadata__"]["heatsketch"] = json.dumps(about)
    seal(path, json.dumps(words, separators=(",", ":")).encode(), whole[8 + length :])


def seal(path, body, data):
    header = bytearray(len(body).to_bytes(8, "little") + body)
    if len(header) >= DIGEST.stop:
        header[DIGEST] = b"0" * 64
        header[DIGEST] = sha256(header).hexdigest().encode()
    path.write_bytes(bytes(header) + data)


def forge_parts(path, edit):
    """Change the parts of a model, and write them as we would."""
    about, arrays = read_model_file(path)
    edit(about, arrays)
    about.pop("sha256")
    write_model_file(path, about, arrays, overwrite=True)


def put(name, place, value):
    def edit(about, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return edit


def cast(name, dtype):
    return lambda about, arrays: arrays.update({name: arrays[name].astype(dtype)})


def cut(name):
    return lambda about, arrays: arrays.update({name: arrays[name][:-1]})


def say(*path):
    *way, last, value = path

    def edit(about, arrays):
        for step in way:
            about = about[step]
        about[last] = value

    return edit


MATRIX = "heat_operator_.matrix"
PARTS = {
    "another class": say("class", "os.system"),
    "no class": say("class", None),
    "a list of classes": say("class", ["HeatSketch"]),
    "an unknown parameter": say("parameters", "__class__", 1),
    "a wrong parameter": say("parameters", "n_neighbors", -3),
    "a metric that is no name": say("parameters", "metric", {"call": "os.system"}),
    "another metric": say("parameters", "metric", "manhattan"),
    "an engine of somebody": say("parameters", "engine", {"OsEngine": {}}),
    "an engine with options": say("parameters", "engine", {"LocalEngine": {"x": 1}}),
    "an engine with words": say("parameters", "engine", {"LocalEngine": {"memory_limit": "1"}}),
    "more columns than there are": say("parameters", "n_components", 10**12),
    "another epsilon": say("parameters", "epsilon", "local"),
    "another affinity": say("parameters", "affinity", "precomputed"),
    "no attributes": say("attributes", []),
    "attributes that are no list": say("attributes", {"embedding_": 1}),
    "training data, perhaps": say("training_data", 1),
    "values that are no values": say("values", []),
    "no features": say("values", "n_features_in_", 0),
    "other features": say("values", "n_features_in_", 7),
    "an endless power": say("values", "power_", float("inf")),
    "a power that is a word": say("values", "power_", "8"),
    "more neighbours than points": say("values", "neighbors_.n_neighbors", 21),
    "a strange matrix": say("values", f"{MATRIX}?", "pickle"),
    "a matrix of another shape": say("values", MATRIX, [20, 10**15]),
    "a shape of words": say("values", MATRIX, ["20", "20"]),
    "the same as nothing": say("values", "embedding_", {"same": "nothing"}),
    "the same as itself": say("values", "neighbors_", {"same": "neighbors_"}),
    "the same as another kind": say("values", "scaling_", {"same": "neighbors_"}),
    "a tree without end": say("values", "neighbors_.lists.tree", 10**9),
    "a scalar of a strange type": say("values", "stationary_length_", ["object", 1.0]),
    "a scalar too large": say("values", "stationary_length_", ["float32", 1e300]),
    "an index beyond": put(f"{MATRIX}.indices", 3, 20),
    "an index below": put(f"{MATRIX}.indices", 3, -1),
    "rows that go back": put(f"{MATRIX}.indptr", 3, 10**6),
    "rows that begin late": put(f"{MATRIX}.indptr", 0, 1),
    "rows that end late": put(f"{MATRIX}.indptr", -1, 10**6),
    "one value less": cut(f"{MATRIX}.data"),
    "one row less": cut(f"{MATRIX}.indptr"),
    "indices that are no whole numbers": cast(f"{MATRIX}.indices", "float64"),
    "indices too narrow": cast(f"{MATRIX}.indices", "int8"),
    "no permutation": put("order_", 0, 1),
    "an order beyond": put("order_", 0, 10**9),
    "a list beyond": put("neighbors_.lists.probes", 0, 5),
    "a list below": put("neighbors_.lists.probes", 0, -1),
    "probes too wide": cast("neighbors_.lists.probes", "int64"),
    "one point less": cut("embedding_"),
    "another precision": cast("embedding_", "float32"),
    "points that are not there": put("neighbors_.points", 0, np.nan),
    "a row twice": put("row_ids_", 0, 1),
}
METADATA = "__metadata__"
WORDS = {
    "an array twice as long": lambda words, _: words["order_"].update(shape=[40]),
    "a huge array": lambda words, _: words["order_"].update(shape=[2**60]),
    "a negative array": lambda words, _: words["order_"].update(shape=[-20]),
    "an array of halves": lambda words, _: words["order_"].update(shape=[20.0]),
    "an array of three axes": lambda words, _: words["order_"].update(shape=[20, 1, 1]),
    "an array of objects": lambda words, _: words["order_"].update(dtype="O"),
    "an array elsewhere": lambda words, _: words["order_"].update(data_offsets=[0, 160]),
    "an array that is more": lambda words, _: words["order_"].update(more=1),
    "an array that is a word": lambda words, _: words.update(order_="order_"),
    "no such array": lambda words, _: words.pop("order_"),
    "an array without a digest": lambda _, about: about["sha256"].pop("order_"),
    "another digest": lambda _, about: about["sha256"].update(order_="0" * 64),
    "no digests": lambda _, about: about.update(sha256=3),
    "no version": lambda _, about: about.pop("format_version"),
    "a version that is a word": lambda _, about: about.update(format_version="1"),
    "a reader beyond the version": lambda _, about: about.update(min_reader=2),
    "no metadata of ours": lambda words, _: words[METADATA].pop("sha256"),
}


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    path = tmp_path_factory.mktemp("listed") / "model"
    HeatSketch(2, n_neighbors=4, epsilon="auto").fit(X[:20]).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_do_not_fit_are_refused(name, listed, tmp_path):
    (tmp_path / "a").write_bytes(listed)
    forge_parts(tmp_path / "a", lambda about, arrays: None)
    load(tmp_path / "a")
    forge_parts(tmp_path / "a", PARTS[name])
    with pytest.raises(FileFormatError, match="restore it from a copy"):
        load(tmp_path / "a")


@pytest.mark.parametrize("name", WORDS)
def test_headers_that_make_no_sense_are_refused(name, listed, tmp_path):
    (tmp_path / "a").write_bytes(listed)
    forge(tmp_path / "a", lambda words, about: None)
    load(tmp_path / "a")
    forge(tmp_path / "a", WORDS[name])
    with pytest.raises(FileFormatError):
        load(tmp_path / "a")


BODIES = {
    "deep": b"[" * 100_000,
    "deep metadata": b'","heatsketch":"' + b"[" * 100_000 + b'"}}',
    "not closed": b'"',
    "not UTF-8": b'\xff"}}',
    "repeated": b'","heatsketch":"{}"},"a":1,"a":2}',
    "a number without end": b'","heatsketch":"{}","x":' + b"9" * 100_000 + b"}}",
    "nothing of ours": b'"}}',
}


@pytest.mark.parametrize("name", BODIES)
def test_texts_that_are_no_headers_are_refused(name, tmp_path):
    seal(tmp_path / "a", b'{"__metadata__":{"sha256":"' + b"0" * 64 + BODIES[name], b"")
    with pytest.raises(FileFormatError):
        load(tmp_path / "a")


def test_a_header_that_is_longer_than_allowed_is_not_read(listed, tmp_path):
    (tmp_path / "a").write_bytes((LARGEST_HEADER + 1).to_bytes(8, "little") + listed[8:])
    os.truncate(tmp_path / "a", 2 * LARGEST_HEADER)
    with pytest.raises(FileFormatError, match="no room for its header"):
        model_info(tmp_path / "a")


def test_files_of_a_later_version(listed, tmp_path):
    def later(reader):
        def edit(words, about):
            about.update(format_version=7, min_reader=reader, colour="blue")
            about["parameters"]["colour"] = "blue"
            about["attributes"].append("colour_")

        return edit

    (tmp_path / "a").write_bytes(listed)
    wanted = load(tmp_path / "a").transform(NEW)
    forge(tmp_path / "a", later(reader=1))
    assert_same(load(tmp_path / "a").transform(NEW), wanted)
    forge(tmp_path / "a", later(reader=6))
    for read in (load, model_info):
        with pytest.raises(ModelVersionError, match="pip install --upgrade heatsketch"):
            read(tmp_path / "a")


def test_what_is_no_model_file_is_refused(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    np.save(tmp_path / "array.npy", X)
    (tmp_path / "pickle").write_bytes(pickle.dumps(X))
    for name in ("empty", "array.npy", "pickle"):
        with pytest.raises(FileFormatError, match="is not a model file"):
            load(tmp_path / name)
    for name in ("missing", "."):
        with pytest.raises(FileError, match="cannot read"):
            load(tmp_path / name)
    with pytest.raises(FileFormatError, match="not a regular file"):
        load("/dev/null")


# --- fuzz: whatever is changed, the errors are ours -------------------------------------------

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["all pairs", "none", "some", "dense", "sparse", "scaled", "transposed"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
MODELS_TO_FUZZ = ["neighbors", "plain", "tiles", "lists, cosine", "sparse distances", "map"]


@cache
def parts_of(name, folder):
    path = Path(folder) / name
    fitted(name)[0].save(path)
    return read_model_file(path)


@st.composite
def changed(draw, folder):
    name = draw(st.sampled_from(MODELS_TO_FUZZ))
    about, arrays = parts_of(name, folder)
    about, arrays = json.loads(json.dumps({**about, "sha256": 0})), dict(arrays)
    del about["sha256"]
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 4))
        array = draw(st.sampled_from(sorted(arrays)))
        where = draw(st.sampled_from(["values", "values", "parameters", ""]))
        words = about.get(where) if where else about
        if kind == 0 and isinstance(words, dict) and words:
            words[draw(st.sampled_from(sorted(words)))] = draw(ANYTHING)
        elif kind == 1 and isinstance(words, dict) and words:
            words.pop(draw(st.sampled_from(sorted(words))))
        elif kind == 2 and arrays[array].size:
            flat = arrays[array].flatten()
            limits = np.iinfo(flat.dtype) if flat.dtype.kind in "iu" else None
            value = draw(st.integers(-3, 200)) if limits else draw(st.floats(width=32))
            flat[draw(st.integers(0, flat.size - 1))] = value
            arrays[array] = flat.reshape(arrays[array].shape)
        elif kind == 3:
            arrays[array] = arrays[array][: draw(st.integers(0, 3))]
        else:
            dtype = draw(st.sampled_from(["f4", "f8", "i4", "i8", "u8", "u1", "?"]))
            with np.errstate(all="ignore"):
                arrays[array] = arrays[array].astype(dtype)
    return name, about, arrays


@settings(max_examples=N_CHANGES)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_only_our_errors_come_from_changed_files(data, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    name, about, arrays = data.draw(changed(str(folder)))
    with without_sync():
        write_model_file(folder / "fuzz", about, arrays, overwrite=True)
    try:
        model = load(folder / "fuzz")
    except FileFormatError:
        return
    # What could have been a model may be asked, and must not harm.
    with suppress(HeatSketchError, HeatSketchWarning):
        model.transform(fitted(name)[1][:5])


@contextmanager
def without_sync():
    """The disk is slow, and no power is lost here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


# --- killed, or without room -------------------------------------------------------------------


def word_in(path):
    about, arrays = read_model_file(path)
    for array in arrays.values():
        assert array.tobytes() == 1000 * about["word"].encode()
    return about["word"]


def put_word(path, word, **options):
    arrays = {name: np.frombuffer(1000 * word.encode(), np.uint8) for name in ("x", "y")}
    write_model_file(path, {"word": word}, arrays, **options)


@pytest.mark.parametrize("overwrite", [True, False])
def test_killed_at_any_point_saving_leaves_the_old_or_the_new(overwrite, tmp_path):
    n_points = 0
    for folder in killed_at_every_point("model", overwrite, tmp_path, strace=overwrite):
        n_points += 1
        if overwrite or (folder / "out").exists():
            assert word_in(folder / "out") in (("one", "two") if overwrite else ("two",))
        put_word(folder / "out", "three", overwrite=True)
        assert word_in(folder / "out") == "three" and os.listdir(folder) == ["out"]
    assert n_points >= 20


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_without_room_at_any_write_the_old_model_stays(number, tmp_path, monkeypatch):
    old, new = HeatSketch(2).fit(X[:20]), HeatSketch(3).fit(X[:20])
    old.save(tmp_path / "a")
    for when in range(100):
        refused = refuse_call(monkeypatch, when, number)
        try:
            new.save(tmp_path / "a", overwrite=True)
            error = None
        except FileError as caught:
            error = caught
        monkeypatch.undo()
        if not refused:
            break
        assert str(tmp_path / "a") in str(error) and error.errno == number
        if load(tmp_path / "a").n_components == 3:
            assert refused == ["fsync"]  # the last one, after the step
        assert os.listdir(tmp_path) == ["a"]
        old.save(tmp_path / "a", overwrite=True)
    assert when > 5


def test_a_model_is_not_replaced_unasked(tmp_path):
    model = HeatSketch(2).fit(X[:20])
    model.save(tmp_path / "a")
    with pytest.raises(OutputExistsError):
        model.save(tmp_path / "a")
    model.save(tmp_path / "a", overwrite=True)
