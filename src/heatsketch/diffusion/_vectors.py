r"""Vectors for an index or a database, ranked by Euclidean distance.

.. math:: u_i = \left( \frac{y_i}{|y_i|}, \; \sqrt{w} \, \frac{x_i}{|x_i|} \right), \qquad
          u_i \cdot u_j = \cos(y_i, y_j) + w \cos(x_i, x_j)

All rows have the same length :math:`\sqrt{1 + w}`, so that inner products, cosines and Euclidean
distances give the same ranking. The embedding ``y`` contributes similarity along the manifold, and
the features ``x`` direct similarity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, plain_floats
from heatsketch.exceptions import DtypeError, HeatSketchError


def search_vectors(Y: Any, *, normalize: bool, append: Any, weight: float) -> np.ndarray:
    """Return rows of an embedding, and optional features, as one float32 matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._vectors import search_vectors
    >>> Y, X = np.array([[3.0, 4.0]]), np.array([[0.0, 7.0]])
    >>> search_vectors(Y, normalize=True, append=X, weight=0.25)
    array([[0.6, 0.8, 0. , 0.5]], dtype=float32)
    """
    rows = _unit_rows(Y) if normalize else np.asarray(Y)
    if append is None:
        return np.ascontiguousarray(rows, np.float32)
    if isinstance(weight, str) or not 0 <= weight < np.inf:
        raise HeatSketchError(
            f"weight={weight!r} must be a finite number of at least 0; use 0.5.", weight=weight
        )
    features = _checked_features(append, len(rows))
    features = _unit_rows(features) if normalize else features
    return np.hstack([rows.astype(np.float32), (np.sqrt(weight) * features).astype(np.float32)])


def _unit_rows(rows: Any) -> np.ndarray:
    """Normalize rows to length one, in float64; rows of zeros are unchanged."""
    rows = np.asarray(rows, np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest > 0, largest, 1)  # squares stay in range
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return rows / np.where(lengths > 0, lengths, 1)


def _checked_features(append: Any, n_rows: int) -> np.ndarray:
    features = plain_floats(append, "append")
    if sparse.issparse(features):
        raise DtypeError(
            f"append is sparse, of shape {features.shape}, and vectors of an index are not; reduce "
            "it first, for instance with sklearn.decomposition.TruncatedSVD."
        )
    if features.ndim != 2 or len(features) != n_rows:
        raise HeatSketchError(
            f"append has shape {features.shape}, and there are {n_rows} vectors; give one row of "
            "features for each of them."
        )
    check_finite(features, name="append")
    return features
