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
from heatsketch._core.partitioned import in_memory
from heatsketch.exceptions import DtypeError, HeatSketchError


def vectors(
    Y: Any, *, normalize: bool = True, append: Any = None, weight: float = 0.5
) -> np.ndarray:
    r"""Vectors for a search index or vector database with Euclidean distance.

    With rows of unit length, inner products and cosines give the same ranking, and
    :math:`u_i \cdot u_j = \cos(y_i, y_j) + w \cos(x_i, x_j)`.

    Parameters
    ----------
    Y : array of shape (n, k), Sketch, or estimator that has one
        Embedding, also of new points (``transform``).
    normalize : bool, default=True
        Whether to scale rows of ``Y`` and of ``append`` to unit length.
    append : array of shape (n, m), optional
        Features of the same points, to rank points whose embeddings are similar.
    weight : float, default=0.5
        Weight ``w`` of the squared distances of ``append``.

    Returns
    -------
    array of float32 of shape (n, k) or (n, k + m)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import vectors
    >>> Y, X = np.array([[3.0, 4.0]]), np.array([[0.0, 7.0]])
    >>> vectors(Y, append=X, weight=0.25)
    array([[0.6, 0.8, 0. , 0.5]], dtype=float32)
    """
    for name in ("sketch_", "embedding"):
        Y = getattr(Y, name, Y)
    Y = in_memory(Y)
    rows = _unit_rows(Y) if normalize else Y
    if append is None:
        return np.ascontiguousarray(rows, np.float32)
    if isinstance(weight, str) or not 0 <= weight < np.inf:
        raise HeatSketchError(f"weight must be a finite number >= 0, got {weight!r}.")
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
            f"append must be dense, got a sparse matrix of shape {features.shape}; reduce it "
            "first, for instance with sklearn.decomposition.TruncatedSVD."
        )
    if features.ndim != 2 or len(features) != n_rows:
        raise HeatSketchError(
            f"append must have one row of features for each of the {n_rows} vectors, got shape "
            f"{features.shape}."
        )
    check_finite(features, name="append")
    return features
