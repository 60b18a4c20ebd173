"""Points that no entry point takes, and points that all take as they take an array of floats.

``BAD_POINTS`` has the points, the type of the error, and what comes of them in a file: "rejected",
"good" if a file turns them into a good table, "none" if no file holds such a thing.
"""

import datetime
import fractions
import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from heatsketch.exceptions import DtypeError, MissingValueError, ScaleError

CLOUD = np.random.default_rng(0).normal(size=(40, 3))
CLOUD.setflags(write=False)
BAD_POINTS = {}


def bad(name, X, error, in_files="rejected"):
    assert name not in BAD_POINTS
    BAD_POINTS[name] = (X, error, in_files)


def with_entry(value, dtype=float):
    X = CLOUD.astype(dtype)
    X[1, 2] = value
    return X


def memory_map(X):
    with tempfile.TemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return np.memmap(file, X.dtype, "r", shape=X.shape)


class Tensor:
    """What a tensor of PyTorch has in common with arrays; its dtype is not one of numpy."""

    def __init__(self, X, error=None):
        self.X, self.error, self.shape, self.ndim = X, error, X.shape, X.ndim
        self.dtype = type("dtype", (), {"__repr__": lambda _: f"torch.{X.dtype}"})()

    def __len__(self):
        return len(self.X)

    def __array__(self, dtype=None, copy=None):
        if self.error is not None:
            raise self.error
        return np.asarray(self.X, dtype)

    def detach(self):
        return Tensor(self.X)


# --- what is not finite, and what is too large --------------------------------------------

HOLDERS = {
    "an array": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "long doubles": lambda X: X.astype(np.longdouble),
    "the other byte order": lambda X: X.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "a strided view": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "a memory map": memory_map,
    "objects": lambda X: X.astype(object),
    "a list": np.ndarray.tolist,
    "a tuple of tuples": lambda X: tuple(map(tuple, X.tolist())),
    "a pandas frame": pd.DataFrame,
    "a pandas frame with gaps": lambda X: pd.DataFrame(X).astype("Float64"),
    "csr_array": sparse.csr_array,
    "coo_array": sparse.coo_array,
    "lil_array": sparse.lil_array,
}
for value in (np.nan, np.inf, -np.inf):
    for name, held in HOLDERS.items():
        bad(f"{value} in {name}", held(with_entry(value)), MissingValueError)
    for name, place in {"the last entry": (-1, -1), "everything": slice(None)}.items():
        X = CLOUD.copy()
        X[place] = value
        bad(f"{value} in {name}", X, MissingValueError)
for value in (None, pd.NA, pd.NaT):
    bad(f"{value} as an object", with_entry(value, object), MissingValueError)
    column = np.array([1, value, 2.5], object)
    bad(f"{value} in a column", pd.DataFrame({"b": column, "a": [1, 2, 3]}), MissingValueError)
bad("a masked array", np.ma.masked_array(CLOUD, CLOUD > 1), MissingValueError)
for scale in (1e155, 1e300):
    for name in ("an array", "a list", "a pandas frame", "csr_array"):
        bad(f"{scale} in {name}", HOLDERS[name](CLOUD * scale), ScaleError)

# --- what is no number --------------------------------------------------------------------

for dtype in ("c8", "c16", "U1", "S9", "M8[D]", "M8[ns]", "m8[ns]", np.dtypes.StringDType()):
    bad(f"an array of {dtype}", np.arange(12).reshape(4, 3).astype("i8").astype(dtype), DtypeError)
bad("an array of void", np.zeros((4, 3), "V8"), DtypeError)
bad("a structured array", np.zeros(5, [("a", float), ("b", float)]), DtypeError)
bad("complex sparse", sparse.csr_array(CLOUD * 1j), DtypeError)
for value in ({"a": 1}, "1.5", b"1", [1, 2], np.timedelta64(1, "D"), np.complex64(1j), {1}, ...):
    X = CLOUD.astype(object)
    X[1, 2] = value
    bad(f"{value!r} among numbers", X, DtypeError)
bad("a function among numbers", with_entry(len, object), DtypeError, "none")
for X in (
    [[1, 2, 3], [4, 5]],
    [[1.0, 2.0]] * 9 + [[1.0, 2.0, 3.0]],
    [["1", "2"], ["3", "4"]],
    [["one", 2.0], ["three", 4.0]],
    [[[1, 2], [3]], [[4], [5]]],
    [[1j, 2], [3, 4]],
    "abc",
):
    bad(f"{X!r}"[:40], X, DtypeError)
day = datetime.date(2024, 1, 1)
for X in (
    {"a": [1.0, 2.0]},
    {1.0},
    len,
    int,
    b"1 2 3",
    fractions.Fraction(1, 3),
    ...,
    slice(3),
    day,
):
    bad(f"{X!r} for X", X, DtypeError, "none")
for error in (RuntimeError("it requires grad"), TypeError("it is on cuda:0")):
    bad(f"a tensor: {error}", Tensor(CLOUD, error), DtypeError, "none")

# --- frames -------------------------------------------------------------------------------

DAYS = pd.date_range("2024-01-01", periods=4)
for name, column in {
    "strings": list("1234"),
    "categories": pd.Categorical([1, 2, 1, 2]),
    "text of Arrow": pd.array(list("abcd"), "string[pyarrow]"),
    "text and numbers": np.array([1, "two", 3, 4], dtype=object),
    "datetimes": DAYS,
    "datetimes with a zone": DAYS.tz_localize("UTC"),
    "timedeltas": DAYS - DAYS[0],
    "periods": DAYS.to_period("M"),
    "intervals": pd.interval_range(0, 4),
    "lists of text": [["1"], ["2"], ["3"], ["4"]],
    "dicts": [{"a": 1}] * 4,
    "bytes": [b"1", b"2", b"3", b"4"],
    "complex numbers": np.arange(4) * 1j,
}.items():
    X = pd.DataFrame({"a": np.arange(4.0), "b": column})
    # Parquet has categories by what they are, which is integers.
    bad(f"pandas {name}", X, DtypeError, "good" if name == "categories" else "rejected")
for name, column in {
    "strings": pl.Series(list("123")),
    "dates": pl.Series([0, 1, 2]).cast(pl.Date),
    "durations": pl.Series([0, 1, 2]).cast(pl.Duration),
    "categories": pl.Series(list("aba")).cast(pl.Categorical),
    "lists of text": pl.Series([["1"], ["2"], ["3"]]),
    "bytes": pl.Series([b"1", b"2", b"3"]),
    "records": pl.Series([{"x": 1}, {"x": 2}, {"x": 3}]),
}.items():
    bad(f"polars {name}", pl.DataFrame({"a": [1, 2, 3], "b": column}), DtypeError)
for name, column in {
    "text": list("123"),
    "lists": [[1.0], [2.0], [3.0]],
    "days": pa.array([1, 2, 3], pa.date32()),
    "categories": pa.array([1, 2, 1]).dictionary_encode(),
}.items():
    bad(f"Arrow {name}", pa.table({"a": [1, 2, 3], "b": column}), DtypeError, "none")
bad("a lazy frame", pl.DataFrame(CLOUD).lazy(), DtypeError, "none")
for kind in (pd, pl):
    frame = kind.DataFrame({"a": [1, 2, 3], "b": [[1.0], [2.0], [3.0]]})
    bad(f"lists of numbers in {kind.__name__}", frame, DtypeError, "good")
bad("a frame without columns", pd.DataFrame(CLOUD[:, :0]), ValueError, "none")
for series in (pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])):
    bad(f"{type(series)} of {[*series]}", series, ValueError, "none")

# --- shapes, which scikit-learn rejects ---------------------------------------------------

for shape in ((), (40,), (1, 40, 3), (0, 3), (40, 0)):
    bad(f"an array of shape {shape}", np.ones(shape), ValueError)
for X in ([], [1.0, 2.0, 3.0], [[], [], []]):
    bad(f"the list {X}", X, ValueError, "none")
bad("a frame without rows", pd.DataFrame(CLOUD[:0]), ValueError)
bad("a sparse vector", sparse.coo_array(CLOUD[:, 0]), ValueError)
for shape in ((0, 3), (3, 0)):
    bad(f"a sparse array of shape {shape}", sparse.csr_array(shape), ValueError, "none")

# --- the same points in other forms -------------------------------------------------------

NAMED = pd.DataFrame(CLOUD, columns=list("abc"))
SAME_POINTS = {
    "a masked array without a mask": np.ma.masked_array(CLOUD),
    "pandas": NAMED,
    "pandas nullable": NAMED.astype("Float64"),
    "pandas sparse": NAMED.astype(pd.SparseDtype(float, 0.0)),
    "pandas objects": NAMED.astype(object),
    "polars": pl.DataFrame(CLOUD, schema=["a", "b", "c"]),
    "Arrow": pa.table(dict(zip("abc", CLOUD.T, strict=True))),
    "a tensor": Tensor(CLOUD),
    "a matrix of numpy": np.asmatrix(CLOUD),
    "a view from behind": CLOUD[::-1][::-1],
}
for name in ("the other byte order", "long doubles", "Fortran order", "a strided view"):
    SAME_POINTS[name] = HOLDERS[name](CLOUD)
for name in ("a memory map", "objects", "a list", "csr_array", "coo_array", "lil_array"):
    SAME_POINTS[name] = HOLDERS[name](CLOUD)
