"""
Which cells a preprocessing step moves
======================================

700 blood cells of pbmc68k_reduced, in scanpy's wheel, in two versions: the logarithm of the counts,
and the same genes after scaling each to unit variance, as is often done. Which cells does that
move? Both sketches use the same random numbers for the same cell, so they can be subtracted without
alignment. (:doc:`/background/distances` compares the brains of two strains of mice.)
"""

import warnings

import numpy as np
import scanpy as sc
from sklearn.decomposition import PCA

from heatsketch import HeatGraph, drift, plot, sketch

warnings.simplefilter("ignore")  # scanpy's: a file in an old format
adata = sc.datasets.pbmc68k_reduced()
counts = adata.raw.to_adata().X.toarray()
scaled = (counts - counts.mean(axis=0)) / (counts.std(axis=0) + 1e-9)

before, after = (
    sketch(HeatGraph.from_points(PCA(30, random_state=0).fit_transform(genes)), 128, power=4)
    for genes in (counts, scaled)
)
change = drift(before, after)
print(
    f"{change.relative:.0%} of the heat kernel moved; {change.moved.sum()} cells more than others"
)

# %%
# Each cell, in the order of the file. Cells that moved more than the others are marked. There are
# none: the change is spread over all cells.

plot.drift(change)

# %%
# The mean squared movement of each kind of cell, relative to that of all cells:

kinds = adata.obs["bulk_labels"].to_numpy(str)
squares = change.rows.distance**2
means = {kind: squares[kinds == kind].mean() / squares.mean() for kind in np.unique(kinds)}
for kind, mean in sorted(means.items(), key=lambda item: -item[1]):
    print(f"{mean:5.2f}  {kind} ({np.sum(kinds == kind)} cells)")
