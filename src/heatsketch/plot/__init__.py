r"""Plots of embeddings, of the choice of options, and of errors.

Functions take a :class:`Sketch`, a fitted :class:`HeatSketch` or arrays, draw on the given or on
new Axes, and return them. A sketch is drawn by its diffusion map,

.. math:: \lambda_1^p v_1, \; \lambda_2^p v_2,

and an array by its principal components, as the axis labels state. The first two components of a
sketch are neither, and would be a poor plot. The colours are those of Okabe and Ito, which are safe
for colour-blind readers; markers and dashes also differ, for printing in grey. Functions
use the current style; the style of the documentation is
``plt.style.use("heatsketch.plot.heatsketch")``.

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
