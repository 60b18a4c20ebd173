r"""Difference between two sketches, and the rows that moved.

.. math:: Y - Z = \frac{1}{\sqrt{k}} M G, \qquad M = A^p - B^p, \qquad
          E |Y - Z|_F^2 = \operatorname{tr} M^2 = |A^p - B^p|_F^2,

if both use the same ``G``. The random numbers depend only on the seed, the row id and the column,
so two data sets with the same ids share them, and no rotation or alignment is needed before one
embedding is subtracted from the other. The variance is

.. math:: \operatorname{Var} |Y - Z|_F^2 = \frac{2}{k} \operatorname{tr} M^4

for Gaussians, and less for Rademacher numbers (the paper prints
:math:`\frac{2}{k} \operatorname{tr} M^2`). It is estimated from the two sketches: with
:math:`\Delta = Y - Z` two columns ``c`` and ``d`` have
:math:`E (\Delta^T \Delta)_{cd}^2 = \operatorname{tr} M^4 / k^2`.

A row that is in one data set only is a row and a column of zeros in the matrix of the other.
"""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

import numpy as np
from scipy.special import polygamma
from scipy.stats import false_discovery_control, norm, t

from heatsketch._core.checks import check_finite, check_rows, plain_floats
from heatsketch._core.html import html_table
from heatsketch._core.warn import warn
from heatsketch.diffusion._confidence import DistanceEstimate, distance_estimate, scale_interval
from heatsketch.exceptions import DisconnectedGraphWarning, HeatSketchError
from heatsketch.heat import Sketch
from heatsketch.heat._sketch import sketch_of

DECILE = float(norm.ppf(0.9))
NEAREST = 7  # the distance to this neighbour measures how sparse rows are around a row
# Exponent of p-values of the second ratio. Above 1 they may be a little larger than those of the
# first: this flags more of the rows that moved, at the same level (benchmarks/drift_level.py).
PLACE_EXPONENT = 1.25
FEWEST_GAPS = 10  # between large ratios, from which their tail is estimated
MOST_REFERENCES = 1000  # rows among which the neighbours of all rows are searched
ROWS_AT_A_TIME = 500


class Drift(NamedTuple):
    r"""Difference between two sketches, :math:`|A^p - B^p|_F^2`, and by row.

    Attributes
    ----------
    total : float
        Estimate of :math:`|A^p - B^p|_F^2`.
    standard_error : float
        Its estimated standard deviation over random matrices; too large for Rademacher ones.
    low, high : float
        Confidence interval of the true total. Like those of ``rows``, it covers the error of the
        sketch only, not that of the samples or of approximate graphs.
    relative : float
        ``total`` over the mean of :math:`|Y|_F^2` and :math:`|Z|_F^2`: 0.07 means that 7 % of the
        heat kernel changed. It is about 2 if the seeds differ.
    rows : DistanceEstimate
        Distance that each common row moved, :math:`|(A^p)_i - (B^p)_i|`. Its intervals hold for
        each row separately.
    p_values : array of shape (n_common,)
        P-values of the hypothesis that a row moved like the others, corrected for the number of
        rows.
    moved : array of bool of shape (n_common,)
        Rows that moved more than the others: those with the smallest p-values.
    ids : array of shape (n_common,)
        Ids common to both, in the order of ``Y``.
    came, went : arrays
        Ids only in ``Z``, and only in ``Y``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.uses._drift import drift_of_rows
    >>> ids = np.arange(3)
    >>> change = drift_of_rows(np.eye(3), 2 * np.eye(3), ids=ids, other_ids=ids)
    >>> change.total, change.relative
    (3.0, 0.4)
    """

    total: float
    standard_error: float
    low: float
    high: float
    relative: float
    rows: DistanceEstimate
    p_values: np.ndarray
    moved: np.ndarray
    ids: np.ndarray
    came: np.ndarray
    went: np.ndarray

    def _repr_html_(self) -> str:
        farthest = np.argsort(self.p_values, kind="stable")
        parts = {"id": self.ids, **self.rows._asdict(), "p_value": self.p_values}
        caption = (
            f"{100 * self.relative:.3g} % of the heat kernel moved: {self.total:.4g}, between "
            f"{self.low:.4g} and {self.high:.4g}; "
            f"{self.moved.sum():,} of {len(self.ids):,} rows moved more than the others, "
            f"{len(self.came):,} came, {len(self.went):,} went."
        )
        return html_table({name: part[farthest] for name, part in parts.items()}, caption)


def drift(before: Any, after: Any, *, confidence: float = 0.95) -> Drift:
    r"""Drift between two sketches that share their random numbers.

    .. math:: E |Y - Z|_F^2 = |A^p - B^p|_F^2, \qquad
              \operatorname{Var} |Y - Z|_F^2 = \frac{2}{k} \operatorname{tr} (A^p - B^p)^4

    Both matrices are taken over the union of the ids, with zeros where a row is absent. So a
    common row whose neighbour was removed has moved by the heat that it sent there, and the total
    includes added and removed rows in full.

    Any change of the data moves every row a little, so the question is which rows moved more than
    the others. Two ratios must be large, relative to the length of a row and to its surroundings:

    .. math:: \frac{|y_i - z_i|^2}{|y_i + z_i|^2} \quad \text{and} \quad
              \frac{|y_i - z_i|^2}{\delta_i^2 + \mu_i^2}.

    Here :math:`\delta_i` is the distance to the seventh nearest row and :math:`\mu_i` the median
    move of the nearest fifth of the rows, each in the sketch where it is larger. Noise moves a
    row farther where rows are sparse, and moves a weakly linked group of rows together. (If there
    are more than a thousand rows, both are computed from a thousand of them.) The null distribution
    of either ratio is estimated from the rows (Efron, 2004): the centre, spread and skewness of its
    logarithm are computed from the deciles. Where few rows moved and all others only followed, this
    distribution is wide; then the few are above a gap that is wider than those below it allow if
    ratios have the tail of a power law (Renyi, 1953). ``moved`` marks the rows that are extreme in
    both ratios, in one way or the other, at a false discovery rate (Benjamini and Hochberg, 1995)
    of ``1 - confidence``. This is relative: if
    all rows moved alike none is marked, however large ``total`` is. A row that moves far also moves
    its neighbours, and rows stand out only if fewer than a tenth of all moved. A small power, which
    keeps heat near its row, separates them best.

    Parameters
    ----------
    before, after : Sketch, or estimators that have one
        Sketches with the same settings, at least two components, and graphs that were made in the
        same way and share some ids. If the sums over all times of two sketches are not the same
        polynomial, both are computed again with that of the wider interval.
    confidence : float, default=0.95
        Confidence of the intervals, and one minus the false discovery rate.

    Returns
    -------
    Drift
        Its intervals cover the error of the sketch only. With ``power="all"`` the distance between
        connected components is left out.

    Raises
    ------
    HeatSketchError
        If settings or numbers of components differ, or no row is common.

    References
    ----------
    B. Efron, "Large-scale simultaneous hypothesis testing: the choice of a null hypothesis",
    Journal of the American Statistical Association 99 (2004).

    A. Renyi, "On the theory of order statistics", Acta Mathematica Academiae Scientiarum
    Hungarica 4 (1953).

    Examples
    --------
    Images of digits with two noise samples; in the second, two rows show other digits:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatGraph, drift, sketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> before, after = X + np.random.default_rng(0).normal(size=(2, *X.shape))
    >>> after[7], after[100] = X[0], X[1]
    >>> graphs = [HeatGraph.from_points(points, weights=500) for points in (before, after)]
    >>> change = drift(*(sketch(graph, power=2) for graph in graphs))
    >>> change.ids[change.moved], round(change.relative, 1)
    (array([  7, 100]), 0.1)
    """
    before, after = sketch_of("before", before), sketch_of("after", after)
    _check_comparable(before, after)
    before, after = _plain(before, after), _plain(after, before)
    if before.times is not None:
        parts = before.n_connected_components, after.n_connected_components
        if parts[0] != parts[1]:
            warn(
                DisconnectedGraphWarning,
                f"The graphs have {parts[0]} and {parts[1]} connected components. Distances "
                "between components are left out, so that components that joined or split count as "
                "drift. Use more neighbours, or one power such as power=8.",
            )
    return drift_of_rows(
        before.without_offsets(),
        after.without_offsets(),
        ids=before.ids,
        other_ids=after.ids,
        numbers=before.numbers,
        other_numbers=after.numbers,
        confidence=confidence,
        random_matrix=before.settings.random_matrix,
    )


def _plain(made: Sketch, other: Sketch) -> Sketch:
    """Return a sketch without leading directions, of the same sum over all times as another."""
    times, others = made.times, other.times
    if times is not None and others is not None:
        (low, high), (other_low, other_high) = times.interval, others.interval
        interval = np.array([min(low, other_low), max(high, other_high)])
        first_power = max(times.first_power, others.first_power)
        if first_power != times.first_power or (interval != times.interval).any():
            return made.plain(times._replace(first_power=first_power, interval=interval))
    return made.plain() if made.settings.n_leading else made


def _check_comparable(before: Sketch, after: Sketch) -> None:
    """Raise unless two sketches have the same settings."""
    one, two = before.how(), after.how()
    for name, value in one.items():
        if name != "n_leading" and value != two[name]:  # leading directions are not used
            raise HeatSketchError(
                f"before has {name}={value!r}, but after has {two[name]!r}; make both with "
                "the same settings."
            )


def drift_of_rows(
    Y: np.ndarray,
    Z: np.ndarray,
    *,
    ids: Any,
    other_ids: Any,
    numbers: Any = None,
    other_numbers: Any = None,
    confidence: float = 0.95,
    random_matrix: str = "gaussian",
) -> Drift:
    """Return the drift between two embeddings that share their random numbers.

    Rows are the same if their numbers are; by default these are the ids.
    """
    Y, Z = _checked_embedding("Y", Y), _checked_embedding("Z", Z)
    if Y.shape[1] < 2:
        raise HeatSketchError(
            "n_components must be at least 2, since one column cannot estimate its error."
        )
    y, z = _common(
        ids if numbers is None else numbers, other_ids if other_numbers is None else other_numbers
    )
    precision = max(float(np.finfo(rows.dtype).eps) for rows in (Y, Z))
    Y, Z = Y.astype(np.float64), Z.astype(np.float64)
    went, came = np.delete(np.arange(len(Y)), y), np.delete(np.arange(len(Z)), z)
    moves = Y[y] - Z[z]
    rows = distance_estimate(moves, confidence, random_matrix=random_matrix)
    p_values = _p_values(Y[y], Z[z], precision)
    # Including the rows that were added or removed, this is the difference of whole matrices.
    total, standard_error, n_effective = _total(np.concatenate([moves, Y[went], Z[came]]))
    low, high = scale_interval(n_effective, confidence, random_matrix=random_matrix)
    return Drift(
        total=total,
        standard_error=standard_error,
        low=low**2 * total,
        high=high**2 * total if high < np.inf else np.inf,
        relative=float(_ratio(total, (np.sum(Y**2) + np.sum(Z**2)) / 2)),
        rows=rows,
        p_values=p_values,
        moved=p_values <= 1 - confidence,
        ids=ids[y],
        came=other_ids[came],
        went=ids[went],
    )


# --- the total -----------------------------------------------------------------------------


def _total(difference: np.ndarray) -> tuple[float, float, int]:
    """Return the total, its standard error, and its degrees of freedom.

    A single row has ``k`` degrees of freedom, and a matrix in which ``r`` directions changed
    equally has ``k r`` (Satterthwaite, 1946). Computed from the whole Gram matrix, ``r`` lies
    between 1 and ``k`` and is somewhat too small. Without the diagonal it would be unbiased but
    unbounded, and the interval would be too short if there are few columns.
    """
    n_columns = difference.shape[1]
    gram = difference.T @ difference
    total = float(np.trace(gram))
    if not total:
        return 0.0, 0.0, n_columns
    gram /= total  # the fourth power of strongly decayed heat may underflow
    diagonal, all_squares = float(np.sum(np.diagonal(gram) ** 2)), float(np.sum(gram**2))
    # tr M^4 is the mean of k^2 times the k (k - 1) off-diagonal squares.
    relative_variance = 2 * max(all_squares - diagonal, 0.0) / (n_columns - 1)
    n_effective = max(n_columns, int(n_columns / all_squares))
    return total, total * float(np.sqrt(relative_variance)), n_effective


# --- the rows ------------------------------------------------------------------------------


def _p_values(Y: np.ndarray, Z: np.ndarray, precision: float) -> np.ndarray:
    """Return corrected p-values of the null hypothesis that all rows move alike.

    A row counts as moved only if it moved far for its length and for its surroundings. Rows are
    long, and move farther, where heat hardly spreads: at the boundary of the data and in sparse
    regions. A short row between two groups moves as far as they do, and so does an isolated row.
    """
    squares = _squares(Y - Z)
    shares = _ratio(squares, squares + _squares(Y + Z))
    # Two fits of the same data differ by rounding, which is ignored.
    shares = np.where(shares > precision, shares, 0.0)
    if not shares.any() or len(shares) < 2:
        return np.full(len(shares), 0.5)
    # Differences between shares far below the mean are irrelevant.
    odds = (shares + shares.mean() / 10) / np.maximum(1 - shares, precision)
    usual = np.sum(
        [np.maximum(*pair) for pair in zip(*_around(Y, Z, squares), strict=True)], axis=0
    )
    usual += max(np.median(usual) / 10, np.finfo(float).tiny)
    local = (squares + np.median(squares) / 10) / usual
    by_length, by_place = (_upper_tail(ratios, Y.shape[1]) for ratios in (odds, local))
    by_gaps = [_above_gaps(np.where(shares > 0, ratios, 0)) for ratios in (odds, local)]
    by_spread = false_discovery_control(np.maximum(by_length, by_place**PLACE_EXPONENT))
    return np.minimum(by_spread, np.maximum(*by_gaps))


def _upper_tail(values: np.ndarray, n_columns: int) -> np.ndarray:
    """Return upper tail probabilities, from the deciles of the logarithms."""
    logarithms = np.log(np.maximum(values, np.finfo(float).tiny))
    lower, centre, upper = np.quantile(logarithms, [0.1, 0.5, 0.9])
    # The spread is at least that of the sketch itself: the logarithm of chi-squared.
    finest = DECILE * np.sqrt(polygamma(1, n_columns / 2))
    left, right = max(centre - lower, finest), max(upper - centre, finest)
    scores = _normal_scores(logarithms - centre, left, right)
    # Student's t allows for the error of the deciles of few rows.
    return t.sf(scores, max(1.0, len(values) / 5))


def _above_gaps(values: np.ndarray) -> np.ndarray:
    """Return p-values of the largest values, from the gaps between them, for all together.

    If the upper tail is that of a power law, the gaps ``i * (log x_i - log x_(i + 1))`` between
    values in decreasing order are independent and exponential with one mean (Renyi, 1953); in a
    lighter tail those of the largest are smaller. So each of the first tenth of the gaps is
    compared with the mean of those that follow. Multiplied by ``2**i``, the p-values hold for all
    gaps together. A value gets the least p-value of the gaps below it.
    """
    p_values, order = np.ones(len(values)), np.argsort(-values, kind="stable")
    n_tested, n_positive = len(values) // 10, np.count_nonzero(values)
    if n_positive <= FEWEST_GAPS + 1:  # no tail to compare with
        p_values[order[: n_positive if n_positive <= n_tested else 0]] = 0
        return p_values
    i = np.arange(1, n_positive)
    gaps = -i * np.diff(np.log(values[order[:n_positive]]))
    sums = np.concatenate([[0.0], np.cumsum(gaps)])
    i = i[: min(n_tested, n_positive - 1 - FEWEST_GAPS)]
    ends = np.minimum(i + max(FEWEST_GAPS, n_tested), len(gaps))
    following = np.maximum(sums[ends] - sums[i], np.finfo(float).tiny)
    logarithms = i * np.log(2) - (ends - i) * np.log1p(gaps[i - 1] / following)
    p_values[order[: len(i)]] = np.exp(np.minimum(np.minimum.accumulate(logarithms[::-1])[::-1], 0))
    return p_values


def _around(Y: np.ndarray, Z: np.ndarray, moves: np.ndarray) -> list[np.ndarray]:
    """Return distances to near rows, and their median moves, for both sketches."""
    references = np.linspace(0, len(Y) - 1, min(len(Y), MOST_REFERENCES)).astype(int)
    return [_surroundings(rows, references, moves[references]) for rows in (Y, Z)]


def _surroundings(rows: np.ndarray, references: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Return squared distances to the seventh nearest reference, and moves.

    A move is the median of those of the nearest fifth of the references.
    """
    others, squares = rows[references], _squares(rows)
    nearest = min(NEAREST, len(others) - 1) - 1
    around = max(nearest, len(others) // 5 - 1)
    near, moved = surroundings = np.empty((2, len(rows)))
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        some = slice(start, start + ROWS_AT_A_TIME)
        distances = squares[some, np.newaxis] + squares[references] - 2 * rows[some] @ others.T
        here = np.arange(start, start + len(distances))
        distances[here[:, np.newaxis] == references] = np.inf  # a row is not its own neighbour
        places = np.argpartition(distances, (nearest, around), axis=1)
        near[some] = np.maximum(distances[np.arange(len(here)), places[:, nearest]], 0.0)
        moved[some] = np.median(moves[places[:, : around + 1]], axis=1)
    return surroundings


def _normal_scores(values: np.ndarray, left: float, right: float) -> np.ndarray:
    """Return normal scores of values with median 0, from their outer deciles.

    The deciles are ``-left`` and ``right``. If the right tail is longer, the values are modelled as
    the exponential of a normal variable (Tukey's g-distribution), otherwise as a normal variable.
    """
    growth = max(right / left, 1 + 1e-9)
    stretched = np.log1p((growth - 1) * np.maximum(values / right, -1 / growth))
    return DECILE * stretched / np.log(growth)


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)


def _ratio(part: Any, whole: Any) -> Any:
    """Return the part over the whole, or zero where the whole is zero."""
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


# --- validation ----------------------------------------------------------------------------


def _common(ids: np.ndarray, other_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the common ids in both, in the order of the first."""
    if {ids.dtype.kind, other_ids.dtype.kind} == {"i", "u"}:  # numpy compares these as floats
        ids, other_ids = ids.astype(object), other_ids.astype(object)
    _, first, second = np.intersect1d(ids, other_ids, assume_unique=True, return_indices=True)
    if not len(first):
        raise HeatSketchError(
            f"ids={reprlib.repr(ids.tolist())} and other_ids={reprlib.repr(other_ids.tolist())} "
            "have no id in common; pass the same ids for the same rows when making both graphs."
        )
    order = np.argsort(first)
    return first[order], second[order]


def _checked_embedding(name: str, values: Any) -> np.ndarray:
    array = plain_floats(np.asarray(values), name)
    check_rows(array, name)
    check_finite(array, name=name)
    return array
