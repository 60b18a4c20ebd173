"""Compare the numbers of two checkouts, bit by bit.

::

    python tests/_support/compare_bits.py OLD/src NEW/src

Each checkout fits the same models in a process of its own and prints a digest of every array. The
extension modules must be built in both (`pip install --target OLD ...` does it).
"""

import hashlib
import json
import subprocess
import sys
import warnings
from pathlib import Path


def embedded(X, X_new, *, ids=None, affinity=False, **options):
    """Return a sketch and its extension to new points, with the API of this checkout."""
    import heatsketch

    if not hasattr(heatsketch, "HeatGraph"):  # before there were graphs
        if affinity:
            options["affinity"] = "precomputed"
        model = heatsketch.HeatSketch(**options).fit(X, row_ids=ids)
        return model, [model.embedding_, model.transform(X_new)]
    of_graph = {"n_neighbors", "metric", "normalization", "engine"}
    made = {name: options.pop(name) for name in of_graph & options.keys()}
    if "epsilon" in options:
        epsilon = options.pop("epsilon")
        made["weights"] = "gaussian" if epsilon == "auto" else epsilon
    make = heatsketch.HeatGraph.from_affinity if affinity else heatsketch.HeatGraph.from_points
    sketch = heatsketch.sketch(make(X, ids=ids, **made), **options)
    return sketch, [sketch.embedding, sketch.extend(sketch.graph.rows(X_new))]


def cases():
    """Yield a name and the arrays of each model."""
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import load_digits

    import heatsketch
    from heatsketch import DiffusionMap, LocalEngine, NearIsometry

    is_new = hasattr(heatsketch, "HeatGraph")
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
            if option in few.get(name, options):
                made = {"n_components": 16, **given}
                yield f"{name} {option}", embedded(X, X_new, **made)[1]
    for option in ("default", "power", "bistochastic", "epsilon"):
        made = {"n_components": 16, "n_neighbors": None, **options[option]}
        yield f"all pairs {option}", embedded(cloud, new, **made)[1]
    yield "graph", embedded(graph, graph[:9], affinity=True, n_components=16)[1]
    ids = np.arange(700)[::-1]
    grown = embedded(cloud, new, n_components=8, ids=ids)[0].grow(24)
    other = embedded(cloud + 0.01, new, n_components=24, ids=ids)[0]
    embedding = grown.embedding if is_new else grown.embedding_
    yield "grown", [embedding, *grown.path([1, 5])]
    drift = heatsketch.drift(grown, other) if is_new else grown.drift(other)
    yield "drift", [np.asarray(part) for part in drift[:5]]
    yield "pseudotime", list(map(np.asarray, grown.pseudotime(3)))
    yield "Ritz", list(map(np.asarray, grown.diffusion_map(2)))
    neighbors = grown.neighbors if is_new else grown.diffusion_neighbors
    yield "neighbours", list(map(np.asarray, neighbors([1, 2], n_neighbors=5)))
    model = DiffusionMap(3, power=2).fit(digits)
    yield "diffusion map", [model.embedding_, model.transform(digits[:20] + 0.5)]
    yield "isometry", [NearIsometry(4).fit(embedding).components_]
    engine = LocalEngine(graph_tolerance=0)
    yield "exact", embedded(large[:9000], large[:9], n_components=16, engine=engine)[1]


def digests():
    """Return the digest of each model of this checkout."""
    warnings.simplefilter("ignore")
    found = {}
    for name, arrays in cases():
        parts = [f"{a.dtype} {a.shape} ".encode() + a.tobytes() for a in arrays]
        found[name] = hashlib.sha256(b"".join(parts)).hexdigest()
    return found


def import_from(source):
    """Import the library from a folder, even if another checkout is installed as editable."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
    sys.path.insert(0, source)
    import heatsketch

    if not Path(heatsketch.__file__).is_relative_to(Path(source).resolve()):
        raise SystemExit(f"imported {heatsketch.__file__}, which is not in {source}")


def main():
    """Print which models differ; the exit code is their number."""
    if sys.argv[1] == "--print":
        import_from(sys.argv[2])
        print(json.dumps(digests()))
        return 0
    old, new = (
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--print", source],
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
