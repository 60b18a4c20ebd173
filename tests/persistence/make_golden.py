"""Write a small file of each class, which later versions must read.

``python tests/persistence/make_golden.py``, from ``tests/_support``, after ``FORMAT`` has changed.
"""

import json
from pathlib import Path

import numpy as np

from heatsketch import DiffusionMap, HeatClustering, HeatGraph, HeatLabels, HeatSketch, NearIsometry
from heatsketch import sketch as make_sketch

GOLDEN = Path(__file__).parent / "golden"
X = np.random.default_rng(0).standard_normal((60, 2)).round(3)
NEW = np.random.default_rng(1).standard_normal((3, 2)).round(3)


def golden_models():
    """Yield a name and a value of each class."""
    labels = np.where(np.arange(60) < 12, np.arange(60) % 2, -1)
    graph = HeatGraph.from_points(X, n_neighbors=5, ids=[f"point {i}" for i in range(60)])
    yield "HeatGraph", graph
    yield "Sketch", make_sketch(graph, 3)
    yield "HeatSketch", HeatSketch(3, n_neighbors=5).fit(X)
    yield "DiffusionMap", DiffusionMap(2, n_neighbors=None).fit(X)
    yield "HeatLabels", HeatLabels(n_neighbors=5).fit(X, labels)
    yield "HeatClustering", HeatClustering(2, n_neighbors=5).fit(X)
    yield "NearIsometry", NearIsometry(1).fit(X)


def numbers_of(value):
    """Return what a value gives for training points and new ones."""
    if isinstance(value, HeatGraph):
        value = make_sketch(value, 2, power=2)
    if hasattr(value, "extend"):
        found = [value.embedding[:5], value.extend(value.graph.rows(NEW))]
    elif hasattr(value, "predict"):
        found = [value.predict(X[:5]), value.predict(NEW)]
    else:
        found = [value.transform(X[:5]), value.transform(NEW)]
    return [part.tolist() for part in found]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    numbers = {}
    for name, value in golden_models():
        value.save(GOLDEN / f"{name}.heatsketch", overwrite=True)
        numbers[name] = numbers_of(value)
    (GOLDEN / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n")
