"""Digests of twelve fits, which are the same on every machine.

::

    python tests/_support/digests.py > tests/baseline/digests.json

What is not promised, and not here: all pairs and NearIsometry, whose products are those of BLAS.
"""

import hashlib
import json
import sys

import numpy as np
from scipy import sparse

from heatsketch import HeatGraph, LocalEngine, sketch

rng = np.random.default_rng(0)
POINTS, NEW = rng.normal(size=(400, 5)), rng.normal(size=(40, 5))
TWO_CLUSTERS = POINTS + np.where(POINTS[:, :1] > 0, 100.0, 0.0)
EDGES = sparse.csr_array((np.ones(900), rng.integers(0, 300, (2, 900))), shape=(300, 300))
GRAPH = sparse.csr_array(EDGES + EDGES.T)
LISTS = LocalEngine(graph_tolerance=0.3)

POINTS32, NEW32 = POINTS.astype(np.float32), NEW.astype(np.float32)
# Options of the graph and of the sketch, training points and new points.
FITS = {
    "default": ({}, {}, POINTS, NEW),
    "float32": ({}, {}, POINTS32, NEW32),
    "power 8": ({}, {"power": 8}, POINTS, NEW),
    "power 300, float32": ({"normalization": "bistochastic"}, {"power": 300}, POINTS32, NEW32),
    "signs, estimated epsilon": (
        {"weights": "gaussian"},
        {"random_matrix": "rademacher"},
        POINTS,
        NEW,
    ),
    "random walk": ({"n_neighbors": 8}, {"weighting": "random_walk"}, POINTS, NEW),
    "inverted lists": ({"n_neighbors": 10, "engine": LISTS}, {}, POINTS, NEW),
    "cosine": ({"metric": "cosine"}, {}, POINTS, NEW),
    "manhattan": ({"metric": "manhattan"}, {"power": 3}, POINTS, NEW),
    "equal points": ({}, {}, np.round(POINTS), np.round(NEW)),
    "two clusters": ({}, {}, TWO_CLUSTERS, TWO_CLUSTERS[:40] + 0.01),
    "graph": ({}, {}, GRAPH, GRAPH[:40]),
}


def digest(*arrays):
    """Return a digest of the values, whatever the byte order of the machine."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")))
    return found.hexdigest()[:32]


def digests():
    """Return the digest of each fit: training points and new points."""
    found = {}
    for name, (of_graph, options, X, X_new) in FITS.items():
        make = HeatGraph.from_affinity if name == "graph" else HeatGraph.from_points
        made = sketch(make(X, **of_graph), 16, **options)
        found[name] = digest(made.embedding, made.extend(made.graph.rows(X_new)))
    return found


if __name__ == "__main__":
    json.dump(digests(), sys.stdout, indent=2)
    print()
