"""Distances that follow the shape of the data, with error bars.

This package exports the estimators, for points and for graphs. Their building blocks are in
:mod:`heatsketch.diffusion` and :mod:`heatsketch.graph`. Names are imported when first used
(``__init__.pyi``).
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
