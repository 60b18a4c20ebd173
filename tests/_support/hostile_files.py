"""Files that mean ill: code in disguise, bombs, ways out of a folder, two things at once.

Each is made by a small function, and kept for ever. Most readers have some in ``bad_files.py``
already; those here are what an attacker would think of. To keep one more, add a function.
"""

import io
import json
import os
import pickle
import struct
import zipfile

import anndata
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bad_files import (
    OBJECTS,
    WHOLE,
    Runs,
    bad,
    content,
    npy_bytes,
    npz_bytes,
    zarr_array,
)

HOSTILE = {}
TABLE = {"files": HOSTILE}
BANNER = b"%%MatrixMarket matrix array real general\n"
SCRIPT = b"#!/bin/sh\ntouch /tmp/heatsketch-was-run\nexit\n"

# --- npy, npz -----------------------------------------------------------------------------

content(
    "a.npy",
    "a pickle in a field of a record",
    npy_bytes(np.array([[(1.0, Runs())]], dtype=[("a", "f8"), ("b", "O")]), allow_pickle=True),
    **TABLE,
)
content(
    "a.npy",
    "a header of four gibibytes",
    b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{" * 5000,
    **TABLE,
)
content("a.npy", "a program in front", SCRIPT + WHOLE, **TABLE)
content("a.npy", "a zip file behind", WHOLE + npz_bytes(**{"X.npy": WHOLE}), **TABLE)
content("a.npz", "a program in front", SCRIPT + npz_bytes(**{"X.npy": WHOLE}), **TABLE)


@bad("a.npz", "the same name twice", **TABLE)
def twice(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", WHOLE)
        info = zipfile.ZipInfo("Y.npy")
        archive.writestr(info, npy_bytes(np.zeros((10, 3))))
    path.write_bytes(path.read_bytes().replace(b"Y.npy", b"X.npy"))


@bad("a.npz", "a size that is a lie", **TABLE)
def lie(path):
    """One that says it unpacks into a hundred bytes, and would go on for a gibibyte."""
    data = npz_bytes(**{"X.npy": WHOLE[:128] + bytes(2**20)})
    size = struct.pack("<I", 128 + 2**20)
    path.write_bytes(data.replace(size, struct.pack("<I", 368)))


@bad("a.npz", "ways out of the folder, and no way in", **TABLE)
def ways_out(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../../X.npy", "/tmp/X.npy", "..\\X.npy"):
            archive.writestr(name, OBJECTS)


# --- text ---------------------------------------------------------------------------------


content("a.csv", "a header of a million names", b"a," * 2**20 + b"b\n" + b"1\n", **TABLE)
content("a.mtx", "nodes without end", BANNER + b"9" * 5000 + b" " + b"9" * 5000, **TABLE)


# --- parquet ------------------------------------------------------------------------------


@bad("a.parquet", "a pickled type", **TABLE)
def pickled_type(path):
    """What CVE-2023-47248 ran: a type that a reader should make from its pickle."""
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Runs()),
    }
    field = pa.field("b", pa.string(), metadata=metadata)
    pq.write_table(pa.table([pa.array(["x"])], schema=pa.schema([field])), path)


@bad("a.parquet", "a pickle for a schema", **TABLE)
def pickled_schema(path):
    table = pa.table({"a": ["x"]}).replace_schema_metadata({"pandas": pickle.dumps(Runs())})
    pq.write_table(table, path)


def page_bytes(**options):
    file = io.BytesIO()
    pq.write_table(
        pa.table({"a": np.zeros(1000)}), file, use_dictionary=False, data_page_version="1.0",
        write_statistics=False, **options,
    )  # fmt: skip
    return file.getvalue()


@bad("a.parquet", "a footer as long as the file", **TABLE)
def long_footer(path):
    path.write_bytes(page_bytes()[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1")


content("a.parquet", "a program in front", SCRIPT + page_bytes(), **TABLE)


# --- zarr ---------------------------------------------------------------------------------


@bad("a.zarr", "a chunk that is a link", **TABLE)
def linked_chunk(path):
    folder = zarr_array(path).parent
    (folder / "c/1/0").unlink()
    (folder / "c/1/0").symlink_to("/etc/passwd")


@bad("a.zarr", "metadata a hundred thousand deep", **TABLE)
def deep_metadata(path):
    place = zarr_array(path)
    place.write_text('{"attributes":' * 10**5 + "{}" + "}" * 10**5)


@bad("a.zarr", "a codec by another name", **TABLE)
def hidden_codec(path):
    place = zarr_array(path)
    metadata = json.loads(place.read_bytes())
    metadata["codecs"].append({"name": "numcodecs.pickle", "configuration": {"protocol": 5}})
    place.write_text(json.dumps(metadata))
    (path / "c/0/0").write_bytes(pickle.dumps(Runs()))


# --- h5ad ---------------------------------------------------------------------------------


def h5ad(what, change, **options):
    @bad("a.h5ad", what, **TABLE, **options)
    def write(path):
        anndata.AnnData(np.ones((6, 2))).write_h5ad(path)
        with h5py.File(path, "r+") as file:
            change(path, file)


def link_out(path, file):
    with h5py.File(path.with_name("other.h5"), "w") as other:
        other["X"] = np.ones((6, 2))
    del file["X"]
    file["X"] = h5py.ExternalLink(path.with_name("other.h5"), "/X")


def link_round(path, file):
    del file["X"]
    file["X"] = h5py.SoftLink("/X")


def virtual(path, file):
    with h5py.File(path.with_name("other.h5"), "w") as other:
        other["X"] = np.ones((6, 2))
    del file["X"]
    layout = h5py.VirtualLayout((6, 2), "f8")
    layout[:] = h5py.VirtualSource(path.with_name("other.h5"), "X", (6, 2))
    file.create_virtual_dataset("X", layout)


def pickled_names(path, file):
    del file["obs/_index"]
    file["obs"].create_dataset("_index", data=np.frombuffer(pickle.dumps(Runs()), "u1"))
    file["obs/_index"].attrs["encoding-type"] = "pickle"
    file["obs/_index"].attrs["encoding-version"] = "0.1.0"


h5ad("a link to another file", link_out)
h5ad("a link to itself", link_round)
h5ad("numbers that are in another file", virtual)
h5ad("pickled names", pickled_names)


# --- things that are no files ---------------------------------------------------------------

bad("a.csv", "a pipe without a writer", **TABLE)(os.mkfifo)
bad("a.npy", "a link to a device", **TABLE)(lambda path: path.symlink_to("/dev/zero"))
bad("a.npy", "a link to itself", **TABLE)(lambda path: path.symlink_to(path))
bad("a.zarr", "a link to the root", **TABLE)(lambda path: path.symlink_to("/proc/self/fdinfo"))

# --- models -------------------------------------------------------------------------------

content("a.heatsketch", "a bare pickle", pickle.dumps(Runs()), **TABLE)
content("a.heatsketch", "a header of exabytes", b"\xff" * 7 + b'\x7f{"__metadata__"', **TABLE)
bad("a.heatsketch", "a pipe without a writer", **TABLE)(os.mkfifo)
