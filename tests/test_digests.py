"""Twelve fits give the committed digests, on this processor and on the oldest it can imitate."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__

HERE = Path(__file__).parent
OLD = {
    "HEATSKETCH_CPU": "baseline",
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__),
}


@pytest.mark.untraced
@pytest.mark.parametrize("variables", [{}, OLD], ids=["this processor", "an old processor"])
def test_twelve_fits_have_the_digests_that_are_committed(variables):
    program = [sys.executable, "-W", "ignore", str(HERE / "_support" / "digests.py")]
    done = subprocess.run(program, env=os.environ | variables, capture_output=True, check=True)
    committed = json.loads((HERE / "baseline" / "digests.json").read_text())
    assert len(committed) == 12
    assert json.loads(done.stdout) == committed
