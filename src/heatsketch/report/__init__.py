r"""A model as one page to look at, which opens in a browser without a network.

The page draws the diffusion map in two dimensions, from Ritz vectors of the sketch. It holds the
sketch at several diffusion times, all from one pass,

.. math:: Y_p = \frac{1}{\sqrt k} A^p G.

Click two points, and it shows their diffusion distance with its interval, as
:meth:`HeatSketch.diffusion_distances` does.

Where the bytes go, by the number ``n`` of points, of which at most 250,000 are drawn:

======================  ==============================  ===========================================
what                    bytes of a point                for how many points
======================  ==============================  ===========================================
place in the plane      4                               those drawn
colours                 1 or 4 for each column          those drawn
sketch                  4 k, or 2 k, for each time      all of them up to about 20,000; as many as
                                                        fit, sampled at random, beyond
images                  1 or 3 for each pixel           those with a sketch, 8 MB in all
======================  ==============================  ===========================================

All of it is compressed, and written in base64. A page stays below 40 MB.
"""

from heatsketch.report._page import write_report

__all__ = ["write_report"]
