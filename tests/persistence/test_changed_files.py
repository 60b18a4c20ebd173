"""Model files that were changed, by chance or by ill will, or whose writer was killed."""

import errno
import json
import os
import pickle
import re
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from fitted_models import NEW, X, assert_same, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_points import fail_call, killed_at_every_point, visible

from heatsketch import HeatSketch, load, model_info
from heatsketch.exceptions import (
    FileError,
    FileFormatError,
    HeatSketchError,
    HeatSketchWarning,
    ModelVersionError,
    OutputExistsError,
)
from heatsketch.persistence._container import (
    DIGEST,
    LARGEST_HEADER,
    read_model_file,
    write_model_file,
)

# What make nightly has more of.
N_FLIPS = int(os.environ.get("HEATSKETCH_BIT_FLIPS", "500"))
N_CHANGES = int(os.environ.get("HEATSKETCH_CHANGED_FILES", "500"))


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


def own(name):
    """An array that the file names as the same as another gets its own copy."""
    return lambda about, arrays: arrays.update(
        {name: arrays[about["values"].pop(name)["same"]].copy()}
    )


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
    "a power that would never end": say("values", "power_", 10**400),
    "a power beyond integers": say("values", "power_", 1e300),
    "a power that is a word": say("values", "power_", "8"),
    "more neighbours than points": say("values", "neighbors_.n_neighbors", 21),
    "an invalid matrix": say("values", f"{MATRIX}?", "pickle"),
    "a matrix of another shape": say("values", MATRIX, [20, 10**15]),
    "a shape of words": say("values", MATRIX, ["20", "20"]),
    "the same as nothing": say("values", "embedding_", {"same": "nothing"}),
    "the same as itself": say("values", "neighbors_", {"same": "neighbors_"}),
    "the same as another kind": say("values", "scaling_", {"same": "neighbors_"}),
    "a tree without end": say("values", "neighbors_.lists.tree", 10**9),
    "a scalar of an invalid type": say("values", "stationary_length_", ["object", 1.0]),
    "a scalar too large": say("values", "stationary_length_", ["float32", 1e300]),
    "an index beyond": put(f"{MATRIX}.indices", 3, 20),
    "an index below": put(f"{MATRIX}.indices", 3, -1),
    "rows that go back": put(f"{MATRIX}.indptr", 3, 10**6),
    "rows that begin late": put(f"{MATRIX}.indptr", 0, 1),
    "rows that end late": put(f"{MATRIX}.indptr", -1, 10**6),
    "one value less": cut(f"{MATRIX}.data"),
    "one row less": cut(f"{MATRIX}.indptr"),
    "indices that are no integers": cast(f"{MATRIX}.indices", "float64"),
    "indices too narrow": cast(f"{MATRIX}.indices", "int8"),
    "no permutation": put("order_", 0, 1),
    "an order beyond": put("order_", 0, 2**62),
    "an order that is a number": lambda _, arrays: arrays.update(order_=np.array(3)),
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
    "no values": lambda _, about: about.pop("values"),
    "values that are a number": lambda _, about: about.update(values=3),
    "parameters that are none": lambda _, about: about.update(parameters=None),
}


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    path = tmp_path_factory.mktemp("listed") / "model"
    HeatSketch(2, n_neighbors=4, epsilon="auto").fit(X[:20]).save(path)
    return path.read_bytes()


CAUSES = {  # of some: what the message says
    "a matrix of another shape": f"{MATRIX} has n={10**15}, elsewhere it is 20",
    "a shape of words": f"{MATRIX} has the shape ['20', '20']",
    "an index beyond": f"{MATRIX} has entries beyond its shape",
    "indices that are no integers": f"{MATRIX}.indices is of float64",
    "indices too narrow": f"{MATRIX} has indices of int8 and int32",
    "an invalid matrix": f"{MATRIX} is 'pickle'",
    "the same as nothing": "there is no array nothing",
    "the same as itself": "neighbors_ is {'same': 'neighbors_'}",
    "a tree without end": f"neighbors_.lists.tree has {10**9} levels",
    "a scalar too large": "stationary_length_ is ['float32', 1e+300]",
    "no permutation": "order_ holds numbers that are not valid",
    "an order that is a number": "order_ has shape (), and should have 1 axes",
    "points that are not there": "neighbors_.points holds numbers that are not finite",
    "more neighbours than points": "the parts of neighbors_ do not fit together",
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_do_not_fit_are_rejected(name, listed, tmp_path):
    (tmp_path / "a").write_bytes(listed)
    forge_parts(tmp_path / "a", lambda about, arrays: None)
    load(tmp_path / "a")
    forge_parts(tmp_path / "a", PARTS[name])
    is_rejected(tmp_path / "a", match=re.escape(CAUSES.get(name, "")) + ".*restore it from a copy")


def is_rejected(path, match=None):
    """It does not load; its header, which may be all that is read, may be valid."""
    with suppress(FileFormatError):
        model_info(path)
    with pytest.raises(FileFormatError, match=match):
        load(path)


def together(*edits):
    return lambda about, arrays: [edit(about, arrays) for edit in edits]


WIDE = say("values", "n_features_in_", 10**6)
TREE = "neighbors_.lists.tree"
OTHERS = {
    "affinities to others": ("sparse affinities", WIDE),
    "distances to others": (
        "sparse distances",
        together(WIDE, say("values", "neighbors_.points", [150, 10**6])),
    ),
    "a node beyond": ("lists", put(f"{TREE}.0.starts", 1, 99)),
    "a node that begins late": ("lists", put(f"{TREE}.0.starts", 0, 1)),
    "a level less": ("lists", say("values", TREE, 0)),
    "a level more": ("lists", say("values", TREE, 2)),
    "a point out of its list": ("lists", put("neighbors_.lists.probes", (0, 0), 1)),
    "a probe beyond": ("lists", put("neighbors_.lists.probes", (0, -1), 2)),
    "a probe below": ("lists", put("neighbors_.lists.probes", (0, -1), -2)),
    "lists that go back": ("lists", put("neighbors_.lists.probes", (slice(1, 3), 0), [1, 0])),
    "lists for another metric": (
        "lists",
        together(
            say("values", "neighbors_.metric", "manhattan"),
            say("parameters", "metric", "manhattan"),
        ),
    ),
    "copies that begin late": ("copies", put("neighbors_.starts", 0, 1)),
    "copies that end late": ("copies", put("neighbors_.starts", -1, 10**6)),
    "a point without a copy": ("copies", put("neighbors_.starts", 1, 0)),
    "copies of fewer points": ("copies", cut("neighbors_.starts")),
    "a point without a copy, whose rows have one": (
        "copies",
        together(own(f"{MATRIX}.starts"), put("neighbors_.starts", 1, 0)),
    ),
    **{
        f"shared rows: {name}": ("copies", together(own(f"{MATRIX}.starts"), edit))
        for name, edit in {
            "begin late": put(f"{MATRIX}.starts", 0, 1),
            "end late": put(f"{MATRIX}.starts", -1, 10**6),
            "no copy": put(f"{MATRIX}.starts", 1, 0),
            "fewer": cut(f"{MATRIX}.starts"),
        }.items()
    },
    "scales that are none": ("plain", put("epsilon_", 0, 0.0)),
    "pairs of other points": ("all pairs", say("values", "heat_operator_.matrix.neighbors", None)),
    "components of others": ("near isometry", WIDE),
}


@pytest.mark.parametrize("name", OTHERS)
def test_parts_of_other_models_are_rejected_too(name, tmp_path):
    case, edit = OTHERS[name]
    fitted(case)[0].save(tmp_path / "a")
    forge_parts(tmp_path / "a", edit)
    with pytest.raises(FileFormatError, match="restore it from a copy"):
        load(tmp_path / "a")


@pytest.mark.parametrize("name", WORDS)
def test_headers_that_make_no_sense_are_rejected(name, listed, tmp_path):
    (tmp_path / "a").write_bytes(listed)
    forge(tmp_path / "a", lambda words, about: None)
    load(tmp_path / "a")
    forge(tmp_path / "a", WORDS[name])
    is_rejected(tmp_path / "a")


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
def test_texts_that_are_no_headers_are_rejected(name, tmp_path):
    seal(tmp_path / "a", b'{"__metadata__":{"sha256":"' + b"0" * 64 + BODIES[name], b"")
    with pytest.raises(FileFormatError):
        load(tmp_path / "a")


def test_a_header_that_is_longer_than_allowed_is_not_read(listed, tmp_path):
    (tmp_path / "a").write_bytes((LARGEST_HEADER + 1).to_bytes(8, "little") + listed[8:])
    os.truncate(tmp_path / "a", 2 * LARGEST_HEADER)
    with pytest.raises(FileFormatError, match="too short for its header"):
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


def test_what_is_no_model_file_is_rejected(tmp_path):
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
            value = (
                draw(st.integers(max(-3, int(limits.min)), min(200, int(limits.max))))
                if limits
                else draw(st.floats(width=32))
            )
            flat[draw(st.integers(0, flat.size - 1))] = value
            arrays[array] = flat.reshape(arrays[array].shape)
        elif kind == 3:
            arrays[array] = arrays[array][: draw(st.integers(0, 3))]
        else:
            dtype = draw(st.sampled_from(["f4", "f8", "i4", "i8", "u8", "u1", "?"]))
            with np.errstate(all="ignore"):
                arrays[array] = arrays[array].astype(dtype)
    return name, about, arrays


@pytest.mark.untraced
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


# --- killed, or on a full disk -------------------------------------------------------------------


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
        assert word_in(folder / "out") == "three" and visible(folder) == ["out"]
    assert n_points >= 15


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_on_a_full_disk_at_any_write_the_old_model_stays(number, tmp_path, monkeypatch):
    old, new = HeatSketch(2).fit(X[:20]), HeatSketch(3).fit(X[:20])
    old.save(tmp_path / "a")
    for when in range(100):
        rejected = fail_call(monkeypatch, when, number)
        try:
            new.save(tmp_path / "a", overwrite=True)
            error = None
        except FileError as caught:
            error = caught
        monkeypatch.undo()
        if not rejected:
            break
        assert str(tmp_path / "a") in str(error) and error.errno == number
        if load(tmp_path / "a").n_components == 3:
            assert rejected == ["fsync"]  # the last one, after the step
        assert os.listdir(tmp_path) == ["a"]
        old.save(tmp_path / "a", overwrite=True)
    assert when > 5


def test_a_model_is_not_replaced_unasked(tmp_path):
    model = HeatSketch(2).fit(X[:20])
    model.save(tmp_path / "a")
    with pytest.raises(OutputExistsError):
        model.save(tmp_path / "a")
    model.save(tmp_path / "a", overwrite=True)
