"""Heat operator of all pairs of points, recomputed from the points on demand.

The affinities of all pairs take memory quadratic in the number of points, and little time to
compute. They are kept in memory while in use, but pickles and files hold only the points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from heatsketch.diffusion._affinity import gaussian_affinity, locally_scaled
from heatsketch.diffusion._operator import HeatOperator, Scaled
from heatsketch.graph._neighbors import Neighbors, squared_distances
from heatsketch.graph._pairwise import DistanceTiles


@dataclass(frozen=True, eq=False)
class AllPairs:
    """``diag(left) K diag(right)`` with a Gaussian ``K`` computed on first use.

    Attributes
    ----------
    neighbors : Neighbors
        The points.
    scales : array of shape (n_points,) or None
        Local scales, if the bandwidth is local.
    bandwidth : float
        The bandwidth of squared distances, in units of the scales.
    in_tiles : bool
        Whether ``K`` is recomputed at every product, instead of kept.
    left, right : arrays of shape (n_points,)
        The weights.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._all_pairs import AllPairs
    >>> from heatsketch.graph._neighbors import find_neighbors
    >>> neighbors, _ = find_neighbors(np.array([[0.0], [1.0]]))
    >>> pairs = AllPairs(neighbors, None, 1.0, False, np.ones(2), np.ones(2))
    >>> (pairs @ np.eye(2)).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    neighbors: Neighbors
    scales: Any
    bandwidth: float
    in_tiles: bool
    left: np.ndarray
    right: np.ndarray

    @cached_property
    def K(self) -> Any:  # noqa: N802 - the paper's letter
        """Affinities of all pairs."""
        points, metric = self.neighbors.points, self.neighbors.metric
        d2 = DistanceTiles(points, metric) if self.in_tiles else None
        d2 = squared_distances(points, points, metric=metric) if d2 is None else d2
        if self.scales is not None:
            d2 = locally_scaled(d2, self.scales, self.scales)
        return gaussian_affinity(d2, epsilon=self.bandwidth)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.left), len(self.right)

    @property
    def dtype(self) -> np.dtype:
        """The precision of the products."""
        return self.left.dtype

    def __matmul__(self, block: Any) -> Any:
        """Multiply a vector, or a block of column vectors."""
        return Scaled(self.K, self.left, self.right) @ block

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be recomputed."""
        return {name: value for name, value in vars(self).items() if name != "K"}


def remembering_points(
    A: HeatOperator, neighbors: Any, *, scales: Any, bandwidth: float
) -> HeatOperator:
    """Return the same operator as :class:`AllPairs` if it is one of all pairs.

    Parameters
    ----------
    A : HeatOperator
    neighbors : Neighbors
        What the affinity was computed from. With objects of other types, and for sparse graphs,
        ``A`` is returned unchanged.
    scales, bandwidth :
        As for :class:`AllPairs`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import gaussian_affinity, heat_operator, symmetric_scaling
    >>> from heatsketch.diffusion._all_pairs import remembering_points
    >>> from heatsketch.graph._neighbors import find_neighbors
    >>> neighbors, d2 = find_neighbors(np.array([[0.0], [1.0]]))
    >>> K = gaussian_affinity(d2, epsilon=1.0)
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> remembering_points(A, neighbors, scales=None, bandwidth=1.0).matrix.K is K
    True
    """
    matrix = A.matrix
    if not isinstance(matrix, Scaled) or type(neighbors) is not Neighbors:
        return A
    if not isinstance(matrix.K, np.ndarray | DistanceTiles):
        return A
    in_tiles = isinstance(matrix.K, DistanceTiles)
    pairs = AllPairs(neighbors, scales, bandwidth, in_tiles, matrix.left, matrix.right)
    vars(pairs)["K"] = matrix.K  # the cache of cached_property
    return HeatOperator(pairs, A.s, A.stationary)
