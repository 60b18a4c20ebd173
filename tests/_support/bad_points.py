"""Rows for every entry point: what is wrong with points, in everything that can hold points.

Like ``bad_inputs.py``, whose table this adds to, and which lists the entry points.
"""

from __future__ import annotations

import datetime
import fractions
import tempfile

import numpy as np
import pandas as pd
import polars as pl
from bad_inputs import CLOUD, rejected_everywhere
from scipy import sparse

from heatsketch.exceptions import DtypeError, HeatSketchError, MissingValueError, ScaleError

# --- not finite, in every container -------------------------------------------------------


def memory_map(X):
    with tempfile.TemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return np.memmap(file, float, "r", shape=X.shape)


CONTAINERS = {
    "Fortran order": np.asfortranarray,
    "a strided view": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "a view from behind": lambda X: X[::-1][::-1],
    "the other byte order": lambda X: X.astype(">f8"),
    "float16": lambda X: X.astype(np.float16),
    "long doubles": lambda X: X.astype(np.longdouble),
    "objects": lambda X: X.astype(object),
    "a memory map": memory_map,
    "a tuple of tuples": lambda X: tuple(map(tuple, X.tolist())),
    "a list of arrays": list,
    "a pandas frame": pd.DataFrame,
    "a pandas frame of float32": lambda X: pd.DataFrame(X.astype(np.float32)),
    "a pandas frame with gaps": lambda X: pd.DataFrame(X).astype("Float64"),
    "csc_array": sparse.csc_array,
    "coo_array": sparse.coo_array,
    "csr_matrix": sparse.csr_matrix,
    "lil_array": sparse.lil_array,
    "dok_array": sparse.dok_array,
}
NOT_FINITE = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf}
for shown, bad in NOT_FINITE.items():
    X = CLOUD.copy()
    X[1, 2] = bad
    for name, held in CONTAINERS.items():
        if name in ("a view from behind", "float16", "a list of arrays") and bad == -np.inf:
            continue  # once is enough
        says = (r"^X(\[1, 2\])?", f"(?i){shown}", "fill (them|it) in")
        rejected_everywhere(f"{shown} in {name}", held(X), MissingValueError, says)

PLACES = {
    "the first entry": (0, 0),
    "the last entry": (-1, -1),
    "a row": (3, slice(None)),
    "a column": (slice(None), 1),
    "everything": (slice(None), slice(None)),
    "every second entry": (slice(None, None, 2), 0),
}
for shown, bad in NOT_FINITE.items():
    for name, place in PLACES.items():
        X = CLOUD.copy()
        X[place] = bad
        says = ("^X contains", f"{shown}.*row -?[0-9]+", "fill them in")
        rejected_everywhere(f"{shown} in {name}", X, MissingValueError, says)

# --- not numbers --------------------------------------------------------------------------

for dtype in ("c8", "c16", "G", "U1", "S9", "M8[D]", "M8[ns]", "m8[ns]", "m8[Y]", "V8"):
    X = np.ones((4, 3)).astype("i8" if dtype[0] in "Mm" else "f8")
    X = np.zeros((4, 3), dtype) if dtype == "V8" else X.astype(dtype)
    says = (r"\bX has dtype", "complex|<U|S9|64|V8", "as columns|encode it")
    rejected_everywhere(f"an array of {dtype}", X, DtypeError, says)

for name, bad in {
    "a set": {1, 2},
    "a tuple": (1, 2),
    "text": "one",
    "bytes": b"1",
    "a function": len,
    "a class": int,
    "a day": datetime.date(2024, 1, 1),
    "a moment": np.datetime64("2024-01-01"),
    "an array in a cell": np.zeros(2),
    "a plain object": object(),
    "a slice": slice(3),
    "dots": ...,
}.items():
    X = CLOUD.astype(object)
    X[1, 2] = bad
    says = (r"^X\[1, 2\]", ".", "convert X to floats")
    in_files = "none" if callable(bad) else "rejected"
    rejected_everywhere(f"{name} among numbers", X, DtypeError, says, in_files=in_files)

for name, X in {
    "a dict of columns": {"a": [1.0, 2.0], "b": [3.0, 4.0]},
    "a set of numbers": {1.0, 2.0},
    "a function for X": len,
    "a class for X": HeatSketchError,
    "bytes for X": b"1 2 3",
    "a fraction": fractions.Fraction(1, 3),
    "dots for X": ...,
    "a slice for X": slice(3),
    "a day for X": datetime.date(2024, 1, 1),
    "a list of text": [["1", "2"], ["3", "4"]],
    "a list of text and numbers": [["one", 2.0], ["three", 4.0]],
    "a list of lists in lists": [[[1, 2], [3]], [[4], [5]]],
    "a list with one row too short": [[1.0, 2.0, 3.0]] * 9 + [[1.0, 2.0]],
    "a list with one row too long": [[1.0, 2.0]] * 9 + [[1.0, 2.0, 3.0]],
    "complex numbers in lists": [[1j, 2], [3, 4]],
}.items():
    says = ("X", ".", "convert|encode|the same length|as columns|numbers")
    in_files = "rejected" if isinstance(X, list) else "none"
    rejected_everywhere(name, X, DtypeError, says, in_files=in_files)

# --- frames -------------------------------------------------------------------------------

for name, column in {
    "intervals": pd.interval_range(0, 4),
    "lists of text": [["1"], ["2"], ["3"], ["4"]],
    "dicts": [{"a": 1}] * 4,
    "bytes": [b"1", b"2", b"3", b"4"],
    "complex numbers": np.arange(4) * 1j,
    "text of Arrow": pd.array(list("abcd"), "string[pyarrow]"),
    "text and numbers": np.array([1, "two", 3, 4], dtype=object),
    "ordered categories": pd.Categorical(list("abab"), ordered=True),
    "days of Arrow": pd.array(pd.date_range("2024", periods=4), "timestamp[ns][pyarrow]"),
}.items():
    says = ("column 'b' of X", ".", "encode it as numbers.*or leave it out|as columns of their own")
    X = pd.DataFrame({"a": np.arange(4.0), "b": column})
    rejected_everywhere(f"a pandas column of {name}", X, DtypeError, says)
for name, series in {
    "times": pl.Series([0, 1, 2]).cast(pl.Time),
    "moments": pl.Series([0, 1, 2]).cast(pl.Datetime),
    "bytes": pl.Series([b"1", b"2", b"3"]),
    "records": pl.Series([{"x": 1}, {"x": 2}, {"x": 3}]),
    "arrays of text": pl.Series([["1", "2"]] * 3, dtype=pl.Array(pl.String, 2)),
    "an enumeration": pl.Series(list("aba"), dtype=pl.Enum(["a", "b"])),
}.items():
    says = ("column 'b' of X", ".", "encode it as numbers.*or leave it out")
    X = pl.DataFrame({"a": [1, 2, 3], "b": series})
    rejected_everywhere(f"a polars column of {name}", X, DtypeError, says)

# --- shapes, in scikit-learn's own words --------------------------------------------------

for name, X, says in [
    ("an empty list", [], ("Expected 2D array", "1D array", "Reshape")),
    ("a list of numbers", [1.0, 2.0, 3.0], ("Expected 2D array", "1D array", "Reshape")),
    ("empty rows", [[], [], []], ("array", r"0 feature.*\(3, 0\)", "minimum of 1 is required")),
    ("four dimensions", CLOUD[None, None], ("array", "dim 4", "dim <= 2 is required")),
    ("a frame without rows", pd.DataFrame(CLOUD[:0]), ("array", "0 sample", "minimum of 1")),
    ("a sparse array without rows", sparse.csr_array((0, 3)), ("array", "0 sample", "minimum")),
    ("a sparse array without columns", sparse.csr_array((3, 0)), ("array", "0 feature", "minimum")),
]:
    in_files = "rejected" if isinstance(X, np.ndarray | pd.DataFrame) else "none"
    rejected_everywhere(name, X, ValueError, says, in_files=in_files)
for name, X in [
    ("a series of pandas", pd.Series([1.0, 2.0])),
    ("a series of polars", pl.Series([1.0, 2.0])),
    ("a series of lists", pd.Series([[1.0, 2.0], [3.0, 4.0]])),
]:
    says = ("^X is", "Series", r"X\.to_frame\(\)")
    rejected_everywhere(name, X, HeatSketchError, says, in_files="none")
rejected_everywhere(
    "a frame without columns",
    pd.DataFrame(CLOUD[:, :0]),
    HeatSketchError,
    ("^X is a frame", r"\(40, 0\)", "at least one"),
)

# --- scale --------------------------------------------------------------------------------

for scale in (1e155, 1e200, 1e300):
    for name, held in {
        "an array": np.asarray,
        "a list": lambda X: X.tolist(),
        "a pandas frame": pd.DataFrame,
        "a pandas frame with gaps": lambda X: pd.DataFrame(X).astype("Float64"),
        "csr_array": sparse.csr_array,
    }.items():
        says = ("^X holds", r"e\+", "overflow float64; divide X by")
        rejected_everywhere(f"{scale:.0e} in {name}", held(CLOUD * scale), ScaleError, says)
