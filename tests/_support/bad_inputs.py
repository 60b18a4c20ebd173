"""Bad and invalid inputs, a row for each: what is called, and what must come of it.

A row is *rejected* with a typed error, *warned about*, or *works*. A message must name the
argument, show its value and give a remedy, each a regular expression of the row; a row that
works says what its result must equal. To extend the table, add a row; the law that all rows
obey is in ``test_bad_inputs.py``. F1 to F16 are the families of failures of the plan.

Here are the points themselves, of which ``bad_points.py`` has more; ``bad_parameters.py`` has the
parameters, sparse input and matrices over pairs, ``bad_models.py`` the models in files. Points that
are rejected whatever is asked are tested in every entry point, the command line included.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse
from sklearn.exceptions import NotFittedError

from heatsketch import DiffusionMap, HeatSketch
from heatsketch.diffusion import estimate_epsilon
from heatsketch.exceptions import (
    AffinityError,
    DegenerateKernelError,
    DegenerateKernelWarning,
    DisconnectedGraphWarning,
    DtypeError,
    FarPointWarning,
    HeatSketchError,
    MissingValueError,
    ScaleError,
    UnderflowWarning,
)


@dataclass(frozen=True)
class Row:
    """One input and its expectation."""

    name: str
    call: Callable[[], np.ndarray]
    error: type[Exception] | None = None
    warnings: frozenset[type[Warning]] = frozenset()
    argument: str = ""
    value: str = ""
    remedy: str = ""
    equals: Callable[[], np.ndarray] | None = None


ROWS: list[Row] = []


def rejected(name, call, error, says, *, warnings=()):
    """Add a row that must end in ``error``; ``says`` is (argument, value, remedy)."""
    ROWS.append(Row(name, call, error, frozenset(warnings), *says))


def warned(name, call, warnings, says, *, equals=None):
    """Add a row that must give exactly these kinds of warnings, the first of which ``says``."""
    ROWS.append(Row(name, call, None, frozenset(warnings), *says, equals=equals))


def works(name, call, equals):
    """Add a row that must work, and give what another call gives."""
    ROWS.append(Row(name, call, equals=equals))


class Points(NamedTuple):
    """Points that every entry point rejects."""

    X: object
    in_files: str


POINTS: dict[str, Points] = {}


def rejected_everywhere(name, X, error, says, *, in_files="rejected"):
    """Add a row for each of ``ENTRIES``, and one for the command line.

    ``in_files`` says what comes of it there: "rejected", "good" if a file turns it into a good
    table, "none" if no file holds such a thing.
    """
    assert name not in POINTS
    POINTS[name] = Points(X, in_files)
    for entry, call in ENTRIES.items():
        rejected(f"{entry}: {name}", partial(call, X), error, says)


# --- calls --------------------------------------------------------------------------------

CLOUD = np.random.default_rng(0).normal(size=(40, 3))
CLOUD.setflags(write=False)


def fit(X, *, kind=HeatSketch, n_components=4, row_ids=None, **parameters):
    """Fit, and return what all entry points return: the embedding, and that of X as if new."""
    model = kind(n_components, **parameters).fit(X, row_ids=row_ids)
    return np.vstack([model.embedding_, model.transform(X)])


def transform(X_new, X=CLOUD, *, kind=HeatSketch, n_components=4, **parameters):
    return kind(n_components, **parameters).fit(X).transform(X_new)


# Whatever is rejected at one of them is rejected at all, on a cluster, and by the command line.
ENTRIES = {"fit": fit, "transform": transform}


# --- F5: not a number, or none ------------------------------------------------------------


def with_entry(value, dtype=float):
    X = CLOUD.astype(dtype)
    X[1, 2] = value
    return X


for bad, shown in [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")]:
    says = ("^X contains", f"{shown}.*row 1, column 2", "fill them in")
    for X in (with_entry(bad), with_entry(bad, np.float32), sparse.csr_array(with_entry(bad))):
        kind = f"{type(X).__name__} of {X.dtype}"
        rejected_everywhere(f"{bad} in a {kind}", X, MissingValueError, says)
    rejected_everywhere(f"{bad} in a list", with_entry(bad).tolist(), MissingValueError, says)
for bad, shown in [(None, "None"), (pd.NA, "<NA>"), (pd.NaT, "NaT")]:
    says = (r"^X\[1, 2\]", shown, "fill it in")
    rejected_everywhere(f"{shown} as an object", with_entry(bad, object), MissingValueError, says)
rejected("X=None", partial(fit, None), MissingValueError, ("^X is", "None", "fill it in"))
rejected_everywhere(
    "a masked array",
    np.ma.masked_array(CLOUD, CLOUD > 1),
    MissingValueError,
    ("^X", r"masked array with \d+ masked", "fill them in"),
)
works("a masked array without a mask", partial(fit, np.ma.masked_array(CLOUD)), partial(fit, CLOUD))

for name, bad, shown in [
    ("a dict", {"a": 1}, r"\{'a': 1\}"),
    ("a number in quotes", "1.5", r"'1\.5'"),
    ("a list in a cell", [1, 2], r"\[1, 2\]"),
    ("a time difference", np.timedelta64(1, "D"), "timedelta64"),
]:
    X = with_entry(0, object)
    X[1, 2] = bad
    says = (r"^X\[1, 2\]", shown, "convert X to floats")
    rejected_everywhere(name, X, DtypeError, says)
rejected_everywhere(
    "complex objects",
    with_entry(np.complex64(1j), object),
    DtypeError,
    (r"X\[1, 2\]", "complex", "real and imaginary parts as columns"),
)
for dtype in (complex, str, bytes, "M8[s]", "m8[s]", np.dtypes.StringDType()):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    says = (r"\bX has dtype", r"complex128|<U|\|S|\[s\]|StringDType", "as columns|encode it")
    rejected_everywhere(f"an array of {X.dtype}", X, DtypeError, says)
rejected_everywhere(
    "a structured array",
    np.zeros(5, [("a", float), ("b", float)]),
    DtypeError,
    ("^X has dtype", "'a'", "encode it"),
)
rejected_everywhere(
    "complex sparse",
    sparse.csr_array(CLOUD * 1j),
    DtypeError,
    ("X has dtype", "complex128", "real and imaginary parts"),
)
rejected_everywhere(
    "a ragged list", [[1, 2, 3], [4, 5]], DtypeError, ("^X=", r"\[4, 5\]", "the same length")
)
rejected_everywhere("one string", "abc", DtypeError, ("^X has dtype", "<U3", "encode it"))

# --- F5: columns of frames ----------------------------------------------------------------

DAYS = pd.date_range("2024-01-01", periods=4)
for name, column, shown in [
    ("strings", list("1234"), "str|object"),
    ("categories", pd.Categorical([1, 2, 1, 2]), "category"),
    ("datetimes", DAYS, "datetime64"),
    ("datetimes with a zone", DAYS.tz_localize("UTC"), "datetime64.*UTC"),
    ("timedeltas", DAYS - DAYS[0], "timedelta64"),
    ("periods", DAYS.to_period("M"), "period"),
]:
    says = ("column 'b' of X", shown, "encode it as numbers.*or leave it out")
    X = pd.DataFrame({"a": np.arange(4.0), "b": column})
    # Parquet has categories by what they are, which is integers.
    in_files = "good" if name == "categories" else "rejected"
    rejected_everywhere(f"pandas {name}", X, DtypeError, says, in_files=in_files)
for name, series in [
    ("strings", pl.Series(list("123"))),
    ("dates", pl.Series([0, 1, 2]).cast(pl.Date)),
    ("durations", pl.Series([0, 1, 2]).cast(pl.Duration)),
    ("categories", pl.Series(list("aba")).cast(pl.Categorical)),
    ("lists of text", pl.Series([["1"], ["2"], ["3"]])),
]:
    says = ("column 'b' of X", str(series.dtype).partition("(")[0], "encode it as numbers")
    X = pl.DataFrame({"a": [1, 2, 3], "b": series})
    rejected_everywhere(f"polars {name}", X, DtypeError, says)
for X in [
    pd.DataFrame({"a": [1, 2, 3], "b": pd.array([1, 2, pd.NA], "Int64")}),
    pd.DataFrame({"a": [1, 2, 3], "b": pd.array([True, False, pd.NA], "boolean")}),
    pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, np.nan]}),
    pl.DataFrame({"a": [1, 2, 3], "b": [1, 2, None]}),
]:
    name = f"a null in {type(X).__module__.partition('.')[0]} {X['b'].dtype}"
    says = ("^X contains", "NaN in row 2, column 1 .'b'.", "fill them in")
    rejected(f"fit: {name}", partial(fit, X), MissingValueError, says)
    call = partial(transform, X, X.head(2))
    rejected(f"transform: {name}", call, MissingValueError, says)
rejected_everywhere(
    "a lazy frame",
    pl.DataFrame(CLOUD).lazy(),
    DtypeError,
    ("^X", "LazyFrame", r"X\.collect\(\)"),
    in_files="none",
)
rejected_everywhere(
    "a column name given twice",
    pd.DataFrame(CLOUD, columns=["a", "b", "a"]),
    HeatSketchError,
    ("^X", "'a'", "rename"),
)
for bad, shown in [(None, "None"), (pd.NA, "<NA>")]:
    X = pd.DataFrame({"a": [1, 2, 3], "b": np.array([1, bad, 2.5], object)})
    says = (r"^column 'b' of X\[1\]", shown, "fill it in")
    rejected_everywhere(f"{shown} in a pandas column of objects", X, MissingValueError, says)
for name, column, shown in [
    ("text", list("123"), "string"),
    ("lists", [[1.0], [2.0], [3.0]], "list<"),
    ("days", pa.array([1, 2, 3], pa.date32()), "date32"),
    ("categories", pa.array([1, 2, 1]).dictionary_encode(), "dictionary<"),
]:
    X = pa.table({"a": [1, 2, 3], "b": column})
    says = ("column 'b' of X", shown, r"encode it as numbers.*or leave it out")
    rejected_everywhere(f"an Arrow table of {name}", X, DtypeError, says, in_files="none")
X = pa.table({"a": [1, 2, 3], "b": [1, 2, None]})
says = ("^X contains", "NaN in row 2, column 1 .'b'.", "fill them in")
rejected("fit: a null in an Arrow table", partial(fit, X), MissingValueError, says)
rejected_everywhere(
    "an Arrow table with a name given twice",
    pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"]),
    HeatSketchError,
    ("^X", "'a'", "rename"),
    in_files="none",
)
rejected(
    "column names of two types",  # scikit-learn's own
    partial(fit, pd.DataFrame(CLOUD, columns=["a", 1, 2])),
    TypeError,
    ("Feature names", "'int', 'str'", "convert them all to strings"),
)
NAMED = pd.DataFrame(CLOUD, columns=list("abc"))
for name, X in [
    ("pandas", NAMED),
    ("pandas nullable", NAMED.astype("Float64")),
    ("pandas sparse", NAMED.astype(pd.SparseDtype(float, 0.0))),
    ("pandas objects", NAMED.astype(object)),
    ("polars", pl.DataFrame(CLOUD, schema=["a", "b", "c"])),
    ("Arrow", pa.table(dict(zip("abc", CLOUD.T, strict=True)))),
]:
    works(f"{name} frame", partial(fit, X), partial(fit, CLOUD))
rejected(
    "transform: other feature names",  # scikit-learn's own
    partial(transform, NAMED.rename(columns={"a": "z"}), NAMED),
    ValueError,
    ("feature names", "- z", "should match"),
)
warned(
    "transform: feature names lost",  # scikit-learn's own
    partial(transform, CLOUD, NAMED),
    [UserWarning],
    ("^X", "valid feature names", "was fitted with"),
    equals=partial(transform, CLOUD),
)

# --- F6, F7: layouts, dtypes and shapes ---------------------------------------------------

COUNTS = np.round(CLOUD * 20).astype(int)
for dtype in (">f4", ">f8", ">i4", ">u2"):
    X = abs(COUNTS).astype(dtype)
    works(f"byte order {dtype}", partial(fit, X), partial(fit, X.astype(X.dtype.newbyteorder("="))))
for dtype in (np.longdouble, np.uint64, object):
    X = abs(COUNTS).astype(dtype)
    works(f"an array of {np.dtype(dtype)}", partial(fit, X), partial(fit, X.astype(float)))
for dtype in (np.float16, bool, np.int8):
    X = abs(COUNTS).astype(dtype)
    works(f"an array of {np.dtype(dtype)}", partial(fit, X), partial(fit, X.astype(np.float32)))


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


for dtype in (np.float32, np.float64, np.int64):
    X = COUNTS.astype(dtype)
    works(f"a tensor of {X.dtype}", partial(fit, Tensor(X)), partial(fit, X))
for error in (
    RuntimeError("Can't call numpy() on Tensor that requires grad."),
    TypeError("can't convert cuda:0 device type tensor to numpy."),
):
    says = ("^X=", "grad|cuda", r"pass X\.detach\(\)\.cpu\(\)\.numpy\(\)")
    rejected_everywhere(str(error), Tensor(CLOUD, error), DtypeError, says, in_files="none")
works("a matrix of numpy", partial(fit, np.asmatrix(CLOUD)), partial(fit, CLOUD))
foreign = sparse.csr_array(CLOUD)
foreign.data = foreign.data.astype(">f8")
works("sparse of byte order >f8", partial(fit, foreign), partial(fit, sparse.csr_array(CLOUD)))
works("Fortran order", partial(fit, np.asfortranarray(CLOUD)), partial(fit, CLOUD))
works("a strided view", partial(fit, np.repeat(CLOUD, 2, axis=1)[:, ::2]), partial(fit, CLOUD))
works("a view from behind", partial(fit, CLOUD[::-1][::-1]), partial(fit, CLOUD))


def from_file():
    with tempfile.TemporaryFile() as file:
        file.write(CLOUD.tobytes())
        file.flush()
        return fit(np.memmap(file, float, "r", shape=CLOUD.shape))


works("a read-only memory map", from_file, partial(fit, CLOUD))

for name, X, says in [  # scikit-learn's own, whose wording its estimator checks ask for
    ("a number", np.array(1.0), ("Expected 2D array", "scalar", "Reshape your data")),
    ("one dimension", CLOUD[:, 0], ("Expected 2D array", "1D array", "Reshape your data")),
    ("three dimensions", CLOUD[np.newaxis], ("array", "dim 3", "dim <= 2 is required")),
    ("no samples", CLOUD[:0], ("array", r"0 sample.*\(0, 3\)", "minimum of 1 is required")),
    ("no features", CLOUD[:, :0], ("array", r"0 feature.*\(40, 0\)", "minimum of 1 is required")),
    ("one sparse dimension", sparse.coo_array(CLOUD[:, 0]), ("input", r"\(40,\)", "Reshape")),
]:
    rejected_everywhere(name, X, ValueError, says)
rejected(
    "one sample", partial(fit, CLOUD[:1]), HeatSketchError, ("^X", "n_samples=1", "at least 2")
)
works(
    "two samples",
    lambda: fit(CLOUD[:2])[:2],
    lambda: fit(CLOUD[1::-1], row_ids=[1, 0])[1::-1],
)
works(
    "one feature",
    partial(fit, CLOUD[:, :1]),
    partial(fit, np.column_stack([CLOUD[:, :1], np.ones(40)])),  # a constant one adds nothing
)
rejected(
    "transform: a feature less",  # scikit-learn's own
    partial(transform, CLOUD[:, :2]),
    ValueError,
    ("X has", "2 features", "is expecting 3 features"),
)
rejected(
    "transform before fit",
    lambda: HeatSketch().transform(CLOUD),
    NotFittedError,
    ("HeatSketch", "not fitted yet", "Call 'fit'"),
)


def transform_after_failure():
    model = HeatSketch()
    try:
        model.fit(with_entry(np.nan))
    except MissingValueError:
        return model.transform(CLOUD)


rejected(
    "transform after a fit that failed",
    transform_after_failure,
    NotFittedError,
    ("HeatSketch", "not fitted yet", "Call 'fit'"),
)

# --- F1, F2, F3: connected components, isolated points, duplicates ---------------------------

TWICE = np.repeat(CLOUD[:5], 8, axis=0)
for name, parameters in [("all pairs", {}), ("bistochastic", {"normalization": "bistochastic"})]:
    works(  # duplicates have one row of A between them, so one embedding
        f"many duplicates, {name}",
        lambda parameters=parameters: fit(TWICE, **parameters)[:40],
        lambda parameters=parameters: np.repeat(fit(TWICE, **parameters)[:40:8], 8, axis=0),
    )
NO_HEAT = ("^The neighbour graph", "{} connected components", "more neighbours than n_neighbors")
for name, X, parameters, n_components in [
    ("an isolated point", np.vstack([CLOUD, [[1e3] * 3]]), {"epsilon": 4.0}, 2),
    ("two clusters", np.vstack([CLOUD, CLOUD + 1e3]), {"epsilon": 4.0}, 2),
    ("two clusters of neighbours", np.vstack([CLOUD, CLOUD + 1e3]), {"n_neighbors": 9}, 2),
    ("more duplicates than neighbours", np.vstack([TWICE, TWICE + 1e3]), {"n_neighbors": 4}, 2),
]:
    says = (NO_HEAT[0], NO_HEAT[1].format(n_components), NO_HEAT[2])
    warned(name, partial(fit, X, **parameters), [DisconnectedGraphWarning], says)
EQUAL = np.ones((20, 3))
NOTHING_APART = ("epsilon cannot be estimated", r"\(20, 20\)", "give epsilon.*or drop")
for name, X in [("equal", EQUAL), ("zero", EQUAL * 0)]:
    call = partial(fit, X, epsilon="auto")
    rejected(f"all points {name}, epsilon chosen", call, DegenerateKernelError, NOTHING_APART)
rejected(
    "all points equal, sparse",
    partial(fit, sparse.csr_array(EQUAL)),
    ScaleError,
    ("^X is sparse", "1.73 from zero", "drop the duplicates"),
)
for epsilon in (1.0, "local"):
    warned(
        f"all points equal, epsilon={epsilon}",
        partial(fit, EQUAL, epsilon=epsilon),
        [DegenerateKernelWarning],
        ("epsilon=", r"leaves \d\.\de-16 of all differences", "unless all points of X are equal"),
    )

ISOLATED = ("epsilon={}", "100% of the 40 points", "use a larger epsilon")
for epsilon, dtype in [(1e-9, "f8"), (1e-310, "f8"), (1e-50, "f4")]:
    rejected(
        f"epsilon={epsilon} for {dtype}",
        partial(fit, CLOUD.astype(dtype), epsilon=epsilon),
        DegenerateKernelError,
        (ISOLATED[0].format(epsilon), *ISOLATED[1:]),
    )
warned(
    "epsilon too small for some",
    partial(fit, CLOUD, epsilon=0.05),
    [DegenerateKernelWarning, DisconnectedGraphWarning],
    ("epsilon=0.05", "leaves 30%", "larger epsilon"),
)
for epsilon, kind in [(1e6, HeatSketch), (1e308, HeatSketch), (1e6, DiffusionMap)]:
    warned(
        f"epsilon={epsilon} too large for {kind.__name__}",
        partial(fit, CLOUD, kind=kind, epsilon=epsilon, n_neighbors=None),
        [DegenerateKernelWarning],
        ("epsilon=1", "so large that one step.*e-", "smaller epsilon"),
    )
warned(
    "epsilon beyond float32",
    partial(fit, CLOUD.astype("f4"), epsilon=1e50, n_neighbors=None, power=2),
    [UnderflowWarning],
    ("power=2", "float32", "smaller epsilon"),
)
for kind, power in [(HeatSketch, 3000), (DiffusionMap, 1e5)]:
    for stationary in [{}, {"stationary": "keep"}][: 2 if kind is HeatSketch else 1]:
        warned(
            f"{kind.__name__}(power={power}) {stationary} underflows float32",
            partial(fit, CLOUD.astype("f4"), kind=kind, power=power, epsilon=20.0, **stationary),
            [UnderflowWarning],
            (f"power={power}", "too small for float32", "smaller power"),
        )

# --- F8: scale ----------------------------------------------------------------------------

UNIT = CLOUD / abs(CLOUD).max()
for scale, dtype, verb in [
    (1e-200, "f8", "underflow float64; multiply"),
    (1e-310, "f8", "underflow float64; multiply"),
    (1e-154, "f8", "underflow float64; multiply"),
    (1e-147, "f8", "underflow float64; multiply"),
    (1e-25, "f4", "underflow float32; multiply"),
    (1e-16, "f4", "underflow float32; multiply"),
    (1e154, "f8", "overflow float64; divide"),
    (1e308, "f8", "overflow float64; divide"),
    (1e25, "f4", "overflow float32; divide"),
]:
    says = ("^X holds", f"{scale:.3g}".replace("+", r"\+"), f"{verb} X by")
    for X in (UNIT, sparse.csr_array(UNIT)):
        name = f"{type(X).__name__} of scale {scale} in {dtype}"
        rejected(name, partial(fit, (X * scale).astype(dtype)), ScaleError, says)
for scale, dtype in [(1e-145, "f8"), (1e-15, "f4")]:
    for n_neighbors in (15, None):
        works(
            f"{n_neighbors} neighbours at scale {scale} in {dtype}",
            partial(fit, (UNIT * scale).astype(dtype), n_neighbors=n_neighbors),
            partial(fit, UNIT.astype(dtype), n_neighbors=n_neighbors),
        )
says = ("^X holds", r"1e\+200", "overflow float64; divide")
rejected(
    "sparse ones times 1e200", partial(fit, sparse.csr_array((UNIT > 0) * 1e200)), ScaleError, says
)
for dtype, value in [("f8", 1e300), ("f4", 1e300), ("f4", 1e30)]:
    call = partial(transform, np.full((1, 3), value), CLOUD.astype(dtype))
    says = ("^X holds", f"{value:.0e}".replace("+", r"\+"), "overflow.*; divide X by")
    rejected(f"transform: {value} into a model of {dtype}", call, ScaleError, says)
works(
    "transform: a point next to zero",
    partial(transform, np.full((1, 3), 1e-200)),
    partial(transform, np.zeros((1, 3))),
)
says = ("^X holds", "1000", "divide X")
rejected("an integer beyond floats", partial(fit, [[10**400, 1], [1, 2]]), ScaleError, says)
if np.finfo(np.longdouble).max > np.finfo(float).max:
    X = CLOUD * np.longdouble("1e4000")
    says = ("^X contains", "inf", "fill them in")
    rejected("long doubles beyond float64", partial(fit, X), MissingValueError, says)
SHIFTED = 1e8 + CLOUD * 1e-3
works("spread 1e-3 at offset 1e8", partial(fit, SHIFTED), partial(fit, SHIFTED - 1e8))
rejected(
    "spread 1e-3 at offset 1e8, sparse",
    partial(fit, sparse.csr_array(SHIFTED)),
    ScaleError,
    ("^X is sparse", r"1.73e\+08 from zero", r"X\.toarray\(\)"),
)
works(  # distances from 1e-300 to 1e300, squared
    "all scales at once",
    lambda: np.array(
        [0 < estimate_epsilon(np.array([[1e-320, 1e-300, 1e300, 1.7e308]])).epsilon < np.inf]
    ),
    lambda: np.array([True]),
)
for name, metric, shown in [
    ("nan", lambda x, y: np.nan, "gives nan"),
    ("infinity", lambda x, y: np.inf, "gives inf"),
    ("too much", lambda x, y: 1e200, "gives inf"),
]:
    says = ("metric=<function", shown, "correct the metric")
    rejected(f"a metric that gives {name}", partial(fit, CLOUD, metric=metric), ScaleError, says)
rejected(
    "a metric that is not symmetric",
    partial(fit, CLOUD, metric=lambda x, y: max(x[0] - y[0], 0)),
    AffinityError,
    ("metric=<function", "row 4 of X is 0 from row 7", "average the two"),
)
FAR = ("rows of X", "40 of 40 rows.*row 0.*epsilon=", "check their scale, or fit with them")
for name, X, parameters in [
    ("all pairs", CLOUD, {}),
    ("neighbours", CLOUD, {"n_neighbors": 9}),
    ("float32", CLOUD.astype("f4"), {}),
    ("bistochastic", CLOUD, {"normalization": "bistochastic"}),
]:
    call = partial(transform, CLOUD + 1e6, X, **parameters)
    warned(f"transform: far points, {name}", call, [FarPointWarning], FAR)


def far_in_the_second_batch():
    with mock.patch("heatsketch.estimators._base.TRANSFORM_ENTRIES", 40 * 10):
        return transform(np.vstack([CLOUD[:15], [[1e6] * 3]]))


says = ("rows of X", "the first of them row 15", "check their scale")
warned("transform: a far point in a later batch", far_in_the_second_batch, [FarPointWarning], says)
