r"""Equal rows in a comparison of groups: repeated records, or values that were drawn again.

Equal rows are exchangeable one by one if they were drawn independently, as integer data often are.
A record that is repeated in its group is not: the permutation test would count it several times,
and reject too often. If no two equal rows are of different groups, they are permuted together. That
is exact for repeated records. Independent draws are seldom like this, unless few rows are equal,
and then it makes little difference.

Otherwise repeated records look the same as a difference of discrete distributions, and rows are
permuted one by one. Equal rows are paired at random. If groups do not differ, rows of a
pair are of one group with the probability :math:`\sum_a n_a (n_a - 1) / (n (n - 1))`. If
more pairs are of one group than expected by chance, there is a warning that records may be
repeated; if fewer are, that groups may share records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, special

from heatsketch._core.warn import warn
from heatsketch.diffusion._duplicates import copies_of_points
from heatsketch.exceptions import HeatSketchWarning
from heatsketch.heat import HeatGraph

CHANCE = 1e-3  # probability of a warning about independent rows, in each direction
SEED = 0


def points_of(graph: HeatGraph) -> tuple[Any, Any]:
    """Return the stored points of a graph, and the place of each row among them.

    Both are None if the points are not in memory, as for given weights or on a cluster.
    """
    points = getattr(graph.rule.neighbors, "points", None)
    if points is None:
        return None, None
    places, starts = np.arange(points.shape[0]), graph.rule.starts
    return points, graph.gathered(places if starts is None else np.repeat(places, np.diff(starts)))


def numbers_of_points(graph: HeatGraph) -> np.ndarray | None:
    """Return the number of the distinct point of each row; None if points are not in memory."""
    points, places = points_of(graph)
    if points is None:
        return None
    points = sparse.csr_array(points) if sparse.issparse(points) else points
    return copies_of_points(points)[0][places]


def units_of_records(ids: np.ndarray, points: np.ndarray | None, groups: np.ndarray) -> np.ndarray:
    """Return a unit for each row: one for equal rows if all of them are of one group.

    Without the numbers of their points, all rows are units. Warns if equal rows are of one group
    more or less often than by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.uses._repeated_rows import units_of_records
    >>> ids, points = np.array([9, 7, 8, 6]), np.array([0, 0, 1, 1])
    >>> units_of_records(ids, points, np.array([0, 0, 1, 1]))
    array([7, 7, 6, 6])
    >>> units_of_records(ids, points, np.array([0, 0, 0, 1]))
    array([9, 7, 8, 6])
    """
    n_points = len(ids) if points is None else int(points.max()) + 1
    if points is None or n_points == len(ids):
        return ids
    is_together = len(np.unique(points * (groups.max() + 1) + groups)) == n_points
    _warn_about_repeated_rows(points, groups, is_together=is_together)
    if not is_together:
        return ids
    # The smallest id, so that permutations do not depend on the order of rows.
    order = np.lexsort((ids, points))
    return ids[order][np.searchsorted(points[order], points)]


def _warn_about_repeated_rows(points: np.ndarray, groups: np.ndarray, *, is_together: bool) -> None:
    """Warn if equal rows are of one group more or less often than by chance."""
    n_rows = len(points)
    one, other = _random_pairs(points)
    n_pairs, n_same = len(one), int((groups[one] == groups[other]).sum())
    sizes = np.bincount(groups)
    expected = float((sizes / n_rows) @ ((sizes - 1) / (n_rows - 1)))
    shares = f"{n_same / n_pairs:.0%} of pairs of equal rows are of one group, and {expected:.0%}"
    if n_same and special.bdtrc(n_same - 1, n_pairs, expected) < CHANCE:
        message = (
            f"{shares} are expected by chance. If records are repeated, p-values are far too "
            "small: drop repeated rows, or give the label of each record in units. If rows are "
            "independent, groups differ."
        )
        if is_together:
            message = (
                f"{n_rows - points.max() - 1} of {n_rows} rows repeat another row, always of the "
                "same group, and are permuted with it as one record. Drop repeated rows, or give "
                "each row its own label in units if rows are independent."
            )
        warn(HeatSketchWarning, message)
    elif special.bdtr(n_same, n_pairs, expected) < CHANCE:
        warn(
            HeatSketchWarning,
            f"{shares} are expected by chance: groups may share records, which hides differences. "
            "Keep shared rows in one group only.",
        )


def _random_pairs(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return disjoint random pairs of equal rows: half as many as there are copies."""
    shuffled = np.random.default_rng(SEED).permutation(len(points))
    rows = shuffled[np.argsort(points[shuffled], kind="stable")]
    numbers = points[rows]
    place = np.arange(len(rows)) - np.searchsorted(numbers, numbers)
    firsts = np.flatnonzero((place[:-1] % 2 == 0) & (numbers[:-1] == numbers[1:]))
    return rows[firsts], rows[firsts + 1]
