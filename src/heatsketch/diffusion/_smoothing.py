r"""Smoothing of numeric columns over a graph.

.. math:: S = \bar s \, \frac{P^t X}{P^t s}, \qquad P = \mathrm{diag}(v)^{-1} A \, \mathrm{diag}(v)

``P`` is the random walk of the heat operator ``A`` with the stationary direction ``v``. Its rows
are nonnegative and sum to one, so that a smoothed value is a weighted mean of nearby values. The
sizes ``s`` are one, unless rows were measured to different depths, like cells: nearby counts are
then added up and divided by the sum of nearby depths, and :math:`\bar s` is the mean depth. This is
MAGIC (van Dijk et al., 2018) on the graph of a fitted model.

The time ``t`` is chosen on held-out entries. Each entry of a column is assigned to one of ten folds
at random, and the entries of a fold are predicted by means of the others nearby. So an entry has no
part in its own prediction, and noise may have any distribution, if it is independent between
entries. Small data are predicted in all folds, large data in some. The score is the correlation of
predicted and held-out values, averaged over columns and folds. Noise of the held-out values lowers
the correlations at all times by the same factor, so that the maximum is at the time whose result
correlates best with the values without noise. A squared error or a likelihood would also penalize
the scale, which smoothing shrinks, and so prefer shorter times. The longest time is taken whose
score is within one standard error of the best (Breiman et al., 1984): with few data, short times
look best by chance more often than long ones, since they differ more. Predictions that are
unrelated to ``N`` held-out entries have a score with the standard deviation :math:`N^{-1/2}`. If
the best score is below 2.5 times this, the time is zero, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, check_integer, plain_floats
from heatsketch._core.partitioned import check_not_lazy
from heatsketch._core.progress import steps
from heatsketch._core.warn import warn
from heatsketch.exceptions import HeatSketchError, HeatSketchWarning

TIMES = (0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
PATIENCE = 3  # stop after this many times in a row without improvement
CHOICE_COLUMNS = 64  # most columns used to choose the time
N_FOLDS = 10
SCORED_ENTRIES = 2**21  # most entries of the folds that are scored; one fold is always scored
LEAST_SCORE = 2.5  # in standard deviations; noise reaches it in a tenth of cases
CHUNK_BYTES = 2**28  # of columns smoothed at a time
SEED = 0


class Smoothing(NamedTuple):
    """Smoothed columns, with the time and the scores it was chosen by.

    Attributes
    ----------
    values : array of shape (n_samples, n_columns) or (n_samples,)
        The smoothed values; the argument ``out``, if given.
    time : int
        Number of steps.
    times : array of int of shape (m,)
        Times that were tried; empty if the time was given.
    scores : array of shape (m,)
        Mean correlation of held-out entries with their predictions, for each of these times.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatSketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> noisy = X + np.random.default_rng(0).normal(0, 4, X.shape)
    >>> found = HeatSketch(1, power=1).fit(X).smooth(noisy)
    >>> found.time in found.times
    True
    >>> bool(np.abs(found.values - X).mean() < 0.6 * np.abs(noisy - X).mean())
    True
    """

    values: Any
    time: int
    times: np.ndarray
    scores: np.ndarray


def smooth(
    A: Any,
    values: Any,
    *,
    time: Any = "auto",
    sizes: Any = None,
    order: Any = None,
    out: Any = None,
) -> Smoothing:
    r"""Smooth columns of numbers over a graph.

    .. math:: S = \bar s \, \frac{P^t X}{P^t s}

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    values : array or sparse matrix of shape (n, m) or (n,)
    time : int or "auto", default="auto"
        Number of steps. "auto" chooses it on held-out entries, whose noise must be independent.
    sizes : array of shape (n,) or "sum", optional
        Measurement size ``s`` of each row: the depth of a cell, the length of a text. "sum" takes
        the row sums. If omitted, all sizes are one.
    order : array of int of shape (n,), optional
        Row of ``values`` for each row of ``A``; the same order if omitted.
    out : object of shape (n, m) that supports ``out[:, columns] = block``, optional
        Output array; a new one if omitted.

    Returns
    -------
    Smoothing

    Warns
    -----
    HeatSketchWarning
        If ``time="auto"`` chooses 0, so that values are not smoothed.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import degree_scaling, heat_operator, smooth
    >>> K = np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1)
    >>> smooth(heat_operator(K, degree_scaling(K)), [3.0, 0.0, 0.0], time=1).values.round(3)
    array([1.5, 1. , 0. ])
    """
    check_not_lazy("smoothed values", A.stationary)
    n_rows = A.shape[0]
    order = np.arange(n_rows) if order is None else order
    columns, shape = _checked_values(values, n_rows)
    out = _checked_output(out, columns.shape, A.dtype)
    sizes = _checked_sizes(sizes, columns)
    times, scores = np.empty(0, int), np.empty(0)
    if isinstance(time, str) and time == "auto":
        times, by_column = time_scores(A, columns, order, sizes)
        scores, time = by_column.mean(axis=1), _chosen_time(times, by_column, n_rows)
    time = check_integer("time", time, least=0)
    nearby = 1.0
    if sizes is not None:
        nearby = walk(A, sizes[order].astype(A.dtype), time) / sizes.mean()
    for some, block in _smoothed_chunks(A, columns, time, order, nearby):
        out[:, some] = block
    return Smoothing(out.reshape(shape) if len(shape) == 1 else out, time, times, scores)


def walk(A: Any, block: np.ndarray, n_steps: int) -> np.ndarray:
    """Return means over the positions of a random walk after some steps.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import degree_scaling, heat_operator
    >>> from heatsketch.diffusion._smoothing import walk
    >>> K = np.array([[1.0, 1.0], [1.0, 3.0]])
    >>> walk(heat_operator(K, degree_scaling(K)), np.array([[4.0], [0.0]]), 1)
    array([[2.],
           [1.]])
    """
    if not n_steps:
        return block
    v = A.stationary[:, np.newaxis]
    block = v * block
    for _ in range(n_steps):
        block = A @ block
    block /= v
    return block


def _checked_values(values: Any, n_rows: int) -> tuple[Any, tuple[int, ...]]:
    """Return columns, in CSC format if sparse, and the shape of the result."""
    shape = values.shape if hasattr(values, "shape") else np.shape(values)
    if len(shape) not in (1, 2) or shape[0] != n_rows or 0 in shape:
        raise HeatSketchError(
            f"values has shape {shape}, and the graph has {n_rows} rows; give one row of numbers "
            "for each of them, in the order of X."
        )
    given = values if len(shape) == 2 else np.reshape(values, (-1, 1))
    columns = plain_floats(given, "values")
    check_finite(columns, name="values")
    return (sparse.csc_array(columns) if sparse.issparse(columns) else columns), tuple(shape)


def _checked_output(out: Any, shape: tuple[int, int], dtype: Any) -> Any:
    if out is None:
        return np.empty(shape, dtype)
    if tuple(out.shape) != shape:
        raise HeatSketchError(
            f"out has shape {tuple(out.shape)}, and the result has {shape}; give an array of that "
            "shape, or leave it out."
        )
    return out


def _checked_sizes(sizes: Any, columns: Any) -> np.ndarray | None:
    """Return positive sizes as a column; rows with a sum of zero get size one."""
    if sizes is None:
        return None
    if isinstance(sizes, str):
        if sizes != "sum":
            raise HeatSketchError(f"sizes={sizes!r} is unknown; use 'sum', an array or None.")
        sums = np.asarray(columns.sum(axis=1), np.float64).reshape(-1, 1)
        if sums.min() < 0:
            row = int(sums.argmin())
            raise HeatSketchError(
                f"sizes='sum', and row {row} of values has the sum {sums[row, 0]:.3g}; give "
                "counts, or sizes above zero."
            )
        return np.where(sums > 0, sums, 1.0)
    given = plain_floats(np.reshape(sizes, (-1, 1)), "sizes").astype(np.float64)
    check_finite(given, name="sizes")
    if len(given) != columns.shape[0] or given.min() <= 0:
        raise HeatSketchError(
            f"sizes has {len(given)} numbers of which the smallest is {given.min():.3g}; give one "
            f"above zero for each of the {columns.shape[0]} rows."
        )
    return given


def _dense(columns: Any, some: Any, order: np.ndarray, dtype: Any) -> np.ndarray:
    """Return some columns as a block, with rows in the order of the operator."""
    block = columns[:, some]
    block = block.toarray() if sparse.issparse(block) else block
    return np.ascontiguousarray(block[order], dtype)


def _smoothed_chunks(
    A: Any, columns: Any, time: int, order: np.ndarray, nearby: Any
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of columns, and the smoothed columns in the given row order."""
    n_rows, n_columns = columns.shape
    width = max(1, min(n_columns, CHUNK_BYTES // (n_rows * A.dtype.itemsize)))
    places, done = np.argsort(order), steps("smoothing", -(-n_columns // width))
    for start in range(0, n_columns, width):
        some = slice(start, min(start + width, n_columns))
        block = walk(A, _dense(columns, some, order, A.dtype), time)
        block /= nearby
        yield some, block[places]
        done()


# --- the time ---------------------------------------------------------------------------------


def time_scores(
    A: Any, columns: Any, order: np.ndarray, sizes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and the correlation of each column and fold with its held-out entries.

    Examples
    --------
    Points on a line, and counts whose mean grows slowly along it:

    >>> import numpy as np
    >>> from heatsketch.diffusion import degree_scaling, heat_operator
    >>> from heatsketch.diffusion._smoothing import time_scores
    >>> K = np.eye(90) + np.eye(90, k=1) + np.eye(90, k=-1)
    >>> counts = np.random.default_rng(0).poisson(np.linspace(0, 9, 90)[:, np.newaxis] * [1, 1])
    >>> times, scores = time_scores(heat_operator(K, degree_scaling(K)), counts, np.arange(90))
    >>> bool(times[scores.mean(axis=1).argmax()] > 2)
    True
    """
    sizes = np.ones((len(order), 1)) if sizes is None else sizes
    score_at = _held_out_scores(A, columns, order, sizes)
    times: list[int] = []
    scores: list[np.ndarray] = []
    done = steps("choosing the time", len(TIMES))
    for time in TIMES:
        times.append(time)
        scores.append(score_at(time))
        done()
        if len(scores) - 1 - int(np.argmax(np.mean(scores, axis=1))) >= PATIENCE:
            break
    return np.array(times), np.array(scores)


def _chosen_time(times: np.ndarray, scores: np.ndarray, n_rows: int) -> int:
    """Return the longest of the best times, or zero if neighbours predict nothing."""
    best = float(scores.mean(axis=1).max())
    n_held_out = scores.shape[1] * n_rows / N_FOLDS
    if best > LEAST_SCORE / np.sqrt(n_held_out):
        return longest_of_the_best(times, scores)
    warn(
        HeatSketchWarning,
        "time='auto': values are not smoothed, since neighbours do not predict them (the "
        f"correlation with held-out entries is {best:.2g} at best); use a graph of points "
        "that are related to the values, or give the number of steps.",
    )
    return 0


def longest_of_the_best(times: np.ndarray, scores: np.ndarray) -> int:
    """Return the longest time with a score within one standard error of the best.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._smoothing import longest_of_the_best
    >>> longest_of_the_best(np.array([1, 2, 4]), np.array([[0.1, 0.2], [0.3, 0.5], [0.4, 0.3]]))
    4
    >>> longest_of_the_best(np.array([1, 2, 4]), np.array([[0.1, 0.2], [0.3, 0.5], [0.2, 0.3]]))
    2
    """
    below = scores[scores.mean(axis=1).argmax()] - scores
    error = below.std(axis=1) / np.sqrt(max(scores.shape[1] - 1, 1))
    return int(times[below.mean(axis=1) <= error].max())


def _sampled_columns(columns: Any, rng: np.random.Generator) -> np.ndarray:
    n_columns = columns.shape[1]
    if n_columns <= CHOICE_COLUMNS:
        return np.arange(n_columns)
    return np.sort(rng.choice(n_columns, CHOICE_COLUMNS, replace=False))


def _held_out_scores(
    A: Any, columns: Any, order: np.ndarray, sizes: np.ndarray
) -> Callable[[int], np.ndarray]:
    """Return a function of the time: the score of each column and fold."""
    rng = np.random.default_rng(SEED)
    some = _sampled_columns(columns, rng)
    block = _dense(columns, some, order, np.float64)
    # Folds are drawn in the given row order, so that the order of the operator does not matter.
    fold = rng.integers(N_FOLDS, size=block.shape)[order]
    n_scored = min(max(SCORED_ENTRIES // block.size, 1), N_FOLDS)
    is_out = np.hstack([fold == number for number in range(n_scored)])
    kept, sizes = ~is_out, sizes[order]
    largest = np.abs(block).max(axis=0)  # without it, squares of large numbers would overflow
    shares = np.tile(block / np.where(largest > 0, largest, 1) / sizes, n_scored)
    # Columns are centred, so that an entry without nearby entries is predicted by the mean.
    shares = shares - shares.mean(axis=0, where=kept) if kept.any(axis=0).all() else shares
    known, weights = _Walk(A, shares * sizes * kept), _Walk(A, sizes * kept)

    def score(time: int) -> np.ndarray:
        weight = weights.at(time)
        found = np.divide(known.at(time), weight, out=np.zeros_like(shares), where=weight > 1e-9)
        return _correlations(found, shares, is_out)

    return score


class _Walk:
    """A block smoothed step by step, in the precision of the operator."""

    def __init__(self, A: Any, block: np.ndarray) -> None:
        self.A, self.block, self.time = A, block.astype(A.dtype), 0

    def at(self, time: int) -> np.ndarray:
        self.block, self.time = walk(self.A, self.block, time - self.time), time
        return self.block.astype(np.float64)


def _correlations(x: np.ndarray, y: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the correlation of each column over some entries; 0 for constants."""
    counts = np.maximum(where.sum(axis=0), 1)
    x = where * (x - (where * x).sum(axis=0) / counts)
    y = where * (y - (where * y).sum(axis=0) / counts)
    lengths = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    products = (x * y).sum(axis=0)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
