"""Load models written by :meth:`HeatSketch.save`.

The format is defined in ``heatsketch.persistence``. Later versions can read files of this one.
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
    r"""Load a fitted model, which gives bit-identical results.

    Nothing in the file is executed. A damaged or invalid file raises an error: every bit is covered
    by a digest, and every array is validated before use. A heat operator of all pairs is
    recomputed from the points when it is first needed.

    Parameters
    ----------
    path : str or path-like
        File written by ``save``.

    Returns
    -------
    HeatSketch, DiffusionMap or NearIsometry

    Raises
    ------
    FileFormatError
        If the file is not a model file, or has changed since it was written.
    ModelVersionError
        If only a later version of heatsketch can read it.
    FileError
        If the file cannot be read.

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
    r"""Return a summary of a model file from its header alone.

    The time does not depend on the number of points. The header is checked, the arrays are not.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        Plain values: ``class``, ``parameters``, ``n_points``, ``n_features``,
        ``n_components``, ``seed``, ``power``, ``first_power`` of a sum over all times,
        ``training_data``, ``bytes``, ``format_version``, ``min_reader``, ``stream_version``,
        ``versions``, and the ``arrays`` with their dtypes and shapes.

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
    is_sum = parameters.get("power") == "all"
    return {
        **{name: about.get(name) for name in ("class", "seed", "training_data", "stream_version")},
        "parameters": parameters,
        "versions": versions,
        "n_points": shape[0] if shape else None,
        "n_features": values.get("n_features_in_"),
        "n_components": parameters.get("n_components"),
        "power": "all" if is_sum else values.get("power_"),
        "first_power": values.get("power_") if is_sum else None,
        "format_version": about["format_version"],
        "min_reader": about["min_reader"],
        "bytes": os.path.getsize(path),
        "arrays": arrays,
    }
