"""Let an index of faiss find the neighbours: HNSW here, any other by its name.

    model = HeatSketch(neighbors=FaissTransformer(14)).fit(X)
    model.transform(X_new)

Needs faiss (``pip install faiss-cpu``). On a GPU, pass ``on_gpu=True`` and ``factory="Flat"`` or
``"IVF4096,Flat"``, since HNSW indices are for processors only.
"""

import faiss
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from heatsketch import HeatSketch


class FaissTransformer(TransformerMixin, BaseEstimator):
    """The nearest training points of each row, and their Euclidean distances.

    Parameters
    ----------
    n_neighbors : int, default=14
        A training point is listed beside so many others, as in scikit-learn.
    factory : str, default="HNSW32"
        The index, as ``faiss.index_factory`` names it.
    n_candidates : int, default=64
        How many points an HNSW index follows: more find more of the neighbours, in more time.
    on_gpu : bool, default=False
        Whether the index is moved to the first GPU.
    """

    def __init__(self, n_neighbors=14, *, factory="HNSW32", n_candidates=64, on_gpu=False):
        self.n_neighbors = n_neighbors
        self.factory = factory
        self.n_candidates = n_candidates
        self.on_gpu = on_gpu

    def fit(self, X, y=None):
        """Make the index."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        index = faiss.index_factory(X.shape[1], self.factory)
        if hasattr(index, "hnsw"):
            index.hnsw.efConstruction = index.hnsw.efSearch = max(
                self.n_candidates, self.n_neighbors + 1
            )
        if self.on_gpu:
            index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
        index.train(X)
        index.add(X)
        self.index_ = index
        return self

    def transform(self, X):
        """Return distances to the nearest training points, as a sparse matrix."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        squares, ids = self.index_.search(X, min(self.n_neighbors + 1, self.index_.ntotal))
        found = ids >= 0  # an index that finds too few fills up with -1
        indptr = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
        distances = np.sqrt(np.maximum(squares[found], 0))  # which rounding may leave below zero
        shape = len(X), self.index_.ntotal
        return sparse.csr_array((distances, ids[found], indptr), shape=shape)

    def __getstate__(self):
        """Return a state without pointers, for pickle."""
        state = super().__getstate__().copy()
        if "index_" in state:
            index = faiss.index_gpu_to_cpu(self.index_) if self.on_gpu else self.index_
            state["index_"] = faiss.serialize_index(index)
        return state

    def __setstate__(self, state):
        """Take such a state; the index is on the processor then."""
        if "index_" in state:
            index = faiss.deserialize_index(state["index_"])
            state = {**state, "index_": index, "on_gpu": False}
        super().__setstate__(state)


def main():
    """Embed points with an HNSW index, and compare with our own search."""
    X = np.random.default_rng(0).normal(size=(5000, 8)).astype(np.float32)
    model = HeatSketch(neighbors=FaissTransformer(14)).fit(X)
    again = model.transform(X)
    print("training points keep their embedding:", bool((again == model.embedding_).all()))
    exact = HeatSketch().fit_transform(X)
    error = np.linalg.norm(model.embedding_ - exact) / np.linalg.norm(exact)
    print(f"difference from exact neighbours: {error:.3f}")


if __name__ == "__main__":
    main()
