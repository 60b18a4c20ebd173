"""
Digits, and every picture of a sketch
=====================================

1797 handwritten digits of 8 x 8 pixels, which come with scikit-learn. The example fits a sketch and
draws every picture of it.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from heatsketch import HeatSketch, plot

X, digit = load_digits(return_X_y=True)
model = HeatSketch(epsilon="auto").fit(X)

# %%
# In two dimensions
# -----------------
# The sketch has 64 columns. Two coordinates of the diffusion map, found from these columns, show
# some of it: the digits that differ most. The others lie on top of each other here, and only here.

plot.embedding(model, digit, label="digit")

# %%
# In all 64 columns most digits are those of their ten nearest neighbours:

scores = cross_val_score(KNeighborsClassifier(10), model.embedding_, digit, cv=5)
print(f"accuracy {scores.mean():.3f}")

# %%
# Where the sum over all times starts
# -----------------------------------
# The heat trace gives the number of directions of the heat kernel after ``p`` steps. The sum over
# all times starts where the sketch resolves them, or a few steps later.

plot.heat_trace(model)

# %%
# Why that epsilon
# ----------------
# Between the spacing of the points and the size of the whole, the sum of all affinities grows
# with epsilon as it does on a manifold of some dimension.

plot.epsilon(model)

# %%
# How far off distances are
# -------------------------
# Each with its 95 % interval, against the exact distance, which takes a row of the whole matrix.

plot.distances(model)

# %%
# Over the largest and the least ratio of any pair:

plot.distortion(model)

# %%
# Several diffusion times
# -----------------------
# Single powers, from one pass. Early, each digit is near its neighbours only; late, few groups are
# left. The default adds them all up.

plot.multiscale(model, (1, 8, 64), color=digit)
