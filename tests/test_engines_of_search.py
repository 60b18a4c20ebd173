"""The how-to of the search, against real engines: faiss always, databases in `make nightly`."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("script", "package", "says"),
    [
        ("search_faiss", "faiss", "recall of the index: 1.0"),
        pytest.param(
            "search_lancedb",
            "lancedb",
            "recall against brute force: 1.0",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "search_postgres",
            "pgvector",
            "recall against brute force: 1.0",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_the_script_finds_the_nearest(script, package, says, capsys, tmp_path, monkeypatch):
    pytest.importorskip(package)
    # Which a session of a user has; without it the server warns that it takes another folder.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    runpy.run_path(EXAMPLES / f"{script}.py", run_name="__main__")
    assert says in capsys.readouterr().out
