r"""Columns of numbers, smoothed over a graph.

.. math:: S = P^t X, \qquad P = \mathrm{diag}(v)^{-1} A \, \mathrm{diag}(v)

``P`` is the random walk of the heat operator ``A`` with the stationary direction ``v``. Its rows
are nonnegative and sum to one, so that a smoothed value is a weighted mean of values nearby. This
is MAGIC (van Dijk et al., 2018) on the graph of a fitted model.

The time ``t`` is chosen by data that smoothing does not see. Counts are split at random into two
independent halves, if they are Poisson: one is smoothed, and the other judges. Of other numbers, a
tenth of the entries is held out. The score is the correlation of a smoothed column with what was
held out, averaged over columns. Noise of what was held out lowers the correlations at all times by
the same factor, so that the largest is at the time whose result correlates best with the values
without noise. A squared error or a likelihood would ask for the right scale, too, which smoothing
shrinks, and so prefer shorter times. Two more rules keep the time from being too short. Counts of
many columns are judged as shares of the sum of their row, since both halves have the depth at which
the row was measured. And the longest time is taken whose score is within 1 % of the best: if the
graph was made from the same values, neighbours share some of their noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, check_integer, plain_floats, stored
from heatsketch._core.partitioned import check_not_lazy
from heatsketch._core.progress import steps
from heatsketch.exceptions import HeatSketchError

TIMES = (0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
PATIENCE = 3  # times in a row that are no better than the best, after which no more are tried
CHOICE_COLUMNS = 64  # columns that the time is chosen from
HELD_OUT = 0.1
NEARLY_BEST = 0.99  # share of the best score, with which the longest time is chosen
SHARED_COLUMNS = 32  # counts of so many columns are judged as shares of the sum of their row
CHUNK_BYTES = 2**28  # of columns that are smoothed at a time
SEED = 0


class Smoothing(NamedTuple):
    """Smoothed columns, and how their time was chosen.

    Attributes
    ----------
    values : array of shape (n_samples, n_columns) or (n_samples,)
        The smoothed values; what was given as ``out``, if anything was.
    time : int
        Number of steps.
    times : array of int of shape (m,)
        Times that were tried; none, if the time was given.
    scores : array of shape (m,)
        Mean correlation of smoothed columns with values that were held out, for each of them.

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
    A: Any, values: Any, *, time: Any = "auto", order: Any = None, out: Any = None
) -> Smoothing:
    """Smooth columns of numbers over a graph.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
    values : array or sparse matrix of shape (n, m) or (n,)
    time : int or "auto", default="auto"
        Number of steps.
    order : array of int of shape (n,), optional
        Row of ``values`` that belongs to each row of ``A``; all in order if left out.
    out : anything of shape (n, m) that takes ``out[:, columns] = block``, optional
        Where the result goes, if not to a new array.

    Returns
    -------
    Smoothing

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
    times, scores = np.empty(0, int), np.empty(0)
    if isinstance(time, str) and time == "auto":
        times, scores = time_scores(A, columns, order)
        time = times[scores >= NEARLY_BEST * scores.max()].max()
    time = check_integer("time", time, least=0)
    for some, block in _smoothed_chunks(A, columns, time, order):
        out[:, some] = block
    return Smoothing(out.reshape(shape) if len(shape) == 1 else out, time, times, scores)


def walk(A: Any, block: np.ndarray, n_steps: int) -> np.ndarray:
    """Return means over the places of a random walk after some steps.

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
    """Return columns, CSC if they are sparse, and the shape that the result shall have."""
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


def _dense(columns: Any, some: Any, order: np.ndarray, dtype: Any) -> np.ndarray:
    """Return some columns as a block, its rows in the order of the operator."""
    block = columns[:, some]
    block = block.toarray() if sparse.issparse(block) else block
    return np.ascontiguousarray(block[order], dtype)


def _smoothed_chunks(
    A: Any, columns: Any, time: int, order: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the columns of some chunks, and what they become, in the order that was given."""
    n_rows, n_columns = columns.shape
    width = max(1, min(n_columns, CHUNK_BYTES // (n_rows * A.dtype.itemsize)))
    places, done = np.argsort(order), steps("smoothing", -(-n_columns // width))
    for start in range(0, n_columns, width):
        some = slice(start, min(start + width, n_columns))
        yield some, walk(A, _dense(columns, some, order, A.dtype), time)[places]
        done()


# --- the time ---------------------------------------------------------------------------------


def time_scores(A: Any, columns: Any, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and how well smoothed columns agree with what was held out.

    Examples
    --------
    Points on a line, and counts whose mean grows slowly along it:

    >>> import numpy as np
    >>> from heatsketch.diffusion import degree_scaling, heat_operator
    >>> from heatsketch.diffusion._smoothing import time_scores
    >>> K = np.eye(90) + np.eye(90, k=1) + np.eye(90, k=-1)
    >>> counts = np.random.default_rng(0).poisson(np.linspace(0, 9, 90)[:, np.newaxis] * [1, 1])
    >>> times, scores = time_scores(heat_operator(K, degree_scaling(K)), counts, np.arange(90))
    >>> bool(times[scores.argmax()] > 2)
    True
    """
    rng = np.random.default_rng(SEED)
    some = _sampled_columns(columns, rng)
    block = _dense(columns, some, order, np.float64)
    # Drawn in the order that was given, so that the order of the operator changes nothing.
    given = block[np.argsort(order)]
    if _are_counts(columns):
        score_at = _split_counts(A, given, order, rng, _depths(columns))
    else:
        score_at = _held_out_entries(A, given, order, rng)
    times: list[int] = []
    scores: list[float] = []
    done = steps("choosing the time", len(TIMES))
    for time in TIMES:
        times.append(time)
        scores.append(score_at(time))
        done()
        if len(scores) - 1 - int(np.argmax(scores)) >= PATIENCE:
            break
    return np.array(times), np.array(scores)


def _sampled_columns(columns: Any, rng: np.random.Generator) -> np.ndarray:
    n_columns = columns.shape[1]
    if n_columns <= CHOICE_COLUMNS:
        return np.arange(n_columns)
    return np.sort(rng.choice(n_columns, CHOICE_COLUMNS, replace=False))


def _are_counts(columns: Any) -> bool:
    values = stored(columns)
    if not values.size or values.min() < 0:
        return False
    parts = (values[start : start + 10_000] for start in range(0, len(values), 10_000))
    return all(bool((part == np.rint(part)).all()) for part in parts)


def _depths(columns: Any) -> np.ndarray:
    """Return what counts of a row are divided by: their sum, or one if there are few columns."""
    if columns.shape[1] < SHARED_COLUMNS:
        return np.ones((columns.shape[0], 1))
    return np.maximum(np.asarray(columns.sum(axis=1), np.float64).reshape(-1, 1), 1)


def _split_counts(
    A: Any, given: np.ndarray, order: np.ndarray, rng: np.random.Generator, depths: np.ndarray
) -> Callable[[int], float]:
    """Return a function of time that smooths one half of the counts, and asks the other."""
    half = rng.binomial(given.astype(np.int64), 0.5).astype(np.float64)
    other = ((given - half) / depths)[order]
    state = _Walk(A, half[order])
    return lambda time: _mean_correlation(state.at(time), other, np.ones_like(other))


def _held_out_entries(
    A: Any, given: np.ndarray, order: np.ndarray, rng: np.random.Generator
) -> Callable[[int], float]:
    """Return a function of time that smooths most entries, and asks the others."""
    is_out = (rng.random(given.shape) < HELD_OUT)[order]
    values, kept = given[order], ~is_out
    # Without its mean, a column of which too little is near is predicted by its mean.
    values = values - values.mean(axis=0, where=kept) if kept.any(axis=0).all() else values
    known, weights = _Walk(A, values * kept), _Walk(A, kept.astype(np.float64))

    def score(time: int) -> float:
        weight = weights.at(time)
        found = np.divide(known.at(time), weight, out=np.zeros_like(values), where=weight > 1e-9)
        return _mean_correlation(found, values, is_out)

    return score


class _Walk:
    """A block that is smoothed step by step, in the precision of the operator."""

    def __init__(self, A: Any, block: np.ndarray) -> None:
        self.A, self.block, self.time = A, block.astype(A.dtype), 0

    def at(self, time: int) -> np.ndarray:
        self.block, self.time = walk(self.A, self.block, time - self.time), time
        return self.block.astype(np.float64)


def _mean_correlation(x: np.ndarray, y: np.ndarray, where: np.ndarray) -> float:
    """Return the mean over columns of correlations between some entries; of constants it is 0."""
    counts = np.maximum(where.sum(axis=0), 1)
    x = where * (x - (where * x).sum(axis=0) / counts)
    y = where * (y - (where * y).sum(axis=0) / counts)
    lengths = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    products = (x * y).sum(axis=0)
    ratios = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return math.fsum(ratios) / len(ratios)
