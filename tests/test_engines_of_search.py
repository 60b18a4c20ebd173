"""Neighbours of other libraries for a graph, and its vectors in their indices.

faiss and pynndescent always, databases in ``make nightly``.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from heatsketch import HeatGraph, sketch

EXAMPLES = Path(__file__).parent.parent / "examples"


def of_faiss(X):
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    squares, indices = index.search(X, 15)
    return indices, np.sqrt(np.maximum(squares, 0))


def of_pynndescent(X):
    pynndescent = pytest.importorskip("pynndescent")
    return pynndescent.NNDescent(X, n_neighbors=15, random_state=0).neighbor_graph


@pytest.mark.filterwarnings("default:::(pynndescent|numba)")
@pytest.mark.parametrize(
    "search", [of_faiss, pytest.param(of_pynndescent, marks=pytest.mark.nightly)]
)
def test_lists_of_other_libraries_give_the_distances_of_our_own_search(search):
    X = load_digits().data.astype(np.float32)
    graph = HeatGraph.from_neighbors(*search(X[:1500]), X[:1500])
    pairs = np.random.default_rng(0).integers(1500, size=(2000, 2))
    found, wanted = (
        sketch(one, 64).distances(pairs).distance
        for one in (graph, HeatGraph.from_points(X[:1500]))
    )
    assert spearmanr(found, wanted)[0] > 0.99
    assert np.isfinite(sketch(graph, 16).extend(graph.rows(X[1500:]))).all()


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
