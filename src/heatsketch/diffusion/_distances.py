r"""Diffusion distances: exact, and sketched with intervals; distortion.

.. math:: d_p(i, j) = |(A^p)_i - (A^p)_j|

compares how heat spreads from two points in ``p`` steps. A sketch estimates it.
"""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist, squareform

from heatsketch._core.checks import check_integer
from heatsketch._core.html import html_table
from heatsketch._core.partitioned import is_lazy
from heatsketch.diffusion._confidence import (
    DistanceEstimate,
    distance_estimate,
    order_confidence,
    simultaneous_confidence,
)
from heatsketch.exceptions import HeatSketchError, MissingValueError


class DiffusionNeighbors(NamedTuple):
    r"""Nearest rows of a sketch by :math:`|y_i - y_j|`, with confidences.

    Attributes
    ----------
    indices : array of shape (m, n_neighbors)
        The nearest rows, sorted by distance, the row itself excluded.
    distance, low, high : arrays of shape (m, n_neighbors)
        As in :class:`DistanceEstimate`. The intervals cover the error of the sketch only, and are
        corrected for the selection of the neighbours by the same sketch. The distances are not
        corrected, so they are too small on average.
    confidence : array of shape (m, n_neighbors)
        Confidence that a neighbour is nearer than the next one; for the last neighbour, than the
        first row that is not returned.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import diffusion_neighbors
    >>> Y = np.random.default_rng(0).normal(size=(9, 32)) * np.arange(9.0)[:, np.newaxis]
    >>> diffusion_neighbors(Y, [0], n_neighbors=3).indices
    array([[1, 2, 3]])
    """

    indices: np.ndarray
    distance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence: np.ndarray

    def _repr_html_(self) -> str:
        query, rank = np.indices(self.indices.shape).reshape(2, -1)
        columns = {name: values.ravel() for name, values in self._asdict().items()}
        return html_table({"query": query, "rank": rank + 1, **columns})


def diffusion_distances(
    Y: Any,
    pairs: Any,
    *,
    confidence: float = 0.95,
    simultaneous: bool = False,
    random_matrix: str = "gaussian",
    n_leading: int = 0,
    tolerance: float = 0.0,
) -> DistanceEstimate:
    r"""Diffusion distances of pairs of rows, with confidence intervals.

    .. math:: \frac{k \, |y_i - y_j|^2}{d_p(i, j)^2} \sim \chi^2_k

    Parameters
    ----------
    Y : array of shape (n, k)
        Embedding from :func:`sketch`.
    pairs : array of int of shape (m, 2)
        Pairs of rows.
    confidence : float, default=0.95
        Probability with which an interval covers the true distance.
    simultaneous : bool, default=False
        Whether ``confidence`` is the probability that all ``m`` intervals cover simultaneously.
    random_matrix : {"gaussian", "rademacher"}, default="gaussian"
        Type of the random matrix of the sketch. Rademacher intervals are wider, since they must
        hold for pairs whose differences are far from Gaussian.
    n_leading : int, default=0
        Number of leading directions among the columns, whose part of a distance is exact.
    tolerance : float, default=0.0
        Relative error of the kernel, by which intervals are widened.

    Returns
    -------
    DistanceEstimate
        ``distance``, ``low`` and ``high``, arrays of shape (m,). The interval covers the error of
        the sketch, but not the sampling error of the data, nor the error of an approximate graph.
        It is valid for pairs chosen independently of the sketch; for nearest neighbours in the
        sketch see :func:`diffusion_neighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import diffusion_distances, exact_diffusion_distances
    >>> from heatsketch.diffusion import gaussian_affinity, gaussian_matrix, heat_operator, sketch
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> from heatsketch.graph import neighbor_graph
    >>> K = gaussian_affinity(neighbor_graph(np.arange(50.0)[:, np.newaxis]), epsilon=9.0)
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> Y = sketch(A, gaussian_matrix(50, 100, seed=0), power=4)
    >>> distance, low, high = diffusion_distances(Y, [[0, 1], [0, 49]])
    >>> exact = exact_diffusion_distances(A, [[0, 1], [0, 49]], power=4)
    >>> bool(((low < exact) & (exact < high)).all())
    True
    """
    pairs = _row_numbers("pairs", pairs, len(Y), (2,))
    if is_lazy(Y):  # load the rows of pairs only
        rows, places = np.unique(pairs, return_inverse=True)
        Y, pairs = Y[rows], places.reshape(pairs.shape)
    Y = np.asarray(Y)
    level = simultaneous_confidence(confidence, len(pairs) if simultaneous else 1)
    differences = Y[pairs[:, 0]].astype(np.float64) - Y[pairs[:, 1]]
    if not np.isfinite(differences).all():
        row, other = pairs[int(np.argmin(np.isfinite(differences).all(axis=1)))]
        raise MissingValueError(
            f"Y contains NaN or infinity in row {row} or row {other}; drop such rows."
        )
    law: dict[str, Any] = {"n_leading": n_leading, "tolerance": tolerance}
    return distance_estimate(differences, level, random_matrix=random_matrix, **law)


def diffusion_neighbors(
    Y: Any,
    rows: Any,
    *,
    n_neighbors: int,
    confidence: float = 0.95,
    simultaneous: bool = False,
    random_matrix: str = "gaussian",
    n_leading: int = 0,
    tolerance: float = 0.0,
) -> DiffusionNeighbors:
    r"""Nearest neighbours by :math:`|y_i - y_j|`, with intervals and confidences.

    Neighbours in a sketch are points whose distances it underestimates. So intervals are wider than
    those of :func:`diffusion_distances`: the probability that one misses is multiplied by the share
    of points that are selected, ``n_neighbors / (n - 1)``, or ``n_neighbors / n`` for new points.

    Parameters
    ----------
    Y : array of shape (n, k)
        Embedding from :func:`sketch`.
    rows : array of int of shape (m,), or array of float of shape (m, k)
        Query points: indices of rows of ``Y``, or rows of new points with the same random matrix.
    n_neighbors : int
        Number of neighbours, at most ``n - 2``, or ``n - 1`` for new points.
    confidence : float, default=0.95
        Probability with which an interval covers the true distance, on average over the
        neighbours of a row. For the first neighbours it may be lower.
    simultaneous : bool, default=False
        Whether ``confidence`` is the probability that the intervals of all neighbours of a row
        cover simultaneously.
    random_matrix, n_leading, tolerance :
        As for :func:`diffusion_distances`; ``n_leading`` is at most ``k - 2``.

    Returns
    -------
    DiffusionNeighbors
        ``indices``, ``distance``, ``low``, ``high`` and ``confidence``. The interval covers the
        error of the sketch, but not the sampling error of the data, nor the error of an
        approximate graph.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import diffusion_neighbors
    >>> Y = np.random.default_rng(0).normal(size=(9, 32)) * np.arange(9.0)[:, np.newaxis]
    >>> (diffusion_neighbors(Y, [0], n_neighbors=2).confidence > 0.5).all()
    np.True_
    """
    Y, rows = np.asarray(Y), np.asarray(rows)
    Y = Y if Y.dtype.kind == "f" else Y.astype(np.float64)
    is_new = rows.ndim == 2 and rows.dtype.kind == "f" and rows.shape[1] == Y.shape[1]
    if not is_new:
        rows = _row_numbers("rows", rows, len(Y))
    n_others = len(Y) - (not is_new)
    if not 1 <= n_neighbors <= n_others - 1:
        raise HeatSketchError(
            f"n_neighbors must be from 1 to {n_others - 1} for {len(Y)} points, since each "
            f"neighbour is compared with the next one, got {n_neighbors}."
        )
    queries = rows if is_new else Y[rows]
    # Scaled by a power of two, which is exact, since squares of tiny entries would underflow.
    exponent = -np.frexp(np.max(np.abs(Y)))[1]
    scaled, scaled_queries = np.ldexp(Y, exponent), np.ldexp(queries, exponent)
    nearest = _nearest(scaled, scaled_queries, n_neighbors + 1, None if is_new else rows)
    differences, scaled_differences = (
        block[nearest].astype(np.float64) - some[:, np.newaxis]
        for block, some in ((Y, queries), (scaled, scaled_queries))
    )
    n_intervals = n_others / n_neighbors * (n_neighbors if simultaneous else 1)
    estimate = distance_estimate(
        differences[:, :-1],
        simultaneous_confidence(confidence, n_intervals),
        random_matrix=random_matrix,
        n_leading=n_leading,
        tolerance=tolerance,
    )
    nearer, farther = scaled_differences[:, :-1], scaled_differences[:, 1:]
    is_nearer = order_confidence(nearer, farther, n_leading=n_leading)
    return DiffusionNeighbors(nearest[:, :-1], *estimate, is_nearer)


def _nearest(Y: np.ndarray, queries: np.ndarray, n_nearest: int, rows: Any) -> np.ndarray:
    """Return the nearest rows of each query, without the row of the query itself."""
    from sklearn.neighbors import NearestNeighbors  # slow to import

    n_neighbors = n_nearest + (rows is not None)
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(Y).kneighbors(queries)[1]
    if rows is None:
        return nearest
    # Duplicates of the row may come before it, so move it to the end and drop it.
    order = np.argsort(nearest == rows[:, np.newaxis], axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1)[:, :n_nearest]


def _row_numbers(name: str, rows: Any, n_rows: int, width: tuple[int, ...] = ()) -> np.ndarray:
    """Return a vector of row numbers, or an array with as many in each row as ``width`` says."""
    try:
        numbers = np.asarray(rows)
        is_valid = numbers.dtype.kind in "iu" and (len(numbers), *width) == numbers.shape
    except (TypeError, ValueError):  # a number, or lists of different lengths
        is_valid = False
    if not is_valid or not ((numbers >= 0) & (numbers < n_rows)).all():
        what = "a list of pairs of row numbers" if width else "a list of row numbers"
        raise HeatSketchError(
            f"{name} must be {what} from 0 to {n_rows - 1}, got {reprlib.repr(rows)}."
        )
    return numbers


def exact_diffusion_distances(
    A: Any,
    pairs: Any = None,
    *,
    power: int,
    stationary: str = "drop",
    weighting: str = "symmetric",
) -> np.ndarray:
    r"""Exact diffusion distances :math:`d_p(i, j) = |(A^p)_i - (A^p)_j|`.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    pairs : array of int of shape (m, 2), optional
        Pairs of points; all pairs if omitted. The time is that of a sketch with one column for
        each point in the pairs.
    power : int
        Diffusion time ``p``.
    stationary : {"drop", "keep"}, default="drop"
        Whether to include the stationary direction. For the bistochastic normalization it makes
        no difference; for the symmetric one it adds a term that compares densities.
    weighting : {"symmetric", "random_walk"}, default="symmetric"
        "random_walk" divides each row by its entry in the unit stationary direction: this is the
        distance between distributions of a random walk of Coifman and Lafon,
        :math:`\sum_l (P^p_{il} - P^p_{jl})^2 / \pi_l`.

    Returns
    -------
    array of shape (m,), or (n, n) without ``pairs``

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import exact_diffusion_distances, heat_operator, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> exact_diffusion_distances(A, [[0, 1]], power=1).round(6)
    array([0.471405])
    """
    if stationary not in ("drop", "keep"):
        raise HeatSketchError(f"stationary must be 'drop' or 'keep', got {stationary!r}.")
    if weighting not in ("symmetric", "random_walk"):
        raise HeatSketchError(f"weighting must be 'symmetric' or 'random_walk', got {weighting!r}.")
    n, points, places = A.shape[0], np.arange(A.shape[0]), None
    if pairs is not None:
        pairs = _row_numbers("pairs", pairs, n, (2,))
        points, places = np.unique(pairs, return_inverse=True)
    block = np.zeros((n, len(points)), A.dtype)
    block[points, np.arange(len(points))] = 1
    coefficients = A.stationary_coefficients(block)
    for _ in range(check_integer("power", power, least=0)):
        block = A @ A.deflate(block)
    if stationary == "keep":
        block = block + A.stationary_part(coefficients)
    rows = block.T.astype(np.float64)  # the columns of A**p are its rows
    if weighting == "random_walk":
        v = A.stationary.astype(np.float64)
        rows /= v[points, np.newaxis] / np.linalg.norm(v)
    if places is None:
        return squareform(pdist(rows))
    first, second = places.reshape(-1, 2).T
    return np.linalg.norm(rows[first] - rows[second], axis=1)


def bilipschitz_constant(Y: Any, distances: Any) -> float:
    r"""Distortion of an embedding, independent of its scale.

    .. math::

        L = \max_{i \ne j} \frac{|y_i - y_j|}{d_{ij}} \Big/
            \min_{i \ne j} \frac{|y_i - y_j|}{d_{ij}}

    One means that all distances are preserved up to a common factor; infinity means that two
    different points coincide in ``Y``, or that two points at distance zero do not.

    Parameters
    ----------
    Y : array of shape (n, k)
        The embedding.
    distances : array of shape (n, n)
        True distances.

    Returns
    -------
    float
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import bilipschitz_constant
    >>> from heatsketch.graph import neighbor_graph
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> distances = np.sqrt(neighbor_graph(X))
    >>> round(bilipschitz_constant(5 * X, distances), 9)
    1.0
    >>> bilipschitz_constant(X[:, :1], distances) > 10
    True
    """
    before = squareform(np.asarray(distances, np.float64), checks=False)
    after = pdist(np.asarray(Y, np.float64))
    is_distinct = before > 0
    if not is_distinct.any():
        raise HeatSketchError(
            f"distances of {len(Y)} points are all zero, so no distortion is defined; "
            "give at least two different points."
        )
    if np.any(after[~is_distinct] > 0):
        return float("inf")
    stretch = after[is_distinct] / before[is_distinct]
    return float(stretch.max() / stretch.min()) if stretch.min() > 0 else float("inf")
