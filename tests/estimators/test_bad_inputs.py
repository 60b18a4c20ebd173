"""Bad input ends in a typed error that names the argument, in a warning, or in a sound result.

Nothing else is warned of, by numpy above all; no output holds NaN or infinity. Points that every
entry point rejects (``bad_points.py``) are given to fit, transform, a cluster and the command line.
"""

import importlib
import os
import re
import tracemalloc
import warnings
from functools import partial
from unittest import mock

import dask.array as da
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from bad_points import BAD_POINTS, CLOUD, NAMED, SAME_POINTS
from distributed import Client
from points_in_files import as_file
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError
from typer.testing import CliRunner

from heatsketch import (
    DaskEngine,
    DiffusionMap,
    HeatClustering,
    HeatGraph,
    HeatLabels,
    HeatSketch,
    LocalEngine,
    NearIsometry,
    compare,
    drift,
    estimate_memory,
    sketch,
    smooth,
)
from heatsketch.cli import app
from heatsketch.cli._exit_codes import ExitCode
from heatsketch.engines._dask._connection import processes
from heatsketch.exceptions import (
    AffinityError,
    AmbiguousRowWarning,
    DegenerateKernelError,
    DegenerateKernelWarning,
    DisconnectedGraphWarning,
    DtypeError,
    FarPointWarning,
    HeatSketchError,
    HeatSketchWarning,
    MemoryBudgetError,
    MissingValueError,
    RareClassWarning,
    SaturationWarning,
    ScaleError,
    ScalingError,
    SpectrumError,
    UnderflowWarning,
    ZeroDiagonalWarning,
)
from heatsketch.graph import neighbor_graph

pytestmark = pytest.mark.timeout(30, func_only=True)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import what a fit needs, outside of the seconds of the first test."""
    HeatSketch(4).fit(CLOUD).transform(CLOUD)


def fit(X, *, kind=HeatSketch, n_components=4, ids=None, **parameters):
    """Fit, and return the embedding, and that of X as if it were new."""
    model = kind(n_components, **parameters).fit(X, ids=ids)
    return np.vstack([model.embedding_, model.transform(X)])


def transform(X_new, X=CLOUD, *, kind=HeatSketch, n_components=4, **parameters):
    return kind(n_components, **parameters).fit(X).transform(X_new)


def linked(W, *, X_new=None, power="all", **options):
    """Return the sketch of given weights, and that of rows of weights."""
    made = sketch(HeatGraph.from_affinity(W, **options), 4, power=power)
    return np.vstack([made.embedding, made.extend(made.graph.rows(W if X_new is None else X_new))])


def listed(indices, distances, X=None, **options):
    return HeatGraph.from_neighbors(indices, distances, X, **options)


def raised_by(call, *arguments, **options):
    """Return the error of a call that must warn of nothing."""
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("error")
        call(*arguments, **options)
    return caught.value


# --- points -------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [fit, transform, HeatGraph.from_points])
@pytest.mark.parametrize("name", BAD_POINTS)
def test_bad_points_are_rejected(name, entry):
    X, kind, _ = BAD_POINTS[name]
    error = raised_by(entry, X)
    assert type(error) is kind or (kind is HeatSketchError and isinstance(error, kind)), repr(error)
    assert kind is ValueError or re.search(r"\bX\b", str(error))


@pytest.fixture(scope="module")
def client():
    with processes(1, silence_logs=50) as cluster, Client(cluster, set_as_default=False) as joined:
        joined.run(importlib.import_module, "heatsketch._core.checks")
        yield joined


# A text names a file there.
@pytest.mark.parametrize(
    "name", [name for name, row in BAD_POINTS.items() if not isinstance(row[0], str)]
)
def test_a_cluster_rejects_bad_points(name, client, tmp_path):
    X, kind, _ = BAD_POINTS[name]
    error = raised_by(fit, X, n_neighbors=5, engine=DaskEngine(client, storage=tmp_path))
    assert type(error) is kind, repr(error)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, (X, *_) in BAD_POINTS.items()
        if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf"
    ],
)
def test_a_cluster_rejects_bad_blocks(name, client, tmp_path):
    X, kind, _ = BAD_POINTS[name]
    engine = DaskEngine(client, storage=tmp_path)
    error = raised_by(fit, da.from_array(X, chunks=(16, -1)), n_neighbors=5, engine=engine)
    assert type(error) is kind or (not X.size and isinstance(error, HeatSketchError))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.heatsketch"
    HeatSketch(4).fit(CLOUD).save(path)
    assert CliRunner().invoke(app, ["info", str(path)]).exit_code == ExitCode.DONE  # all imported
    return path


@pytest.mark.parametrize("name", [name for name, row in BAD_POINTS.items() if row[2] != "none"])
def test_the_command_line_rejects_bad_points(name, model, tmp_path):
    X, _, in_files = BAD_POINTS[name]
    path = as_file(X, tmp_path)
    for words in (["embed", path], ["transform", model, path]):
        if words[0] == "transform" and in_files == "good":
            continue  # it may have another number of columns
        result = CliRunner().invoke(app, [*map(str, words), "-o", str(tmp_path / "out.npy")])
        if in_files == "good":
            assert result.exit_code == ExitCode.DONE, result.output
            continue
        assert result.exit_code in {ExitCode.INPUT, ExitCode.DATA}, result.output
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", SAME_POINTS)
def test_points_may_come_in_any_form(name):
    wanted = fit(CLOUD)
    np.testing.assert_allclose(fit(SAME_POINTS[name]), wanted, atol=1e-13 * abs(wanted).max())


# --- parameters, matrices and models --------------------------------------------------------

DISTANCES = np.sqrt(neighbor_graph(CLOUD))
AFFINITIES = np.exp(-(DISTANCES**2))
INDICES = np.argsort(DISTANCES, axis=1)[:, :9]
NEAR = np.sort(DISTANCES, axis=1)[:, :9]
STAR = np.zeros((6, 6))
STAR[0, 1:] = STAR[1:, 0] = 1
MEASURED = {"metric": "precomputed"}
SPARSE = sparse.csr_array(CLOUD)
CHAIN = nx.path_graph(4)
Y = np.repeat(np.arange(20), 2)


def changed(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


EMPTY = changed(changed(AFFINITIES, 7, slice(None), 0), slice(None), 7, 0)


def of_sketch(method, *arguments, **options):
    made = sketch(HeatGraph.from_points(CLOUD), 4, power=2)
    return getattr(made, method)(*arguments, **options)


def of_graph(function, *arguments, **options):
    return function(HeatGraph.from_points(CLOUD), *arguments, **options)


def all_pairs(kind=HeatSketch):
    """Fit more than the memory that is allowed."""
    X = np.arange(250_000.0)[:, np.newaxis]
    return fit(X, kind=kind, n_neighbors=None, engine=LocalEngine(memory_limit=2**30))


def after_a_failed_fit():
    model = HeatSketch()
    with pytest.raises(MissingValueError):
        model.fit(CLOUD * np.nan)
    return model.transform(CLOUD)


def labels(y=Y, *, weights=None, X=CLOUD, **parameters):
    return HeatLabels(**parameters).fit(X, y, label_weights=weights).transduction_


OF_BOTH = [
    *[("weights", bad) for bad in (-1.0, 0, np.nan, np.inf, "wide", None, [1.0])],
    *[("n_neighbors", bad) for bad in (1, 0, -3, 2.5, "many")],
    *[("n_components", bad) for bad in (0, -2, 2.0, None)],
    *[("power", bad) for bad in (-1, np.nan, "long")],
    *[("metric", "manhatan"), ("engine", "spark"), ("normalization", "none")],
    ("weighting", "density"),
]
OF_SKETCHES = [("power", 0), ("power", 0.5), ("random_state", -1), ("random_state", "seed")]
OF_GRAPHS = [("n_neighbors", 1), ("metric", "rbf"), ("normalization", "auto"), ("weights", -1.0)]
OF_SKETCH = [
    *[("n_components", 0), ("n_components", 2.5), ("power", "long"), ("power", 0.5)],
    *[("weighting", "none"), ("stationary", "keep"), ("stationary", True)],
    ("random_matrix", "uniform"),
]
INVALID = [
    *[
        (partial(fit, CLOUD, kind=kind, **{name: bad}), InvalidParameterError, name)
        for kind, rows in ((HeatSketch, OF_BOTH + OF_SKETCHES), (DiffusionMap, OF_BOTH))
        for name, bad in rows
    ],
    *[
        (partial(LocalEngine, **{name: bad}), HeatSketchError, name)
        for name, values in {"memory_limit": ("2GiB", -5, np.nan), "graph_tolerance": (-1,)}.items()
        for bad in values
    ],
    *[
        (partial(make, ids=ids), HeatSketchError, "ids")
        for make in (partial(fit, CLOUD), partial(linked, AFFINITIES))
        for ids in ([0, *range(39)], range(39))
    ],
    *[
        (partial(fit, CLOUD, ids=ids), DtypeError, "ids")
        for ids in (np.arange(40) / 2, np.ones(40, bool), [[1], [1, 2]])
    ],
    (partial(fit, CLOUD, weighting="symmetric"), HeatSketchError, "weighting"),
    (partial(fit, CLOUD, kind=DiffusionMap, n_components=40), HeatSketchError, "n_components"),
    (
        partial(fit, CLOUD, kind=DiffusionMap, n_components=39, n_neighbors=5, power=1.5),
        SpectrumError,
        "power",
    ),
    (partial(fit, CLOUD, n_neighbors=5, power=2.5), SpectrumError, "power"),
    (partial(fit, CLOUD[:1]), HeatSketchError, "X"),
    (partial(fit, NAMED.rename(columns={"a": 1})), TypeError, "Feature names"),
    (partial(transform, NAMED.rename(columns={"a": "z"}), NAMED), ValueError, "feature names"),
    (partial(transform, CLOUD[:, :2]), ValueError, "X has 2 features"),
    (partial(transform, da.ones((5, 2))), ValueError, "X has 2 features"),
    (partial(transform, da.from_array(changed(CLOUD, 1, 1, np.inf))), MissingValueError, "X"),
    (partial(transform, da.ones((5, 3), dtype=complex)), DtypeError, "X"),
    *[
        (partial(transform, X, X[:2]), MissingValueError, "X")
        for X in (pd.DataFrame({"a": [1, 2, np.nan]}), pl.DataFrame({"a": [1, 2, None]}))
    ],
    *[
        (lambda kind=kind: kind().transform(CLOUD), NotFittedError, kind.__name__)
        for kind in (HeatSketch, DiffusionMap, NearIsometry)
    ],
    *[
        (lambda kind=kind: kind().predict(CLOUD), NotFittedError, kind.__name__)
        for kind in (HeatLabels, HeatClustering)
    ],
    (after_a_failed_fit, NotFittedError, "HeatSketch"),
    # --- graphs and sketches
    *[
        (partial(HeatGraph.from_points, CLOUD, **{name: bad}), HeatSketchError, name)
        for name, bad in OF_GRAPHS
    ],
    *[(partial(of_graph, sketch, **{name: bad}), HeatSketchError, name) for name, bad in OF_SKETCH],
    *[(partial(f, CLOUD), HeatSketchError, "graph") for f in (sketch, partial(smooth, values=Y))],
    *[(partial(of_sketch, "grow", bad), HeatSketchError, "n_components") for bad in ("x", 8.5, 2)],
    *[(partial(of_sketch, "path", bad), HeatSketchError, "powers") for bad in ("x", None, [2.5])],
    *[(partial(of_sketch, "pseudotime", bad), HeatSketchError, "root") for bad in (40, -1, "a")],
    *[(partial(of_sketch, "diffusion_map", n), HeatSketchError, "n_components") for n in (0, 1000)],
    *[
        (partial(of_sketch, "neighbors", rows, n), HeatSketchError, "n_neighbors")
        for rows, n in ((np.ones((3, 4)), 40), ([0], 39))
    ],
    # --- functions
    (lambda: drift(DiffusionMap(2).fit(CLOUD), HeatSketch(4).fit(CLOUD)), DtypeError, "before"),
    *[
        (partial(estimate_memory, **{"n_points": 9, "n_features": 9} | bad), HeatSketchError, name)
        for bad in ({"n_points": 0}, {"n_features": -1})
        for name in bad
    ],
    # --- other estimators
    (partial(labels, np.full(40, -1)), HeatSketchError, "y"),
    (partial(labels, Y[1:]), HeatSketchError, "y"),
    *[
        (partial(labels, weights=weights), HeatSketchError, "label_weights")
        for weights in (-np.ones(40), np.ones(39))
    ],
    *[
        (partial(labels, Y % 2, priors=priors), HeatSketchError, "priors")
        for priors in ([1.0], [0.5, 0.7], [1.5, -0.5])
    ],
    (partial(labels, n_neighbors=None), HeatSketchError, "n_neighbors"),
    (lambda: HeatClustering(41).fit(CLOUD), HeatSketchError, "n_clusters"),
    (lambda: NearIsometry(2).fit(SPARSE), DtypeError, "X"),
    # --- sparse points, and bandwidths
    *[(partial(fit, SPARSE, metric=m), DtypeError, "metric") for m in ("manhattan", "jaccard")],
    *[
        (partial(fit, form(changed(CLOUD, 7, slice(None), 0)), metric="cosine"), AffinityError, "X")
        for form in (np.asarray, sparse.csr_array)
    ],
    *[
        (partial(fit, np.ones((20, 3)) * c, weights="gaussian"), DegenerateKernelError, "weights")
        for c in (0, 1)
    ],
    (partial(fit, sparse.csr_array(np.ones((20, 3)))), ScaleError, "X"),
    *[
        (partial(fit, CLOUD.astype(dtype), weights=weights), DegenerateKernelError, "weights")
        for weights, dtype in [(1e-9, "f8"), (1e-310, "f8"), (1e-50, "f4")]
    ],
    *[
        (partial(fit, form((CLOUD * scale).astype(dtype))), ScaleError, "X")
        for scale, dtype in [
            *[(1e-310, "f8"), (1e-148, "f8"), (1e-17, "f4")],
            *[(1e154, "f8"), (1e25, "f4")],
        ]
        for form in (np.asarray, sparse.csr_array)
    ],
    *[
        (partial(transform, np.full((1, 3), value), CLOUD.astype(dtype)), ScaleError, "X")
        for dtype, value in [("f8", 1e300), ("f4", 1e300), ("f4", 1e30)]
    ],
    (partial(fit, [[10**400, 1], [1, 2]]), ScaleError, "X"),
    (partial(fit, sparse.csr_array(1e8 + CLOUD * 1e-3)), ScaleError, "X"),
    *[
        (partial(fit, CLOUD, metric=lambda x, y, value=value: value), ScaleError, "metric")
        for value in (np.nan, np.inf, 1e200)
    ],
    (partial(fit, CLOUD, metric=lambda x, y: max(x[0] - y[0], 0)), AffinityError, "metric"),
    # --- matrices over pairs
    *[
        (partial(fit, form(bad), **MEASURED), AffinityError, "metric")
        for form in (np.asarray, sparse.csr_array)
        for bad in (DISTANCES[:30], changed(DISTANCES, 1, 2, -0.5))
    ],
    *[
        (partial(linked, form(bad)), AffinityError, "weights|W")
        for form in (np.asarray, sparse.csr_array)
        for bad in (AFFINITIES[:30], changed(AFFINITIES, 1, 2, -0.5), changed(AFFINITIES, 1, 2, 9))
    ],
    (partial(fit, sparse.csr_array(changed(AFFINITIES, 1, 2, 9.0))), HeatSketchError, "symmetric"),
    (partial(fit, changed(DISTANCES, 1, 2, 9.0), **MEASURED), AffinityError, "metric"),
    *[
        (partial(linked, form(EMPTY), self_loops=False), AffinityError, "weights")
        for form in (np.asarray, sparse.csr_array)
    ],
    *[(partial(linked, AFFINITIES * c), ScaleError, "weights") for c in (1e-150, 1e150, 1e308)],
    (partial(linked, AFFINITIES, X_new=AFFINITIES * 1e-320), ScaleError, "weights"),
    (partial(linked, np.eye(20)), DegenerateKernelError, "links"),
    *[
        (partial(fit, HeatGraph.from_points(CLOUD), **{name: value}), HeatSketchError, name)
        for name, value in [("weights", 0.5), ("n_neighbors", 5), ("metric", "cosine")]
    ],
    *[
        (partial(fit, form(DISTANCES) * scale, **MEASURED), ScaleError, "X")
        for form in (np.asarray, sparse.csr_array)
        for scale in (1e-200, 1e200)
    ],
    (partial(fit, changed(DISTANCES, 3, 3, 1.0), **MEASURED), AffinityError, "diagonal"),
    (
        partial(fit, sparse.csr_array(changed(DISTANCES, 7, slice(None), 0)), **MEASURED),
        AffinityError,
        "row 7",
    ),
    (
        partial(fit, sparse.csr_array(DISTANCES), n_neighbors=5, **MEASURED),
        HeatSketchError,
        "n_neighbors",
    ),
    (
        partial(fit, neighbor_graph(CLOUD, n_neighbors=5).tobsr((2, 2)), **MEASURED),
        AffinityError,
        "X",
    ),
    *[
        (partial(transform, graph, CHAIN), HeatSketchError, "nodes")
        for graph in (nx.path_graph(5), nx.path_graph(3))
    ],
    (partial(linked, nx.to_numpy_array(CHAIN), X_new=CHAIN), HeatSketchError, "X"),
    (all_pairs, MemoryBudgetError, "n_neighbors"),
]


@pytest.mark.parametrize(("call", "kind", "name"), INVALID)
def test_an_invalid_argument_is_named(call, kind, name):
    error = raised_by(call)
    assert type(error) is kind or (kind is HeatSketchError and isinstance(error, kind)), repr(error)
    assert re.search(rf"\b({name})\b", str(error)), error


# --- warnings -------------------------------------------------------------------------------


def parts_with_a_weak_link():
    apart = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    W = np.where(apart <= 2, 1.0, 0.0)
    W[:20, 20:] *= 1e-12
    W[20:, :20] *= 1e-12
    return sketch(HeatGraph.from_affinity(W), 8).pseudotime(0).distance


def rare_classes():
    return HeatLabels().fit(CLOUD, Y).predict_set(CLOUD[:5], coverage=0.95)


def few_units():
    rows = np.arange(40)
    return of_graph(compare, rows // 20, units=rows // 10).p_values


def far_in_the_second_batch():
    with mock.patch("heatsketch.heat._graph.BATCH_ENTRIES", 40 * 10):
        return transform(np.vstack([CLOUD[:15], [[1e6] * 3]]))


APART = np.vstack([CLOUD, CLOUD + 1e3])
DECAY, LOST, KERNEL = [UnderflowWarning], [DisconnectedGraphWarning], [DegenerateKernelWarning]
WARNED = [
    (partial(transform, CLOUD, NAMED), [UserWarning], "feature names"),
    (partial(fit, np.vstack([CLOUD, [[1e3] * 3]]), weights=4.0), LOST, "n_neighbors"),
    (partial(fit, APART, n_neighbors=9), LOST, "n_neighbors"),
    (partial(fit, np.repeat(APART[35:45], 8, axis=0), n_neighbors=4), LOST, "n_neighbors"),
    *[(partial(fit, np.ones((20, 3)), weights=e), KERNEL, "weights") for e in (1.0, "local")],
    (partial(fit, np.ones((9, 2))), DECAY, "power"),
    (partial(fit, CLOUD, weights=0.05), KERNEL + LOST, "weights"),
    *[
        (partial(fit, CLOUD, kind=kind, weights=weights, n_neighbors=None), KERNEL, "weights")
        for weights, kind in [(1e6, HeatSketch), (1e308, HeatSketch), (1e6, DiffusionMap)]
    ],
    *[
        (partial(fit, CLOUD.astype("f4"), kind=kind, power=power, weights=20.0), DECAY, "power")
        for kind, power in ((HeatSketch, 3000), (DiffusionMap, 1e5))
    ],
    *[
        (partial(transform, CLOUD + 1e6, **options), [FarPointWarning], "weights")
        for options in ({}, {"n_neighbors": 9}, {"normalization": "bistochastic"})
    ],
    (far_in_the_second_batch, [FarPointWarning], "row 15"),
    (
        partial(linked, AFFINITIES * (1 - np.eye(40)), self_loops=False),
        [ZeroDiagonalWarning],
        "self_loops",
    ),
    (partial(linked, STAR, X_new=STAR[:2]), [AmbiguousRowWarning], "row 1"),
    (parts_with_a_weak_link, [SaturationWarning], "neighbours"),
    (rare_classes, [RareClassWarning], "coverage"),
    (few_units, [HeatSketchWarning], "units"),
]


def caught_from(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return call(), caught


@pytest.mark.parametrize(("call", "kinds", "name"), WARNED)
def test_a_warning_names_what_to_change_and_points_at_the_caller(call, kinds, name):
    output, caught = caught_from(call)
    assert np.isfinite(output).all()
    assert {warning.category for warning in caught} == set(kinds)
    assert any(re.search(rf"\b{name}\b", str(warning.message)) for warning in caught)
    ours = [one for one in caught if issubclass(one.category, HeatSketchWarning)]
    assert {warning.filename for warning in ours} <= {__file__}


def test_a_pattern_without_scaling_is_an_error_and_a_warning():
    with pytest.warns(ZeroDiagonalWarning), pytest.raises(ScalingError, match="row sums"):
        HeatGraph.from_affinity(STAR, normalization="bistochastic", self_loops=False)


# --- what looks bad and works ---------------------------------------------------------------


def rebuilt(*, order, index_dtype=np.int32, parts=1):
    """Return the sparse points with entries in another order, each split into equal parts."""
    columns = np.tile(order, (40, 1)).repeat(parts, axis=1).ravel()
    data = CLOUD[:, order].repeat(parts, axis=1).ravel() / parts
    indptr = np.arange(0, 120 * parts + 1, 3 * parts)
    X = sparse.csr_array((data, columns, indptr), shape=(40, 3))
    X.indices, X.indptr = columns.astype(index_dtype), indptr.astype(index_dtype)
    return X


SHIFTED, DUPLICATES = 1e8 + CLOUD * 1e-3, np.repeat(CLOUD[:5], 8, axis=0)
COUNTS = abs(np.round(CLOUD * 20)).astype(int)
EQUAL = {
    **{
        f"integers of {dtype}": (
            partial(fit, COUNTS.astype(dtype)),
            partial(fit, COUNTS.astype(as_)),
        )
        for dtype, as_ in [(np.uint64, "f8"), (">u2", "f4"), (np.int8, "f4"), (np.float16, "f4")]
    },
    "40 neighbours": (partial(fit, CLOUD, n_neighbors=40), partial(fit, CLOUD, n_neighbors=None)),
    "one feature": (
        partial(fit, CLOUD[:, :1]),
        partial(fit, np.column_stack([CLOUD[:, :1], np.ones(40)])),  # a constant adds nothing
    ),
    "two samples": (lambda: fit(CLOUD[:2])[:2], lambda: fit(CLOUD[1::-1], ids=[1, 0])[1::-1]),
    "copies": (lambda: fit(DUPLICATES)[:40], lambda: np.repeat(fit(DUPLICATES)[:40:8], 8, axis=0)),
    **{
        f"scale {scale} in {dtype}": (
            partial(fit, (CLOUD * scale).astype(dtype)),
            partial(fit, CLOUD.astype(dtype)),
        )
        for scale, dtype in [(1e-145, "f8"), (1e-15, "f4")]
    },
    "a far offset": (partial(fit, SHIFTED), partial(fit, SHIFTED - 1e8)),
    "a new point next to zero": (
        partial(transform, np.full((1, 3), 1e-200)),
        partial(transform, np.zeros((1, 3))),
    ),
    "int64 indices": (
        partial(fit, rebuilt(order=[0, 1, 2], index_dtype=np.int64)),
        partial(fit, SPARSE),
    ),
    "unsorted entries": (partial(fit, rebuilt(order=[2, 0, 1])), partial(fit, SPARSE)),
    "duplicate entries": (partial(fit, rebuilt(order=[0, 1, 2], parts=2)), partial(fit, SPARSE)),
    "new points, sparse": (partial(transform, SPARSE), partial(transform, CLOUD)),
    "affinities": (
        partial(linked, AFFINITIES, normalization="symmetric"),
        partial(fit, CLOUD, weights=1.0, n_neighbors=None),
    ),
    "distances": (partial(fit, DISTANCES, **MEASURED), partial(fit, CLOUD)),
    "lists of neighbours": (
        lambda: sketch(listed(INDICES, NEAR), 4).embedding,
        lambda: sketch(HeatGraph.from_points(CLOUD, n_neighbors=9), 4).embedding,
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_looks_bad_gives_the_same_as_what_is_good(name):
    (found, caught), (wanted, _) = map(caught_from, EQUAL[name])
    assert not caught
    tolerance = 100 * np.finfo(wanted.dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * abs(wanted).max())


@pytest.mark.parametrize("kind", [HeatSketch, DiffusionMap])
def test_too_much_memory_is_rejected_before_it_is_taken(kind):
    tracemalloc.start()
    try:
        with pytest.raises(MemoryBudgetError):
            all_pairs(kind)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
