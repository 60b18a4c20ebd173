"""Leading eigenpairs out of a sketch of 1e5 points, against scipy's eigsh on the same operator."""

from time import perf_counter

import numpy as np
from data import manifold
from scipy import sparse
from scipy.sparse.linalg import eigsh
from timing import write

from heatsketch import HeatGraph, sketch

N_PAIRS = 10


def main():
    X = manifold(100_000, 16).astype(np.float64)
    graph = HeatGraph.from_points(X)
    made = sketch(graph, 64)
    made.diffusion_map(1)  # warm up
    start = perf_counter()
    found = made.diffusion_map(N_PAIRS)
    middle = perf_counter()
    # One more: the first of eigsh is the stationary one.
    A = sparse.csr_matrix(graph.operator.matrix)
    values, vectors = eigsh(A, N_PAIRS + 1, which="LA")
    end = perf_counter()
    values, vectors = values[-2::-1], vectors[:, -2::-1]
    rows = graph.inner(found.coordinates) * graph.operator.stationary[:, np.newaxis]
    rows /= np.linalg.norm(rows, axis=0)
    results = {
        "largest residual": float(f"{found.residuals.max():.2g}"),
        "largest difference of eigenvalues": float(f"{abs(found.eigenvalues - values).max():.2g}"),
        # Within a cluster of eigenvalues vectors may turn: compare the spaces.
        "least cosine between the spaces": float(
            np.linalg.svd(rows.T @ vectors, compute_uv=False).min().round(9)
        ),
        "time / eigsh": round((middle - start) / (end - middle), 3),
        "largest eigenvalue": round(float(values[0]), 5),
        "last one": round(float(values[-1]), 5),
    }
    write("eigenpairs", results)


if __name__ == "__main__":
    main()
