r"""Plots of embeddings, of the choice of options, and of errors.

Each function takes arrays or a fitted :class:`HeatSketch`, draws on the given or on new Axes, and
returns them. The axis labels name the projection, since a sketch of ``k`` components has several in
two dimensions: its diffusion map,

.. math:: \lambda_1^p v_1, \; \lambda_2^p v_2,

or its principal components. The first two components of a sketch are neither of these, and make a
poor picture. The colours are those of Okabe and Ito, which are safe for colour-blind readers;
markers and dashes also differ, for printing in grey. Functions use the current style; the style of
the documentation is ``plt.style.use("heatsketch.plot.heatsketch")``.

matplotlib is imported on first use.
"""

from heatsketch.plot._comparison import compare
from heatsketch.plot._curves import distances, distortion, drift, epsilon, heat_trace
from heatsketch.plot._points import embedding, multiscale

__all__ = [
    "compare",
    "distances",
    "distortion",
    "drift",
    "embedding",
    "epsilon",
    "heat_trace",
    "multiscale",
]
