"""Three solvers for the sum over all times: products with the heat operator, memory and time.

They solve (I - alpha A~) W = B, where B = A^(p0-1) G has 64 columns in float32, p0 is the first
power that the sketch resolves, and alpha = 1 - 1/10,000. The embedding is Y = A W.

1. Ours: a Chebyshev polynomial, relative error of every distance at most 1 %.
2. Conjugate gradients (CG), all columns at once, each with its own coefficients.
3. CG deflated by 32 Ritz vectors of A^16 B, whose 17 products are counted.

CG is stopped with the exact solution at hand, which no user has: as soon as 99.9 % of 20,000
distances of random pairs, and 99.9 % of those between a point and the strongest entry of its row,
are within 1 %. Its updates run in numpy, ours are compiled. Arguments: names of data sets, or none.
"""

import sys
import warnings
from collections import namedtuple
from functools import partial
from itertools import islice

import numpy as np
from data import fashion, manifold
from powers import Counting
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits
from timing import read, time_ratio, write
from usefulness_data import CURVES, GRAPHS, POINTS

from heatsketch import HeatGraph
from heatsketch.diffusion import gaussian_matrix
from heatsketch.diffusion._all_times import (
    DIRECTIONS_PER_COMPONENT,
    HORIZON,
    LARGEST_POWER,
    TOLERANCE,
    Components,
    resolvent,
)
from heatsketch.diffusion._heat_trace import diffuse_until_few
from heatsketch.diffusion._operator import HeatOperator

ALPHA = 1 - 1 / HORIZON
N_COLUMNS, N_PAIRS, SHARE = 64, 20_000, 0.999
N_RITZ, RITZ_STEPS, MOST_PRODUCTS, LARGE = 32, 16, 3000, 6000
# Blocks of the size of B that a solver holds beside B, temporary ones of numpy not counted: another
# Chebyshev vector and the sum; W, P and (I - alpha A) P; and 32 columns of Z and (I - alpha A) Z.
EXTRA_BLOCKS = {"ours": 2, "CG": 3, "deflated CG": 4}
SUBSET = np.random.default_rng(0).permutation(70_000)[:10_000]
CLUSTERS = {"centers": 10, "n_features": 10, "cluster_std": 2.0}
SETS = {
    **{name: POINTS[name] for name in ("digits", "MNIST, 5,000", "wine", "breast cancer")},
    **CURVES,
    "Fashion-MNIST, 10,000": lambda: {"X": fashion()[0][SUBSET]},
    "blobs": lambda: {"X": make_blobs(2000, **CLUSTERS, random_state=0)[0]},
    "manifold of dimension 4, 100,000": lambda: {"X": manifold(100_000, 32)},
    **{name: GRAPHS[name] for name in GRAPHS if "block" in name or "Debian" in name},
}
# The heat operator, its connected components if there are several, and the right side.
System = namedtuple("System", "A components B")


def load(name):
    """Return the system of a data set, and the power at which the sum over times starts."""
    data = SETS[name]()
    if "X" in data:
        graph = HeatGraph.from_points(data["X"].astype(np.float32))
    else:
        graph = HeatGraph.from_affinity(data["graph"].astype(np.float32))
    A, components = graph.operator, graph.parts
    G = (components or A).deflate(gaussian_matrix(A.shape[0], N_COLUMNS, seed=0, dtype=A.dtype))
    most = DIRECTIONS_PER_COMPONENT * N_COLUMNS
    B, trace = diffuse_until_few(A, G, most, largest=LARGEST_POWER)
    return System(A, components, (components or A).deflate(B)), int(trace.powers[-1])


def multiply(system, block):
    """Return (I - alpha A~) times a block."""
    A, components, _ = system
    w = A.stationary_coefficients(block)
    product, _ = A.step(block, w, factors=(-ALPHA, 1.0, 0.0))
    return components.deflate(product) if components else product


def ritz_vectors(system):
    """Return vectors Z of the slowest modes, M Z, and the diagonal Z' M Z; M = I - alpha A~."""
    block = system.B
    for _ in range(RITZ_STEPS):
        block = (system.components or system.A).deflate(system.A @ block)
    MQ = multiply(system, Q := np.linalg.qr(block)[0])
    values, turn = (found[..., :N_RITZ] for found in np.linalg.eigh(Q.T @ MQ))  # ascending
    return Q @ turn, MQ @ turn, values[:, np.newaxis]


def conjugate_gradients(system, *, is_deflated=False):
    """Yield the solution and the residual after each product, each time in the same memory."""
    R, W, conjugate = system.B.copy(), np.zeros_like(system.B), np.array
    if is_deflated:
        Z, MZ, values = ritz_vectors(system)
        W += Z @ (Z.T @ R / values)
        R -= MZ @ (Z.T @ R / values)

        def conjugate(R):
            return R - Z @ (MZ.T @ R / values)

    P, square = conjugate(R), dots(R, R)
    while True:
        Q = multiply(system, P)
        length = square / dots(P, Q)
        W += length * P
        R -= length * Q
        yield W, R
        before, square = square, dots(R, R)
        P *= square / before
        P += conjugate(R) if is_deflated else R


def dots(P, Q):
    return np.einsum("ij,ij->j", P, Q)


def residual(system, R):
    return np.sqrt((dots(R, R) / dots(system.B, system.B)).max())


def solve(system, A, **options):
    return resolvent(A, system.B.copy(), components=system.components, **options)


def exact(system):
    """Return Y in float64: by CG, or by a polynomial where there are many points."""
    A, components, B = system
    A = HeatOperator(A.matrix.astype(float), A.s, A.stationary.astype(float))
    components = components and Components(A, components.labels)
    system = System(A, components, (components or A).deflate(B.astype(float)))
    if len(B) > LARGE:
        return A @ solve(system, A, tolerance=1e-8).block
    return A @ next(W for W, R in conjugate_gradients(system) if residual(system, R) <= 1e-10)


def pairs_of(A):
    """Return random pairs, and each point with the strongest entry of its row."""
    matrix = A.matrix.tocoo()
    off = matrix.row != matrix.col
    rows, columns, values = matrix.row[off], matrix.col[off], matrix.data[off]
    order = np.lexsort((values, rows))
    strongest = order[np.append(np.diff(rows[order]) > 0, True)]
    chance = np.random.default_rng(1).integers(A.shape[0], size=(2, N_PAIRS))
    return [chance[:, chance[0] != chance[1]], np.stack([rows[strongest], columns[strongest]])]


def distances(Y, pairs):
    return [np.linalg.norm(Y[i].astype(float) - Y[j], axis=1) for i, j in pairs]


def errors(Y, pairs, wanted):
    """Return the 99.9 % quantile and the maximum; distances zero but for rounding left out."""
    both = zip(distances(Y, pairs), wanted, strict=True)
    wrong = [abs(found / d - 1)[d > 1e-6 * d.max()] for found, d in both]
    return max(np.quantile(some, SHARE) for some in wrong), max(some.max() for some in wrong)


def measure_cg(system, error, **options):
    solutions = partial(conjugate_gradients, system, **options)
    found = enumerate(islice(solutions(), MOST_PRODUCTS), 1)
    n, R = next((n, R) for n, (W, R) in found if error(system.A @ W)[0] <= TOLERANCE)
    cg, ours = lambda: next(islice(solutions(), n - 1, None)), partial(solve, system, system.A)
    seconds = time_ratio(cg, ours, n_pairs=1 if len(R) > LARGE else 3)
    extra = RITZ_STEPS + 1 if options else 0
    return {"products": n + extra, "time / ours": seconds, "residual": residual(system, R)}


def measure(name):
    system, first_power = load(name)
    pairs, counting = pairs_of(system.A), Counting(system.A)
    error = partial(errors, pairs=pairs, wanted=distances(exact(system), pairs))
    W, n_products, *_ = solve(system, counting)
    most, worst = error(system.A @ W)
    polynomial = {"products": n_products, "Lanczos steps": counting.count - n_products}
    polynomial |= {"99.9 % error": most, "worst error": worst}
    solvers = polynomial, measure_cg(system, error), measure_cg(system, error, is_deflated=True)
    n_components = 1 + int(system.components.labels.max()) if system.components else 1
    results = {"points": len(system.B), "components": n_components, "p0": first_power}
    for solver, values in zip(EXTRA_BLOCKS, solvers, strict=True):
        results |= {f"{solver}: {key}": value for key, value in values.items()}
    return {k: v if isinstance(v, int) else float(f"{v:.3g}") for k, v in results.items()}


def table(results):
    head = list(next(iter(results.values())))
    rows = [["data", *head], ["---"] * (len(head) + 1)]
    rows += [[name, *(str(value) for value in found.values())] for name, found in results.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main():
    warnings.simplefilter("ignore")  # about several connected components
    results = read("all_times")["data"] if sys.argv[1:] else {}
    with threadpool_limits(1, "blas"):
        for name in sys.argv[1:] or SETS:
            results[name] = measure(name)
            print(name, flush=True)
            write("all_times", {"extra blocks": EXTRA_BLOCKS, "data": results}, quiet=True)
    print(table(results))


if __name__ == "__main__":
    main()
