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

from heatsketch import HeatSketch, LocalEngine

rng = np.random.default_rng(0)
POINTS, NEW = rng.normal(size=(400, 5)), rng.normal(size=(40, 5))
TWO_CLUSTERS = POINTS + np.where(POINTS[:, :1] > 0, 100.0, 0.0)
EDGES = sparse.csr_array((np.ones(900), rng.integers(0, 300, (2, 900))), shape=(300, 300))
GRAPH = sparse.csr_array(EDGES + EDGES.T)
LISTS = LocalEngine(graph_tolerance=0.3)

FITS = {
    "default": (HeatSketch(16), POINTS, NEW),
    "float32": (HeatSketch(16), POINTS.astype(np.float32), NEW.astype(np.float32)),
    "power 8": (HeatSketch(16, power=8), POINTS, NEW),
    "power 300, float32": (
        HeatSketch(16, power=300, normalization="bistochastic"),
        POINTS.astype(np.float32),
        NEW.astype(np.float32),
    ),
    "signs, estimated epsilon": (
        HeatSketch(16, random_matrix="rademacher", epsilon="auto"),
        POINTS,
        NEW,
    ),
    "random walk": (HeatSketch(16, weighting="random_walk", n_neighbors=8), POINTS, NEW),
    "inverted lists": (HeatSketch(16, n_neighbors=10, engine=LISTS), POINTS, NEW),
    "cosine": (HeatSketch(16, metric="cosine"), POINTS, NEW),
    "manhattan": (HeatSketch(16, metric="manhattan", power=3), POINTS, NEW),
    "equal points": (HeatSketch(16), np.round(POINTS), np.round(NEW)),
    "two clusters": (HeatSketch(16), TWO_CLUSTERS, TWO_CLUSTERS[:40] + 0.01),
    "graph": (HeatSketch(16, affinity="precomputed"), GRAPH, GRAPH[:40]),
}


def digest(*arrays):
    """Return a digest of the values, whatever the byte order of the machine."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")))
    return found.hexdigest()[:32]


def digests():
    """Return the digest of each fit: training points and new points."""
    return {
        name: digest(model.fit_transform(X), model.transform(X_new))
        for name, (model, X, X_new) in FITS.items()
    }


if __name__ == "__main__":
    json.dump(digests(), sys.stdout, indent=2)
    print()
