"""Load models that :meth:`HeatSketch.save` wrote.

``heatsketch.persistence`` has the format. Later versions read the files of this one.
"""

from __future__ import annotations

import os
from typing import Any

from heatsketch.estimators.diffusion_map import DiffusionMap
from heatsketch.estimators.heat_sketch import HeatSketch
from heatsketch.estimators.near_isometry import NearIsometry
from heatsketch.persistence._container import read_header
from heatsketch.persistence._save_load import invalid_in, restored, typed

MODELS: dict[str, type] = {kind.__name__: kind for kind in (HeatSketch, DiffusionMap, NearIsometry)}


def load(path: Any) -> HeatSketch | DiffusionMap | NearIsometry:
    r"""Load a fitted model, which gives a bit-identical :math:`Y = A^p G / \sqrt{k}`.

    Nothing in the file is executed, and whatever is wrong with it is an error: every bit is under
    a digest, and no array is used before it is known to be one that a fit could have made. A
    heat operator of all pairs is made again, from the points, when it is first needed.

    Parameters
    ----------
    path : str or path-like
        What ``save`` wrote.

    Returns
    -------
    HeatSketch, DiffusionMap or NearIsometry

    Raises
    ------
    FileFormatError
        If it is no model file, or has changed since it was written.
    ModelVersionError
        If only a later version of heatsketch can read it.
    FileError
        If the system does not let us read it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import heatsketch
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = heatsketch.HeatSketch(8).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.heatsketch")
    ...     model.save(path)
    ...     again = heatsketch.load(path)
    >>> bool((again.transform(X[:5]) == model.transform(X[:5])).all())
    True
    """
    return restored(path, MODELS)


def model_info(path: Any) -> dict[str, Any]:
    r"""Return what a model file holds, from its header alone.

    That is read in no time, however many points :math:`x_1, \ldots, x_n` there are. The header is
    checked, the arrays are not.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        Plain words and numbers: ``class``, ``parameters``, ``n_points``, ``n_features``,
        ``n_components``, ``seed``, ``power``, ``training_data``, ``bytes``, ``format_version``,
        ``min_reader``, ``stream_version``, ``versions``, and the ``arrays`` with their dtypes and
        shapes.

    Raises
    ------
    FileFormatError, ModelVersionError, FileError
        As for :func:`load`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import heatsketch
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.heatsketch")
    ...     heatsketch.HeatSketch(8, power=4).fit(X).save(path)
    ...     info = heatsketch.model_info(path)
    >>> info["class"], info["n_points"], info["n_features"], info["n_components"], info["power"]
    ('HeatSketch', 100, 3, 8, 4)
    """
    about = read_header(path)
    with invalid_in(path):
        parts = ("parameters", "values", "versions")
        parameters, values, versions = (typed(about, part, dict) for part in parts)
    arrays = about["arrays"]
    shape = arrays["order_"]["shape"] if "order_" in arrays else []
    return {
        **{name: about.get(name) for name in ("class", "seed", "training_data", "stream_version")},
        "parameters": parameters,
        "versions": versions,
        "n_points": shape[0] if shape else None,
        "n_features": values.get("n_features_in_"),
        "n_components": parameters.get("n_components"),
        "power": values.get("power_"),
        "format_version": about["format_version"],
        "min_reader": about["min_reader"],
        "bytes": os.path.getsize(path),
        "arrays": arrays,
    }
