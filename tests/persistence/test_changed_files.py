"""Model files that were changed, by chance or on purpose, or whose writer was killed."""

import json
import os
import pickle
import warnings
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from fitted_models import X, fitted, results
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_points import killed_at_every_point, visible

from heatsketch import HeatSketch, load, model_info
from heatsketch.exceptions import (
    FileError,
    FileFormatError,
    HeatSketchError,
    HeatSketchWarning,
    ModelVersionError,
)
from heatsketch.persistence import _file
from heatsketch.persistence._file import read_file, write_file

# make nightly has more of them.
N_FLIPS = int(os.environ.get("HEATSKETCH_BIT_FLIPS", "500"))
N_CHANGES = int(os.environ.get("HEATSKETCH_CHANGED_FILES", "300"))
# A case for every class, and for every part that a graph may have.
HOSTILE = [
    *("lists", "lists, cosine", "all pairs, bandwidth", "copies", "sparse points"),
    *("distances, neighbours", "sparse distances", "two clusters", "weights", "text nodes"),
    *("shuffled ids", "without loops", "Sketch", "Sketch, one power", "Sketch, components"),
    *(
        "HeatSketch, table",
        "DiffusionMap",
        "HeatLabels",
        "HeatLabels, graph",
        "HeatClustering, graph",
    ),
    "NearIsometry",
]
# Arrays in which any integer, or any float, is valid.
ANY_INTEGER = ("numbers", "names", "nodes", "classes_")
ANY_FLOAT = ("radii", "ties", "fingerprints")


@contextmanager
def without_sync():
    """Do not wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


@cache
def parts_of(name):
    """Return the header, without digests, and the arrays of a file."""
    with without_sync(), TemporaryDirectory() as folder:
        fitted(name)[0].save(Path(folder, "a"))
        header, arrays = read_file(Path(folder, "a"))
    del header["sha256"]
    return header, arrays


def loaded(header, arrays, path):
    """Load what is written with right digests."""
    with without_sync():
        write_file(path, header, arrays, overwrite=True)
    return load(path)


# --- bits that change ----------------------------------------------------------------------------


def test_load_rejects_every_flipped_bit_and_every_other_length(tmp_path):
    small = tmp_path / "small"
    HeatSketch(2, n_neighbors=4).fit(X[:20]).save(small)
    whole = small.read_bytes()
    rng = np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [*range(8), *rng.integers(header, size=N_FLIPS // 2)]
    places = [*places, *rng.integers(len(whole), size=N_FLIPS - len(places))]
    with open(small, "r+b") as file:
        for place in map(int, places):
            bit = 1 << int(rng.integers(8))
            os.pwrite(file.fileno(), bytes([whole[place] ^ bit]), place)
            with pytest.raises(FileFormatError, match="small"):
                load(small)
            os.pwrite(file.fileno(), whole[place : place + 1], place)
    load(small)
    for length in [*range(0, 200, 7), *range(200, len(whole), 97), len(whole) - 1, len(whole) + 1]:
        small.write_bytes((whole + bytes(1))[:length])
        with pytest.raises(FileFormatError):
            load(small)


# --- changed with right digests ------------------------------------------------------------------


def invalid(key, array):
    """Yield arrays that must not be in the place of an array."""
    is_integer, known = array.dtype.kind in "iu", ANY_INTEGER + ANY_FLOAT
    if not array.size or any(word in key for word in ("heat_trace", "history_", "priors")):
        return  # of any length, since it is only shown
    yield array[None]
    if key != "classes_":
        yield from (array[:-1], array.astype("i2" if array.dtype == bool else bool))
    if array.dtype == bool or any(word in key for word in known):
        return
    limit = np.iinfo(array.dtype) if is_integer else None
    for value in (limit.max, limit.max // 3, limit.min or limit.max) if limit else (np.nan, np.inf):
        for place in (0, array.size - 1):
            changed = array.flatten()
            changed[place] = value
            yield changed.reshape(array.shape)


@pytest.mark.parametrize("name", HOSTILE)
def test_load_rejects_arrays_of_other_range_shape_or_dtype(name, tmp_path):
    header, arrays = parts_of(name)
    loaded(header, arrays, tmp_path / "a")
    for key, array in arrays.items():
        for changed in invalid(key, array):
            with pytest.raises(FileFormatError):
                loaded(header, arrays | {key: changed}, tmp_path / "a")
        missing = {other: part for other, part in arrays.items() if other != key}
        with pytest.raises(FileFormatError):
            loaded(header, missing, tmp_path / "a")


def set_in(tree, path, value):
    *way, last = path.split(".")
    for key in way:
        tree = tree[key]
    tree[last] = value


SKETCH, GRAPH = "model.sketch_", "model.sketch_.graph"
VALUES = {
    "class": ("os.system", None, ["HeatSketch"], "Sketch"),
    "model": (None, [], "sketch"),
    "model.parameters": ({}, None, {"n_components": 8}),
    "model.parameters.metric": ("unknown", {"call": "os.system"}),
    "model.feature_names_in_": ({"text": f"{GRAPH[6:]}.order"}, {"text": "no"}, 3),
    f"{SKETCH}.settings": ({}, None, {"power": 2}),
    f"{SKETCH}.times": (None, 3),
    f"{SKETCH}.times.first_power": (0, 10**9, True),
    f"{SKETCH}.embedding": ({"array": f"{GRAPH[6:]}.order"}, {"array": 3}, {}),
    f"{GRAPH}.operator.matrix": ({}, "pickle"),
    f"{GRAPH}.operator.matrix.K": ("pickle", None, 3),
    f"{GRAPH}.rule.neighbors.metric": ("euclid", None, "precomputed"),
    f"{GRAPH}.rule.neighbors.n_neighbors": (151, 0, "15"),
    f"{GRAPH}.rule.bandwidth": (0.0, None, 1),
    f"{GRAPH}.n_connected_components": (0, 2, 10**400),
}


@pytest.mark.parametrize("path", VALUES)
def test_load_rejects_other_values(path, tmp_path):
    for value in VALUES[path]:
        header, arrays = parts_of("HeatSketch, table")
        header = json.loads(json.dumps(header))
        set_in(header, path, value)
        with pytest.raises(FileFormatError):
            loaded(header, arrays, tmp_path / "a")


ENTRY = b'{"x":{"dtype":"F64","shape":[%s],"data_offsets":[0,%d]}%s}'
HEADERS = {
    "a huge array": ENTRY % (b"1152921504606846976", 8, b""),
    "an overflow": ENTRY % (b"4294967296,4294967296", 8, b""),
    "beyond the file": ENTRY % (b"1000000", 8_000_000, b""),
    "overlap": ENTRY % (b"1", 8, b',"y":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}'),
    "other metadata": ENTRY % (b"1", 8, b',"__metadata__":{"heatsketch":"0 {}"}'),
    "deep": b"[" * 100_000,
    "not text": b'{"\xff":1}',
}


@pytest.mark.parametrize("name", HEADERS)
def test_load_rejects_headers_that_lie(name, tmp_path):
    header = HEADERS[name]
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    for read in (load, model_info):
        with pytest.raises(FileFormatError):
            read(tmp_path / "a")


def test_load_rejects_files_of_a_later_format(tmp_path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(_file, "FORMAT", _file.FORMAT + 1)
        fitted("plain")[0].save(tmp_path / "a")
    for read in (load, model_info):
        with pytest.raises(ModelVersionError, match="upgrade"):
            read(tmp_path / "a")


def test_load_rejects_what_is_not_a_model_file(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    np.save(tmp_path / "array.npy", X)
    (tmp_path / "pickle").write_bytes(pickle.dumps(X))
    os.mkfifo(tmp_path / "pipe")
    for path in (*sorted(tmp_path.iterdir()), tmp_path, "/dev/zero"):
        with pytest.raises(FileFormatError):
            load(path)
    with pytest.raises(FileError, match="missing"):
        load(tmp_path / "missing")


# --- fuzz: whatever is changed, the errors are ours -----------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "dense"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["0", "array", "type"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def nodes_of(tree, path=""):
    """Yield the path of every node of a tree."""
    for key, node in tree.items() if isinstance(tree, dict) else ():
        yield f"{path}{key}"
        yield from nodes_of(node, f"{path}{key}.")


@st.composite
def changed(draw):
    name = draw(st.sampled_from(HOSTILE))
    header, arrays = parts_of(name)
    header, arrays = json.loads(json.dumps(header)), dict(arrays)
    for _ in range(draw(st.integers(1, 3))):
        kind, key = draw(st.integers(0, 3)), draw(st.sampled_from(sorted(arrays)))
        if kind == 0:
            set_in(header, draw(st.sampled_from(list(nodes_of(header)))), draw(ANYTHING))
        elif kind == 1 and arrays[key].size:
            flat = arrays[key].flatten()
            flat[draw(st.integers(0, flat.size - 1))] = draw(st.integers(0, 100))
            arrays[key] = flat.reshape(arrays[key].shape)
        elif kind == 2:
            arrays[key] = arrays[key][: draw(st.integers(0, 3))]
        else:
            other = draw(st.sampled_from(sorted(arrays)))
            arrays[key] = arrays[other]
    return name, header, arrays


@pytest.mark.untraced
@settings(max_examples=N_CHANGES)
@given(change=changed())
def test_changed_files_raise_our_errors_only(change, tmp_path_factory):
    name, header, arrays = change
    try:
        value = loaded(header, arrays, tmp_path_factory.getbasetemp() / "fuzz")
    except FileFormatError:
        return
    if "feature_names_in_" in vars(value):  # scikit-learn rejects new rows with other names
        vars(value)["feature_names_in_"] = fitted(name)[0].feature_names_in_
    with warnings.catch_warnings(), suppress(HeatSketchError, HeatSketchWarning):
        warnings.simplefilter("ignore", RuntimeWarning)
        results(value, fitted(name)[1])  # must not crash


# --- killed writers ------------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_killed_writer_leaves_the_old_file_or_the_new(overwrite, tmp_path):
    nightly = "HEATSKETCH_NIGHTLY" in os.environ
    folders = list(killed_at_every_point("model", overwrite, tmp_path, strace=nightly))
    assert len(folders) >= 15
    for folder in folders:
        if overwrite or (folder / "out").exists():
            header, arrays = read_file(folder / "out")
            assert header["word"] in (("one", "two") if overwrite else ("two",))
            assert arrays["x"].tobytes() == 1000 * header["word"].encode()
        write_file(folder / "out", {"word": "three"}, {}, overwrite=True)
        assert visible(folder) == ["out"]
