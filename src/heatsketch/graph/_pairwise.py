r"""A matrix over all pairs of points, recomputed in tiles when it is used.

It stores the points only, not the entries of all pairs, and computes all pairs in every product. It
supports ``@`` and elementwise functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heatsketch._core.parallel import in_threads
from heatsketch.graph._metrics import squared_distances_to

TILE_ENTRIES = 2_000_000  # entries of a tile; each thread computes one at a time


@dataclass(frozen=True)
class DistanceTiles:
    """Squared distances between all points, or a function of them.

    Attributes
    ----------
    points : array or sparse matrix of shape (n_points, n_features)
    metric : str or callable
    function : callable
        Applied to the squared distances, entry by entry.
    scales : array of shape (n_points,), optional
        Factors by which the squared distances are multiplied first, one for each of the two points.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph._pairwise import DistanceTiles
    >>> d2 = DistanceTiles(np.array([[0.0], [2.0]]), "euclidean")
    >>> d2 @ np.eye(2)
    array([[0., 4.],
           [4., 0.]])
    >>> (d2.map_entries(lambda squares: np.exp(-squares / 4)) @ np.ones(2)).round(3)
    array([1.368, 1.368])
    """

    points: Any
    metric: Any
    function: Callable[[np.ndarray], np.ndarray] = field(default_factory=lambda: np.asarray)
    scales: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.points.shape[0], self.points.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the entries."""
        return self.points.dtype

    def tile(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        """Return some rows of the matrix, or some columns of them."""
        squares = squared_distances_to(self.points[columns], self.metric)(self.points[rows])
        squares = squares.astype(self.dtype, copy=False)
        if self.scales is not None:
            squares *= np.multiply.outer(self.scales[rows], self.scales[columns])
        return self.function(squares)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal: the function of a distance of zero."""
        return self.function(np.zeros(self.points.shape[0], self.dtype))

    def __matmul__(self, block: Any) -> np.ndarray:
        """Multiply by a vector or a block of column vectors."""
        step = max(1, TILE_ENTRIES // self.points.shape[0])
        rows = [slice(start, start + step) for start in range(0, self.points.shape[0], step)]
        return np.concatenate(in_threads(lambda some: self.tile(some) @ block, rows))

    def map_entries(self, function: Callable[[np.ndarray], np.ndarray]) -> DistanceTiles:
        """Return the matrix of a function of the entries, without computing it."""
        before = self.function
        return replace(self, function=lambda squares: function(before(squares)))
