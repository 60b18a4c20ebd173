r"""Interactive HTML report of a sketch, in one file that needs no network.

The page plots the diffusion map in two dimensions, from Ritz vectors of the sketch. It contains the
sketch at several diffusion times, all from one pass,

.. math:: Y_p = \frac{1}{\sqrt k} A^p G.

A click on two points shows their diffusion distance with its interval, as computed by
:meth:`Sketch.distances`.

Size of the page for ``n`` points, of which at most 250,000 are drawn:

======================  ==============================  ===========================================
data                    bytes per point                 points
======================  ==============================  ===========================================
coordinates             4                               those drawn
colours                 1 or 4 for each column          those drawn
sketch                  4 k, or 2 k, for each time      all up to about 20,000; beyond, a random
                                                        sample of as many as fit
images                  1 or 3 for each pixel           those with a sketch, 8 MB in total
======================  ==============================  ===========================================

All data are compressed and encoded in base64. A page is smaller than 40 MB.
"""

from heatsketch.report._page import write_report

__all__ = ["write_report"]
