r"""Smoothing of numeric columns over a graph.

.. math:: S = \bar s \, \frac{P^t X}{P^t s}, \qquad P = \mathrm{diag}(v)^{-1} A \, \mathrm{diag}(v)

``P`` is the random walk of the heat operator ``A`` with the stationary direction ``v``. Its rows
are nonnegative and sum to one, so that a smoothed value is a weighted mean of nearby values. The
sizes ``s`` are one, unless rows were measured to different depths, like cells: nearby counts are
then added up and divided by the sum of nearby depths, and :math:`\bar s` is the mean depth. This is
MAGIC (van Dijk et al., 2018) on the graph of a fitted model.

The time ``t`` is chosen on held-out data. Counts are split at random into two halves, which are
independent if counts are Poisson: one is smoothed, the other is held out. For other numbers, a
tenth of the entries is held out. The score is the correlation of a smoothed column with the
held-out values, averaged over columns. Noise of the held-out values lowers the correlations at all
times by the same factor, so that the maximum is at the time whose result correlates best with the
values without noise. A squared error or a likelihood would also penalize the scale, which smoothing
shrinks, and so prefer shorter times. The longest time is taken whose score is within one standard
error of the best, over columns (Breiman et al., 1984): with few data, short times look best by
chance more often than long ones, since they differ more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, check_integer, plain_floats, stored
from heatsketch._core.partitioned import check_not_lazy
from heatsketch._core.progress import steps
from heatsketch.exceptions import HeatSketchError

TIMES = (0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
PATIENCE = 3  # stop after this many times in a row without improvement
CHOICE_COLUMNS = 64  # most columns used to choose the time
HELD_OUT = 0.1
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
        Mean correlation of smoothed columns with held-out values, for each of these times.

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
        Number of steps.
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
        scores, time = by_column.mean(axis=1), longest_of_the_best(times, by_column)
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
    """Return times, and the correlation of each column with held-out values.

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
    rng = np.random.default_rng(SEED)
    some = _sampled_columns(columns, rng)
    block = _dense(columns, some, order, np.float64)
    # Sampled in the given row order, so that the order of the operator does not matter.
    given = block[np.argsort(order)]
    sizes = np.ones((len(given), 1)) if sizes is None else sizes
    score_of = _split_counts if are_counts(columns) else _held_out_entries
    score_at = score_of(A, given, order, rng, sizes)
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


def are_counts(columns: Any) -> bool:
    """Return True if all numbers are nonnegative integers.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._smoothing import are_counts
    >>> are_counts(np.array([[0.0, 2.0]])), are_counts(np.array([[0.0, 0.5]]))
    (True, False)
    """
    values = stored(columns)
    if not values.size or values.min() < 0:
        return False
    parts = (values[start : start + 10_000] for start in range(0, len(values), 10_000))
    return all(bool((part == np.rint(part)).all()) for part in parts)


def _split_counts(
    A: Any, given: np.ndarray, order: np.ndarray, rng: np.random.Generator, sizes: np.ndarray
) -> Callable[[int], np.ndarray]:
    """Return a function that smooths half of the counts and scores on the other."""
    half = rng.binomial(given.astype(np.int64), 0.5).astype(np.float64)
    other = ((given - half) / sizes)[order]
    known, weights = _Walk(A, half[order]), _Walk(A, sizes[order])

    def score(time: int) -> np.ndarray:
        return _correlations(known.at(time) / weights.at(time), other, np.ones_like(other))

    return score


def _held_out_entries(
    A: Any, given: np.ndarray, order: np.ndarray, rng: np.random.Generator, sizes: np.ndarray
) -> Callable[[int], np.ndarray]:
    """Return a function that smooths most entries and scores on the others."""
    is_out = (rng.random(given.shape) < HELD_OUT)[order]
    shares, kept, sizes = (given / sizes)[order], ~is_out, sizes[order]
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
