"""Search by diffusion distances in faiss, with the recall of the index against brute force.

    python examples/search_faiss.py

Needs faiss (``pip install faiss-cpu``).
"""

import faiss
import numpy as np
from sklearn.datasets import load_digits

from heatsketch import HeatSketch, vectors

N_NEIGHBORS = 10


def main():
    """Build an index of training images, and search the neighbours of others."""
    X, digit = load_digits(return_X_y=True)
    model = HeatSketch().fit(X[:1500])
    index = faiss.IndexHNSWFlat(64 + X.shape[1], 32)
    index.hnsw.efSearch = 64
    rows = vectors(model, append=X[:1500])
    index.add(rows)
    queries = vectors(model.transform(X[1500:]), append=X[1500:])
    _, near = index.search(queries, N_NEIGHBORS)
    brute = faiss.IndexFlatL2(queries.shape[1])
    brute.add(rows)
    _, exact = brute.search(queries, N_NEIGHBORS)
    common = [len(np.intersect1d(a, b)) for a, b in zip(near, exact, strict=True)]
    same = digit[near] == digit[1500:, np.newaxis]
    print(f"recall of the index: {np.mean(common) / N_NEIGHBORS:.3f}")
    print(f"neighbours that show the same digit: {same.mean():.3f}")


if __name__ == "__main__":
    main()
