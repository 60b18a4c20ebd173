"""
A graph: the people of Les Misérables
=====================================

The weight of a link is the number of chapters in which two people appear together (Knuth, 1993; in
networkx). Weights are used as they are, so there is no metric and no bandwidth to choose.
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

from heatsketch import HeatGraph, sketch

miserables = nx.les_miserables_graph()
graph = HeatGraph.from_affinity(miserables)
made = sketch(graph, 512)
people = graph.ids  # names, in the order of the rows

# %%
# Who is near Marius, over all paths, and how certain is the order?

who = int(np.flatnonzero(people == "Marius")[0])
near = made.neighbors([who], n_neighbors=6)
for row, distance in zip(near.indices[0], near.distance[0], strict=True):
    print(f"{distance:.3f}  {people[row]}")
print(f"confidence in the order: {near.confidence[0].round(2)}")

# %%
# Distances from Marius to all people with links of a total weight of at least 20, with 95 %
# intervals.

chapters = np.array([miserables.degree(name, weight="weight") for name in people])
others = np.flatnonzero((chapters >= 20) & (people != "Marius"))
distance, low, high = made.distances(np.column_stack([np.full_like(others, who), others]))
order = np.argsort(distance)
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
bars = np.array([distance - low, high - distance])[:, order]
ax.errorbar(distance[order], np.arange(len(order)), xerr=bars, fmt="o", ms=4, color="#0072B2")
ax.set_yticks(np.arange(len(order)), people[others][order])
ax.set(xlabel="diffusion distance from Marius", xlim=(0, None))
