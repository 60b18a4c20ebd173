"""Compare eight steps of heat with eight bare products of MKL, on the same arrays.

Ours take the stationary direction out, and scale. MKL's are given two blocks to write to, once
fresh ones, as our steps need them, and once some that have been written to before.
Needs ``pip install mkl sparse_dot_mkl``.
"""

import os
from functools import partial
from importlib import metadata

import numpy as np
from scipy import sparse
from timing import time_ratio, write

from heatsketch.diffusion import gaussian_matrix, heat_operator, sketch, symmetric_scaling

N_ROWS, REACH, POWER = 1_000_000, 8, 8


def local_affinity():
    """Gaussian affinities to the neighbours on a line, 17 a row, and no two rows alike."""
    offsets = np.arange(-REACH, REACH + 1)
    indices = (np.arange(N_ROWS)[:, np.newaxis] + offsets) % N_ROWS
    places = np.random.default_rng(0).uniform(-0.3, 0.3, N_ROWS)
    gaps = offsets + places[indices] - places[:, np.newaxis]
    indptr = np.arange(0, indices.size + 1, len(offsets))
    values = np.exp(-(gaps**2) / REACH**2).astype(np.float32).ravel()
    matrix = (values, indices.ravel().astype(np.int32), indptr.astype(np.int32))
    K = sparse.csr_array(matrix, shape=(N_ROWS, N_ROWS))
    K.sort_indices()
    return K


def product_of_mkl():
    """Return MKL's product; sparse_dot_mkl must be told where pip puts the library."""
    library = next(path for path in metadata.files("mkl") if path.name.startswith("libmkl_rt"))
    os.environ.setdefault("MKL_RT", str(library.locate().resolve()))
    from sparse_dot_mkl import dot_product_mkl

    return dot_product_mkl


def bare_products(product, matrix, block, buffers=None):
    buffers = buffers or (np.empty_like(block), np.empty_like(block))
    for i in range(POWER):
        block = product(matrix, block, out=buffers[i % 2], out_scalar=0.0)
    return block


def main():
    K = local_affinity()
    A = heat_operator(K, symmetric_scaling(K))
    bare = partial(bare_products, product_of_mkl(), sparse.csr_matrix(A.matrix))
    results = {}
    for n_columns in (32, 128):
        G = gaussian_matrix(N_ROWS, n_columns, seed=0, dtype=np.float32)
        buffers = np.empty_like(G), np.empty_like(G)
        ours, fresh = partial(sketch, A, G, power=POWER), partial(bare, G)
        found = A.deflate(fresh()) / np.sqrt(np.float32(n_columns))
        np.testing.assert_allclose(ours(), found, atol=1e-4 * abs(found).max())
        pairs = {
            "ours / MKL": (ours, fresh),
            "ours / MKL in memory used before": (ours, partial(fresh, buffers)),
            "control, MKL / MKL": (fresh, fresh),
        }
        for name, sides in pairs.items():
            ratio = time_ratio(*sides, n_pairs=15)
            results[f"{n_columns} columns: {name}"] = round(ratio, 3)
    write("products", results)


if __name__ == "__main__":
    main()
