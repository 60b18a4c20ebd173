r"""Pairs of points, and how much a map stretches their distances.

With :math:`z_i` the points and :math:`y_i` their images, the stretch of a pair is

.. math:: \frac{|y_i - y_j|}{|z_i - z_j|}.

All pairs can be scanned, tile by tile. Of more points, neighbours in ``Z`` are compared, for which
a little noise is a large stretch, and neighbours in the image, which may be far apart in ``Z``.
Points whose distance may be only rounding error count as equal, and are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.parallel import in_threads
from heatsketch.graph._ivf import NeighborLists, grow_tree
from heatsketch.graph._metrics import squared_distances_to

TILE_ENTRIES = 1_000_000  # pairs scanned at a time by each thread
LISTED_PAIRS = 100_000  # listed pairs whose distances each thread computes at a time
# Points that are closer than this many units of rounding of their lengths count as equal. At ten
# times this distance, rounding of the images changes the stretch of a pair by 1 % at most.
ROUNDING = 64
N_NEIGHBORS = 10  # of each point, itself included
N_PROBES = 4  # inverted lists in which they are searched


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, and the squared distances of the points.

    Attributes
    ----------
    first, second : arrays of int of shape (m,)
    squares : array of shape (m,)
    """

    first: np.ndarray
    second: np.ndarray
    squares: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, some: Any) -> Pairs:
        return Pairs(self.first[some], self.second[some], self.squares[some])

    def stretches(self, Y: np.ndarray) -> np.ndarray:
        """Return the squared stretch of each pair."""
        return squared_lengths(Y, self.first, self.second) / self.squares


class Stretches(NamedTuple):
    """The worst pairs, and statistics of all pairs examined.

    Attributes
    ----------
    pairs : Pairs
        The worst pairs.
    low, high : float
        The smallest and the largest squared stretch of all pairs examined.
    n_pairs : int
        Number of pairs examined, without those at distance zero.
    """

    pairs: Pairs
    low: float
    high: float
    n_pairs: int

    @property
    def log_distortion(self) -> float:
        """Logarithm of the ratio of the largest to the smallest stretch."""
        if not self.n_pairs:
            return 0.0
        return float(np.log(self.high / self.low)) / 2 if self.low > 0 else float("inf")


def scan_pairs(Y: np.ndarray, Z: np.ndarray, *, n_each: int = 1) -> Stretches:
    """Scan all pairs, and keep the most shrunk and the most stretched pairs of each point.

    Parameters
    ----------
    Y : array of shape (n, k)
        Images.
    Z : array of shape (n, w)
        Points.
    n_each : int, default=1
        Number of pairs of each kind to keep for each point.

    Returns
    -------
    Stretches
    """
    step = max(1, TILE_ENTRIES // len(Z))
    limits = _rounding_squares(Z)

    def scan(start: int) -> Stretches:
        rows = slice(start, start + step)
        squares = squared_distances_to(Z[start:], "euclidean")(Z[rows])
        images = squared_distances_to(Y[start:], "euclidean")(Y[rows])
        is_valid = squares > np.maximum(limits[rows, np.newaxis], limits[start:])
        # Each pair counts once, in the row of its first point.
        is_valid &= np.arange(len(squares))[:, np.newaxis] < np.arange(squares.shape[1])
        stretches = np.divide(images, squares, out=images, where=is_valid)
        i, j = _extremes(stretches, is_valid, n_each)
        pairs = Pairs(i + start, j + start, squares[i, j])
        return _summary(pairs, stretches[i, j], int(np.count_nonzero(is_valid)))

    return joined(in_threads(scan, range(0, len(Z), step), name="pairs"))


def compare_pairs(Y: np.ndarray, Z: np.ndarray, first: np.ndarray, second: np.ndarray) -> Stretches:
    """Return the stretches of some pairs."""
    limits, squares = _rounding_squares(Z), squared_lengths(Z, first, second)
    is_valid = squares > np.maximum(limits[first], limits[second])
    pairs = Pairs(first, second, squares)[is_valid]
    return _summary(pairs, pairs.stretches(Y), len(pairs))


def near_pairs(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of pairs of neighbours, which are searched in inverted lists."""
    lists = NeighborLists.arrange(points, grow_tree(points), N_PROBES)
    links = sparse.triu(lists.graph(N_NEIGHBORS)[0], 1, "coo")
    return lists.order[links.row], lists.order[links.col]


def _rounding_squares(Z: np.ndarray) -> np.ndarray:
    """Return for each point the largest squared distance that is only rounding."""
    return (ROUNDING * np.finfo(Z.dtype).eps) ** 2 * np.einsum("ij,ij->i", Z, Z)


def _extremes(
    values: np.ndarray, is_valid: np.ndarray, n_each: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the smallest and largest valid entries of each row."""
    columns = np.hstack(
        [_smallest(np.where(is_valid, sign * values, np.inf), n_each) for sign in (1, -1)]
    )
    rows = np.broadcast_to(np.arange(len(columns))[:, np.newaxis], columns.shape)
    kept = is_valid[rows, columns]
    return rows[kept], columns[kept]


def _smallest(values: np.ndarray, n_each: int) -> np.ndarray:
    """Return the columns of the smallest entries of each row."""
    n_each = min(n_each, values.shape[1] - 1)
    if n_each <= 1:
        return values.argmin(axis=1)[:, np.newaxis]
    return np.argpartition(values, n_each - 1, axis=1)[:, :n_each]


def _summary(pairs: Pairs, stretches: np.ndarray, n_pairs: int) -> Stretches:
    low, high = float(stretches.min(initial=np.inf)), float(stretches.max(initial=0))
    return Stretches(pairs, low, high, n_pairs)


def joined(parts: list[Stretches]) -> Stretches:
    """Combine the results of several scans."""
    pairs, lows, highs, counts = zip(*parts, strict=True)
    return Stretches(united(*pairs), min(lows), max(highs), sum(counts))


def united(*parts: Pairs) -> Pairs:
    """Return the pairs of all parts, each once; the first row of a pair is the smaller one."""
    first, second, squares = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("first", "second", "squares")
    )
    first, second = np.minimum(first, second), np.maximum(first, second)
    # Encode each pair as one integer; there are enough for a billion points.
    _, places = np.unique(first.astype(np.int64) << 32 | second, return_index=True)
    return Pairs(first, second, squares)[places]


def hardest(Y: np.ndarray, pairs: Pairs, n_pairs: int) -> Pairs:
    """Return ``n_pairs`` pairs: half of them the most shrunk, half the most stretched."""
    if len(pairs) <= n_pairs:
        return pairs
    order = np.argsort(pairs.stretches(Y), kind="stable")
    return pairs[np.concatenate([order[: n_pairs // 2], order[len(order) - n_pairs // 2 :]])]


def squared_lengths(points: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return squared distances of some pairs of rows."""
    out = np.empty(len(first))

    def measure(start: int) -> None:
        some = slice(start, start + LISTED_PAIRS)
        kernels.pair_squares(points, first[some], second[some], out[some])

    in_threads(measure, range(0, len(first), LISTED_PAIRS))
    return out
