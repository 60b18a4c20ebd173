r"""Permutation test of whether, and where, groups of rows differ.

.. math:: y_{ia} = \sum_j (A^p)_{ij} \, (1[g_j = a] - \pi_a), \qquad
          z_{ia} = \frac{y_{ia}}{\sqrt{\frac{1}{B + 1} \sum_b (y_{ia}^{(b)})^2}}

Row ``j`` belongs to the group :math:`g_j`, and :math:`\pi_a` is the share of group ``a`` among
units. So :math:`y_{ia} / \sum_j (A^p)_{ij}` is the share of the group around row ``i``, less its
mean over permutations. The sum over ``b`` runs over the observed groups, ``b = 0``, and ``B``
permutations of them. The statistic is the largest :math:`|z|` over rows, groups and powers,

.. math:: T_b = \max_{i, a, p} |z_{ia}^{(b)}|, \qquad
          P = \frac{\#\{b : T_b \ge T_0\}}{B + 1}.

If groups do not differ, the ``B + 1`` columns are exchangeable, given the operator. All of them
enter the scale of a row in the same way, so that :math:`T_0, \ldots, T_B` are exchangeable, too:
``P`` is at most ``level`` with a probability of at most ``level``, for any ``A``, number of rows
and powers. For one row and power, :math:`\#\{b : T_b \ge |z_i|\} / (B + 1)` is a p-value adjusted
for all rows and powers (Westfall and Young, 1993): the family-wise error of the flagged rows is
``level``. A value ``y`` depends on the rows that heat reaches in ``p`` steps, and on the overall
share :math:`\pi_a`. So a change elsewhere flags a row if heat from there reaches it, or if the
change is so large that the share of the group falls everywhere else. Rows are therefore judged at
the shortest power at which any row is flagged.

A unit is a row, unless rows belong together; all rows of a unit are permuted together. Equal rows
are discussed in :mod:`heatsketch.diffusion._repeated_rows`. The units
of a permutation are sorted by random numbers that depend on the seed, the unit and the permutation
only, and assigned to the groups in this order.
"""

from __future__ import annotations

import html
import reprlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import MISSING, check_integer
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import (
    PIECE,
    computed,
    from_each_block,
    in_memory,
    of_pieces,
    over_rows,
)
from heatsketch._core.warn import warn
from heatsketch.diffusion._affinity import gaussian_affinity, local_scales, locally_scaled
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import HeatOperator, heat_operator
from heatsketch.diffusion._random_matrix import Kind, gaussians_apart
from heatsketch.diffusion._repeated_rows import numbers_of_points, units_of_records
from heatsketch.diffusion._sketch import diffuse_path
from heatsketch.exceptions import DtypeError, HeatSketchError, HeatSketchWarning, MissingValueError
from heatsketch.graph._joined import joined_graph
from heatsketch.graph._neighbors import Neighbors

POWERS = (3, 6, 12, 24)
SAMPLES = ("reference", "new")  # group names when a new sample is compared with a fitted one
TILE_BYTES = 2**31  # memory for permutations at a time
KEYS_AT_A_TIME = 8  # columns in one tile of the random stream
MOST_GROUPS = 50  # more are probably numbers, and would take long
MANY_UNITS = 100  # more units than this have practically unlimited permutations


@dataclass(frozen=True, eq=False)
class Comparison:
    """Whether groups of rows differ, and around which rows.

    Attributes
    ----------
    p_value : float
        Probability of a difference at least this large around any row, at any power, if the groups
        do not differ.
    power : int
        The diffusion time at which all rows are judged: the shortest at which a row is flagged, or
        that of the largest ``|z|`` if none is.
    p_values : array of shape (n,)
        P-value of each row at this power, adjusted for all rows and powers.
    z : array of shape (n,)
        Deviation of the share of :attr:`group` around the row from its mean over permutations, in
        standard deviations. With several groups, the largest deviation in absolute value.
    effect : array of shape (n,)
        That share less its mean over permutations: 0.2 if 70 % are of the group, and 50 % are
        expected.
    group : array of shape (n,)
        The group that ``z`` and ``effect`` refer to; always the second one if there are two.
    groups : array
        All groups, in the order of their categories, or sorted.
    level : float
        Family-wise error of :attr:`flagged`.
    n_permutations : int

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import HeatSketch
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[200:220] = X[200:220] / 10 + 2
    >>> HeatSketch(8).fit(X).compare(np.arange(300) >= 200)
    Comparison(p_value=0.005, 21 of 300 rows flagged at level 0.05)
    """

    p_value: float
    power: int
    p_values: np.ndarray
    z: np.ndarray
    effect: np.ndarray
    group: np.ndarray
    groups: np.ndarray
    level: float
    n_permutations: int

    @property
    def flagged(self) -> np.ndarray:
        """Rows around which groups differ: an array of bool of shape (n,)."""
        return self.p_values <= self.level

    def at(self, rows: np.ndarray) -> Comparison:
        """Return the comparison for some rows, or for all in another order.

        Parameters
        ----------
        rows : array of int or bool

        Returns
        -------
        Comparison
        """
        names = ("p_values", "z", "effect", "group")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def __repr__(self) -> str:
        return f"Comparison(p_value={self.p_value:.3g}, {self._count})"

    @property
    def summary(self) -> str:
        """The p-value, and how many rows are flagged, in one line."""
        return f"p = {self.p_value:.3g}, {self._count}"

    @property
    def _count(self) -> str:
        return f"{self.flagged.sum()} of {len(self.z)} rows flagged at level {self.level:g}"

    def _repr_html_(self) -> str:
        """Return a table of the flagged rows, by group, for a notebook."""
        lines = []
        for label in self.groups[-1:] if len(self.groups) == 2 else self.groups:
            for sign, more in ((1, "more"), (-1, "less")):
                rows = self.flagged & (self.group == label) & (sign * self.z > 0)
                if rows.any():
                    name, share = html.escape(str(label)), np.median(self.effect[rows])
                    cells = f"{more} {name}", rows.sum(), f"{share:+.2f}"
                    lines.append("".join(f"<td>{cell}</td>" for cell in cells))
        head = "".join(f"<th>{cell}</th>" for cell in ("around", "rows", "median effect"))
        rows = "".join(f"<tr>{line}</tr>" for line in (head, *lines) if lines)
        return f"<p>{self.summary}</p><table>{rows}</table>"


def compare_groups(
    A: Any,
    group: Any,
    *,
    units: Any = None,
    powers: Iterable[int] = POWERS,
    n_permutations: int = 199,
    level: float = 0.05,
    seed: int = 0,
) -> Comparison:
    r"""Test whether groups of rows differ, and around which rows.

    .. math:: y_{ia} = \sum_j (A^p)_{ij} \, (1[g_j = a] - \pi_a)

    is the excess of group ``a`` around row ``i`` over its average over permutations. The test
    statistic is the largest :math:`|z|` over rows, groups and powers, where ``z`` is ``y`` in
    standard deviations over permutations. If there are more than two groups, each is compared with
    all others together.

    Parameters
    ----------
    A : HeatOperator
    group : array or series of shape (n,)
        Group label of each row, of 2 to 50 groups. Groups have the order of their categories if
        they are a categorical of pandas or an Enum of polars, and are sorted otherwise.
    units : array of shape (n,), optional
        Rows with the same label belong to one unit, for instance one person, and are permuted
        together. All rows of a unit must be of one group. If omitted, each row is a unit.
    powers : iterable of int, default=(3, 6, 12, 24)
        Diffusion times, which set the size of the region around a row. The largest :math:`|z|` over
        all powers counts, in permutations too, so that the test keeps its level. Rows are flagged
        at the shortest power that flags any, which localizes a change best.
    n_permutations : int, default=199
        Number of random permutations.
    level : float, default=0.05
        Family-wise error of the flagged rows.
    seed : int, default=0
        Seed of the permutations.

    Returns
    -------
    Comparison

    Raises
    ------
    HeatSketchError
        If there are fewer than two groups or more than 50, labels do not match the rows, or a unit
        has rows of two groups.

    Warns
    -----
    HeatSketchWarning
        If there are so few units that no p-value is reliably below ``level``.

    References
    ----------
    P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", Wiley (1993).

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import compare_groups, gaussian_affinity, heat_operator
    >>> from heatsketch.diffusion import symmetric_scaling
    >>> from heatsketch.graph import neighbor_graph
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + [0.8, 0]])
    >>> K = gaussian_affinity(neighbor_graph(X, n_neighbors=15), epsilon=0.1)
    >>> compare_groups(heat_operator(K, symmetric_scaling(K)), np.arange(400) // 200).p_value
    0.005
    """
    groups, codes = checked_groups(group, A.shape[0])
    options: Any = {"powers": powers, "n_permutations": n_permutations, "level": level}
    return _compare(A, groups, codes, units, seed=seed, **options)


def checked_groups(group: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups in order, and the number of the group of each row."""
    groups, codes = _numbered("group", group, n_rows)
    if len(groups) < 2:
        raise HeatSketchError(
            f"group={reprlib.repr(groups.tolist())} is one group; give labels of two or more."
        )
    if len(groups) > MOST_GROUPS:
        raise HeatSketchError(
            f"group has {len(groups)} distinct labels, and at most {MOST_GROUPS} are compared; "
            "merge groups, or cut numbers into intervals, for instance with pandas.cut."
        )
    return groups, codes


def _compare(
    A: Any,
    groups: np.ndarray,
    codes: np.ndarray,
    units: Any,
    *,
    powers: Iterable[int] = POWERS,
    n_permutations: int,
    level: float,
    seed: int,
) -> Comparison:
    """Compare groups whose rows have numbers."""
    n_permutations = check_integer("n_permutations", n_permutations)
    design = _design(groups, codes, units)
    _check_level(level, n_permutations, design.sizes)
    rows = _in_blocks_of(A, design.code_of_row)
    shares = _Shares(A, rows, design.sizes, _checked_powers(powers), seed)
    observed = shares.observed()
    scales, maxima = _scales_and_maxima(shares, observed, n_permutations)
    blocks, scales = ([in_memory(array) for array in arrays] for arrays in (observed, scales))
    counted = design.groups[-shares.n_counted :]
    shape = A.shape[0], len(shares.powers), len(counted)
    z = np.hstack([_ratio(Y[:, :-1], s) for Y, s in zip(blocks, scales, strict=True)])
    effect = np.hstack([Y[:, :-1] / Y[:, -1:] for Y in blocks])
    sizes, n_rows = np.abs(z).reshape(shape), len(z)
    p_values = _adjusted_p_values(sizes.max(axis=2), maxima, A.dtype)
    # The shortest power that flags a row, or else that of the largest z.
    flags = p_values.min(axis=0) <= level
    time = int(flags.argmax() if flags.any() else sizes.max(axis=(0, 2)).argmax())
    best = sizes[:, time].argmax(axis=1)
    cell = np.arange(n_rows), time * len(counted) + best
    return Comparison(
        p_value=float(p_values.min()),
        power=shares.powers[time],
        p_values=p_values[:, time],
        z=z[cell],
        effect=effect[cell],
        group=counted[best],
        groups=design.groups,
        level=level,
        n_permutations=n_permutations,
    )


def compare_in_order(
    A: Any, group: Any, order: np.ndarray, ids: Any, *, neighbors: Any, units: Any, **options: Any
) -> Comparison:
    """Compare groups of rows that are given and returned in another order.

    ``order`` holds the positions of the rows of ``A``, ``ids`` their ids, and ``neighbors`` their
    points, if known. By default, units are rows, or repeated rows.
    """
    groups, codes = checked_groups(group, len(order))
    codes = codes[order]
    if units is None:
        units = units_of_records(in_memory(ids), numbers_of_points(neighbors), codes)
    else:
        units = _checked_labels("units", units, len(order))[order]
    return _compare(A, groups, codes, units, **options).at(np.argsort(order))


def compare_new_rows(
    A: Any, neighbors: Any, X_new: Any, graph: dict[str, Any], **options: Any
) -> Comparison:
    """Compare new points with the training points of ``A``, in their given order.

    ``graph`` holds the options of :func:`joined_operator`.
    """
    order = neighbors.order
    joined = joined_operator(A, neighbors, X_new, **graph)
    rows = np.concatenate([order, np.arange(len(order), joined.shape[0])])
    codes = (rows >= len(order)).astype(np.intp)
    units = units_of_records(rows, numbers_of_points(neighbors, X_new), codes)
    found = _compare(joined, np.array(SAMPLES), codes, units, **options).at(np.argsort(rows))
    return replace(found, group=np.full(len(rows), SAMPLES[1]))


def check_can_join(A: Any, neighbors: Any) -> None:
    """Raise if new points cannot be joined to the neighbour graph of a fit."""
    in_memory_only = isinstance(neighbors, Neighbors) and sparse.issparse(A.matrix)
    if not in_memory_only or neighbors.metric == "precomputed":
        raise HeatSketchError(
            "compare_to joins new points to nearest neighbours that this model found in memory, "
            "among points without many duplicates. It has none; fit a model to both samples, and "
            "use its compare."
        )


def joined_operator(
    A: Any, neighbors: Any, X_new: Any, *, epsilon: Any, normalization: str
) -> HeatOperator:
    """Return the heat operator of training points, as in ``A``, and new points."""
    d2 = joined_graph(neighbors, A.matrix, X_new)
    if epsilon == "local":
        scales = local_scales(d2)
        d2, epsilon = locally_scaled(d2, scales, scales), 1.0
    K = gaussian_affinity(d2, epsilon=epsilon)
    return heat_operator(K, SCALINGS[normalization](K))


def _scales_and_maxima(
    shares: _Shares, observed: list[Any], n_permutations: int
) -> tuple[list[Any], np.ndarray]:
    """Return the scales of rows at each power, and the maxima of permutations."""
    tiles = shares.tiles(n_permutations)
    # A single tile is kept. Several do not fit in memory together, and are computed twice.
    permuted = cache(shares.permuted) if len(tiles) == 1 else shares.permuted
    squares = [shares.sums_of_squares(Y[:, :-1]) for Y in observed]
    for tile in tiles:
        for place, Y in enumerate(permuted(tile)):
            total = squares[place] + shares.sums_of_squares(Y)
            squares[place] = computed(shares.A.matrix, total)
    scales = [np.sqrt(total / (1 + n_permutations)) for total in squares]
    maxima = [
        np.max([_largest(*pair) for pair in zip(permuted(tile), scales, strict=True)], axis=0)
        for tile in tiles
    ]
    return scales, np.concatenate(maxima)


def _adjusted_p_values(sizes: np.ndarray, maxima: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the share of maxima, with the observed one, that reach each ``|z|``."""
    # Permutations that only rename the groups have the same maximum up to rounding.
    least = sizes * (1 - np.sqrt(np.finfo(dtype).eps))
    return (1 + len(maxima) - np.searchsorted(np.sort(maxima), least)) / (1 + len(maxima))


@dataclass(frozen=True, eq=False)
class _Shares:
    """Centred shares of groups around rows: observed, and in permutations.

    Attributes
    ----------
    A : HeatOperator
    rows : array of int of shape (n,)
        Unit and group of each row; see :class:`_Design`.
    sizes : array of int
        Number of units in each group.
    powers : list of int
    seed : int
    """

    A: Any
    rows: Any
    sizes: np.ndarray
    powers: list[int]
    seed: int

    @property
    def n_counted(self) -> int:
        """Number of groups counted; of two groups only the second is needed."""
        return _n_counted(self.sizes)

    def observed(self) -> list[Any]:
        """Return columns of counted groups, and row sums of ``A**p``, at each power."""
        fill = partial(_observed_block, sizes=self.sizes, dtype=self.A.dtype)
        return self._path(over_rows(fill, self.rows, self.n_counted + 1))

    def permuted(self, tile: range) -> list[Any]:
        """Return the columns of the counted groups in a tile, at each power."""
        limits = _largest_keys(self.sizes, tile, self.seed)
        options = {"sizes": self.sizes, "seed": self.seed, "dtype": self.A.dtype}
        fill = partial(_permuted_block, limits=limits, first=tile.start, **options)
        return self._path(over_rows(fill, self.rows, len(tile) * self.n_counted))

    def tiles(self, n_permutations: int) -> list[range]:
        """Split the numbers of permutations, from one, into tiles that fit in memory."""
        n_bytes = self.A.shape[0] * self.A.dtype.itemsize * self.n_counted * (len(self.powers) + 4)
        width = max(1, TILE_BYTES // n_bytes // KEYS_AT_A_TIME) * KEYS_AT_A_TIME
        return [
            range(i, min(i + width, n_permutations + 1))
            for i in range(1, n_permutations + 1, width)
        ]

    def sums_of_squares(self, block: Any) -> Any:
        """Return the sum of squares of each counted group over all columns."""
        sums = partial(_sums_of_squares, n_counted=self.n_counted)
        if isinstance(block, np.ndarray):
            return sums(block)
        chunks = block.chunks[0], (self.n_counted,)
        return block.map_blocks(sums, chunks=chunks, meta=np.empty((0, 0)))

    def _path(self, block: Any) -> list[Any]:
        """Return ``A**p`` times a block, the stationary direction included."""
        part = self.A.stationary_part(self.A.stationary_coefficients(block))
        blocks = diffuse_path(self.A, block, powers=self.powers)
        for place in range(len(blocks)):
            blocks[place] += part
        return blocks


def _largest_keys(sizes: np.ndarray, tile: range, seed: int) -> np.ndarray:
    """Return the largest key of every group but the last, for each permutation."""
    n_units, lasts = int(sizes.sum()), np.cumsum(sizes)[:-1] - 1

    def some(first: int) -> np.ndarray:
        n_columns = min(KEYS_AT_A_TIME, tile.stop - first)
        keys = gaussians_apart(Kind.PERMUTATION, n_units, n_columns, seed=seed, first_column=first)
        return np.partition(keys.T, lasts, axis=1)[:, lasts].T

    return np.hstack([some(first) for first in tile[::KEYS_AT_A_TIME]])


# --- blocks of rows ------------------------------------------------------------------------


def _in_blocks_of(A: Any, vector: np.ndarray) -> Any:
    """Return a vector partitioned like the rows of an operator."""
    if isinstance(A.stationary, np.ndarray):
        return vector
    return computed(A.matrix, np.isfinite(A.stationary) * vector)


def _n_counted(sizes: np.ndarray) -> int:
    return 1 if len(sizes) == 2 else len(sizes)


def _centred(groups: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return indicators of the counted groups, less the shares of their units."""
    counted = np.arange(len(sizes))[-_n_counted(sizes) :]
    return (groups[..., np.newaxis] == counted) - sizes[counted] / sizes.sum()


def _observed_block(codes: np.ndarray, *, sizes: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the columns of the counted groups, followed by a column of ones."""
    columns = _centred(codes % len(sizes), sizes)
    return np.append(columns, np.ones((len(codes), 1)), axis=1).astype(dtype)


def _permuted_block(
    codes: np.ndarray,
    *,
    sizes: np.ndarray,
    limits: np.ndarray,
    first: int,
    seed: int,
    dtype: Any,
) -> np.ndarray:
    """Return the columns of the counted groups in each permutation."""
    n_columns = limits.shape[1]
    out = np.empty((len(codes), n_columns, _n_counted(sizes)), dtype)

    def fill(start: int) -> None:
        rows = slice(start, start + PIECE)
        units = codes[rows] // len(sizes)
        keys = gaussians_apart(Kind.PERMUTATION, units, n_columns, seed=seed, first_column=first)
        out[rows] = _centred(sum(keys > limit for limit in limits), sizes)

    in_threads(fill, range(0, len(codes), PIECE))
    return out.reshape(len(codes), out.shape[1] * out.shape[2])


def _sums_of_squares(block: np.ndarray, *, n_counted: int) -> np.ndarray:
    """Return the sums of each counted group over all columns."""

    def sums(piece: np.ndarray) -> np.ndarray:
        squares = np.square(piece, dtype=np.float64)
        return squares.reshape(len(piece), -1, n_counted).sum(axis=1)

    return np.concatenate(of_pieces(sums, block))


def _largest(block: Any, scale: Any) -> np.ndarray:
    """Return the largest ``|z|`` of each permutation, over rows and groups."""
    return np.max(from_each_block(_largest_of_rows, block, scale), axis=0)


def _largest_of_rows(block: np.ndarray, scale: np.ndarray) -> np.ndarray:
    def largest(start: int) -> np.ndarray:
        rows = slice(start, start + PIECE)
        columns = block[rows].reshape(len(block[rows]), -1, scale.shape[1])
        return np.abs(_ratio(columns, scale[rows, np.newaxis])).max(axis=(0, 2))

    return np.max(in_threads(largest, range(0, len(block), PIECE)), axis=0)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the part over the whole, or zero where the whole is zero."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


# --- validation ----------------------------------------------------------------------------


class _Design(NamedTuple):
    """Groups and units.

    Attributes
    ----------
    groups : array
        Labels, in order.
    sizes : array of int
        Number of units in each group.
    code_of_row : array of int
        Number of the unit, times the number of groups, plus the number of the group.
    """

    groups: np.ndarray
    sizes: np.ndarray
    code_of_row: np.ndarray


def _design(groups: np.ndarray, group_of_row: np.ndarray, units: Any) -> _Design:
    n_rows = len(group_of_row)
    given = np.arange(n_rows) if units is None else np.asarray(units)
    labels, unit_of_row = _numbered("units", given, n_rows)
    codes = unit_of_row * len(groups) + group_of_row
    unit, group_of_unit = np.divmod(np.unique(codes), len(groups))
    if len(unit) > len(labels):
        mixed = unit[np.flatnonzero(np.diff(unit) == 0)[0]]
        raise HeatSketchError(
            f"units: {labels[mixed]!r} has rows of several groups, of which a permutation can keep "
            "none; give each of its samples a unit of its own, or leave it out."
        )
    sizes = np.bincount(group_of_unit, minlength=len(groups))
    return _Design(groups, sizes, codes)


def _numbered(name: str, labels: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, and the index of the label of each row.

    Labels are in the order of their categories, if they have categories, and else sorted.
    """
    values = _checked_labels(name, labels, n_rows)
    categories = getattr(getattr(labels, "dtype", None), "categories", None)
    if isinstance(categories, Collection):  # of pandas, or an Enum of polars
        places = {label: place for place, label in enumerate(categories)}
        codes = [places[label] for label in values.tolist()]
        used, numbers = np.unique(codes, return_inverse=True)
        return np.asarray(categories)[used], numbers
    try:
        return np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise DtypeError(
            f"{name} has labels of the types {', '.join(kinds)}, which cannot be sorted; use one "
            "type."
        ) from error


def _checked_labels(name: str, labels: Any, n_rows: int) -> np.ndarray:
    """Return labels as an array, one for each row, none of them missing."""
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise HeatSketchError(
            f"{name} of shape {values.shape} must be {n_rows} labels, one for each row."
        )
    given = values.tolist() if values.dtype.kind in "fO" else []
    missing = [place for place, value in enumerate(given) if _is_missing(value)]
    if missing:
        raise MissingValueError(
            f"{name} has no label in row {missing[0]}; leave out such rows, or give them a label."
        )
    return values


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in MISSING or value != value


def _checked_powers(powers: Any) -> list[int]:
    given = powers if isinstance(powers, Iterable) else [powers]
    whole = {check_integer("powers", power) for power in given}
    if not whole:
        raise HeatSketchError(f"powers={powers!r} is empty; use powers={POWERS}.")
    return sorted(whole)


def _check_level(level: float, n_permutations: int, sizes: np.ndarray) -> None:
    if not 0 < level < 1:
        raise HeatSketchError(f"level={level!r} must be between 0 and 1; use 0.05.")
    if level * (n_permutations + 1) < 1:
        raise HeatSketchError(
            f"n_permutations={n_permutations} allows no p-value below "
            f"{1 / (n_permutations + 1):.3g}; use {int(np.ceil(1 / level)) - 1} or more for "
            f"level={level}.",
            n_permutations=n_permutations,
            level=level,
        )
    rarest = 1 / _n_partitions(sizes)
    if rarest > level:
        warn(
            HeatSketchWarning,
            f"units: {' and '.join(map(str, sizes))} units have so few permutations that no "
            f"p-value is reliably below {rarest:.2g}, and level={level}; use more units.",
        )


def _n_partitions(sizes: np.ndarray) -> float:
    """Return the number of partitions of the units into groups of these sizes."""
    n_units = int(sizes.sum())
    if n_units > MANY_UNITS:
        return np.inf
    same = np.unique(sizes, return_counts=True)[1]  # interchangeable groups
    return factorial(n_units) / prod(map(factorial, [*sizes.tolist(), *same.tolist()]))
