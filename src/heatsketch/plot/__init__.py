r"""Pictures of a sketch: where points are, how the options were chosen, and what the errors are.

Each function takes arrays or a fitted :class:`HeatSketch`, draws on the Axes that it is given or
on new ones, and returns them. Axes say what they show, since a sketch of ``k`` columns has many
shadows in the plane: the diffusion map out of it,

.. math:: \lambda_1^p v_1, \; \lambda_2^p v_2,

or its principal components. The first two components of a sketch are none of these, and a poor
picture. Colours are those of Okabe and Ito, which the colour-blind can tell apart; marks and
dashes differ, too, for those who print in grey. Functions draw in the style that is in use;
``plt.style.use("heatsketch.plot.heatsketch")`` is that of our documentation.

(matplotlib is imported when something is drawn.)
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
