"""The one law of bad input, run over the table in ``bad_inputs.py`` and its sisters.

The right type, the right message, no other warning than the one expected (numpy's above all),
never NaN or infinity in any output, and an end within ten seconds. Points that
every entry point rejects are put into files, too, for the command line.
"""

from __future__ import annotations

import importlib
import os
import re
import tracemalloc
import warnings
from dataclasses import replace
from functools import partial

import bad_models  # noqa: F401 - which adds its rows to the table
import bad_parameters
import bad_points  # noqa: F401
import dask.array as da
import numpy as np
import pytest
from bad_inputs import CLOUD, ENTRIES, POINTS, ROWS, Row, fit
from distributed import Client
from points_in_files import as_file
from typer.testing import CliRunner

from heatsketch import DaskEngine, DiffusionMap, HeatSketch
from heatsketch.cli import app
from heatsketch.cli._exit_codes import ExitCode
from heatsketch.engines._dask._connection import processes
from heatsketch.exceptions import HeatSketchError, HeatSketchWarning, MemoryBudgetError

pytestmark = pytest.mark.timeout(10, func_only=True)


@pytest.fixture(scope="module", autouse=True)
def compiled_loops():
    """Compile them once, outside of anybody's ten seconds."""
    for dtype in (np.float32, np.float64):
        for random_matrix in ("gaussian", "rademacher"):
            for n_neighbors in (9, len(CLOUD)):
                model = HeatSketch(4, random_matrix=random_matrix, n_neighbors=n_neighbors)
                X = CLOUD.astype(dtype)
                model.fit(X).transform(X)


def obey(row: Row) -> None:
    """Assert that a row meets its expectation."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        output, error = None, None
        try:
            output = row.call()
        except Exception as raised:
            error = raised
    assert type(error) is (row.error or type(None)), repr(error)
    assert {warning.category for warning in caught} == row.warnings, [*map(str, caught)]
    for warning in caught:
        if issubclass(warning.category, HeatSketchWarning):
            assert warning.filename == row_file(row), "the warning must point at the caller"
    if error is None:
        assert_sound(output, row)
    messages = [str(error)] if error is not None else [str(each.message) for each in caught]
    parts = (row.argument, row.value, row.remedy)
    assert not messages or any(says(message, parts) for message in messages), messages


def row_file(row: Row) -> str:
    function = row.call.func if isinstance(row.call, partial) else row.call
    return function.__code__.co_filename


def says(message: str, parts: tuple[str, ...]) -> bool:
    return all(re.search(part, message, re.DOTALL) for part in parts)


def assert_sound(output: np.ndarray | None, row: Row) -> None:
    assert output is not None
    assert output.size
    assert np.isfinite(output).all()
    if row.equals is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = row.equals()
        tolerance = 100 * np.finfo(expected.dtype).eps if expected.dtype.kind == "f" else 0
        np.testing.assert_allclose(output, expected, rtol=0, atol=tolerance * abs(expected).max())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_bad_input_ends_in_a_typed_error_a_warning_or_a_sound_result(row):
    obey(row)


# --- a cluster ----------------------------------------------------------------------------

AT_FIT = {row.name.removeprefix("fit: "): row for row in ROWS if row.name.startswith("fit: ")}
IN_BLOCKS = [
    name
    for name, points in POINTS.items()
    if type(points.X) is np.ndarray and points.X.ndim == 2 and points.X.dtype.kind in "biuf"
]


@pytest.fixture(scope="module")
def client():
    with processes(1, silence_logs=50) as cluster, Client(cluster, set_as_default=False) as joined:
        joined.run(importlib.import_module, "heatsketch.estimators._validation")
        yield joined


# A text names a file there.
@pytest.mark.parametrize("name", [name for name in POINTS if name != "one string"])
def test_a_cluster_rejects_it_too(name, client, tmp_path):
    options = {"n_neighbors": 5, "engine": DaskEngine(client, storage=tmp_path)}
    obey(replace(AT_FIT[name], call=partial(fit, POINTS[name].X, **options)))


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_a_cluster_rejects_it_in_blocks(name, client, tmp_path):
    X = da.from_array(POINTS[name].X, chunks=(16, -1))
    options = {"n_neighbors": 5, "engine": DaskEngine(client, storage=tmp_path)}
    with pytest.raises(HeatSketchError, match=r"^(X|metric|epsilon)") as caught:
        fit(X, **options)
    assert X.size == 0 or type(caught.value) is AT_FIT[name].error


# --- the command line ---------------------------------------------------------------------

IN_FILES = [name for name, points in POINTS.items() if points.in_files != "none"]
REJECTED = {ExitCode.INPUT, ExitCode.DATA}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.heatsketch"
    HeatSketch(4).fit(CLOUD).save(path)
    assert CliRunner().invoke(app, ["info", str(path)]).exit_code == ExitCode.DONE  # all imported
    return path


@pytest.mark.parametrize("name", IN_FILES)
def test_the_command_line_rejects_it_too(name, model, tmp_path):
    path = as_file(POINTS[name].X, tmp_path)
    for words in (["embed", path], ["transform", model, path]):
        if words[0] == "transform" and POINTS[name].in_files == "good":
            continue  # it may have another number of columns
        result = CliRunner().invoke(app, [*map(str, words), "-o", str(tmp_path / "out.npy")])
        if POINTS[name].in_files == "good":
            assert result.exit_code == ExitCode.DONE, result.output
            assert np.isfinite(np.load(tmp_path / "out.npy")).all()
            continue
        assert result.exit_code in REJECTED, result.output
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ") and line.endswith(".")
        assert os.listdir(tmp_path) == [path.name]


def test_every_bad_input_is_given_to_every_function():
    names = {row.name for row in ROWS}
    assert all(f"{entry}: {name}" in names for entry in ENTRIES for name in POINTS)


def test_every_row_says_what_it_expects():
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        if row.error or row.warnings:
            assert row.argument and row.value and row.remedy, row.name
        else:
            assert row.equals is not None, row.name


def test_every_error_and_warning_of_ours_is_in_the_table():
    def leaves(kind):
        return {kind}.union(*map(leaves, kind.__subclasses__()))

    seen = {row.error for row in ROWS}.union(*(row.warnings for row in ROWS))
    assert leaves(HeatSketchError) | leaves(HeatSketchWarning) - {HeatSketchWarning} <= seen


ONES = np.ones((2, 2))
POSITIVE = ("epsilon", "-1", "must be positive")


def _reject(message="epsilon=-1 must be positive", kind=HeatSketchError):
    raise kind(message)


def _warn(category, message):
    warnings.warn(message, category, stacklevel=1)
    return ONES


@pytest.mark.parametrize(
    "row",
    [
        Row("nan out", lambda: ONES * np.nan, equals=lambda: ONES * np.nan),
        Row("another result", lambda: ONES, equals=lambda: ONES * (1 + 1e-10)),
        Row("nothing out", lambda: None, equals=lambda: ONES),
        Row("no error", lambda: ONES, HeatSketchError, frozenset(), *POSITIVE),
        Row("a wider error", partial(_reject, kind=ValueError), HeatSketchError),
        Row("a narrower error", partial(_reject, kind=MemoryBudgetError), HeatSketchError),
        Row("no remedy", partial(_reject, "epsilon=-1"), HeatSketchError, frozenset(), *POSITIVE),
        Row("no warning", lambda: ONES, warnings=frozenset([HeatSketchWarning])),
        Row("a leak", partial(_warn, RuntimeWarning, "overflow"), equals=lambda: ONES),
    ],
    ids=lambda row: row.name,
)
def test_the_law_can_be_broken(row):
    with pytest.raises(AssertionError):
        obey(row)


def test_the_law_can_be_kept():
    obey(Row("rejected", _reject, HeatSketchError, frozenset(), *POSITIVE))
    warning = partial(_warn, HeatSketchWarning, "epsilon=-1 must be positive")
    obey(Row("warned", warning, None, frozenset([HeatSketchWarning]), *POSITIVE))


@pytest.mark.parametrize("kind", [HeatSketch, DiffusionMap])
def test_too_much_memory_is_rejected_before_it_is_taken(kind):
    tracemalloc.start()
    try:
        with pytest.raises(MemoryBudgetError):
            bad_parameters.fit_in_a_gibibyte(kind=kind)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
