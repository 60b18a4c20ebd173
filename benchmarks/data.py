"""What is embedded: a manifold of any size, and real data."""

import gzip
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_sample_image

FASHION = Path("/usr/share/datasets/fashion-mnist")  # apt install dataset-fashion-mnist


def manifold(n_points, n_features, *, seed=0):
    """Points on a connected manifold of dimension 4, bent into all features, with noise.

    Each feature is a wave over a torus. Points are drawn in pieces, so that little else than
    they themselves takes memory.
    """
    rng = np.random.default_rng(seed)
    waves = rng.integers(-2, 3, (4, n_features))
    phases = rng.uniform(0, 2 * np.pi, n_features)
    X = np.empty((n_points, n_features), np.float32)
    for start in range(0, n_points, 100_000):
        some = X[start : start + 100_000]
        angles = rng.uniform(0, 2 * np.pi, (len(some), 4))
        some[:] = np.cos(angles @ waves + phases) + 0.1 * rng.standard_normal(some.shape)
    return X


def web(n_points, dtype):
    """Return distances along a closed thread, with some shortcuts across it; no search is needed.

    The diagonal is stored, as zeros.
    """
    rng, rows = np.random.default_rng(0), np.arange(n_points)
    steps = [(rows, 0), (rows, 1), (rows, 2), (rows, 700), (rows[::500], n_points // 2)]
    starts = np.concatenate([some for some, _ in steps])
    ends = np.concatenate([(some + step) % n_points for some, step in steps])
    lengths = np.where(starts == ends, 0, rng.uniform(0.5, 1.5, len(starts)))
    return sparse.csr_array((lengths.astype(dtype), (starts, ends)), shape=(n_points, n_points))


def digits():
    X, labels = load_digits(return_X_y=True)
    return X.astype(np.float32), labels


def china():
    """Return the pixels of a photograph, by colour and place, as segmentation takes them."""
    image = load_sample_image("china.jpg").astype(np.float32)
    height, width, _ = image.shape
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    return np.dstack([image, rows / 4, columns / 4]).reshape(height * width, 5), None


def fashion():
    parts = [(_images(part), _labels(part)) for part in ("train", "t10k")]
    X, labels = (np.concatenate(both) for both in zip(*parts, strict=True))
    return X, labels


def _images(part):
    with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32)


def _labels(part):
    with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)


DATA = {"digits": digits, "china": china, "fashion": fashion}
