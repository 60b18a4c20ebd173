"""The container of model files: what it holds, byte by byte, and what it rejects, word by word."""

import json
import os
from hashlib import sha256

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from heatsketch.exceptions import FileError, FileFormatError, ModelVersionError, NotStorableError
from heatsketch.persistence import _container as container
from heatsketch.persistence._container import read_header, read_model_file, write_model_file

REMEDY = "restore it from a copy, or fit the model and save it again"
NUMBERS = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]
DTYPES = [*NUMBERS, "f4", "f8", "?"]
ABOUT = {"format_version": 1, "min_reader": 1}


def sealed(body):
    """Return a header with its length and its digest, as the docstring of the module has them."""
    beginning = b'{"__metadata__":{"sha256":"'
    assert body.startswith(beginning + b"0" * 64)
    whole = bytearray(len(body).to_bytes(8, "little") + body)
    start = 8 + len(beginning)
    whole[start : start + 64] = sha256(whole).hexdigest().encode()
    return bytes(whole)


def file_of(entries, data, digests=None, **about):
    """Return the bytes of a file with these entries of arrays, whatever is wrong with them."""
    digests = {name: sha256(data).hexdigest() for name in entries} if digests is None else digests
    text = json.dumps(ABOUT | about | {"sha256": digests})
    metadata = {"sha256": "0" * 64, "heatsketch": text}
    body = json.dumps({"__metadata__": metadata} | entries, separators=(",", ":"))
    return sealed(body.encode()) + data


def entry(shape=(2,), stop=16, dtype="F64", start=0, **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop], **more}


def test_a_file_by_hand_is_read(tmp_path):
    path = tmp_path / "a"
    x = np.array([1.5, -2.0])
    path.write_bytes(file_of({"x": entry()}, x.tobytes(), word="hello"))
    about, arrays = read_model_file(path)
    assert about["word"] == "hello" and arrays["x"].tolist() == [1.5, -2.0]
    described = read_header(path)["arrays"]
    assert described == {"x": {"dtype": "float64", "shape": [2]}}


def test_every_dtype_and_shape_comes_back_in_the_order_of_this_machine(tmp_path):
    path = tmp_path / "a"
    given = {
        f"{dtype} {order}": np.arange(6).astype(order + dtype) for dtype in DTYPES for order in "<>"
    }
    given |= {
        "empty": np.zeros((0, 3)),
        "scalar": np.array(7),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    write_model_file(path, {"n": 1}, given, overwrite=False)
    about, arrays = read_model_file(path)
    assert about.items() >= {"n": 1, "format_version": 1, "min_reader": 1}.items()
    assert arrays.keys() == given.keys()
    for name, array in given.items():
        assert_array_equal(arrays[name], array, strict=False)
        assert arrays[name].dtype == array.dtype.newbyteorder("=") and arrays[name].dtype.isnative
        assert arrays[name].shape == array.shape
    header = path.read_bytes()[: 8 + int.from_bytes(path.read_bytes()[:8], "little")]
    assert len(header) % 8 == 0
    offsets = [
        e["data_offsets"][0] for n, e in json.loads(header[8:]).items() if n != "__metadata__"
    ]
    sizes = [a.itemsize for a in sorted(given.values(), key=lambda a: -a.itemsize)]
    assert all(offset % size == 0 for offset, size in zip(offsets, sizes, strict=True))


def test_a_file_is_replaced_only_if_that_is_said(tmp_path):
    path = tmp_path / "a"
    write_model_file(path, {}, {"x": np.zeros(1)}, overwrite=False)
    with pytest.raises(FileExistsError):
        write_model_file(path, {}, {"x": np.ones(1)}, overwrite=False)
    write_model_file(path, {}, {"x": np.ones(1)}, overwrite=True)
    assert read_model_file(path).arrays["x"] == 1


def test_what_no_file_holds_is_rejected_before_one_is_made(tmp_path, monkeypatch):
    path = tmp_path / "a"
    with pytest.raises(NotStorableError) as caught:
        write_model_file(path, {}, {"x": np.zeros(2, complex)}, overwrite=False)
    names = sorted(str(np.dtype(dtype)) for dtype in DTYPES)
    message = f"x is an array of complex128, which model files do not hold; use one of {names}."
    assert str(caught.value) == message
    monkeypatch.setattr(container, "LARGEST_HEADER", 400)
    write_model_file(path, {}, {"x": np.zeros(2)}, overwrite=False)
    with pytest.raises(NotStorableError) as caught:
        write_model_file(tmp_path / "b", {"long": "a" * 400}, {"x": np.zeros(2)}, overwrite=False)
    assert "bytes, more than the 400 that a model file allows; fit to an X with shorter" in str(
        caught.value
    )
    assert os.listdir(tmp_path) == ["a"]


def invalid(error):
    return f"the header is invalid ({error!r})"


def described(**changes):
    """Return a file with an array that cannot be, and what is said of it."""
    wrong = entry(**changes)
    return file_of({"x": wrong}, DATA), invalid(ValueError(f"an array is described as {wrong}"))


DATA = bytes(16)
BEGINNING = b'{"__metadata__":{"sha256":"' + b"0" * 64
WHOLE = file_of({"x": entry()}, DATA)
TWICE = invalid(ValueError("a name appears twice"))
REJECTED = {
    "too short": (
        (16).to_bytes(8, "little") + BEGINNING,
        "it is too short for its header of 16 bytes",
    ),
    "changed header": (
        WHOLE.replace(b"F64", b"I64"),
        "the header has changed since it was written",
    ),
    "changed array": (WHOLE[:-1] + b"\1", "the array x has changed since it was written"),
    "shorter array": (
        file_of({"x": entry()}, DATA[:8]),
        invalid(ValueError("the arrays have 16 bytes, and the file has 8 for them")),
    ),
    "more bytes": (
        file_of({"x": entry()}, DATA + b"\0"),
        invalid(ValueError("the arrays have 16 bytes, and the file has 17 for them")),
    ),
    "twice in the header": (sealed(BEGINNING + b'"},"x":1,"x":1}'), TWICE),
    "twice in the description": (
        sealed(BEGINNING + rb'","heatsketch":"{\"sha256\":1,\"sha256\":1}"}}'),
        TWICE,
    ),
    "version is no integer": (
        file_of({"x": entry()}, DATA, format_version=1.0),
        invalid(ValueError("format_version=1.0, min_reader=1")),
    ),
    "reader is no integer": (
        file_of({"x": entry()}, DATA, min_reader=True),
        invalid(ValueError("format_version=1, min_reader=True")),
    ),
    "reader 0": (
        file_of({"x": entry()}, DATA, min_reader=0),
        invalid(ValueError("format_version=1, min_reader=0")),
    ),
    "no digest": (
        file_of({"x": entry()}, DATA, {}),
        invalid(ValueError("not every array has a digest")),
    ),
    "three dimensions": described(shape=(2, 1, 1)),
    "negative shape": described(shape=(-2, -1)),
    "fraction of a row": described(shape=(2.0,)),
    "more of an entry": described(more=1),
    "unknown dtype": (file_of({"x": entry(dtype="F16")}, DATA), invalid(KeyError("F16"))),
    "gap": (
        file_of({"x": entry((1,), start=8)}, DATA),
        invalid(ValueError("the array x does not begin where the one before it ends")),
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_is_rejected_is_named_with_a_remedy(case, tmp_path):
    path = tmp_path / "a"
    content, cause = REJECTED[case]
    path.write_bytes(content)
    for read in [read_model_file] if case == "changed array" else [read_model_file, read_header]:
        with pytest.raises(FileFormatError) as caught:
            read(path)
        assert str(caught.value) == f"{path}: {cause}; {REMEDY}."


def test_a_file_of_something_else_is_no_model_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("text")
    with pytest.raises(FileFormatError) as caught:
        read_model_file(path)
    assert str(caught.value) == f"{path}: it is not a model file of heatsketch; check the path."


def test_a_later_format_says_what_to_do(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(file_of({"x": entry()}, DATA, format_version=3))
    assert read_model_file(path).about["format_version"] == 3
    path.write_bytes(file_of({"x": entry()}, DATA, format_version=3, min_reader=2))
    with pytest.raises(ModelVersionError) as caught:
        read_model_file(path)
    assert str(caught.value) == (
        f"{path}: has format 3, for which a reader of format 2 is needed, and this is one of "
        "format 1; upgrade with: pip install --upgrade heatsketch."
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of Unix")
def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "a"
    os.mkfifo(path)
    for read in (read_model_file, read_header):
        with pytest.raises(FileFormatError) as caught:
            read(path)
        assert (
            str(caught.value) == f"{path}: it is not a regular file; give the path of a model file."
        )


@pytest.mark.parametrize("read", [read_model_file, read_header])
def test_a_file_that_is_not_there_or_a_folder_is_an_error_of_the_system(read, tmp_path):
    for path in (tmp_path / "a", tmp_path):
        with pytest.raises(FileError, match=f"cannot read {path}: "):
            read(path)
