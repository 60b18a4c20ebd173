"""
Search clothes, and embed new images
====================================

6,000 images of clothes are embedded. 2,000 new images get coordinates by ``transform``, without a
new fit, and are used as queries. The data come from the Debian package ``dataset-fashion-mnist``.
"""

import gzip
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from heatsketch import HeatSketch

FOLDER = Path("/usr/share/datasets/fashion-mnist")
RANKS = [10, 50, 100, 200, 400]


def images(part, n_images):
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(16 + 784 * n_images), np.uint8, offset=16)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + n_images), np.uint8, offset=8)
    return X.reshape(-1, 784).astype(np.float32), labels


X, kind = images("train", 6000)
X_new, kind_new = images("t10k", 2000)

# %%
# Fit, and embed the new images
# -----------------------------

model = HeatSketch(128).fit(X)
Y, Y_new = model.embedding_, model.transform(X_new)


def ranking(queries, rows):
    """Rows from the nearest to the farthest, for each query."""
    return np.argsort((rows**2).sum(axis=1) - 2 * queries @ rows.T, axis=1)


orders = {"pixels": ranking(X_new, X), "HeatSketch": ranking(Y_new, Y)}

# %%
# How many results are of the right kind?
# ---------------------------------------
# There are about 600 training images of each kind. Among the nearest ten, pixels find as many of
# the right kind as diffusion distances do, or more: these are nearly the same picture. Farther
# away, chains of similar images lead to more of the same kind.

_, ax = plt.subplots()
for name, order in orders.items():
    right = kind[order] == kind_new[:, np.newaxis]
    shares = [right[:, :rank].mean() for rank in RANKS]
    (line,) = ax.plot(RANKS, shares, "o-")
    ax.text(RANKS[-1] * 1.02, shares[-1], name, color=line.get_color(), va="center")
    print(f"{name:>10}:", ", ".join(f"{s:.2f} of {r}" for s, r in zip(shares, RANKS, strict=True)))
ax.set(xlabel="number of results", ylabel="share of the right kind", xlim=(0, 490))

# %%
# Two queries and their results
# -----------------------------
# Frames mark images of another kind.

figure, axes = plt.subplots(4, 1 + len(RANKS), figsize=(8, 5.4))
for block, query in enumerate([4, 12]):
    for line, (name, order) in enumerate(orders.items()):
        row = axes[2 * block + line]
        shown = [X_new[query], *X[order[query, RANKS]]]
        wrong = [False, *(kind[order[query, RANKS]] != kind_new[query])]
        for ax, image, is_wrong in zip(row, shown, wrong, strict=True):
            ax.imshow(image.reshape(28, 28), cmap="gray_r")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(visible=is_wrong, color="#D55E00", linewidth=3)
        row[0].set_ylabel(name)
for ax, title in zip(axes[0], ["query", *(f"rank {rank}" for rank in RANKS)], strict=True):
    ax.set_title(title, loc="center", weight="normal", fontsize=10)
