"""
A graph: who meets whom in Les Misérables
=========================================

The people of Les Misérables, and in how many chapters two of them meet (Knuth, 1993; in networkx).
A graph brings its own affinities, so that there is neither a metric nor an epsilon.
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

from heatsketch import HeatSketch

graph = nx.les_miserables_graph()
# Nodes without a self-loop get a light one, normalization and weighting are those of a random walk.
model = HeatSketch(512, affinity="precomputed").fit(graph)
people = model.row_names_  # in the order of the rows

# %%
# Who is close, by all paths together, and how sure is the order?

who = int(np.flatnonzero(people == "Marius")[0])
near = model.diffusion_neighbors([who], n_neighbors=6)
for row, distance in zip(near.indices[0], near.distance[0], strict=True):
    print(f"{distance:.3f}  {people[row]}")
print(f"sure of their order, one by one: {near.confidence[0].round(2)}")

# %%
# The same as a picture: Marius to all others who are in at least twenty common chapters with
# somebody, each with its interval of 95 %.

chapters = np.array([graph.degree(name, weight="weight") for name in people])
others = np.flatnonzero((chapters >= 20) & (people != "Marius"))
distance, low, high = model.diffusion_distances(
    np.column_stack([np.full_like(others, who), others])
)
order = np.argsort(distance)
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
bars = np.array([distance - low, high - distance])[:, order]
ax.errorbar(distance[order], np.arange(len(order)), xerr=bars, fmt="o", ms=4, color="#0072B2")
ax.set_yticks(np.arange(len(order)), people[others][order])
ax.set(xlabel="diffusion distance from Marius", xlim=(0, None))
