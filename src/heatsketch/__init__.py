"""Distances that follow the shape of the data, with error bars, for points and graphs.

The estimators are here. Their building blocks are in :mod:`heatsketch.diffusion` and
:mod:`heatsketch.graph`. Names are imported when they are first used (``__init__.pyi``).
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
