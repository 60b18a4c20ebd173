r"""Search for the pairs of points that a map shrinks or stretches most.

With :math:`z_i` the points and :math:`y_i` their images, the stretch of a pair is

.. math:: \frac{|y_i - y_j|}{|z_i - z_j|}.

All pairs can be scanned, tile by tile. If there are too many, the worst ones are searched in three
places: among neighbours in ``Z``, where a little noise is a large stretch; among neighbours in the
image, which may be far apart in ``Z``; and at all scales between, by a scan of all pairs of a
sample, followed by a hill climb from the worst of them, which moves one end at a time to a
neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core import kernels
from heatsketch._core.parallel import in_threads
from heatsketch.graph._ivf import NeighborLists, grow_tree
from heatsketch.graph._metrics import squared_distances_to

TILE_ENTRIES = 1_000_000  # pairs scanned at a time by each thread
KEPT = 4000  # points up to which all distances are kept: 64 MB
LISTED_PAIRS = 100_000  # listed pairs measured at a time by each thread
N_NEIGHBORS = 10  # of each point, itself included
N_PROBES = 4  # inverted lists in which they are searched
SAMPLE = 3000  # points whose pairs are all scanned in a search
MOST_STEPS = 50  # of a climb
# Distances below this many units of rounding are meaningless.
ROUNDING = 64
# Below this multiple of that, rounding in the images of a map affects the stretch of a pair.
CLOSE = 100


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, and their squared distances before the map.

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
        return _squares(Y, self.first, self.second) / self.squares


class Stretches(NamedTuple):
    """The worst pairs found, and statistics of all pairs examined.

    Attributes
    ----------
    pairs : Pairs
        The worst pairs.
    low, high : float
        The least and the largest squared stretch of all pairs examined.
    n_pairs : int
        Number of pairs examined, those at distance zero not counted.
    exact : bool
        Whether these are all pairs.
    """

    pairs: Pairs
    low: float
    high: float
    n_pairs: int
    exact: bool

    @property
    def log_distortion(self) -> float:
        """Logarithm of the largest stretch over the least."""
        if not self.n_pairs:
            return 0.0
        return float(np.log(self.high / self.low)) / 2 if self.low > 0 else float("inf")


def scan_pairs(Y: np.ndarray, Z: np.ndarray, *, n_each: int = 1) -> Stretches:
    """Scan all pairs, and keep those of each point shrunk and stretched most.

    Parameters
    ----------
    Y : array of shape (n, k)
        Images.
    Z : array of shape (n, w)
        Points.
    n_each : int, default=1
        Number of pairs of either kind kept for each point.

    Returns
    -------
    Stretches

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._pair_search import scan_pairs
    >>> Z = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = scan_pairs(Z * [2.0, 1.0], Z)
    >>> found.low, found.high, found.n_pairs
    (1.0, 4.0, 3)
    """
    return PairTiles(Z).worst(Y, n_each=n_each)


class PairTiles:
    """All pairs of points, in tiles; squared distances are kept if there are few.

    Parameters
    ----------
    Z : array of shape (n, w)
    of_close : callable, optional
        Returns squared stretches of pairs of different points that are so close that rounding
        affects their images. If omitted, pairs that differ by rounding only do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._pair_search import PairTiles
    >>> Z = np.random.default_rng(0).normal(size=(9, 3))
    >>> PairTiles(Z).worst(2 * Z).n_pairs
    36
    """

    def __init__(
        self, Z: np.ndarray, *, of_close: Callable[[Pairs], np.ndarray] | None = None
    ) -> None:
        self.points, self.of_close = Z, of_close
        self.trusted = _trusted_squares(Z)
        self.step = max(1, TILE_ENTRIES // len(Z))
        self._kept: dict[int, np.ndarray] = {}

    def worst(self, Y: np.ndarray, *, n_each: int = 1) -> Stretches:
        """Return the pairs of each point that are shrunk and stretched most."""

        def scan(start: int) -> Stretches:
            squares = self._squares(start)
            images = squared_distances_to(Y[start:], "euclidean")(Y[start : start + self.step])
            stretches = images / squares
            if self.of_close is not None:
                i, j = np.nonzero(squares <= CLOSE**2 * self._limits(start))
                close = Pairs(i + start, j + start, squares[i, j].astype(np.float64))
                stretches[i, j] = self.of_close(close)
            sound = stretches == stretches
            i, j = _extremes(stretches, sound, n_each)
            found = Pairs(i + start, j + start, squares[i, j].astype(np.float64))
            return _summary(found, stretches[i, j], int(np.count_nonzero(sound)))

        starts = range(0, len(self.points), self.step)
        return joined(in_threads(scan, starts, name="pairs"), exact=True)

    def _squares(self, start: int) -> np.ndarray:
        """Return squared distances of some points to all later ones; NaN if ignored."""
        if start in self._kept:
            return self._kept[start]
        Z, rows = self.points, slice(start, start + self.step)
        # Each pair occurs once, in the row of its first point.
        squares = squared_distances_to(Z[start:], "euclidean")(Z[rows])
        sound = squares > (self._limits(start) if self.of_close is None else 0)
        sound &= np.arange(len(squares))[:, np.newaxis] < np.arange(squares.shape[1])
        squares[~sound] = np.nan
        if len(Z) <= KEPT:
            self._kept[start] = squares
        return squares

    def _limits(self, start: int) -> np.ndarray:
        """Return lower bounds of trusted squared distances, for the same pairs."""
        return np.maximum(self.trusted[start : start + self.step, np.newaxis], self.trusted[start:])


def _extremes(values: np.ndarray, sound: np.ndarray, n_each: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the smallest and largest sound entries of each row."""
    columns = np.hstack(
        [_smallest(np.where(sound, sign * values, np.inf), n_each) for sign in (1, -1)]
    )
    rows = np.broadcast_to(np.arange(len(columns))[:, np.newaxis], columns.shape)
    kept = sound[rows, columns]
    return rows[kept], columns[kept]


def _smallest(values: np.ndarray, n_each: int) -> np.ndarray:
    """Return the columns of the smallest entries of each row."""
    n_each = min(n_each, values.shape[1] - 1)
    if n_each <= 1:
        return values.argmin(axis=1)[:, np.newaxis]
    return np.argpartition(values, n_each - 1, axis=1)[:, :n_each]


def _summary(pairs: Pairs, stretches: np.ndarray, n_pairs: int) -> Stretches:
    low = float(stretches.min(initial=np.inf))
    return Stretches(pairs, low, float(stretches.max(initial=0)), n_pairs, False)


def joined(parts: list[Stretches], *, exact: bool = False) -> Stretches:
    """Combine the results of several searches, each pair once.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._pair_search import joined, scan_pairs
    >>> Z = np.random.default_rng(0).normal(size=(9, 3))
    >>> found = scan_pairs(Z[:, :2], Z)
    >>> len(joined([found, found]).pairs) == len(found.pairs)
    True
    """
    first, second, squares = (
        np.concatenate([getattr(part.pairs, name) for part in parts])
        for name in ("first", "second", "squares")
    )
    first, second = np.minimum(first, second), np.maximum(first, second)
    # One integer for each pair, enough for a billion points.
    _, places = np.unique(first.astype(np.int64) << 32 | second, return_index=True)
    return Stretches(
        Pairs(first, second, squares)[places],
        min(part.low for part in parts),
        max(part.high for part in parts),
        sum(part.n_pairs for part in parts),
        exact,
    )


def hardest(Y: np.ndarray, pairs: Pairs, n_pairs: int) -> Pairs:
    """Return ``n_pairs`` pairs: half of them shrunk most, half stretched most.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._pair_search import hardest, scan_pairs
    >>> Z = np.random.default_rng(0).normal(size=(50, 3))
    >>> len(hardest(Z[:, :2], scan_pairs(Z[:, :2], Z).pairs, 10))
    10
    """
    if len(pairs) <= n_pairs:
        return pairs
    order = np.argsort(pairs.stretches(Y), kind="stable")
    return pairs[np.concatenate([order[: n_pairs // 2], order[len(order) - n_pairs // 2 :]])]


# --- many points ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PairSearch:
    """Search for the worst pairs of many points.

    Attributes
    ----------
    points : array of shape (n, w)
        Points, ordered such that near ones are close in memory.
    order : array of shape (n,)
        Index of each point among the given rows.
    neighbors : Pairs
        Pairs of neighbours.
    near : array of shape (n, m)
        Some neighbours of each point.
    trusted : array of shape (n,)
        Squared distance of each point below which there is only rounding.
    """

    points: np.ndarray
    order: np.ndarray
    neighbors: Pairs
    near: np.ndarray
    trusted: np.ndarray

    @classmethod
    def arrange(cls, Z: np.ndarray) -> PairSearch:
        """Find the nearest neighbours of the points."""
        lists = NeighborLists.arrange(Z, grow_tree(Z), N_PROBES)
        graph = lists.graph(N_NEIGHBORS)[0]
        # Points with few neighbours repeat them: a table is faster to index than lists.
        degrees = np.diff(graph.indptr)[:, np.newaxis]
        near = graph.indices[graph.indptr[:-1, np.newaxis] + np.arange(N_NEIGHBORS) % degrees]
        trusted = _trusted_squares(lists.points)
        return cls(lists.points, lists.order, _linked(graph), near, trusted)

    def worst(self, Y: np.ndarray, *, n_pairs: int, seed: int) -> Stretches:
        """Search for the worst pairs; images and pairs are in the given order."""
        Y = Y[self.order]
        lists = NeighborLists.arrange(Y, grow_tree(Y), N_PROBES)
        linked = _linked(lists.graph(N_NEIGHBORS)[0])
        first, second = lists.order[linked.first], lists.order[linked.second]
        found = [
            self._measured(Y, self.neighbors),
            self._measured(Y, self._pairs(first, second)),
            *self._climbed(Y, seed),
        ]
        kept = [part._replace(pairs=hardest(Y, part.pairs, n_pairs // 2)) for part in found]
        worst = joined(kept)
        first, second = self.order[worst.pairs.first], self.order[worst.pairs.second]
        return worst._replace(pairs=Pairs(first, second, worst.pairs.squares))

    def _pairs(self, first: np.ndarray, second: np.ndarray) -> Pairs:
        return Pairs(first, second, _squares(self.points, first, second))

    def _measured(self, Y: np.ndarray, pairs: Pairs) -> Stretches:
        pairs = pairs[self._is_sound(pairs)]
        return _summary(pairs, pairs.stretches(Y), len(pairs))

    def _is_sound(self, pairs: Pairs) -> np.ndarray:
        return pairs.squares > np.maximum(self.trusted[pairs.first], self.trusted[pairs.second])

    def _climbed(self, Y: np.ndarray, seed: int) -> list[Stretches]:
        """Scan all pairs of a sample, and climb from the worst ones."""
        chosen = np.random.default_rng(seed).permutation(len(Y))[:SAMPLE]
        found = scan_pairs(Y[chosen], self.points[chosen])
        starts = Pairs(chosen[found.pairs.first], chosen[found.pairs.second], found.pairs.squares)
        shrunk = starts.stretches(Y) < np.sqrt(found.low * found.high)
        down, up = self._climb(Y, starts[shrunk], 1), self._climb(Y, starts[~shrunk], -1)
        return [found._replace(pairs=starts), down, up]

    def _climb(self, Y: np.ndarray, pairs: Pairs, sign: int) -> Stretches:
        """Move ends to neighbours while pairs shrink (or stretch, if ``sign`` is -1)."""
        first, second = pairs.first.copy(), pairs.second.copy()
        best, moving, n_seen = sign * pairs.stretches(Y), np.arange(len(pairs)), 0
        for _ in range(MOST_STEPS):
            one, other = self._moves(first[moving], second[moving])
            values = self._values(Y, self._pairs(one.ravel(), other.ravel()), sign)
            values, n_seen = values.reshape(one.shape), n_seen + values.size
            places = np.arange(len(values)), values.argmin(axis=1)
            better = values[places] < best[moving]
            moving = moving[better]
            if not len(moving):
                break
            best[moving] = values[places][better]
            first[moving], second[moving] = one[places][better], other[places][better]
        found = self._measured(Y, self._pairs(first, second))
        return found._replace(n_pairs=n_seen)

    def _moves(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each pair a row of pairs with one end moved to a neighbour."""
        near_first, near_second = self.near[first], self.near[second]
        one = np.hstack([near_first, np.repeat(first[:, np.newaxis], near_second.shape[1], axis=1)])
        other = np.hstack([np.repeat(second[:, np.newaxis], near_first.shape[1], 1), near_second])
        return one, other

    def _values(self, Y: np.ndarray, pairs: Pairs, sign: int) -> np.ndarray:
        """Return the objective of a climb; infinity for pairs without a distance."""
        sound = self._is_sound(pairs)
        values = np.full(len(pairs), np.inf)
        values[sound] = sign * pairs[sound].stretches(Y)
        return values


def _linked(graph: Any) -> Pairs:
    """Return the pairs of a symmetric graph of squared distances, each once."""
    first = np.repeat(np.arange(graph.shape[0], dtype=graph.indices.dtype), np.diff(graph.indptr))
    upper = first < graph.indices
    return Pairs(first[upper], graph.indices[upper], graph.data[upper].astype(np.float64))


def _trusted_squares(Z: np.ndarray) -> np.ndarray:
    """Return for each point the largest squared distance that is only rounding."""
    unit = ROUNDING * float(np.finfo(Z.dtype).eps)
    return unit**2 * np.einsum("ij,ij->i", Z, Z, dtype=np.float64)


def _squares(points: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return squared distances of some pairs of rows."""
    out = np.empty(len(first))

    def measure(start: int) -> None:
        some = slice(start, start + LISTED_PAIRS)
        kernels.pair_squares(points, first[some], second[some], out[some])

    in_threads(measure, range(0, len(first), LISTED_PAIRS))
    return out
