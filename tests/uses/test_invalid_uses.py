"""Invalid arguments of the uses of a graph: the type of the error, and whom it names."""

import re

import numpy as np
import pytest
from registry import cloud, graph_of

from heatsketch import HeatGraph, compare, compare_to, drift, harmonic, smooth
from heatsketch.diffusion import gaussian_matrix
from heatsketch.exceptions import DtypeError, HeatSketchError, MissingValueError
from heatsketch.uses._drift import drift_of_rows

X, ROWS = cloud(60), np.arange(60)
Y, V = gaussian_matrix(60, 4, seed=0), cloud(60, 7)
DENSE, SPARSE = graph_of(X, 1.0), graph_of(X, 0.5, 10)


def with_entry(values, value):
    changed = values.copy()
    changed[3, 1] = value
    return changed


def groups(*, group=ROWS % 2, **options):
    return compare(SPARSE, group, **options)


def extended(values, rows):
    return harmonic(SPARSE, values, rows)


def moved(Y, Z, ids=ROWS, other_ids=ROWS, **options):
    return drift_of_rows(Y, Z, ids=ids, other_ids=other_ids, **options)


def labelled(first):
    return np.array([first, *"ab" * 29, "a"], object)


INVALID = [
    # --- comparisons
    *[
        (groups, (), {"group": g}, HeatSketchError, "group")
        for g in (ROWS[:9] % 2, 0 * ROWS, ROWS / 7)
    ],
    *[
        (groups, (), {"group": g}, MissingValueError, "group")
        for g in (np.where(ROWS == 7, np.nan, ROWS % 2), labelled(None))
    ],
    (groups, (), {"group": labelled(1)}, DtypeError, "group"),
    *[(groups, (), {"units": units}, HeatSketchError, "units") for units in (ROWS // 7, [1])],
    *[(groups, (), {"powers": powers}, HeatSketchError, "powers") for powers in ([], [0])],
    *[(groups, (), {"n_permutations": n}, HeatSketchError, "n_permutations") for n in (0, 9)],
    *[(groups, (), {"level": level}, HeatSketchError, "level") for level in (0, 1, 1.5)],
    (compare_to, (HeatGraph.from_points(X), V), {}, HeatSketchError, "X"),
    (compare_to, (SPARSE, X), {}, HeatSketchError, "compare_to"),
    # --- drift
    (moved, (Y[:, :1], Y[:, :1]), {}, HeatSketchError, "n_components"),
    *[(moved, (Y[rows], Y), {}, HeatSketchError, "Y") for rows in (0, slice(0))],
    (moved, (Y, [["a", "b"]]), {}, DtypeError, "Z"),
    (moved, (with_entry(Y, np.nan), Y), {}, MissingValueError, "Y"),
    (moved, (Y, Y), {"other_ids": ROWS + 60}, HeatSketchError, "other_ids"),
    (moved, (Y, Y), {"confidence": 1.0}, HeatSketchError, "confidence"),
    (drift, (Y, Y), {}, DtypeError, "before"),
    # --- values on the points
    *[
        (extended, ([1.0], rows), {}, HeatSketchError, "rows")
        for rows in ([0.5], [60], [-1], [[0]])
    ],
    (extended, ([1.0, 2.0], [0, 0]), {}, HeatSketchError, "rows"),
    *[(extended, (v, [0]), {}, HeatSketchError, "values") for v in ([1.0, 2.0], ["a"], [[[1.0]]])],
    (extended, ([np.nan], [0]), {}, MissingValueError, "values"),
    (harmonic, (DENSE, [1.0], [0]), {}, HeatSketchError, "n_neighbors"),
    *[(smooth, (DENSE, v), {}, HeatSketchError, "values") for v in (V[1:], V[:, :0])],
    (smooth, (DENSE, V.astype(str)), {}, DtypeError, "values"),
    (smooth, (DENSE, with_entry(V, np.nan)), {}, MissingValueError, "values"),
    (smooth, (DENSE, V), {"time": -1}, HeatSketchError, "time"),
    *[(smooth, (DENSE, V), {"time": time}, DtypeError, "time") for time in ("soon", 1.5)],
    *[
        (smooth, (DENSE, V), {"sizes": sizes}, HeatSketchError, "sizes")
        for sizes in ("depth", "sum", np.ones(59), np.arange(60.0))
    ],
    (smooth, (DENSE, V), {"out": np.ones((60, 6))}, HeatSketchError, "out"),
    *[(smooth, (source, V), {}, HeatSketchError, "HeatGraph") for source in (X, "graph", None)],
]


@pytest.mark.parametrize(("function", "arguments", "options", "error", "name"), INVALID)
def test_an_invalid_argument_is_named(function, arguments, options, error, name):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert re.search(rf"\b{name}\b", str(caught.value))
