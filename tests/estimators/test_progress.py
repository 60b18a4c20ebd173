"""How far long work has come, and how it is stopped."""

import io
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from registry import circle

from heatsketch import DiffusionMap, HeatSketch
from heatsketch._core.parallel import at_most, in_threads
from heatsketch._core.progress import bars, on_terminal, reporting_to, steps
from heatsketch.estimators.near_isometry import NearIsometry


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


def test_a_terminal_is_told_after_a_while(monkeypatch):
    terminal = Terminal()
    with reporting_to(on_terminal(terminal)):
        in_threads(abs, range(5), name="work")
    assert terminal.getvalue() == ""
    monkeypatch.setattr("heatsketch._core.progress.PATIENCE", 0.0)
    monkeypatch.setattr("heatsketch._core.progress.EVERY", 0.0)
    with reporting_to(on_terminal(terminal)):
        in_threads(abs, range(4), name="work")
    lines = terminal.getvalue().split("\r")
    assert lines[1].startswith("heatsketch: work  25%, 0 s left")
    assert lines[-2].strip() == lines[-1] == ""


def test_what_is_no_terminal_is_told_nothing(monkeypatch):
    monkeypatch.setattr("heatsketch._core.progress.PATIENCE", 0.0)
    stream = io.StringIO()
    with reporting_to(on_terminal(stream)):
        in_threads(abs, range(4), name="work")
    assert stream.getvalue() == ""


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
def test_a_fit_tells_how_far_it_is_where_it_is_asked_to(model, stream, verbose, monkeypatch):
    errors = STREAMS[stream]()
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setattr("heatsketch._core.progress.PATIENCE", 0.0)
    monkeypatch.setattr("heatsketch._core.progress.EVERY", 0.0)
    model(2, verbose=verbose).fit(circle(100))
    said = errors.getvalue()
    assert bool(said) == WRITES[stream, verbose]
    # On a screen nothing is left behind; in a file there are whole lines.
    assert ("\n" in said) == (stream == "file" and WRITES[stream, verbose])


def test_a_notebook_has_a_bar_for_each_stage_after_a_while():
    pytest.importorskip("tqdm")
    stream = io.StringIO()
    shown = {"file": stream, "mininterval": 0, "miniters": 1}
    with reporting_to(bars(60.0, **shown)):
        in_threads(abs, range(5), name="work")
    assert stream.getvalue() == ""
    with reporting_to(bars(**shown)):
        in_threads(abs, range(4), name="work")
    lines = stream.getvalue().split("\r")
    assert [line.split("|")[0] for line in lines if "%" in line] == [
        f"work: {part:3}%" for part in (0, 25, 50, 75, 100)
    ]
    assert lines[-1].strip() == ""


def test_who_asks_does_not_wait():
    streams = [Terminal(), Terminal()]
    for stream, verbose in zip(streams, (None, True), strict=True):
        with reporting_to(on_terminal(stream, verbose=verbose)):
            in_threads(abs, range(4), name="work")
    assert [bool(stream.getvalue()) for stream in streams] == [False, True]


def test_a_program_without_a_console_is_told_nothing(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    for verbose in (None, True, False):
        with reporting_to(on_terminal(verbose=verbose)):
            in_threads(abs, range(4), name="work")


def test_scikit_learns_callbacks_see_every_stage():
    pytest.importorskip("sklearn.callback")

    class Recorder:
        def __init__(self):
            self.begun, self.ended = [], []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            self.ended.append(context.task_name)

        def teardown(self, estimator, context):
            self.begun.append("torn down")

    recorder = Recorder()
    model = HeatSketch(4, n_neighbors=5, power=6).set_callbacks(recorder).fit(circle(1000))
    assert set(recorder.begun) == {"fit", "neighbours", "lists", "diffusion", "torn down"}
    assert recorder.ended.count("diffusion") == 6  # 5 steps before the last product, and the stage
    assert recorder.begun[-1] == "torn down"
    assert recorder.begun.count("torn down") == 1
    assert recorder.ended[-1] == "fit"
    wanted = HeatSketch(4, n_neighbors=5, power=6).fit_transform(circle(1000))
    np.testing.assert_array_equal(model.embedding_, wanted)


def test_an_error_drops_the_work_that_has_not_begun():
    begun = []

    def work(piece):
        begun.append(piece)
        raise ValueError("enough")

    with at_most(1), pytest.raises(ValueError, match="enough"):
        in_threads(work, range(1000))
    assert len(begun) < 1000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no Ctrl-C to one process alone")
def test_ctrl_c_leaves_nothing_half_fitted():
    """A real process, a real signal: the fit ends soon, and the estimator is not fitted."""
    program = textwrap.dedent("""
        import numpy as np
        from heatsketch import HeatSketch
        from sklearn.utils.validation import check_is_fitted
        from sklearn.exceptions import NotFittedError
        model = HeatSketch(4, n_neighbors=10).fit(np.random.default_rng(0).random((500, 3)))
        X = np.random.default_rng(0).random((400_000, 20))
        print("ready", flush=True)
        try:
            model.fit(X)
        except KeyboardInterrupt:
            try:
                check_is_fitted(model)
            except NotFittedError:
                print(sorted(name for name in vars(model) if name.endswith("_")))
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.5)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert "embedding_" not in said
    assert "heat_operator_" not in said
    assert said.startswith("[")


def test_an_older_scikit_learn_without_callbacks_will_do():
    """As far as can be tried: the fit of a newer scikit-learn needs them itself."""
    program = (
        "import sys; sys.modules['sklearn.callback'] = None; "
        "from heatsketch import HeatSketch; print(hasattr(HeatSketch(2), 'set_callbacks'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
