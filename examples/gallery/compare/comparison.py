"""
Which cells a preprocessing step moves
======================================

700 blood cells of pbmc68k_reduced, in scanpy's wheel, twice: the counts after the logarithm, and
the same genes after scaling each to unit variance, as is often done. Which cells does that move?
Both sketches use the same random numbers for the same cell, so that they are subtracted as they
are. (:doc:`/background/distances` compares the brains of two strains of mice.)
"""

import warnings

import numpy as np
import scanpy as sc
from sklearn.decomposition import PCA

from heatsketch import HeatSketch, plot

warnings.simplefilter("ignore")  # scanpy's: a file in an old format
adata = sc.datasets.pbmc68k_reduced()
counts = adata.raw.to_adata().X.toarray()
scaled = (counts - counts.mean(axis=0)) / (counts.std(axis=0) + 1e-9)

models = [
    HeatSketch(128, power=4).fit(PCA(30, random_state=0).fit_transform(genes))
    for genes in (counts, scaled)
]
found = models[0].drift(models[1])
print(f"{found.relative:.0%} of the heat kernel moved; {found.moved.sum()} cells more than others")

# %%
# Each cell, in the order of the file. Those that moved more than all others would be marked; there
# are none, since the change is spread over all cells.

plot.drift(found)

# %%
# By kind, the mean of the squares, over that of all cells:

kinds = adata.obs["bulk_labels"].to_numpy(str)
squares = found.rows.distance**2
means = {kind: squares[kinds == kind].mean() / squares.mean() for kind in np.unique(kinds)}
for kind, mean in sorted(means.items(), key=lambda item: -item[1]):
    print(f"{mean:5.2f}  {kind} ({np.sum(kinds == kind)} cells)")
