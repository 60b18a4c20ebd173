"""
Handwritten digits: a tour of the plots
=======================================

1797 handwritten digits of 8 x 8 pixels, which come with scikit-learn, and all plots of a fitted
model.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from heatsketch import HeatSketch, plot
from heatsketch.diffusion import estimate_epsilon

X, digit = load_digits(return_X_y=True)
model = HeatSketch(weights="gaussian").fit(X)

# %%
# In two dimensions
# -----------------
# The sketch has 64 components. Two coordinates of the diffusion map, computed from these, separate
# the digits that differ most. The others overlap in the plot, but not in 64 components.

plot.embedding(model, digit, label="digit")

# %%
# In all 64 components, most digits agree with their ten nearest neighbours:

scores = cross_val_score(KNeighborsClassifier(10), model.embedding_, digit, cv=5)
print(f"accuracy {scores.mean():.3f}")

# %%
# Where the sum over all times starts
# -----------------------------------
# The heat trace is the number of directions of the heat kernel after ``p`` steps. The sum over all
# times starts at the first power at which the sketch resolves them, or a few steps later.

plot.heat_trace(model)

# %%
# Choosing a bandwidth
# --------------------
# Between the spacing of the points and the size of the data, the sum of all affinities grows with
# epsilon as on a manifold of some dimension. The bandwidth is where the growth is fastest.

plot.epsilon(estimate_epsilon(X, metric="euclidean"))

# %%
# Errors of distances
# -------------------
# Distances in the sketch with 95 % intervals, against exact ones:

plot.distances(model)

# %%
# The ratio of the two, over all pairs:

plot.distortion(model)

# %%
# Several diffusion times
# -----------------------
# Single powers, from one pass. At a small power, each digit is near its neighbours only; at a large
# one, few groups are left. The default is the sum over all powers.

plot.multiscale(model, (1, 8, 64), color=digit)
