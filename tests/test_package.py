"""The package as a whole: public names, documentation, imports, and the checks it ships."""

import ast
import importlib
import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from checks import check_affinity, check_extension
from registry import cloud

import heatsketch
from heatsketch import HeatGraph, HeatSketch, LocalEngine, Sketch
from heatsketch.testing import check_engine

ROOT = Path(__file__).parent.parent
SOURCES = sorted(Path(heatsketch.__file__).parent.rglob("*.py"))
BUILDING_BLOCKS = [heatsketch.diffusion, heatsketch.graph]
PUBLIC_MODULES = [heatsketch, *BUILDING_BLOCKS] + [
    importlib.import_module(f"heatsketch.{name}")
    for name in (
        "exceptions",
        "near_isometry",
        "plot",
        "report",
        "scanpy.pp",
        "scanpy.tl",
        "testing",
    )
]


def names_of(*modules):
    """The public names of some modules, with where they are first."""
    found = {}
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if not name.startswith("__") and not inspect.ismodule(value):
                found.setdefault(id(value), f"{module.__name__}.{name}")
    return sorted(found.values())


def value_of(dotted):
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_the_reference_has_exactly_the_public_names():
    listed, module = [], ""
    for line in (ROOT / "docs" / "reference" / "index.md").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif line.startswith("   ") and not line.strip().startswith(":"):
            listed.append(f"{module}.{line.strip()}")
    assert sorted(listed) == names_of(*PUBLIC_MODULES)


@pytest.mark.parametrize("name", names_of(heatsketch, *BUILDING_BLOCKS))
def test_every_public_name_has_parameters_and_an_example(name):
    value = value_of(name)
    text = inspect.getdoc(value)
    assert ">>>" in text
    parameters = [p for p in inspect.signature(value).parameters if p not in ("args", "kwargs")]
    if value in (HeatGraph, Sketch):  # made by functions
        parameters = []
    assert all(parameter in text for parameter in parameters)
    assert "Parameters" in text or "Attributes" in text or not parameters


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_bodies_are_short(path):
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            assert not body or body[-1].end_lineno - body[0].lineno < 40, node.name


def test_importing_brings_nothing_heavy():
    """Nothing beyond what scikit-learn brings, which takes pandas along where it finds it."""
    code = (
        "import sys, sklearn; before = set(sys.modules); from heatsketch import HeatSketch; "
        "print({m.partition('.')[0] for m in set(sys.modules) - before} "
        "& {'dask', 'matplotlib', 'pandas', 'polars', 'faiss', 'numba'})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


TYPED = """
from typing import assert_type

import numpy as np

from heatsketch import (
    DiffusionMap,
    DistanceEstimate,
    HeatGraph,
    HeatSketch,
    NearIsometry,
    Sketch,
    sketch,
)

X = np.zeros((3, 2))
model = assert_type(HeatSketch().fit(X), HeatSketch)
assert_type(model.sketch_, Sketch)
assert_type(model.sketch_.grow(128), Sketch)
assert_type(sketch(HeatGraph.from_points(X)), Sketch)
assert_type(model.embedding_, np.ndarray)
assert_type(model.transform(X), np.ndarray)
assert_type(model.fit_transform(X), np.ndarray)
assert_type(model.sketch_.distances([[0, 1]]), DistanceEstimate)
assert_type(DiffusionMap().fit(X), DiffusionMap)
assert_type(NearIsometry().fit(X), NearIsometry)
HeatSketch().fit(X, rows=X)  # expected to fail
"""


@pytest.mark.untraced
def test_types_reach_those_who_use_the_estimators(tmp_path):
    """Through scikit-learn's decorators, too, which have none."""
    pytest.importorskip("mypy")
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "typed.py")]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    errors = [line for line in found.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, found.stdout + found.stderr
    assert 'Unexpected keyword argument "rows" for "fit"' in errors[0]


# --- checks must be able to fail --------------------------------------------------------------


class WrongEngine(LocalEngine):
    """Forgets the neighbours that only the other side knows."""

    def neighbors(self, X, **options):
        neighbors, d2 = super().neighbors(X, **options)
        return replace(neighbors, radii=-np.ones(len(X))), d2


class Drifting(HeatSketch):
    def transform(self, X):
        return super().transform(X) + 1e-9


def test_a_wrong_engine_is_caught():
    with pytest.raises(AssertionError, match="new points do not have the neighbours"):
        check_engine(WrongEngine())


def test_a_wrong_affinity_is_caught():
    lopsided = np.array([[1.0, 0.5], [0.4, 1.0]])
    with pytest.raises(AssertionError, match="not symmetric"):
        check_affinity(lopsided)
    with pytest.raises(AssertionError, match="sums to"):
        check_affinity(np.diag([1.0, 0.0]))


def test_a_drifting_estimator_is_caught():
    with pytest.raises(AssertionError, match="differs from fit_transform"):
        check_extension(Drifting(4), cloud(30))
