"""More rows of the table of ``bad_inputs.py``: parameters, sparse X, matrices over pairs."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace
from unittest import mock

import numpy as np
from bad_inputs import CLOUD, fit, rejected, transform, warned, works
from scipy import sparse
from sklearn.utils._param_validation import InvalidParameterError

from heatsketch import DiffusionMap, HeatLabels, HeatSketch, LocalEngine
from heatsketch.diffusion import gaussian_affinity
from heatsketch.exceptions import (
    AffinityError,
    AmbiguousRowWarning,
    DegenerateKernelError,
    DtypeError,
    HeatSketchError,
    MemoryBudgetError,
    RareClassWarning,
    SaturationWarning,
    ScaleError,
    ScalingError,
    SpectrumError,
    UnderflowWarning,
    ZeroDiagonalWarning,
)
from heatsketch.graph import _ivf as neighbor_lists
from heatsketch.graph import _neighbors as graph

# --- parameters: scikit-learn's own words, which state the range --------------------------

for name, bad in [
    *[("epsilon", bad) for bad in (-1.0, 0, np.nan, np.inf, "wide", None, [1.0])],
    *[("n_neighbors", bad) for bad in (1, 0, -3, 2.5, "many")],
    *[("n_components", bad) for bad in (0, -2, 2.0, True, None)],
    *[("power", bad) for bad in (-1, np.nan, "long")],
    ("neighbors", "faiss"),
    ("metric", "manhatan"),
    ("affinity", "rbf"),
    ("normalization", "none"),
    ("weighting", "density"),
    ("engine", "spark"),
]:
    for kind in (HeatSketch, DiffusionMap):
        call = partial(fit, CLOUD, kind=kind, **{name: bad})
        says = (f"'{name}' parameter of {kind.__name__}", re.escape(repr(bad)), "must be")
        rejected(f"{kind.__name__}({name}={bad!r})", call, InvalidParameterError, says)
for name, bad in [
    ("power", 0),
    ("power", 0.5),
    ("random_matrix", "uniform"),
    ("stationary", True),
    ("random_state", -1),
    ("random_state", "seed"),
]:
    says = (f"'{name}' parameter of HeatSketch", re.escape(repr(bad)), "must be")
    call = partial(fit, CLOUD, **{name: bad})
    rejected(f"HeatSketch({name}={bad!r})", call, InvalidParameterError, says)
for bad in (-1.0, 0.0, np.nan):
    says = ("epsilon=", str(bad), "must be positive; use estimate_epsilon")
    call = partial(gaussian_affinity, np.ones((2, 2)), epsilon=bad)
    rejected(f"gaussian_affinity(epsilon={bad})", call, HeatSketchError, says)
for n_neighbors in (40, 41):
    works(
        f"{n_neighbors} neighbours of 40 points",
        partial(fit, CLOUD, n_neighbors=n_neighbors),
        partial(fit, CLOUD, n_neighbors=None),
    )
rejected(
    "as many eigenvectors as points",
    partial(fit, CLOUD, kind=DiffusionMap, n_components=40),
    HeatSketchError,
    ("n_components=40", "40 points", "use n_components=1 to 39"),
)
rejected(
    "F12: a root of a negative eigenvalue",
    partial(fit, CLOUD, kind=DiffusionMap, n_components=39, n_neighbors=5, power=1.5),
    SpectrumError,
    ("power=1.5", "eigenvalue -0", "use an integer power"),
)

rejected(
    "a power that is not whole, of a negative eigenvalue",
    partial(fit, CLOUD, n_neighbors=5, power=2.5),
    SpectrumError,
    ("^power=2.5", "negative eigenvalue", "use an integer power"),
)
says = ("^power=2", "its largest entry is 0", "If all points of X are equal")
warned("equal points", partial(fit, np.ones((9, 2))), [UnderflowWarning], says)

# --- methods of a fitted sketch -------------------------------------------------------------


def ask(method, *arguments):
    return getattr(HeatSketch(4, power=2).fit(CLOUD), method)(*arguments)


for method, bad, says in [
    ("grow", "x", ("n_components=", "'x'", "integer of at least 1")),
    ("grow", 8.5, ("n_components=", "8.5", "integer of at least 1")),
    ("path", "x", ("powers=", "'x'", "integer of at least 0")),
    ("path", None, ("powers=", "None", "integer of at least 0")),
    ("path", [1, 2.5], ("powers=", "2.5", "integer of at least 0")),
    ("pseudotime", 40, ("root=", "40", "integer from 0 to 39")),
    ("pseudotime", -1, ("root=", "-1", "integer from 0 to 39")),
    ("pseudotime", "a", ("root=", "'a'", "integer from 0 to 39")),
    ("diffusion_map", 0, ("n_components=", "0", "integer from 1 to 4")),
    ("diffusion_map", 1000, ("n_components=", "1000", "integer from 1 to 4")),
]:
    name, call = f"{method}({bad!r})", partial(ask, method, bad)
    error = HeatSketchError if isinstance(bad, int) else DtypeError
    rejected(name, call, error, (f"^{says[0]}", *says[1:]))
call = partial(ask, "drift", DiffusionMap(2).fit(CLOUD))
rejected("drift of a map", call, DtypeError, ("^other", "DiffusionMap", "give a fitted HeatSketch"))
for name, bad, least in [
    ("memory_limit", "2GiB", 1),
    ("memory_limit", -5, 1),
    ("memory_limit", np.nan, 1),
    ("graph_tolerance", -1, 0),
    ("graph_tolerance", None, 0),
]:
    says = (f"^{name}=", re.escape(repr(bad)), f"must be a number of at least {least}")
    rejected(
        f"LocalEngine({name}={bad!r})", partial(LocalEngine, **{name: bad}), HeatSketchError, says
    )

for name, ids, error, says in [
    ("given twice", [0, *range(39)], HeatSketchError, (r"\[0, 0, 1", "an id of its own")),
    ("too few", range(39), HeatSketchError, (r"shape \(39,\)", "must be 40.*number the rows")),
    ("negative", -np.arange(40), HeatSketchError, (r"array\(", "at least 0.*number the rows")),
    ("fractions", np.arange(40) / 2, DtypeError, (r"array\(", "40 integers.*number the rows")),
    ("strings", [*map(str, range(40))], DtypeError, ("'0', '1'", r"heatsketch\.row_numbers\(")),
    ("truths", np.ones(40, bool), DtypeError, (r"array\(", "integers.*number the rows")),
    ("ragged", [[1], [1, 2]], DtypeError, (r"\[1, 2\]", "the same length")),
]:
    call = partial(fit, CLOUD, row_ids=ids)
    rejected(f"row_ids {name}", call, error, ("^row_ids=", *says))

# --- sparse X -----------------------------------------------------------------------------

SPARSE = sparse.csr_array(CLOUD)


def rebuilt(*, order, index_dtype=np.int32, parts=1):
    """The same matrix with its entries in another order, and each split into equal parts."""
    columns = np.tile(order, (40, 1)).repeat(parts, axis=1).ravel()
    data = CLOUD[:, order].repeat(parts, axis=1).ravel() / parts
    indptr = np.arange(0, 120 * parts + 1, 3 * parts)
    X = sparse.csr_array((data, columns, indptr), shape=(40, 3))
    X.indices, X.indptr = columns.astype(index_dtype), indptr.astype(index_dtype)
    return X


works("sparse", partial(fit, SPARSE), partial(fit, CLOUD))
for form in ("csc", "coo", "lil", "dia"):
    works(f"sparse {form}", partial(fit, SPARSE.asformat(form)), partial(fit, SPARSE))
for name, X in [
    ("int64 indices", rebuilt(order=[0, 1, 2], index_dtype=np.int64)),
    ("unsorted entries", rebuilt(order=[2, 0, 1])),
    ("duplicate entries", rebuilt(order=[0, 1, 2], parts=2)),
]:
    works(f"sparse with {name}", partial(fit, X), partial(fit, SPARSE))
works("fit dense, transform sparse", partial(transform, SPARSE), partial(transform, CLOUD))
works(
    "fit sparse, transform dense",
    partial(transform, CLOUD, SPARSE),
    partial(transform, SPARSE, SPARSE),
)
for metric in ("manhattan", "jaccard"):
    says = (f"metric='{metric}'", r"sparse X of shape \(40, 3\)", r"X\.toarray\(\)")
    rejected(f"sparse with {metric}", partial(fit, SPARSE, metric=metric), DtypeError, says)
for X in (np.vstack([CLOUD, np.zeros(3)]), sparse.vstack([SPARSE, sparse.csr_array((1, 3))])):
    says = ("metric='cosine'", "row 40 of X", "drop such rows")
    call = partial(fit, X, metric="cosine")
    rejected(f"cosine of a zero row, {type(X).__name__}", call, AffinityError, says)

# --- F9, F10, F11: matrices over pairs ----------------------------------------------------

DISTANCES = np.sqrt(graph.neighbor_graph(CLOUD))
AFFINITIES = np.exp(-(DISTANCES**2))
STAR = np.zeros((6, 6))
STAR[0, 1:] = STAR[1:, 0] = 1


def changed(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


for name, matrix in [("affinity", AFFINITIES), ("metric", DISTANCES)]:
    given = partial(fit, **{name: "precomputed"})
    for problem, X, says in [
        ("not square", matrix[:30], (r"shape \(30, 40\)", "one row and one column")),
        ("asymmetric", changed(matrix, 1, 2, 9.0), ("differ by up to", r"\(X \+ X\.T\) / 2")),
        ("negative", changed(matrix, 1, 2, -0.5), ("X holds -0.5", "correct X")),
    ]:
        says = (f"^{name}='precomputed'", *says)
        rejected(f"{name}: {problem}", partial(given, X), AffinityError, says)
        if problem != "asymmetric" or name == "affinity":
            call = partial(given, sparse.csr_array(X))
            rejected(f"{name}: {problem}, sparse", call, AffinityError, says)
works(
    "affinities",
    partial(fit, AFFINITIES, affinity="precomputed", normalization="symmetric"),
    partial(fit, CLOUD, epsilon=1.0, n_neighbors=None),
)
works("distances", partial(fit, DISTANCES, metric="precomputed"), partial(fit, CLOUD))

given = partial(fit, affinity="precomputed")
empty = changed(changed(AFFINITIES, 7, slice(None), 0), slice(None), 7, 0)
for X in (empty, sparse.csr_array(empty)):
    says = ("^affinity='precomputed'", "row 7 of X", "positive number on its diagonal or drop")
    call = partial(given, X, self_loops=False)
    rejected(f"affinity: a zero row, {type(X).__name__}", call, AffinityError, says)
for scale in (1e-150, 1e150, 1e308):
    says = ("^affinity='precomputed'", "row 0 of X sums to", "divide X by its largest")
    rejected(f"affinity: scale {scale}", partial(given, AFFINITIES * scale), ScaleError, says)
call = partial(transform, AFFINITIES * 1e-320, AFFINITIES, affinity="precomputed")
rejected("transform: affinities next to zero", call, ScaleError, says)
rejected(
    "affinity: only a diagonal",
    partial(given, np.eye(20)),
    DegenerateKernelError,
    ("^affinity='precomputed'", "100% of the 20 points", "more than its diagonal"),
)
says = ("^affinity='precomputed'", "40 zeros", "use self_loops=True")
X = AFFINITIES * (1 - np.eye(40))
warned("affinity: no diagonal", partial(given, X, self_loops=False), [ZeroDiagonalWarning], says)
says = ("^affinity='precomputed'", "1 rows of X, the first of them row 1", "use embedding_")
call = partial(transform, STAR[:2], STAR, affinity="precomputed")
warned("transform: a row of several nodes", call, [AmbiguousRowWarning], says)


def pseudotime_of_parts_with_a_weak_link():
    apart = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    W = np.where(apart <= 2, 1.0, 0.0)
    W[:20, 20:] *= 1e-12
    W[20:, :20] *= 1e-12
    return HeatSketch(8, affinity="precomputed").fit(W).pseudotime(0).distance


says = ("Heat needs more than 1,000,000 steps", "almost disconnected", "more neighbours or fewer")
warned("a weak link", pseudotime_of_parts_with_a_weak_link, [SaturationWarning], says)


def sets_of_classes_with_few_labels():
    y = np.repeat(np.arange(len(CLOUD) // 2), 2)
    return HeatLabels().fit(CLOUD, y).predict_set(CLOUD[:5], coverage=0.95)


says = ("^coverage=0.95", "only held-out labels", "label more rows, or use a smaller coverage")
warned("few labels a class", sets_of_classes_with_few_labels, [RareClassWarning], says)
rejected(
    "affinity: a star without diagonal",
    partial(given, STAR, normalization="bistochastic", self_loops=False),
    ScalingError,
    ("^no scaling of K", r"row sums off by \d", "add a positive diagonal"),
    warnings=[ZeroDiagonalWarning],
)

for name, value in [("epsilon", 0.5), ("n_neighbors", 5), ("metric", "cosine")]:
    says = (f"^{name}=", f"{value!r} has no use with affinity", "leave it out")
    rejected(
        f"affinity: with {name}",
        partial(fit, AFFINITIES, affinity="precomputed", **{name: value}),
        HeatSketchError,
        says,
    )

given = partial(fit, metric="precomputed")
for name, X in [("distances", DISTANCES), ("sparse distances", sparse.csr_array(DISTANCES))]:
    for scale, verb in [(1e-200, "underflow float64; multiply"), (1e200, "overflow float64; div")]:
        says = ("^X holds", f"e.{str(scale)[-3:]}", verb)
        rejected(f"metric: {name} of scale {scale}", partial(given, X * scale), ScaleError, says)
rejected(
    "metric: far from oneself",
    partial(given, changed(DISTANCES, 3, 3, 1.0)),
    AffinityError,
    ("^metric='precomputed'", r"X\[3, 3\] is 1", "set the diagonal of X to 0"),
)
rejected(
    "metric: a sparse row without a distance",
    partial(given, sparse.csr_array(changed(DISTANCES, 7, slice(None), 0))),
    AffinityError,
    ("^metric='precomputed'", "row 7 of X", "at least one neighbour"),
)
rejected(
    "metric: sparse, and n_neighbors",
    partial(given, sparse.csr_array(DISTANCES), n_neighbors=5),
    HeatSketchError,
    ("^n_neighbors=5", "metric='precomputed' with a sparse X", "leave it out"),
)

# --- F15, F16: counts and memory, faked ---------------------------------------------------


def fit_in_a_gibibyte(kind=HeatSketch):
    X = np.arange(250_000.0)[:, np.newaxis]
    return fit(X, kind=kind, n_neighbors=None, engine=LocalEngine(memory_limit=2**30))


def ends_of_faked_blocks():
    """Three blocks of rows that claim to store 2**30 entries each."""
    indptr = np.array([0, 2**30], np.int32)
    entries = {"indices": np.zeros(1, np.int32), "data": np.zeros(1)}
    blocks = [SimpleNamespace(nnz=2**30, indptr=indptr, shape=(1, 9), **entries)] * 3
    with mock.patch.object(graph.sparse, "csr_array", lambda parts, shape: parts):
        return graph._stack(blocks)[2]


rejected(
    "all pairs beyond memory",
    fit_in_a_gibibyte,
    MemoryBudgetError,
    ("n_neighbors=None", r"about 93\d\.\d GiB of the 1\.0 GiB", "use 15 neighbours"),
)
works(
    "more entries than int32 can count",
    ends_of_faked_blocks,
    lambda: np.array([0, 2**30, 2**31, 3 * 2**30], np.int64),
)
for counts, bits in [((9, 2**31 - 1), 32), ((9, 2**31), 64), ((2**31, 9), 64)]:
    works(
        f"index_dtype{counts}",
        lambda counts=counts: np.array([8 * neighbor_lists.index_dtype(*counts)().itemsize]),
        lambda bits=bits: np.array([bits]),
    )
