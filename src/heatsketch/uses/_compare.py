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
are discussed in :mod:`heatsketch.uses._repeated_rows`. The units
of a permutation are sorted by random numbers that depend on the seed, the unit and the permutation
only, and assigned to the groups in this order.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from heatsketch._core.checks import check_integer, check_integers, is_missing
from heatsketch._core.html import html_table
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import (
    PIECE,
    computed,
    from_each_block,
    of_pieces,
    over_rows,
)
from heatsketch._core.warn import warn
from heatsketch.diffusion._random_matrix import Kind, random_block
from heatsketch.diffusion._sketch import diffuse_path
from heatsketch.exceptions import DtypeError, HeatSketchError, HeatSketchWarning, MissingValueError
from heatsketch.heat import HeatGraph
from heatsketch.heat._graph import graph_of
from heatsketch.uses._repeated_rows import numbers_of_points, points_of, units_of_records

POWERS = (3, 6, 12, 24)
SAMPLES = ("reference", "new")  # group names when a new sample is compared with a fitted one
TILE_BYTES = 2**31  # memory for permutations at a time
KEYS_AT_A_TIME = 8  # columns in one tile of the random stream
MOST_GROUPS = 50  # more are probably numbers, not labels


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
    >>> from heatsketch import HeatGraph, compare
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[200:220] = X[200:220] / 10 + 2
    >>> compare(HeatGraph.from_points(X), np.arange(300) >= 200)
    Comparison(p = 0.005, 21 of 300 rows flagged at level 0.05)
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
        return f"Comparison({self.summary})"

    @property
    def summary(self) -> str:
        """The p-value, and how many rows are flagged, in one line."""
        flagged = f"{self.flagged.sum()} of {len(self.z)} rows flagged at level {self.level:g}"
        return f"p = {self.p_value:.3g}, {flagged}"

    def _repr_html_(self) -> str:
        """Return a table of the flagged rows, by group, for a notebook."""
        lines = []
        for label in self.groups[-1:] if len(self.groups) == 2 else self.groups:
            for sign, more in ((1, "more"), (-1, "less")):
                rows = self.flagged & (self.group == label) & (sign * self.z > 0)
                if rows.any():
                    effect = f"{np.median(self.effect[rows]):+.2f}"
                    lines.append((f"{more} {label}", int(rows.sum()), effect))
        lines.sort(key=lambda line: -line[1])
        columns = zip(*lines, strict=True) if lines else ((), (), ())
        names = ("around", "rows", "median effect")
        return html_table(dict(zip(names, columns, strict=True)), self.summary)


def compare(
    graph: Any,
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

    says how many more rows of group ``a`` are near row ``i`` than in permutations. The test
    statistic is the largest :math:`|z|` over rows, groups and powers, where ``z`` is ``y`` in
    standard deviations over permutations. If there are more than two groups, each is compared with
    all others together.

    Parameters
    ----------
    graph : HeatGraph, or anything that has one
    group : array or series of shape (n,)
        Group label of each row, of 2 to 50 groups. Groups have the order of their categories if
        they are a categorical of pandas or an Enum of polars, and are sorted otherwise.
    units : array of shape (n,), optional
        Rows with the same label belong to one unit, for instance one person, and are permuted
        together. All rows of a unit must be of one group. If omitted, each row is a unit, or equal
        rows if all of them are of one group. If the points are in memory, there is a
        warning for equal rows that may be repeated records, or shared by groups.
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
    In one of two samples of images, the digit 7 is missing:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatGraph, compare
    >>> X, digit = load_digits(return_X_y=True)
    >>> sample = np.random.default_rng(0).integers(2, size=len(X))
    >>> kept = (digit != 7) | (sample == 1)
    >>> result = compare(HeatGraph.from_points(X[kept]), sample[kept])
    >>> result.p_value, round(float(np.mean(digit[kept][result.flagged] == 7)), 1)
    (0.005, 1.0)
    """
    graph = graph_of(graph)
    groups, group_of_row = _checked_groups(group, graph.n_samples)
    n_permutations = check_integer("n_permutations", n_permutations)
    powers = sorted(set(check_integers("powers", powers)))
    if units is None:
        units = units_of_records(graph.numbers, numbers_of_points(graph), group_of_row)
    sizes, codes = _design(len(groups), group_of_row, units)
    _check_level(level, n_permutations, sizes)
    with graph.engine.working():
        shares = _Shares(graph.operator, graph.inner(codes), sizes, powers, seed)
        observed = shares.observed()
        scales, maxima = _scales_and_maxima(shares, observed, n_permutations)
        observed, scales = (
            [graph.gathered(part) for part in parts] for parts in (observed, scales)
        )
    return _comparison(shares, observed, scales, maxima, groups=groups, level=level)


def compare_to(
    graph: Any,
    X_new: Any,
    *,
    n_permutations: int = 199,
    level: float = 0.05,
    seed: int = 0,
) -> Comparison:
    """Test whether a new sample differs from the points of a graph, and where.

    A graph of both samples is made with the settings of the given graph, and compared by
    :func:`compare`.

    Parameters
    ----------
    graph : HeatGraph, or anything that has one
    X_new : array, sparse matrix or data frame of shape (n_new, n_features)
        New points. If some of them are points of the graph, or are repeated, there is a warning.
    n_permutations, level, seed :
        As for :func:`compare`.

    Returns
    -------
    Comparison
        Results for the rows of the graph, then for the new points. The groups are "reference" and
        "new"; effects are those of "new".

    Examples
    --------
    New points that lie elsewhere:

    >>> import numpy as np
    >>> from heatsketch import HeatGraph, compare_to
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> result = compare_to(HeatGraph.from_points(X[:200]), X[200:] + 0.5)
    >>> bool(result.flagged.any())
    True
    """
    graph = graph_of(graph)
    neighbors = graph.rule.neighbors
    points, places = points_of(graph)
    if points is None or neighbors.metric == "precomputed":
        raise HeatSketchError(
            "compare_to needs a graph of points in the memory of this machine. Make one graph of "
            "both samples, and use compare."
        )
    X_new = graph.rule.checked(X_new, graph.dtype)
    stack = sparse.vstack if sparse.issparse(points) else np.concatenate
    both = HeatGraph.from_points(
        stack([points[places], X_new]),
        metric=neighbors.metric,
        n_neighbors=neighbors.n_neighbors,
        weights=graph.settings["weights"],
        normalization=graph.settings["normalization"],
        engine=graph.engine,
    )
    is_new = np.arange(both.n_samples) >= graph.n_samples
    result = compare(both, is_new, n_permutations=n_permutations, level=level, seed=seed)
    groups = np.array(SAMPLES)
    return replace(result, groups=groups, group=groups[result.group.astype(int)])


def _checked_groups(group: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups in order, and the number of the group of each row."""
    groups, codes = _numbered("group", group, n_rows)
    if len(groups) < 2:
        raise HeatSketchError(
            f"group must have two or more distinct labels, got {reprlib.repr(groups.tolist())}."
        )
    if len(groups) > MOST_GROUPS:
        raise HeatSketchError(
            f"group must have at most {MOST_GROUPS} distinct labels, got {len(groups)}; "
            "merge groups, or cut numbers into intervals, for instance with pandas.cut."
        )
    return groups, codes


def _comparison(
    shares: _Shares,
    observed: list[np.ndarray],
    scales: list[np.ndarray],
    maxima: np.ndarray,
    *,
    groups: np.ndarray,
    level: float,
) -> Comparison:
    """Judge the rows at one power, and each row by the group that differs most."""
    counted = groups[-shares.n_counted :]
    shape = len(observed[0]), len(shares.powers), len(counted)
    z = np.hstack([_ratio(Y[:, :-1], s) for Y, s in zip(observed, scales, strict=True)])
    effect = np.hstack([Y[:, :-1] / Y[:, -1:] for Y in observed])
    sizes = np.abs(z).reshape(shape)
    p_values = _adjusted_p_values(sizes.max(axis=2), maxima, shares.A.dtype)
    # The shortest power that flags a row, or else that of the largest z.
    flags = p_values.min(axis=0) <= level
    time = int(flags.argmax() if flags.any() else sizes.max(axis=(0, 2)).argmax())
    best = sizes[:, time].argmax(axis=1)
    cell = np.arange(len(z)), time * len(counted) + best
    return Comparison(
        p_value=float(p_values.min()),
        power=shares.powers[time],
        p_values=p_values[:, time],
        z=z[cell],
        effect=effect[cell],
        group=counted[best],
        groups=groups,
        level=level,
        n_permutations=len(maxima),
    )


def _scales_and_maxima(
    shares: _Shares, observed: list[Any], n_permutations: int
) -> tuple[list[Any], np.ndarray]:
    """Return the scales of rows at each power, and the maxima of permutations."""
    tiles = shares.tiles(n_permutations)
    # Several tiles do not fit in memory together, and are computed twice.
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
        Unit and group of each row; see :func:`_design`.
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
        keys = random_block(Kind.PERMUTATION, n_units, n_columns, seed=seed, first_column=first)
        return np.partition(keys.T, lasts, axis=1)[:, lasts].T

    return np.hstack([some(first) for first in tile[::KEYS_AT_A_TIME]])


# --- blocks of rows ------------------------------------------------------------------------


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
        keys = random_block(Kind.PERMUTATION, units, n_columns, seed=seed, first_column=first)
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


def _design(n_groups: int, group_of_row: np.ndarray, units: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of units in each group, and a code of the unit and group of each row.

    The code is the number of the unit, times the number of groups, plus the number of the group.
    """
    labels, unit_of_row = _numbered("units", units, len(group_of_row))
    codes = unit_of_row * n_groups + group_of_row
    unit, group_of_unit = np.divmod(np.unique(codes), n_groups)
    if len(unit) > len(labels):
        mixed = unit[np.flatnonzero(np.diff(unit) == 0)[0]]
        raise HeatSketchError(
            f"units must have rows of one group each, but {labels[mixed]!r} has rows of several; "
            "give its rows in each group a unit of their own, or leave it out."
        )
    return np.bincount(group_of_unit, minlength=n_groups), codes


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
            f"{name} must have labels of one type, got {', '.join(kinds)}, which cannot be sorted."
        ) from error


def _checked_labels(name: str, labels: Any, n_rows: int) -> np.ndarray:
    """Return labels as an array, one for each row, none of them missing."""
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise HeatSketchError(
            f"{name} must have one label for each of the {n_rows} rows, got shape {values.shape}."
        )
    given = values.tolist() if values.dtype.kind in "fO" else []
    missing = [place for place, value in enumerate(given) if is_missing(value)]
    if missing:
        raise MissingValueError(
            f"{name} has no label in row {missing[0]}; leave out such rows, or label them."
        )
    return values


def _check_level(level: float, n_permutations: int, sizes: np.ndarray) -> None:
    if not 0 < level < 1:
        raise HeatSketchError(f"level must be between 0 and 1, got {level!r}; use 0.05.")
    if level * (n_permutations + 1) < 1:
        raise HeatSketchError(
            f"n_permutations must be at least {int(np.ceil(1 / level)) - 1} for level={level}, got "
            f"{n_permutations}: no p-value is below {1 / (n_permutations + 1):.3g}."
        )
    rarest = 1 / _n_partitions(sizes)
    if rarest > level:
        warn(
            HeatSketchWarning,
            f"units: {' and '.join(map(str, sizes))} units have so few permutations that p-values "
            f"are not reliable below {rarest:.2g}, but level={level}. Use more units.",
        )


def _n_partitions(sizes: np.ndarray) -> float:
    """Return the number of partitions of the units into groups of these sizes."""
    same = np.unique(sizes, return_counts=True)[1]  # interchangeable groups
    logarithm = gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum() - gammaln(same + 1).sum()
    return float(np.exp(min(logarithm, 700)))
