"""How far long work has come, and how it is stopped."""

import io
import signal
import subprocess
import sys
import textwrap

import pytest
from registry import circle

from heatsketch import DiffusionMap, HeatSketch
from heatsketch._core.parallel import in_threads
from heatsketch._core.progress import reporting_to, steps
from heatsketch.near_isometry import NearIsometry


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_named_work_is_heard_and_other_work_is_not():
    reported = []

    def callback(name, n_steps):
        reported.append((name, n_steps, 0))
        return lambda: reported.append((name, n_steps, reported[-1][2] + 1))

    with reporting_to(callback):
        in_threads(abs, range(5), name="work")
        in_threads(abs, range(5))
    steps("later", 3)()
    assert reported == [("work", 5, i) for i in range(6)]


class Notebook(io.StringIO):
    """As the stream of ipykernel: no terminal, but shown."""


Notebook.__module__ = "ipykernel.iostream"
STREAMS = {"terminal": Terminal, "notebook": Notebook, "file": io.StringIO}
WRITES = {
    ("terminal", None): True,
    ("notebook", None): True,
    ("file", None): False,
    **{(stream, verbose): bool(verbose) for stream in STREAMS for verbose in (True, False, 0, 2)},
}


@pytest.mark.parametrize("model", [HeatSketch, DiffusionMap, NearIsometry])
@pytest.mark.parametrize(("stream", "verbose"), WRITES)
def test_fit_shows_bars_where_they_can_be_seen_or_if_verbose(model, stream, verbose, monkeypatch):
    errors = STREAMS[stream]()
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setattr("heatsketch._core.progress.PATIENCE", 0.0)
    model(2, verbose=verbose).fit(circle(100))
    shown = errors.getvalue()
    assert bool(shown) == WRITES[stream, verbose]
    # On a screen nothing is left behind; in a file there are whole lines.
    assert ("\n" in shown) == (stream == "file" and WRITES[stream, verbose])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no Ctrl-C to one process alone")
def test_ctrl_c_keeps_the_last_fit():
    """A real process, a real signal: the fit ends soon, and the estimator is as before."""
    program = textwrap.dedent("""
        import numpy as np
        from heatsketch import HeatSketch
        model = HeatSketch(4, n_neighbors=10).fit(np.random.default_rng(0).random((500, 3)))
        before = model.embedding_
        X = np.random.default_rng(0).random((400_000, 20))
        print("ready", flush=True)
        try:
            model.fit(X)
        except KeyboardInterrupt:
            print(model.embedding_ is before, model.n_features_in_)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0].split() == ["True", "3"]
