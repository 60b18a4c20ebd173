"""Compare the numbers of two checkouts, bit by bit.

::

    python tests/_support/compare_bits.py OLD/src NEW/src

Each checkout fits the same models in a process of its own and prints a digest of every array.
"""

import hashlib
import json
import os
import subprocess
import sys
import warnings


def cases():
    """Yield a name and the arrays of each model."""
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import load_digits

    from heatsketch import DiffusionMap, HeatSketch, LocalEngine, NearIsometry

    rng = np.random.default_rng(0)
    digits = load_digits().data
    cloud, new = rng.normal(size=(700, 5)), rng.normal(size=(60, 5))
    blobs = np.concatenate([cloud[:300], cloud[300:] + 1000])
    integers = rng.integers(1, 4, (3000, 3)).astype(float)
    large = rng.normal(size=(40_000, 8)).astype(np.float32)
    graph = sparse.random(400, 400, 0.02, random_state=0)
    graph = (graph + graph.T).tocsr()
    points = {
        "cloud": (cloud, new),
        "cloud32": (cloud.astype(np.float32), new.astype(np.float32)),
        "blobs": (blobs, new),
        "digits": (digits[:1500], digits[1500:]),
        "integers": (integers, integers[:50] + 0.5),
        "sparse": (sparse.csr_array(digits[:800]), sparse.csr_array(digits[800:900])),
        "large": (large, large[:500] + np.float32(0.01)),
    }
    options = {
        "default": {},
        "power": {"power": 8},
        "keep": {"power": 4, "stationary": "keep"},
        "bistochastic": {"power": 16, "normalization": "bistochastic"},
        "walk": {"weighting": "random_walk", "normalization": "degree"},
        "rademacher": {"power": 300, "random_matrix": "rademacher"},
        "epsilon": {"epsilon": "auto"},
        "cosine": {"metric": "cosine"},
        "manhattan": {"metric": "manhattan"},
        "narrow": {"n_components": 3},
    }
    for name, (X, X_new) in points.items():
        for option, given in options.items():
            few = {"large": ("default", "power", "epsilon"), "sparse": ("default", "cosine")}
            if option not in few.get(name, options):
                continue
            model = HeatSketch(**{"n_components": 16, **given}).fit(X)
            yield f"{name} {option}", [model.embedding_, model.transform(X_new)]
    for option in ("default", "power", "bistochastic", "epsilon"):
        model = HeatSketch(16, n_neighbors=None, **options[option]).fit(cloud)
        yield f"all pairs {option}", [model.embedding_, model.transform(new)]
    model = HeatSketch(16, n_neighbors=None, power=20.5, epsilon="auto").fit(cloud)
    yield "all pairs, real power", [model.embedding_, model.transform(new)]
    model = HeatSketch(16, affinity="precomputed").fit(graph)
    yield "graph", [model.embedding_, model.transform(graph[:9])]
    grown = HeatSketch(8).fit(cloud, row_ids=np.arange(700)[::-1]).grow(24)
    other = HeatSketch(24).fit(cloud + 0.01, row_ids=np.arange(700)[::-1])
    yield "grown", [grown.embedding_, *grown.path([1, 5])]
    yield "drift", [np.asarray(part) for part in grown.drift(other)[:5]]
    yield "pseudotime", list(map(np.asarray, grown.pseudotime(3)))
    yield "Ritz", list(map(np.asarray, grown.diffusion_map(2)))
    found = grown.diffusion_neighbors([1, 2], n_neighbors=5)
    yield "neighbours", list(map(np.asarray, found))
    model = DiffusionMap(3, power=2).fit(digits)
    yield "diffusion map", [model.embedding_, model.transform(digits[:20] + 0.5)]
    yield "isometry", [NearIsometry(4).fit(grown.embedding_).components_]
    exact = HeatSketch(16, engine=LocalEngine(graph_tolerance=0)).fit(large[:9000])
    yield "exact", [exact.embedding_]


def digests():
    """Return the digest of each model of this checkout."""
    warnings.simplefilter("ignore")
    found = {}
    for name, arrays in cases():
        parts = [f"{a.dtype} {a.shape} ".encode() + a.tobytes() for a in arrays]
        found[name] = hashlib.sha256(b"".join(parts)).hexdigest()
    return found


def main():
    """Print which models differ; the exit code is their number."""
    if sys.argv[1:] == ["--print"]:
        print(json.dumps(digests()))
        return 0
    old, new = (
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--print"],
                env=os.environ | {"PYTHONPATH": source},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
        )
        for source in sys.argv[1:3]
    )
    different = [name for name in old if old[name] != new[name]]
    print(f"{len(old)} models, {len(different)} differ: {different}")
    return len(different)


if __name__ == "__main__":
    sys.exit(main())
