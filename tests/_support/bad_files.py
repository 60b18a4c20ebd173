"""Files that are not what they should be: each a name, and a function that writes it."""

import gzip
import io
import json
import pickle
import struct
import zipfile
from decimal import Decimal

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from scipy import sparse

BAD_FILES = {}
BAD_GRAPHS = {}


def bad(name, what, *, files=BAD_FILES, **options):
    """Add a function that writes a bad file; ``options`` are those it is opened with."""

    def add(write):
        files[f"{name}: {what}"] = (name, write, options)
        return write

    return add


def content(name, what, data, *, files=BAD_FILES, **options):
    bad(name, what, files=files, **options)(lambda path: path.write_bytes(data))


class Runs:
    """Unpickling this runs it."""

    def __reduce__(self):
        return (open, ("/tmp/heatsketch-was-run", "w"))


def npy_bytes(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npy_header(header, version=b"\x01\x00"):
    text = header.encode("latin1")
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text


WHOLE = npy_bytes(np.arange(30.0).reshape(10, 3))
OBJECTS = npy_bytes(np.array([[Runs()]], dtype=object), allow_pickle=True)

# --- npy ------------------------------------------------------------------------------------

content("a.npy", "empty", b"")
content("a.npy", "another magic", b"PK\x03\x04" + WHOLE)
content("a.npy", "half a header", WHOLE[:40])
content("a.npy", "cut short", WHOLE[:-8])
content("a.npy", "too long", WHOLE + WHOLE)
content("a.npy", "unknown version", WHOLE[:6] + b"\x09\x00" + WHOLE[8:])
content("a.npy", "pickle instead", pickle.dumps(Runs()))
content("a.npy", "objects", OBJECTS)
content("a.npy", "text", npy_bytes(np.array([["a", "b"]])))
content("a.npy", "complex", npy_bytes(np.ones((2, 2), dtype=complex)))
content("a.npy", "one axis", npy_bytes(np.ones(5)))
content("a.npy", "no columns", npy_bytes(np.ones((5, 0))))
content("a.npy", "header is code", npy_header("__import__('os').system('true')\n"))
content("a.npy", "header is deep", npy_header("(" * 9000 + "\n"))
content(
    "a.npy",
    "claims terabytes",
    npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8)}\n"),
)
content(
    "a.npy",
    "negative shape",
    npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -3)}\n") + bytes(24),
)
bad("a.npy", "a folder")(lambda path: path.mkdir())

# --- npz ------------------------------------------------------------------------------------


def npz_bytes(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


PACKED = npz_bytes(**{"X.npy": WHOLE})
content("a.npz", "cut short", PACKED[:-30])
content("a.npz", "no zip", b"not a zip file at all")
content("a.npz", "objects", npz_bytes(**{"X.npy": OBJECTS}))
content("a.npz", "a member cut short", npz_bytes(**{"X.npy": WHOLE[:-8]}))
content("a.npz", "damaged", PACKED[:60] + bytes([PACKED[60] ^ 255]) + PACKED[61:])
content(
    "a.npz",
    "pickled ids",
    npz_bytes(**{"X.npy": WHOLE, "who.npy": npy_bytes(np.array([Runs()] * 10), allow_pickle=True)}),
    ids="who",
)
content("a.npz", "an array that is not there", PACKED, key="Y")


def sparse_npz(what, *, files=BAD_FILES, **changes):
    """A sparse matrix as scipy saves it, some of whose arrays are others, or are left out."""
    whole = sparse.csr_array(np.eye(4))
    parts = {"indices": whole.indices, "indptr": whole.indptr, "data": whole.data}
    parts |= {"format": np.array(b"csr"), "shape": np.array([4, 4])}
    parts = {name: value for name, value in (parts | changes).items() if value is not None}
    arrays = {f"{name}.npy": npy_bytes(np.array(value)) for name, value in parts.items()}
    content("a.npz", f"sparse, {what}", npz_bytes(**arrays), files=files)


sparse_npz("indices out of range", shape=[4, 5], indices=[0, 1, 2, 10**6])
sparse_npz("negative indices", shape=[4, 5], indices=[0, 1, 2, -5])
sparse_npz("pointers that go back", shape=[4, 5], indptr=[0, 3, 2, 3, 4])
sparse_npz("pointers beyond the entries", shape=[4, 5], indptr=[0, 1, 2, 3, 100])
sparse_npz("claims many columns", shape=[4, 10**12])
sparse_npz("no indices", shape=[4, 5], indices=None)
sparse_npz("coordinates out of range", shape=[4, 5], format=b"coo", row=[9] * 4, col=[0] * 4)
sparse_npz("a graph with two weights", files=BAD_GRAPHS, indices=[1, 0, 2, 3], data=[1.0, 2, 1, 1])
sparse_npz("a graph that is not square", files=BAD_GRAPHS, shape=[4, 5])
content("a.npz", "no graph", npz_bytes(**{"X.npy": WHOLE}), files=BAD_GRAPHS)


# --- text -----------------------------------------------------------------------------------

content("a.csv", "empty", b"")
content("a.csv", "ragged", b"a,b\n1,2\n3\n")
content("a.csv", "not utf-8", "a,b\n1,2\n\xe9,4\n".encode("latin1"))
content("a.csv", "text among numbers", b"a,b\n1,2\n3,four\n")
content("a.csv", "open quotes", b'a,b\n1,"2\n3,4\n')
content("a.csv", "the same name twice", b"a,a\n1,2\n")
content("a.csv", "semicolons", b"a;b\n1;2\n")
content("a.csv", "only numbers", b"1,2\n3,4\n")
content("a.csv", "a column that is not there", b"a,b\n1,2\n", columns=["c"])
content("a.csv", "nothing but labels", b"a\n1\n", labels=["a"])
content("a.csv.gz", "not packed", b"a,b\n1,2\n")
content("a.csv.gz", "cut short", gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-10])
content("a.tsv", "commas", b"a,b\n1,2\n")


@bad("a.csv.gz", "a bomb of one line")
def long_line(path):
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\n")
        for _ in range(20):
            file.write(b"1" * 2**22)


# --- parquet --------------------------------------------------------------------------------


def parquet(what, data, **options):
    bad("a.parquet", what, **options)(lambda path: pq.write_table(pa.table(data), path))


def parquet_bytes(data):
    file = io.BytesIO()
    pq.write_table(pa.table(data), file, write_page_checksum=True, compression="none")
    return file.getvalue()


PARQUET = parquet_bytes({"a": np.arange(100.0), "b": np.arange(100.0)})
content("a.parquet", "no parquet", b"PAR1 is not enough")
content("a.parquet", "cut short", PARQUET[:-20])
content("a.parquet", "without its middle", PARQUET[:100] + PARQUET[-300:])
content("a.parquet", "damaged", PARQUET[:400] + bytes([PARQUET[400] ^ 255]) + PARQUET[401:])
parquet("text", {"a": ["x", "y"]})
parquet("the same name twice", pa.table([[1.0], [2.0]], names=["a", "a"]))
parquet("a column that is not there", {"amount": [Decimal(1)]}, columns=["amuont"])
bad("a.parquet", "an empty folder")(lambda path: path.mkdir())


@bad("a.parquet", "a folder with something else in it")
def mixed_folder(path):
    path.mkdir()
    pq.write_table(pa.table({"a": [1.0]}), path / "1.parquet")
    (path / "notes.txt").write_text("hello")


# --- zarr -----------------------------------------------------------------------------------


def zarr_array(path, **options):
    options = {"shape": (6, 2), "chunks": (2, 2), "dtype": "f8"} | options
    array = zarr.create_array(path, config={"write_empty_chunks": True}, **options)
    array[:] = 1
    return path / "zarr.json"


def zarr_metadata(what, **changes):
    @bad("a.zarr", what)
    def write(path):
        place = zarr_array(path)
        place.write_text(json.dumps(json.loads(place.read_bytes()) | changes))


content("a.zarr", "a file", b"PK\x03\x04")
bad("a.zarr", "an empty folder")(lambda path: path.mkdir())
bad("a.zarr", "one axis")(lambda path: zarr_array(path, shape=(6,), chunks=(2,)))
bad("a.zarr", "metadata is no JSON")(lambda path: zarr_array(path).write_text("{"))
bad("a.zarr", "a missing chunk")(lambda path: (zarr_array(path).parent / "c/1/0").unlink())
bad("a.zarr", "half a chunk")(
    lambda path: (zarr_array(path).parent / "c/1/0").write_bytes(b"\x28\xb5")
)
zarr_metadata("claims terabytes", shape=[10**12, 2])
zarr_metadata("unknown codec", codecs=[{"name": "bytes"}, {"name": "magic"}])
zarr_metadata(
    "huge chunks",
    chunk_grid={"name": "regular", "configuration": {"chunk_shape": [10**7, 10**7]}},
)


@bad("a.zarr", "a pickle for a codec")
def pickle_codec(path):
    zarr.create_array(path, shape=(2, 2), chunks=(2, 2), dtype="f8", zarr_format=2)
    place = path / ".zarray"
    metadata = json.loads(place.read_bytes()) | {"filters": [{"id": "pickle", "protocol": 5}]}
    place.write_text(json.dumps(metadata | {"compressor": None}))
    (path / "0.0").write_bytes(pickle.dumps(Runs()))


# --- h5ad -----------------------------------------------------------------------------------


def h5ad(what, change, **options):
    """Write a good file, then change it."""

    @bad("a.h5ad", what, **options)
    def write(path):
        names = pd.DataFrame({"kind": list("abcdef")}, index=list("uvwxyz"))
        matrix = anndata.AnnData(np.ones((6, 2)), obs=names)
        matrix.obsm["sparse"] = sparse.csr_matrix(np.eye(6))
        matrix.write_h5ad(path)
        with h5py.File(path, "r+") as file:
            change(file)


def replaced(name, **options):
    def change(file):
        del file[name]
        file.create_dataset(name, **options)

    return change


def set_item(name, place, value):
    def change(file):
        file[name][place] = value

    return change


content("a.h5ad", "no HDF5", b"\x89HDF\r\n\x1a\n" + bytes(100))
content("a.h5ad", "csv instead", b"a,b\n1,2\n")
h5ad("no X", lambda file: file.pop("X"))
h5ad("X of text", replaced("X", data=[[b"a"] * 2] * 6))
h5ad("X of other length", replaced("X", data=np.ones((5, 2))))
h5ad("X never written", replaced("X", shape=(6, 2), dtype="f8"))
h5ad("claims terabytes", replaced("X", shape=(10**12, 2), dtype="f8", chunks=(1024, 2)))
h5ad("lies in another file", replaced("X", shape=(6, 2), dtype="u1", external="/etc/passwd"))
h5ad("indices out of range", set_item("obsm/sparse/indices", 3, 10**6), key="sparse")
h5ad("negative indices", set_item("obsm/sparse/indices", 3, -5), key="sparse")
h5ad("pointers that go back", set_item("obsm/sparse/indptr", 2, 100), key="sparse")
h5ad("a key that is not there", lambda file: None, key="obsm/X_pac")
h5ad("a column that is not there", lambda file: None, labels=["kinds"])


@bad("a.h5ad", "cut short")
def cut_short(path):
    BAD_FILES["a.h5ad: a key that is not there"][1](path)
    path.write_bytes(path.read_bytes()[:-2000])


# --- graphs ---------------------------------------------------------------------------------


def mtx(what, *lines):
    content("a.mtx", what, "\n".join(lines).encode(), files=BAD_GRAPHS)


def edges(what, data):
    content("a.edges", what, data, files=BAD_GRAPHS)


REAL = "%%MatrixMarket matrix coordinate real general"
mtx("no banner", "3 3 1", "1 2 1.0")
mtx("not square", REAL, "2 3 1", "1 2 1.0")
mtx("no sizes", REAL, "% only comments")
mtx("claims many entries", REAL, "3 3 1000000000000", "1 2 1.0")
mtx("claims many nodes", REAL, "1000000000000 1000000000000 1", "1 2 1.0")
mtx("half a node", REAL, "3 3 2", "1 2 1.0", "1.5 2 1.0")
mtx("out of range", REAL, "3 3 2", "1 2 1.0", "1 9 1.0")
mtx("cut short", REAL, "3 3 2", "1 2 1.0")
mtx("two weights", REAL, "3 3 2", "1 2 1.0", "2 1 3.0")
mtx("no number", REAL, "2 2 1", "1 2 one")
mtx("underscores", REAL, "2 2 1", "1 2 1_0")
edges("empty", b"")
edges("one field", b"1 2\n3\n")
edges("now with weights, now without", b"1 2 0.5\n2 3\n")
edges("no number", b"1 2 heavy\n")
edges("two weights", b"a b 1\nb a 2\n")
edges("not utf-8", b"\xff\xfe 2\n")


def edge_table(what, data, name="a.csv"):
    content(name, what, data, files=BAD_GRAPHS)


edge_table("edges: no node", b"source,target\n1,2\n2,\n")
edge_table("edges: no edges", b"source,target\n")
edge_table("edges: which columns", b"a,b,c,d\n1,2,3,4\n")
edge_table("edges: no number", b"source,target,weight\n1,2,heavy\n")
edge_table("edges: two weights", b"source,target,weight\n1,2,1\n2,1,2\n")
edge_table("edges: names or numbers", b"1,2\n2,3\n")
