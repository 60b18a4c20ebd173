"""
Fashion-MNIST: train, then new images
=====================================

Images of clothes: a sketch of some, and the others embedded by the same rule, without a new fit.
The data are those of the Debian package ``dataset-fashion-mnist``; without it the example says so
and stops. Of its 60,000 and 10,000 images 6000 and 2000 are taken, to keep this page quick;
:doc:`/benchmarks` has all.
"""

import gzip
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from heatsketch import HeatSketch, plot

FOLDER = Path("/usr/share/datasets/fashion-mnist")
KINDS = np.array(
    ["T-shirt", "trousers", "jumper", "dress", "coat", "sandal", "shirt", "trainer", "bag", "boot"]
)


def images(part, n_images):
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(16 + 784 * n_images), np.uint8, offset=16)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + n_images), np.uint8, offset=8)
    return X.reshape(-1, 784).astype(np.float32), KINDS[labels]


def train_and_test():
    X, kind = images("train", 6000)
    X_new, kind_new = images("t10k", 2000)
    model = HeatSketch(128).fit(X)
    new = model.transform(X_new)
    right = KNeighborsClassifier(10).fit(model.embedding_, kind).score(new, kind_new)
    pixels = KNeighborsClassifier(10).fit(X, kind).score(X_new, kind_new)
    print(f"ten neighbours, new images: {right:.3f}; with 784 pixels instead: {pixels:.3f}")

    # For the picture, the coarse shape only: after 64 steps two directions hold much of it.
    coarse = HeatSketch(128, power=64).fit(X)
    both = np.concatenate([coarse.embedding_, coarse.transform(X_new)])
    is_new = np.arange(len(both)) >= len(kind)
    _, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for ax, rows, title in zip(axes, (~is_new, is_new), ("training", "new"), strict=True):
        plane = PCA(2).fit(both).transform(both[rows])
        plot.embedding(plane, np.r_[kind, kind_new][rows], label="kind", ax=ax)
        ax.set_title(f"{title} images")


# %%
# New images lie among those of their class. Classes of clothes are not separate clusters, and
# neighbours in the plain pixels predict them better.

if FOLDER.exists():
    train_and_test()
else:
    print("The data are not here: apt install dataset-fashion-mnist")
