"""A fit as it is run: no call goes up, and CONTRIBUTING.md lists the modules on the way."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import heatsketch
from heatsketch import HeatSketch

PACKAGE = Path(heatsketch.__file__).parent
PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
LAYERS = ["_core", "exceptions", "graph", "diffusion", "engines", "heat", "estimators"]
pytestmark = pytest.mark.untraced  # coverage has a trace function of its own


def module_of(frame):
    """Return the nearest module of the package on the stack, or None."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(str(PACKAGE)):
            return ".".join(Path(path).relative_to(PACKAGE).with_suffix("").parts)
        frame = frame.f_back
    return None


@pytest.fixture(scope="module")
def calls():
    """Calls of the second fit, caller and callee, in order of the first time."""
    X, seen = np.random.default_rng(0).normal(size=(300, 3)), {}
    HeatSketch().fit(X)  # imports what is imported when it is first used

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            seen[module_of(frame.f_back), module_of(frame)] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        HeatSketch().fit(X)
    finally:
        sys.setprofile(before)
    return [(caller, module) for caller, module in seen if caller is not None]


def layer(module):
    return LAYERS.index(module.split(".")[0])


def test_no_call_of_a_fit_goes_up(calls):
    """Except for functions that were handed to the loops of ``_core``."""
    assert len(calls) > 50
    up = [(caller, module) for caller, module in calls if layer(module) > layer(caller) > 0]
    assert up == []


def test_the_modules_on_the_way_are_those_of_the_page(calls):
    spine = dict.fromkeys(
        module
        for caller, module in calls
        if caller.startswith(("heat.", "estimators.")) and layer(module) > 0
    )
    assert len(spine) <= 12
    section = PAGE.read_text().split("## From fit to embedding_")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)] == list(spine)
