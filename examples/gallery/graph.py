"""
A graph
=======

The people of Les Misérables, and in how many chapters two of them meet (Knuth, 1993; in networkx).
A graph brings its own affinities, so that there is neither a metric nor an epsilon.
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

from heatsketch import DiffusionMap, HeatSketch

graph = nx.les_miserables_graph()
people = np.array(graph)
weights = nx.to_numpy_array(graph)
# Heat that stays where it is: without it, it would hop to and fro between two who only know
# each other.
np.fill_diagonal(weights, weights.sum(axis=1))
model = HeatSketch(512, affinity="precomputed", power=4).fit(weights)

# %%
# Who is close, by all paths together, and how sure is the order?

who = int(np.flatnonzero(people == "Marius")[0])
near = model.diffusion_neighbors([who], n_neighbors=6)
for row, distance in zip(near.indices[0], near.distance[0], strict=True):
    print(f"{distance:.3f}  {people[row]}")
print(f"sure of their order, one by one: {near.confidence[0].round(2)}")

# %%
# For the picture, a diffusion map with the same options:

Y = DiffusionMap(2, affinity="precomputed", power=4).fit_transform(weights)
_, ax = plt.subplots(figsize=(8, 6), layout="constrained")
for one, other in graph.edges:
    ends = [np.flatnonzero(people == name)[0] for name in (one, other)]
    ax.plot(*Y[ends].T, color="0.85", lw=0.5, zorder=0)
ax.scatter(*Y.T, s=10 + weights.diagonal(), color="#0072B2", alpha=0.6)
for row in np.argsort(weights.diagonal())[-14:]:
    ax.annotate(people[row], Y[row], xytext=(4, 4), textcoords="offset points")
ax.set(xlabel="diffusion coordinate 1", ylabel="diffusion coordinate 2")
ax.set_aspect("equal", adjustable="datalim")
